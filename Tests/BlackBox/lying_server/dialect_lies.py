"""Lies to callers without a client: by cursor, by stamp, in delta headers and in the answers to keys."""

from __future__ import annotations

import json
from typing import Any

from lying_server.proxy import Asked, Given, Lie

READ = {"monotonic_writes", "writes_follow_reads", "atomic_group", "convergence"}


class SkipByCursor(Lie):
    """A row is not in its page, as where the cursor is a time that was taken before the commit."""

    kinds = READ

    def tell(self, asked: Asked, given: Given) -> None:
        if asked.path == "/register/delta" and given.status == 200 and given.json["upserts"]:
            given.json["upserts"].pop()
            self.told += 1


class ForgetThePlace(Lie):
    """The scan is said to be at its end, and its cursor goes back, so that pages come again."""

    kinds = READ | {"stamp_order"}

    def __init__(self) -> None:
        super().__init__()
        self.first: dict[tuple[str, str], str] = {}

    def tell(self, asked: Asked, given: Given) -> None:
        if asked.path.endswith("/delta") and given.status == 200 and given.json["upserts"]:
            place = given.headers["Tidemark-Checkpoint"]
            first = self.first.setdefault((asked.path, asked.scope), place)
            if first != place:
                given.headers["Tidemark-Checkpoint"] = first
                given.json["nextCursor"] = None
                self.told += 1


class AnswerACursorAnew(Lie):
    """A cursor within a scan gives another page when it comes again."""

    kinds = {"page_differs"}

    def __init__(self) -> None:
        super().__init__()
        self.asked: set[str] = set()

    def tell(self, asked: Asked, given: Given) -> None:
        if not asked.path.endswith("/delta") or given.status != 200 or not asked.query.get("cursor"):
            return
        rows = given.json["upserts"] + given.json["tombstones"]
        if asked.target in self.asked and rows and given.json["nextCursor"]:
            (given.json["upserts"] or given.json["tombstones"]).pop()
            self.told += 1
        self.asked.add(asked.target)


class KeepTombstones(Lie):
    """Deletions are not told in a delta header."""

    kinds = {"convergence"}
    seconds = 5

    def tell(self, asked: Asked, given: Given) -> None:
        name = next((name for name in given.headers if name.lower() == "x-apiomat-delta-deleted"), None)
        if name and given.headers[name] != "[]":
            given.headers[name] = "[]"
            self.told += 1


class AnswerTheMapByHalf(Lie):
    """A list leaves out what the caller's map has in an older form."""

    kinds = {"convergence"}
    seconds = 5

    def tell(self, asked: Asked, given: Given) -> None:
        rows: Any = given.json
        header = next((value for name, value in asked.headers.items() if name.lower() == "x-apiomat-delta"), "")
        if isinstance(rows, list) and header.startswith("{"):
            held = json.loads(header)
            kept = [row for row in rows if row["id"] not in held]
            self.told += len(rows) - len(kept)
            rows[:] = kept


class StampFromTheRequest(Lie):
    """The stamp of an answer is the server's time of now, though the page ended before that."""

    kinds = READ | {"stamp_order"}

    def tell(self, asked: Asked, given: Given) -> None:
        if asked.path == "/sync/stamped" and given.status == 200 and given.json["hasMore"]:
            given.json["clientStamp"] += 60_000
            given.json["hasMore"] = False
            self.told += 1


class AnswerKeyAnew(Lie):
    """A repeated key is answered as if it were a new request."""

    kinds = {"replay_differs"}

    def tell(self, asked: Asked, given: Given) -> None:
        if asked.method == "PUT" and given.headers.pop("Idempotency-Replayed", None):
            self.told += 1
