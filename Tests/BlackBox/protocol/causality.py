"""Causal order within a scope, checked while it happens.

A register record has one counter per client, so that its row is a vector of what its reader has seen. Nothing here
looks at versions to decide what comes before what: a server that is wrong about both would else pass.
"""

from __future__ import annotations

from protocol.ledger import Json, Key, REGISTER, ScopeLedger, Sighting, Write
from protocol.violation import Violation

Cell = tuple[str, int]


class Session:
    """What one reader has seen of a scope. Later reads may only show more."""

    def __init__(self, scope: ScopeLedger, reader: str, client: int | None = None):
        self.scope, self.reader, self.client = scope, reader, client
        self.cells: dict[Cell, int] = {}
        self.seen: dict[int, int] = {}
        self.newest_own = 0
        self._acknowledged: list[tuple[int, Write]] = []

    def acknowledge(self, write: Write, version: int) -> None:
        self.newest_own = max(self.newest_own, version)
        if write.seq:
            self._acknowledged.append((version, write))

    def observe(self, rows: dict[Key, tuple[int, Json]], changed: set[Key], head: int, floor: int, shown: str) -> None:
        """A state that is whole as of `head`; `floor` is the newest own version when it was asked for."""
        if head < floor:
            raise Violation(
                "read_your_writes", f"{self.reader}: state as of {head}, own write is at {floor} (I5)", [shown]
            )
        fresh: list[tuple[int, int]] = []
        for key in changed:
            fresh += self._read(key, rows.get(key, (0, None))[1], shown)
        new = {client: max(seq for c, seq in fresh if c == client) for client, _ in fresh}
        before = {client: self.seen.get(client, 0) for client in new}
        self.seen.update({client: max(seq, before[client]) for client, seq in new.items()})
        for client in new:
            self._in_order(client, before[client], shown)
        for client, seq in fresh:
            self._causes(self.scope.registers[client][seq - 1], shown)
        self._own(head, shown)

    def remember(self, rows: dict[Key, tuple[int, Json]], head: int, shown: str) -> None:
        self.scope.saw_whole(Sighting(self.reader, head, rows, shown[:400]))

    def _read(self, key: Key, data: Json | None, shown: str) -> list[tuple[int, int]]:
        entity, record = key
        fresh: list[tuple[int, int]] = []
        for name, value in (data or {}).items():
            if isinstance(value, str):
                self._check_text(key, name, value, shown)
        if entity != REGISTER:
            return fresh
        for client in range(len(self.scope.registers) and max(self.scope.registers) + 1):
            seq = (data or {}).get(f"c{client}", 0)
            was = self.cells.get((record, client), 0)
            if seq < was:
                raise Violation(
                    "monotonic_reads", f"{self.reader} saw {client}:{was} in {record} and now {seq}", [shown]
                )
            if seq > was:
                self._written(key, client, seq, data or {}, shown)
                self.cells[record, client] = seq
                fresh.append((client, seq))
        return fresh

    def _written(self, key: Key, client: int, seq: int, data: Json, shown: str) -> None:
        writes = self.scope.registers.get(client, [])
        if seq > len(writes) or writes[seq - 1].key != key:
            raise Violation("invalid_read", f"nobody wrote {client}:{seq} into {key}", [shown])
        expected = self.scope.text(key[1], client, seq)
        if data.get(f"t{client}") != expected:
            raise Violation(
                "invalid_read", f"{key} has t{client} {data.get(f't{client}')!r} instead of {expected!r}", [shown]
            )

    def _check_text(self, key: Key, name: str, value: str, shown: str) -> None:
        if not value.startswith(f"{self.scope.marker}/{key[1]}/"):
            raise Violation("invalid_read", f"nobody wrote {value!r} into {name} of {key}", [shown])
        if value.endswith("/doomed"):
            raise Violation("atomic_group", f"{key} shows {value!r} of a group that was refused (W59)", [shown])

    def _in_order(self, client: int, before: int, shown: str) -> None:
        writes, now = self.scope.registers[client], self.seen[client]
        for write in writes[before:now]:
            if self.cells.get((write.key[1], client), 0) >= write.seq:
                continue
            cut = write.group_end and write.group_end >= now - 1 and writes[now - 1].group_end == write.group_end
            kind = "atomic_group" if cut else "monotonic_writes"
            raise Violation(
                kind,
                f"{self.reader} sees {client}:{now} and not {client}:{write.seq}",
                [str(writes[now - 1]), str(write), shown],
            )
        if writes[now - 1].group_end > now:
            last = writes[writes[now - 1].group_end - 1]
            raise Violation(
                "atomic_group",
                f"{self.reader} sees {client}:{now} of a group to {client}:{last.seq} (W59, W60)",
                [str(writes[now - 1]), str(last), shown],
            )

    def _causes(self, write: Write, shown: str) -> None:
        for client, seq in write.causes.items():
            if self.seen.get(client, 0) < seq:
                raise Violation(
                    "writes_follow_reads",
                    f"{self.reader} sees {write.client}:{write.seq}, whose writer had seen {client}:{seq} (I5)",
                    [str(write), str(self.scope.registers[client][seq - 1]), shown],
                )

    def _own(self, head: int, shown: str) -> None:
        waiting = []
        for version, write in self._acknowledged:
            if version > head:
                waiting.append((version, write))
            elif self.cells.get((write.key[1], write.client), 0) < write.seq:
                raise Violation(
                    "read_your_writes", f"{self.reader} misses its own write as of {head} (I5)", [str(write), shown]
                )
        self._acknowledged = waiting
