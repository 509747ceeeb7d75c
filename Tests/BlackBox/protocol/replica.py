"""A reader's copy of one scope, folded from pages, snapshots and verdicts by the rules of the protocol."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from protocol.ledger import Key, ScopeLedger
from protocol.violation import Violation
from protocol.wire import Answer

Json = dict[str, Any]


@dataclass
class Row:
    version: int
    data: Json | None  # None is a tombstone
    epoch: str  # the history that the version is of


class Replica:
    def __init__(self, scope: ScopeLedger):
        self.scope = scope
        self.rows: dict[Key, Row] = {}
        self.since: str | None = None
        self.epoch: str | None = None
        self.complete = 0
        self.position = 0
        self.horizon: int | None = None
        self.touched: set[Key] = set()
        self.parts = 0  # rows that came in part

    @property
    def in_scan(self) -> bool:
        return self.horizon is not None

    def live(self) -> dict[Key, tuple[int, Json]]:
        return {key: (row.version, row.data) for key, row in self.rows.items() if row.data is not None}

    def is_ahead(self) -> bool:
        return any(row.version > self.complete for row in self.rows.values())

    def take_page(self, answer: Answer, asked_since: str | None) -> bool:
        """Folds one page; True when the state is whole again."""
        page = answer.json
        self._check_frame(page, answer, asked_since)
        for change in page["changes"]:
            self._check_order(change, page["head"], answer)
            self.fold(change, answer)
        self.since, self.epoch = page["nextSince"], page["epoch"]
        if page["hasMore"]:
            self.horizon = page["head"]
            return False
        self.complete = self.position = page["head"]
        self.horizon = None
        return True

    def fold(self, change: Json, answer: Answer) -> None:
        if change["type"] not in ("upsert", "delete"):
            raise Violation("malformed_answer", f"nobody asked for {change}", [str(answer)])
        if change.get("partial"):
            whole = self._whole(change, answer)
            if whole is None:
                return
            change = whole
        self.scope.saw(change, str(answer))
        self.put((change["entity"], change["id"]), change["version"], change.get("data"), answer.json["epoch"])

    def _whole(self, change: Json, answer: Answer) -> Json | None:
        """The row that a part makes of the one before; None where this copy has a newer one."""
        row = self.rows.get((change["entity"], change["id"]))
        if row is not None and row.version > change["version"]:
            return None
        if row is None or row.data is None:
            raise Violation("part_of_nothing", f"{change} is a part of a row that is not here (W90)", [str(answer)])
        self.parts += 1
        return {**change, "data": {**row.data, **change["data"]}}

    def put(self, key: Key, version: int, data: Json | None, epoch: str) -> None:
        """A row counts only above the version that is held of it, so what comes twice or late changes nothing."""
        row = self.rows.get(key)
        if row is None or version > row.version:
            self.rows[key] = Row(version, data, epoch)
            self.touched.add(key)

    def take_verdict(self, operation: Json, result: Json, epoch: str) -> None:
        if result["status"] not in ("applied", "merged"):
            return
        key, record = (operation["entity"], operation["id"]), result.get("record")
        row = self.rows.get(key)
        if row is None and self.since is not None and result["version"] <= (self.horizon or self.complete):
            return  # A late verdict: the scan brings the row, or it is gone by now.
        if row is None and record is None and operation.keys() & {"baseVersion", "baseNumber"}:
            return  # An edit of what this copy has lost: the rest of the row comes with the scan.
        if record is not None:
            self.put(key, record["version"], None if record.get("deleted") else record["data"], epoch)
        elif operation["type"] == "delete":
            self.put(key, result["version"], None, epoch)
        elif row is None or row.version < result["version"]:
            base = row.data if row is not None and row.data is not None else {}
            self.put(key, result["version"], {**base, **operation["fields"]}, epoch)

    def _check_frame(self, page: Json, answer: Answer, asked_since: str | None) -> None:
        if page["scope"] != self.scope.name or page["since"] != asked_since:
            raise Violation("foreign_answer", "scope or since is not the one that was asked for (W17)", [str(answer)])
        if self.horizon is not None and page["head"] != self.horizon:
            raise Violation("horizon_moved", f"head {page['head']} in a scan to {self.horizon} (W12)", [str(answer)])
        if page["head"] < self.complete:
            raise Violation(
                "version_order", f"head went back from {self.complete} to {page['head']} (W11)", [str(answer)]
            )

    def _check_order(self, change: Json, head: int, answer: Answer) -> None:
        version = change["version"]
        if not self.position < version <= head:
            raise Violation(
                "version_order", f"version {version} between {self.position} and {head} (W11, W12)", [str(answer)]
            )
        self.position = version
