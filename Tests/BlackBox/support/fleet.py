"""Devices of one scope, and what has to hold for them in the end."""

from __future__ import annotations

import threading
from pathlib import Path

from support.device import Device
from support.report import Budget, Report, patiently

RECOVERY_SECONDS = 60


class Fleet:
    def __init__(self, count: int, folder: Path, url: str, secret: bytes, scope: str, budget: Budget):
        seed = budget.dice.random()
        self.devices = [Device(n, folder, url, secret, scope, f"{seed}/{n}") for n in range(count)]
        self.pushed = 0
        self.syncs = 0
        self.failed_syncs = 0
        self.errors: set[str] = set()
        self._stopping = threading.Event()
        self._threads: list[threading.Thread] = []

    def __enter__(self) -> Fleet:
        return self

    def __exit__(self, *_: object) -> None:
        self.rest()

    def begin(self, report: Report) -> None:
        """All devices once, so that every shared row is everywhere before anything goes wrong."""
        for device in [*self.devices, *self.devices]:
            code, _, error = device.sync()
            report.require(code == 0, f"device {device.number} could not begin: {error[:400]}")

    def work(self) -> None:
        """Edits and syncs on all devices, each on its own, until `rest`."""
        self._threads = [threading.Thread(target=self._work, args=(device,)) for device in self.devices]
        for thread in self._threads:
            thread.start()

    def rest(self) -> None:
        self._stopping.set()
        for thread in self._threads:
            thread.join()

    def _work(self, device: Device) -> None:
        while not self._stopping.is_set():
            device.edit(device.dice.randint(1, 4))
            code, told, error = device.sync()
            self.syncs += 1
            self.pushed += told.get("pushed", 0)
            if code != 0:
                self.failed_syncs += 1
                self.errors.add(error.strip()[:160])
            self._stopping.wait(device.dice.uniform(0, 0.2))

    def converge(self, report: Report) -> None:
        """After the last fault: in sync within a minute, the same rows everywhere, and every last edit among them."""
        took = patiently(self._in_sync, RECOVERY_SECONDS)
        if took is None:
            report.fail(f"not in sync {RECOVERY_SECONDS} s after the last fault: {sorted(self.errors)[-3:]}")
            return
        report.worst("seconds to be in sync", took)
        self._agree(report)
        for device in self.devices:
            code, told, error = device.verify()
            report.require(
                code == 0 and told.get("isClean") is True, f"verify of {device.path.name}: {told} {error[:300]}"
            )
            report.require(device.integrity() == "ok", f"{device.path.name} is damaged: {device.integrity()}")
            stands = device.status()
            counted = ("pending", "sent", "blocked", "rejected", "quarantined", "conflicts")
            waits = {name: stands.get(name) for name in counted}
            report.require(not any(waits.values()), f"{device.path.name} still has {waits}")
        heads = {scope["head"] for device in self.devices for scope in device.status().get("scopes", [])}
        edits = sum(device.edits for device in self.devices)
        report.require(
            max(heads, default=0) <= edits, f"{max(heads, default=0)} versions of {edits} edits: one was taken twice"
        )
        report.add("edits", edits)
        report.add("syncs", self.syncs)
        report.add("syncs cut short", self.failed_syncs)

    def _in_sync(self) -> bool:
        for device in [*self.devices, *self.devices]:
            code, told, error = device.sync()
            self.pushed += told.get("pushed", 0)
            if code != 0:
                self.errors.add(error.strip()[:160])
                return False
        return True

    def _agree(self, report: Report) -> None:
        first = self.devices[0].contents()
        for device in self.devices:
            cells = device.contents()
            differing = sorted(key for key in first.keys() | cells.keys() if first.get(key) != cells.get(key))[:3]
            report.require(not differing, f"devices 0 and {device.number} differ in {differing}")
            lost = [f"{k}: {v!r} is {cells.get(k)!r}" for k, v in device.expected.items() if cells.get(k) != v]
            report.require(not lost, f"{len(lost)} edits of device {device.number} are lost: {lost[:3]}")
