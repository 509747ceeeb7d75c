"""The threads of a run: writers, and readers that only read."""

from __future__ import annotations

import random
import threading
import time
import traceback
from typing import Callable

import digests
import probes
import snapshots
from dialects import DialectReader, DialectWriter
from ledger import ScopeLedger
from seat import Seat
from violation import Verdict, Violation
from wire import Lost, Wire

PATIENCE_SECONDS = 60


class Client(threading.Thread):
    def __init__(
        self, number: int, wire: Wire, scopes: list[ScopeLedger], foreign: str | None, pause: float, seed: str
    ):
        super().__init__(name=f"client {number}", daemon=True)
        self.wire, self.foreign, self.pause = wire, foreign, pause
        self.dice = random.Random(seed)
        self.seats = [Seat(number, scope, wire, self.dice) for scope in scopes]
        self.plain = {seat.scope.name: DialectWriter(seat) for seat in self.seats}
        self.priorities: dict[str, int] = {}
        self.stopping = threading.Event()

    @property
    def verdict(self) -> Verdict:
        return self.wire.verdict

    def run(self) -> None:
        while not self.stopping.is_set() and not self.verdict.over.is_set():
            started = time.monotonic()
            self.attempt(lambda: self.act(self.dice.choice(self.seats)))
            spent = time.monotonic() - started
            self.stopping.wait(max(0.0, self.dice.uniform(0, 2 * self.pause) - spent))

    def attempt(self, act: Callable[[], None]) -> bool:
        try:
            act()
            return True
        except Lost:
            time.sleep(self.dice.uniform(0.02, 0.3))
        except Violation as violation:
            self.verdict.report(violation)
        except Exception as error:
            shown = [str(answer) for answer in list(self.wire.recent)[-2:]]
            where = traceback.format_exc(limit=-3)
            self.verdict.report(Violation("malformed_answer", f"{type(error).__name__}: {error}\n{where}", shown))
        return False

    def act(self, seat: Seat) -> None:
        chance = self.dice.random()
        if chance < 0.40:
            seat.push()
        elif chance < 0.50:
            self.plain[seat.scope.name].step()
        elif chance < 0.80:
            seat.pull()
        elif chance < 0.86:
            seat.repeat()
        elif chance < 0.88:
            seat.catch_up()
        elif chance < 0.91:
            snapshots.scan(seat, self.priorities, seat.push)
        elif chance < 0.94:
            digests.compare(seat)
        elif chance < 0.97 and self.foreign:
            probes.forbidden(seat, self.foreign)
        elif chance < 0.98:
            probes.foreign_checkpoint(seat, self.dice.choice(self.seats))
        elif chance < 0.99:
            probes.mismatch(seat)
        elif chance < 0.995:
            probes.outsiders(seat)
        else:
            seat.restart()

    def finish(self, seat: Seat) -> None:
        """Everything that was sent gets its answer."""
        seat.finish()
        self.plain[seat.scope.name].finish()

    def catch_up(self, seat: Seat) -> None:
        seat.catch_up()

    def every_seat(self, step: Callable[[Seat], None]) -> None:
        """The step for every seat, at the latest a while after faults end."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        for seat in self.seats:
            while not self.attempt(lambda: step(seat)):
                if self.verdict.over.is_set():
                    return
                if time.monotonic() > deadline:
                    shown = [str(answer) for answer in list(self.wire.recent)[-3:]]
                    self.verdict.report(Violation("not_recovered", f"{self.name} is not in sync (I12)", shown))
                    return


class Reader(Client):
    """Holds read-only grants for all scopes, and learns everything from pages, snapshots and the other dialects."""

    def __init__(
        self, number: int, wire: Wire, scopes: list[ScopeLedger], foreign: str | None, pause: float, seed: str
    ):
        super().__init__(number, wire, scopes, foreign, pause, seed)
        self.dialects = {seat.scope.name: DialectReader(seat.scope, wire, self.name) for seat in self.seats}

    def catch_up(self, seat: Seat) -> None:
        seat.catch_up()
        self.dialects[seat.scope.name].catch_up()

    def act(self, seat: Seat) -> None:
        chance = self.dice.random()
        if chance < 0.45:
            self.dialects[seat.scope.name].step(seat)
        elif chance < 0.85:
            seat.pull()
        elif chance < 0.93:
            snapshots.scan(seat, self.priorities)
        elif chance < 0.97:
            digests.compare(seat)
        else:
            probes.write_without_grant(seat)
