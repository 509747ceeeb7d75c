"""Connections that are cut after any byte of request or answer, stalled one way, delayed and reset."""

from __future__ import annotations

from protocol.checker import Run, Settings
from support.byte_proxy import ByteProxy
from support.fleet import Fleet
from support.report import Budget, Report
from support.server_process import ServerProcess
from torture.kill_server import end


def run(report: Report, budget: Budget) -> None:
    seed = budget.dice.getrandbits(32)
    with (
        ServerProcess.temporary() as server,
        ByteProxy(server.port, budget.dice) as proxy,
        Fleet(3, server.folder, server.url, server.secret, "torture.cut", budget) as fleet,
        Run(Settings(proxy.url, server.secret, 0, clients=4, scopes=2, rate=120, seed=seed)) as pushers,
    ):
        fleet.begin(report)
        for device in fleet.devices:
            device.url = proxy.url
        while not pushers.clients[0].attempt(pushers.start) and not pushers.verdict.over.is_set():
            report.add("first questions lost")
        fleet.work()
        pushers.verdict.over.wait(max(2.0, budget.left(0.7)))
        proxy.faults_ended = True
        end(report, pushers, fleet)
        for what, count in proxy.counts.items():
            report.add(f"connections {what}", count)
        report.require(server.is_up(), "the server is gone")
