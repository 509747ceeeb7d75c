"""One client in one scope: pushes, pulls and what becomes of the answers."""

from __future__ import annotations

import json
import random
from collections import deque

from protocol.batches import Batch, Sealer
from protocol.causality import Session
from protocol.ledger import Json, Key, ScopeLedger, Write
from protocol.replica import Replica
from protocol.violation import Violation
from protocol.wire import Answer, Wire

PENDING_AT_MOST = 3


class ScopeClient:
    def __init__(self, client: int, scope: ScopeLedger, wire: Wire, dice: random.Random):
        self.client, self.scope, self.wire, self.dice = client, scope, wire, dice
        self.session = Session(scope, f"client {client} in {scope.name}", client)
        self.replica = Replica(scope)
        self.sealer = Sealer(client, scope, self.session, self.replica, dice)
        self.pending: deque[Batch] = deque()
        self.finished: deque[Batch] = deque(maxlen=40)
        self.acked = 0  # verdicts up to here are applied in the present lane
        self.told = 0  # and the server may have been told so
        self.floor = 0
        # What is observed while a snapshot is fetched would be newer than the snapshot.
        self.in_snapshot = False

    # Sending

    def push(self) -> None:
        if len(self.pending) < PENDING_AT_MOST and (not self.pending or self.dice.random() < 0.3):
            # A chain of `baseNumber` may not reach below `acked`, so none is under way when it is sent.
            tell = self.acked if not self.pending and self.dice.random() < 0.4 else 0
            self.told = max(self.told, tell)
            # While a scan is under way its next page has to be asked for as it was.
            exchange = not self.replica.in_scan and self.dice.random() < 0.4
            self.pending.append(self.sealer.batch(self.wire.client_id, tell, exchange))
        chance = self.dice.random()
        if chance < 0.05:
            self.wire.send_and_leave(self.pending[0].path, self.pending[0].body)
            self.wire.verdict.count("requests left")
        elif chance < 0.12 and len(self.pending) > 1:
            self._out_of_order()
        else:
            self._first(throw_away=chance < 0.22)

    def finish(self) -> None:
        while self.pending:
            self._first(throw_away=False)

    def repeat(self) -> None:
        """An old request, byte for byte, long after its answer."""
        if not self.finished:
            return
        batch = self.dice.choice(self.finished)
        answer = self.wire.post(batch.path, self.scope.name, batch.body)
        self._take_verdicts(batch, answer, again=True)
        self.wire.verdict.count("old requests repeated")

    def restart(self) -> None:
        """As after a crash that kept the outbox and lost the rows: a new lane, a new copy from nothing."""
        self.finish()
        self.replica = self.sealer.replica = Replica(self.scope)
        self.sealer.begin_lane()
        self.finished.clear()
        self.acked = self.told = 0
        self.wire.verdict.count("restarts")

    def _first(self, throw_away: bool) -> None:
        batch = self.pending[0]
        answer = self.wire.post(batch.path, self.scope.name, batch.body)
        fresh = not batch.thrown
        results = self._take_verdicts(batch, answer, again=bool(batch.thrown))
        if throw_away:
            batch.thrown = results
            self.wire.verdict.count("answers thrown away")
            return
        self.pending.popleft()
        if len(results) < len(batch.writes):
            self.pending.appendleft(batch.part(batch.writes[len(results) :]))
            self.finished.append(batch.part(batch.writes[: len(results)]))
            self.wire.verdict.count("requests ended early")
        else:
            self.finished.append(batch)
        takes_page = batch.path == "/sync" and fresh and not self.replica.in_scan and not self.in_snapshot
        takes_page = takes_page and batch.since == self.replica.since
        for write, result in zip(batch.writes, results):
            self.acked = max(self.acked, write.operation["number"])
            self.replica.take_verdict(write.operation, result, answer.json["epoch"])
            if self.sealer.in_flight.get(write.key) == write.operation["number"]:
                del self.sealer.in_flight[write.key]
            if result["status"] in ("applied", "merged"):
                self.session.acknowledge(write, result["version"])
        if takes_page:
            self._page(answer, batch.since, batch.floor)

    def _out_of_order(self) -> None:
        batch = self.pending[1]
        answer = self.wire.post(batch.path, self.scope.name, batch.body)
        if answer.status == 409:
            problem, expected = answer.json, self.pending[0].writes[0].operation["number"]
            if problem["code"] != "operation_gap" or problem["expected"] != expected:
                raise Violation("gap", f"not operation_gap with expected {expected} (W33)", [str(answer)])
            self.wire.verdict.count("gaps refused")
            return
        # The first one had come after all, and only its answer was lost.
        before = self.wire.post(self.pending[0].path, self.scope.name, self.pending[0].body)
        if any(not result.get("replayed") for result in before.expect(200)["results"]):
            raise Violation(
                "gap", "operations were taken before those that they follow (W33)", [str(answer), str(before)]
            )
        self._take_verdicts(self.pending[0], before, again=True)
        self._take_verdicts(batch, answer, again=False)

    def _take_verdicts(self, batch: Batch, answer: Answer, again: bool) -> list[Json]:
        results: list[Json] = answer.expect(200)["results"]
        if not 0 < len(results) <= len(batch.writes):
            raise Violation("malformed_answer", "not a verdict for each operation taken (W32, W76)", [str(answer)])
        for index, (write, result) in enumerate(zip(batch.writes, results)):
            operation = write.operation
            if (result["lane"], result["number"]) != (operation["lane"], operation["number"]):
                raise Violation("malformed_answer", "verdicts in another order (W32)", [str(answer)])
            known = len(batch.thrown) if batch.thrown else len(batch.writes)
            if again and index < known and not result.get("replayed"):
                raise Violation(
                    "replay_differs", f"{result} does not say that it is a replay (W33)", [str(write), str(answer)]
                )
            if result["status"] == "settled" and not (
                operation["lane"] != self.sealer.lane or operation["number"] <= self.told
            ):
                raise Violation(
                    "replay_differs", f"{result} is `settled` without acked (W34)", [str(write), str(answer)]
                )
            self._plausible(write, result, answer)
            self.scope.note_verdict(write, result, str(answer))
        self.wire.verdict.count("verdicts", len(results))
        return results

    def _plausible(self, write: Write, result: Json, answer: Answer) -> None:
        if write.doomed:
            right = result.get("error", {}).get("code") in ("record_deleted", "group_failed")
        else:
            right = not write.seq or result["status"] in ("applied", "merged")
        if not right and result["status"] != "settled":
            named = (write.operation["lane"], result.get("after"))
            after = [str(w) for w in self.scope.writes if (w.operation["lane"], w.operation["number"]) == named]
            raise Violation(
                "wrong_verdict", f"{result} is not what such an operation gets", [*after, str(write), str(answer)]
            )

    # Reading

    def pull(self) -> None:
        if not self.replica.in_scan:
            self.floor = self.session.newest_own
        since = self.replica.since
        limit = self.dice.choice((1, 2, 3, 7, 20, 100, 500))
        partial = self.dice.choice((None, "true"))
        answer = self.wire.get("/sync/changes", self.scope.name, since=since, limit=limit, partial=partial)
        answer.expect(200)
        if self.replica.in_scan and self.dice.random() < 0.1:
            again = self.wire.get("/sync/changes", self.scope.name, since=since, limit=limit, partial=partial)
            if _of_the_scan(again) != _of_the_scan(answer):
                raise Violation(
                    "page_differs", "the same question within a scan got other bytes (W12)", [str(answer), str(again)]
                )
            self.wire.verdict.count("pages asked for twice")
        self._page(answer, since, self.floor)

    def catch_up(self) -> None:
        while self.replica.in_scan:
            self.pull()
        self.pull()
        while self.replica.in_scan or self.replica.is_ahead():
            self.pull()

    def _page(self, answer: Answer, since: str | None, floor: int) -> None:
        self.floor = floor
        self.wire.verdict.count("pages")
        parts = self.replica.parts
        is_whole = self.replica.take_page(answer, since) and not self.replica.is_ahead()
        self.wire.verdict.count("rows in part", self.replica.parts - parts)
        if not is_whole:
            return
        rows, head = self.replica.live(), self.replica.complete
        self.session.observe(rows, self.replica.touched, head, floor, str(answer))
        self.replica.touched = set()
        self.wire.verdict.count("whole states checked")
        if self.dice.random() < 0.1:
            self.session.remember(rows, head, str(answer))

    def replace(self, fresh: Replica, floor: int, shown: str) -> None:
        """A snapshot stands in for everything that was held, but for own writes that it is too old for."""
        changed: set[Key] = set(fresh.rows) | set(self.replica.rows)
        rows, head = fresh.live(), fresh.complete
        self.session.observe(rows, changed, head, floor, shown)
        self.session.remember(rows, head, shown)
        for key, row in self.replica.rows.items():
            if row.version > head:
                fresh.put(key, row.version, row.data, row.epoch)
        self.replica = self.sealer.replica = fresh


def _of_the_scan(answer: Answer) -> bytes:
    """A page without `epoch`, which names the newest history: a server that was opened again meanwhile has another."""
    name = json.dumps(answer.json["epoch"]).encode()
    return answer.body.replace(b'"epoch":' + name, b"", 1)
