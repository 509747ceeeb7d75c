"""What a client sends: batches of operations with keys of their own, which never change once they are sealed."""

from __future__ import annotations

import json
import random
import uuid
from dataclasses import dataclass, field, replace

from protocol.causality import Session
from protocol.ledger import Json, Key, NOTE, REGISTER, ScopeLedger, Write
from protocol.replica import Replica

RECORDS_PER_SCOPE = 12


@dataclass
class Batch:
    path: str
    body: bytes
    writes: list[Write]
    floor: int = 0
    since: str | None = None
    thrown: list[Json] = field(default_factory=list)

    def part(self, writes: list[Write]) -> Batch:
        """The same request with some of its operations: the server may end one behind any of them (W76)."""
        body = json.loads(self.body) | {"operations": [write.operation for write in writes]}
        return replace(self, body=json.dumps(body).encode(), writes=writes, thrown=[])


class Sealer:
    def __init__(self, client: int, scope: ScopeLedger, session: Session, replica: Replica, dice: random.Random):
        self.client, self.scope, self.session, self.replica, self.dice = client, scope, session, replica, dice
        self.seq = len(scope.registers.get(client, []))
        self.begin_lane()

    def begin_lane(self) -> None:
        self.lane = uuid.UUID(int=self.dice.getrandbits(128)).hex
        self.number = 0
        # The last own operation on a record that has no verdict here yet: what `baseNumber` names.
        self.in_flight: dict[Key, int] = {}

    def batch(self, client_id: str, acked: int, exchange: bool) -> Batch:
        writes: list[Write] = []
        for _ in range(self.dice.choice((1, 1, 1, 2, 3, 8))):
            kind = self.dice.random()
            if kind < 0.55:
                writes.append(self._register())
            elif kind < 0.75:
                writes.append(self._note())
            elif kind < 0.93:
                writes += self._group()
            elif self.replica.complete:
                writes += self._doomed()
        if not writes:
            writes.append(self._register())
        body: Json = {"scope": self.scope.name, "clientId": client_id, "operations": [w.operation for w in writes]}
        if acked:
            body["acked"] = {self.lane: acked}
        if exchange:
            body |= {"protocolVersion": 1, "since": self.replica.since, "limit": self.dice.choice((1, 2, 7, 50, 500))}
            body["partial"] = self.dice.choice((False, True))
            if self.replica.since is None:
                del body["since"]
        for write in writes:
            self.scope.plan(write)
        path = "/sync" if exchange else "/sync/push"
        return Batch(path, json.dumps(body).encode(), writes, self.session.newest_own, body.get("since"))

    def _seal(
        self, kind: str, key: Key, fields: Json | None, seq: int = 0, base: bool = True, group: str | None = None
    ) -> Write:
        self.number += 1
        operation: Json = {"lane": self.lane, "number": self.number, "type": kind, "entity": key[0], "id": key[1]}
        row = self.replica.rows.get(key)
        if base and row is not None and row.data is not None:
            operation |= {"baseVersion": row.version, "epoch": row.epoch}
        if base and key in self.in_flight:
            operation["baseNumber"] = self.in_flight[key]
        if fields is not None:
            operation["fields"] = fields
        if group is not None:
            operation["group"] = group
        self.in_flight[key] = self.number
        causes = {c: s for c, s in self.session.seen.items() if c != self.client}
        return Write(self.client, self.scope.name, seq, operation, causes)

    def _register(self, group: str | None = None) -> Write:
        self.seq += 1
        record = f"r{self.dice.randrange(RECORDS_PER_SCOPE)}.{self.scope.marker}"
        text = self.scope.text(record, self.client, self.seq)
        fields: Json = {f"c{self.client}": self.seq, f"t{self.client}": text}
        if self.dice.random() < 0.5:
            fields["v"] = text
        return self._seal("upsert", (REGISTER, record), fields, self.seq, group=group)

    def _note(self) -> Write:
        known = [key for key, row in self.replica.rows.items() if key[0] == NOTE and row.data is not None]
        chance = self.dice.random()
        if not known or chance < 0.4:
            record = f"n{self.client}-{self.lane[:6]}-{self.number}.{self.scope.marker}"
            return self._seal("upsert", (NOTE, record), self._words(record), base=False)
        key = self.dice.choice(known)
        if chance < 0.75:
            return self._seal("upsert", key, self._words(key[1]))
        return self._seal("delete", key, None)

    def _words(self, record: str, end: str = "") -> Json:
        text = f"{self.scope.marker}/{record}/{self.client}/{self.lane[:6]}-{self.number}{end}"
        extras: list[object] = [None, 1.5, -0.0, 2**40, "$int", "$blob"]
        extra = self.dice.choice(extras)
        if extra == "$int":
            extra = {"$int": str(2**60 + self.number)}
        elif extra == "$blob":
            extra = {"$blob": "AAEC/w=="}
        return {self.dice.choice(("title", "body")): text, "extra": extra}

    def _group(self) -> list[Write]:
        group = f"g{self.number}"
        writes = [self._register(group) for _ in range(self.dice.randint(2, 4))]
        for write in writes:
            write.group_end = self.seq
        return writes

    def _doomed(self) -> list[Write]:
        """A group whose last operation edits a record that the scope never had, so that nothing of it may show."""
        group, chain = f"d{self.number}", dict(self.in_flight)
        record = f"r{self.dice.randrange(RECORDS_PER_SCOPE)}.{self.scope.marker}"
        fields = {f"d{self.client}": f"{self.scope.marker}/{record}/{self.client}/doomed"}
        first = self._seal("upsert", (REGISTER, record), fields, group=group)
        last = self._seal("upsert", (NOTE, f"never.{self.scope.marker}"), self._words("never", "/doomed"), group=group)
        last.operation |= {"baseVersion": self.replica.complete, "epoch": self.replica.epoch}
        last.operation.pop("baseNumber", None)
        first.doomed = last.doomed = True
        # An operation that took no effect is nothing to build on: what came after it would be deferred.
        self.in_flight = chain
        return [first, last]
