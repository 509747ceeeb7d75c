"""kill -9 of `tidemark sync` at any moment, also while another program writes to the file."""

from __future__ import annotations

import threading
import time

from support.device import Device
from support.fleet import Fleet
from support.report import Budget, Report
from support.server_process import ServerProcess

LATEST_SECONDS = 0.3
CYCLES_PER_CHECK = 20


def run(report: Report, budget: Budget) -> None:
    with (
        ServerProcess.temporary() as server,
        Fleet(2, server.folder, server.url, server.secret, "torture.client", budget) as fleet,
    ):
        fleet.begin(report)
        cycle = 0
        while budget.left(0.8) > 0:
            device = fleet.devices[cycle % 2]
            _kill_once(device, budget, report)
            cycle += 1
            if cycle % CYCLES_PER_CHECK == 0:
                found = device.integrity()
                report.require(found == "ok", f"after {cycle} kills {device.path.name} is damaged: {found}")
                _, told, _ = device.sync()
                fleet.pushed += told.get("pushed", 0)
        fleet.converge(report)
        report.add("acknowledged to devices that lived to tell", fleet.pushed)


def _kill_once(device: Device, budget: Budget, report: Report) -> None:
    device.edit(budget.dice.randint(1, 3))
    process = device.start_sync()
    writer = threading.Thread(target=device.edit, args=(budget.dice.randint(1, 6),))
    if budget.dice.random() < 0.5:
        writer.start()
    time.sleep(budget.dice.uniform(0, LATEST_SECONDS))
    report.add("client kills" if process.poll() is None else "clients that were done before")
    process.kill()
    process.communicate()
    if writer.ident is not None:
        writer.join()
