"""SIGTERM under load: what is under way is finished, and nothing that was acknowledged is lost."""

from __future__ import annotations

import time

from protocol.checker import Run, Settings
from support.fleet import Fleet
from support.report import Budget, Report
from support.server_process import ServerProcess
from torture.kill_server import end

DRAIN_SECONDS = 30


def run(report: Report, budget: Budget) -> None:
    seed = budget.dice.getrandbits(32)
    with (
        ServerProcess.temporary() as server,
        Fleet(2, server.folder, server.url, server.secret, "torture.drain", budget) as fleet,
        Run(Settings(server.url, server.secret, 0, clients=6, scopes=2, rate=250, seed=seed)) as pushers,
    ):
        fleet.begin(report)
        pushers.clients[0].attempt(pushers.start)
        fleet.work()
        while budget.left(0.7) > 0 and not pushers.verdict.over.is_set():
            time.sleep(budget.dice.uniform(0.3, 1.2))
            began = time.monotonic()
            code = server.terminate(DRAIN_SECONDS)
            report.worst("worst seconds to drain", time.monotonic() - began)
            report.require(code == 0, f"the server ended with {code} after SIGTERM")
            server.start()
            report.add("drains")
        end(report, pushers, fleet)
        # Only a closed connection or 503 is a way to be turned down; any other answer is a violation already.
        cut = sum(client.wire.cut for client in pushers.clients)
        report.require(cut == 0, f"{cut} answers were begun and not finished")
