"""Lies in what is read: rows that are missing, old, moved or made up."""

from __future__ import annotations

import copy
import json
import re
from typing import Any

from lying_server.proxy import Asked, Given, Lie
from protocol.ledger import NOTE

Row = dict[str, Any]


def is_page(asked: Asked, given: Given) -> bool:
    return given.status == 200 and asked.path in ("/sync/changes", "/sync") and "changes" in given.json


class DropRow(Lie):
    """Now and then a row is left out, as by a log that hands out a version before it is committed."""

    kinds = {
        "read_your_writes",
        "monotonic_writes",
        "writes_follow_reads",
        "atomic_group",
        "log_agreement",
        "digest",
        "convergence",
        "part_of_nothing",
    }

    def tell(self, asked: Asked, given: Given) -> None:
        if is_page(asked, given) and len(given.json["changes"]) > 2:
            del given.json["changes"][1]
            self.told += 1


class HideCause(Lie):
    """One record's rows never come, while everything that follows from them does."""

    kinds = {"monotonic_writes", "writes_follow_reads", "read_your_writes", "atomic_group", "part_of_nothing"}

    def tell(self, asked: Asked, given: Given) -> None:
        if asked.path in ("/sync/changes", "/sync", "/sync/snapshot") and given.status == 200:
            kept = [c for c in given.json["changes"] if not c["id"].startswith("r3.")]
            self.told += len(given.json["changes"]) - len(kept)
            given.json["changes"] = kept


class RepeatPage(Lie):
    """The page before comes again, dressed as the answer to what was asked."""

    kinds = {"version_order", "horizon_moved"}

    def __init__(self) -> None:
        super().__init__()
        self.pages: dict[str, list[Row]] = {}

    def tell(self, asked: Asked, given: Given) -> None:
        if not is_page(asked, given) or not given.json["changes"]:
            return
        old = self.pages.get(asked.scope)
        self.pages[asked.scope] = copy.deepcopy(given.json["changes"])
        if old and given.json["since"] is not None and self.told < 3 and old != given.json["changes"]:
            given.json["changes"] = old
            self.told += 1


class ForeignAnswer(Lie):
    """An answer to another question, as by a cache that does not look at the query."""

    kinds = {"foreign_answer"}

    def __init__(self) -> None:
        super().__init__()
        self.last: Row | None = None

    def tell(self, asked: Asked, given: Given) -> None:
        if asked.path == "/sync/changes" and given.status == 200:
            self.last, old = copy.deepcopy(given.json), self.last
            if old and (old["scope"], old["since"]) != (given.json["scope"], given.json["since"]):
                # Not of another scope, which would be caught as a leak before anything else.
                if old["scope"] == given.json["scope"]:
                    given.json = old
                    self.told += 1


class SwapRows(Lie):
    """Rows change places within a page."""

    kinds = {"version_order"}

    def tell(self, asked: Asked, given: Given) -> None:
        if is_page(asked, given) and len(given.json["changes"]) > 1:
            given.json["changes"].reverse()
            self.told += 1


class ScopeLeak(Lie):
    """Two records change places between two scopes."""

    kinds = {"scope_leak"}

    def __init__(self) -> None:
        super().__init__()
        self.rows: dict[str, Row] = {}

    def tell(self, asked: Asked, given: Given) -> None:
        if not is_page(asked, given) or not given.json["changes"]:
            return
        self.rows[asked.scope] = dict(given.json["changes"][0])
        for scope, row in self.rows.items():
            if scope != asked.scope:
                given.json["changes"][0] |= {"id": row["id"], "data": row.get("data")}
                self.told += 1
                return


class WrongValue(Lie):
    """A number is one more than anybody wrote."""

    kinds = {"invalid_read", "version_reused"}

    def tell(self, asked: Asked, given: Given) -> None:
        for change in given.json["changes"] if is_page(asked, given) else []:
            for name, value in (change.get("data") or {}).items():
                if re.fullmatch(r"c\d+", name):
                    change["data"][name] = value + 1
                    self.told += 1


class ForgetField(Lie):
    """A row that comes in part lacks a field that was written since."""

    kinds = {"version_reused", "read_your_writes", "monotonic_writes", "log_agreement", "digest", "convergence"}

    def tell(self, asked: Asked, given: Given) -> None:
        for change in given.json["changes"] if is_page(asked, given) else []:
            if change.get("partial") and change["data"]:
                change["data"].popitem()
                self.told += 1


class PartOfNothing(Lie):
    """A row of which the reader has nothing comes in part."""

    kinds = {"part_of_nothing", "version_reused"}

    def tell(self, asked: Asked, given: Given) -> None:
        for change in given.json["changes"] if is_page(asked, given) else []:
            if change["type"] == "upsert" and not change.get("partial") and len(change["data"]) > 1:
                change["data"].popitem()
                change["partial"] = True
                self.told += 1


class Resurrect(Lie):
    """A record that was deleted comes back with the next version."""

    kinds = {"resurrected", "version_reused", "part_of_nothing"}

    def __init__(self) -> None:
        super().__init__()
        self.alive: dict[str, Row] = {}
        self.dead: list[tuple[str, Row]] = []

    def tell(self, asked: Asked, given: Given) -> None:
        if not is_page(asked, given):
            return
        for change in given.json["changes"]:
            if change["type"] == "upsert" and change["entity"] == NOTE:
                self.alive[change["id"]] = change
            elif change["type"] == "delete" and change["id"] in self.alive:
                self.dead.append((asked.scope, self.alive.pop(change["id"])))
        for scope, row in self.dead:
            changes = given.json["changes"]
            if scope == asked.scope and changes and changes[-1]["id"] != row["id"]:
                changes[-1] = {**row, "version": changes[-1]["version"]}
                self.told += 1
                return


class SplitGroup(Lie):
    """A page that says it is whole ends within a group."""

    kinds = {"atomic_group", "monotonic_writes"}

    def __init__(self) -> None:
        super().__init__()
        self.groups: dict[tuple[str, int], tuple[str, int]] = {}

    def tell(self, asked: Asked, given: Given) -> None:
        if asked.method == "POST" and given.status == 200:
            for operation, result in zip(asked.json["operations"], given.json["results"]):
                if "group" in operation and result["status"] in ("applied", "merged"):
                    group = operation["lane"] + operation["group"]
                    self.groups[asked.scope, result["version"]] = (group, operation["number"])
        if not is_page(asked, given) or given.json["hasMore"]:
            return
        changes = given.json["changes"]
        if len(changes) > 1:
            last = [self.groups.get((asked.scope, change["version"])) for change in changes[-2:]]
            if last[0] and last[1] and last[0][0] == last[1][0]:
                del changes[-1]
                self.told += 1


class StaleSnapshot(Lie):
    """The scope's first snapshot, for ever."""

    kinds = {"read_your_writes", "monotonic_reads"}

    def __init__(self) -> None:
        super().__init__()
        self.first: dict[str, str] = {}

    def tell(self, asked: Asked, given: Given) -> None:
        if asked.path == "/sync/snapshot" and given.status == 200 and not given.json["hasMore"]:
            if "snapshotToken" in asked.query or not given.json["changes"]:
                return
            key = asked.scope
            if key in self.first:
                given.json = json.loads(self.first[key])
                self.told += 1
            else:
                self.first[key] = json.dumps(given.json)


class WrongDigest(Lie):
    """A sum that differs in one bit, as after a row that was damaged on disk."""

    kinds = {"digest"}

    def tell(self, asked: Asked, given: Given) -> None:
        for sums in given.json.get("entities", {}).values() if asked.path == "/sync/digest" else []:
            sums["records"] = f"{int(sums['records'], 16) ^ 1:016x}"
            self.told += 1
