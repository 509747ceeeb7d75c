"""kill -9 of the server, again and again, under clients that push over HTTP and devices that sync files."""

from __future__ import annotations

import time

from protocol.checker import Run, Settings
from support.fleet import Fleet
from support.report import Budget, Report
from support.server_process import ServerProcess

DEVICES = 3


def run(report: Report, budget: Budget) -> None:
    seed = budget.dice.getrandbits(32)
    with (
        ServerProcess.temporary() as server,
        Fleet(DEVICES, server.folder, server.url, server.secret, "torture.kill", budget) as fleet,
        Run(Settings(server.url, server.secret, 0, clients=4, scopes=2, rate=120, seed=seed)) as pushers,
    ):
        fleet.begin(report)
        pushers.clients[0].attempt(pushers.start)
        fleet.work()
        while budget.left(0.75) > 0 and not pushers.verdict.over.is_set():
            time.sleep(budget.dice.uniform(0.05, 0.9))
            server.kill()
            began = time.monotonic()
            server.start()
            server.health_seconds()
            report.worst("worst seconds from kill to answer", time.monotonic() - began)
            report.add("server kills")
        end(report, pushers, fleet)


def end(report: Report, pushers: Run, fleet: Fleet) -> None:
    """Faults are over: all have to agree, and the figures are taken."""
    fleet.rest()
    began = time.monotonic()
    pushers.stop()
    report.worst("seconds until all clients agreed", time.monotonic() - began)
    fleet.converge(report)
    counts = pushers.verdict.counts
    report.add("acknowledged by HTTP", counts.get("verdicts", 0))
    report.add("acknowledged to devices", fleet.pushed)
    report.add("answers lost", counts.get("answers lost", 0))
    report.add("whole states checked", counts.get("whole states checked", 0))
    for violation in pushers.verdict.violations:
        report.fail(str(violation))
