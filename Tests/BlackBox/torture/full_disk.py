"""No space left: for the server in a push, for a device in a page. Then space again, and nobody is started anew."""

from __future__ import annotations

import shutil
from pathlib import Path

from support.fleet import Fleet
from support.pusher import SCOPE, Pusher
from support.report import Budget, Report, patiently
from support.server_process import ServerProcess
from torture.small_disk import MountRefused, SmallDisk


def run(report: Report, budget: Budget) -> None:
    try:
        with SmallDisk(24) as disk:
            _server(report, budget, disk)
        with SmallDisk(24) as disk:
            _device(report, budget, disk)
    except MountRefused as refused:
        report.not_run.append(str(refused))


def _server(report: Report, budget: Budget, disk: SmallDisk) -> None:
    with ServerProcess(disk.path) as server:
        server.start()
        pusher = Pusher(server)
        cycle = 0
        while cycle < 2 or (budget.left(0.5) > 0 and cycle < 20):
            cycle += 1
            disk.fill(leave_bytes=budget.dice.choice((0, 4096, 100_000, 700_000)))
            told: set[str] = set()
            for _ in range(20):
                status, headers, problem = pusher.push()
                if status == 200:
                    continue
                told.add(f"{status} {problem.get('code')}")
                report.add("pushes refused for want of space")
                fine = status in (503, 507) and "retry-after" in headers and problem.get("retryable") is True
                report.require(fine, f"a full disk answers {status} {headers.get('retry-after')} {problem}")
                if len(told) and budget.dice.random() < 0.3:
                    break
            report.require(bool(told), "the disk never was full")
            status, _, page = pusher.ask("GET", f"/sync/changes?scope={SCOPE}&limit=1")
            report.require(status in (200, 503, 507), f"a pull with a full disk answers {status} {page}")
            if cycle % 4 == 0:
                _killed_while_full(server, report, disk)
            disk.free()
            took = patiently(lambda: pusher.push()[0] == 200, 30)
            report.require(took is not None, "no push was taken within 30 s of space being there again")
            report.worst("worst seconds from space to push", took or 0)
            report.require(pusher.held() == pusher.acknowledged, "what was acknowledged and what is there differ")
            report.add("times the server's disk was full")
        report.require(server.is_up(), "the server is gone")


def _killed_while_full(server: ServerProcess, report: Report, disk: SmallDisk) -> None:
    """It may come up or say why not, and has to come up once there is space."""
    server.kill()
    try:
        server.start()
        report.add("starts with a full disk")
    except RuntimeError as error:
        report.add("starts with a full disk that were refused")
        report.require("Fatal" not in str(error) and "error:" in str(error), f"no clean end: {error}")
        server.kill()
        disk.free()
        server.start()


def _device(report: Report, budget: Budget, disk: SmallDisk) -> None:
    with (
        ServerProcess.temporary() as server,
        Fleet(2, server.folder, server.url, server.secret, SCOPE, budget) as fleet,
    ):
        full, other = fleet.devices
        full.path = Path(shutil.move(full.path, disk.path / full.path.name))
        fleet.begin(report)
        cycle = 0
        while cycle < 2 or (budget.left(0.9) > 0 and cycle < 20):
            cycle += 1
            full.edit(3, size=2_000)
            other.edit(10, size=20_000)
            other.sync()
            disk.fill(leave_bytes=budget.dice.choice((0, 4096, 60_000)))
            code, told, error = full.sync()
            report.add("syncs with a full disk")
            report.add("of them failed", code != 0)
            clean = code in (0, 1, 3) and "Fatal" not in error and "executing" not in error
            report.require(clean, f"a full disk ends sync with {code}: {error[:500]}")
            if code == 1:
                fleet.errors.add(error.strip()[:160])
            disk.free()
            code, _, error = full.sync()
            report.require(code == 0, f"with space again sync ends with {code}: {error[:500]}")
        report.counts["different errors"] = len(fleet.errors)
        fleet.converge(report)
