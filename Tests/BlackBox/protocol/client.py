"""The threads of a run: writers, and readers that only read."""

from __future__ import annotations

import random
import threading
import time
import traceback
from typing import Callable

from protocol import digests, misuse, snapshots
from protocol.dialects import DialectReader, DialectWriter
from protocol.ledger import ScopeLedger
from protocol.scope_client import ScopeClient
from protocol.violation import Verdict, Violation
from protocol.wire import Lost, Wire

PATIENCE_SECONDS = 60


class Client(threading.Thread):
    def __init__(
        self, number: int, wire: Wire, scopes: list[ScopeLedger], foreign: str | None, pause: float, seed: str
    ):
        super().__init__(name=f"client {number}", daemon=True)
        self.wire, self.foreign, self.pause = wire, foreign, pause
        self.dice = random.Random(seed)
        self.scope_clients = [ScopeClient(number, scope, wire, self.dice) for scope in scopes]
        self.plain = {scope_client.scope.name: DialectWriter(scope_client) for scope_client in self.scope_clients}
        self.priorities: dict[str, int] = {}
        self.stopping = threading.Event()

    @property
    def verdict(self) -> Verdict:
        return self.wire.verdict

    def run(self) -> None:
        while not self.stopping.is_set() and not self.verdict.over.is_set():
            started = time.monotonic()
            self.attempt(lambda: self.act(self.dice.choice(self.scope_clients)))
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

    def act(self, scope_client: ScopeClient) -> None:
        chance = self.dice.random()
        if chance < 0.40:
            scope_client.push()
        elif chance < 0.50:
            self.plain[scope_client.scope.name].step()
        elif chance < 0.80:
            scope_client.pull()
        elif chance < 0.86:
            scope_client.repeat()
        elif chance < 0.88:
            scope_client.catch_up()
        elif chance < 0.91:
            snapshots.scan(scope_client, self.priorities, scope_client.push)
        elif chance < 0.94:
            digests.compare(scope_client)
        elif chance < 0.97 and self.foreign:
            misuse.forbidden(scope_client, self.foreign)
        elif chance < 0.98:
            misuse.foreign_checkpoint(scope_client, self.dice.choice(self.scope_clients))
        elif chance < 0.99:
            misuse.mismatch(scope_client)
        elif chance < 0.995:
            misuse.outsiders(scope_client)
        else:
            scope_client.restart()

    def finish(self, scope_client: ScopeClient) -> None:
        """Everything that was sent gets its answer."""
        scope_client.finish()
        self.plain[scope_client.scope.name].finish()

    def catch_up(self, scope_client: ScopeClient) -> None:
        scope_client.catch_up()

    def every_scope(self, step: Callable[[ScopeClient], None]) -> None:
        """The step for every scope, at the latest a while after faults end."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        for scope_client in self.scope_clients:
            while not self.attempt(lambda: step(scope_client)):
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
        self.dialects = {scope.name: DialectReader(scope, wire, self.name) for scope in scopes}

    def catch_up(self, scope_client: ScopeClient) -> None:
        scope_client.catch_up()
        self.dialects[scope_client.scope.name].catch_up()

    def act(self, scope_client: ScopeClient) -> None:
        chance = self.dice.random()
        if chance < 0.45:
            self.dialects[scope_client.scope.name].step(scope_client)
        elif chance < 0.85:
            scope_client.pull()
        elif chance < 0.93:
            snapshots.scan(scope_client, self.priorities)
        elif chance < 0.97:
            digests.compare(scope_client)
        else:
            misuse.write_without_grant(scope_client)
