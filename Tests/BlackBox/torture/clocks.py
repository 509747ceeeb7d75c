"""A server whose clock is wrong, and wrong in another way after each restart."""

from __future__ import annotations

import http.client
import shutil
import time
from email.utils import parsedate_to_datetime

from protocol.checker import Run, Settings
from support.fleet import Fleet
from support.report import Budget, Report
from support.server_process import ServerProcess
from torture.kill_server import end

OFFSETS = ("+1h", "-1h", "+365d", "-365d", "+0")


def run(report: Report, budget: Budget) -> None:
    faketime = shutil.which("faketime")
    if faketime is None:
        report.not_run.append("wrong clocks: faketime is not installed")
        return
    seed = budget.dice.getrandbits(32)
    with (
        ServerProcess.temporary() as server,
        Fleet(2, server.folder, server.url, server.secret, "torture.clock", budget) as fleet,
        Run(Settings(server.url, server.secret, 0, clients=3, scopes=2, rate=80, seed=seed)) as pushers,
    ):
        fleet.begin(report)
        pushers.clients[0].attempt(pushers.start)
        fleet.work()
        for offset in OFFSETS:
            server.terminate()
            server.wrapper = [faketime, "-f", offset]
            server.start()
            report.add("clock jumps")
            report.worst("days that the clock was wrong at most", abs(_offset_seconds(server)) / 86_400)
            time.sleep(max(0.5, budget.seconds * 0.6 / len(OFFSETS)))
        end(report, pushers, fleet)


def _offset_seconds(server: ServerProcess) -> float:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    connection.request("GET", "/health")
    said = connection.getresponse().getheader("Date", "")
    connection.close()
    return parsedate_to_datetime(said).timestamp() - time.time()
