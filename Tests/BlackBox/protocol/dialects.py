"""Callers without a client (the other dialects, W84–W88): the same scopes, read and written by other routes while
ordinary devices write. What they see is held against the same writes."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from protocol.causality import Session
from protocol.ledger import Json, Key, NOTE, REGISTER, ScopeLedger, Write
from protocol.scope_client import ScopeClient
from protocol.violation import Violation
from protocol.wire import Answer, Wire

PLAIN = "plain"
ENTITIES = (REGISTER, NOTE, PLAIN)
LIMITS = (1, 3, 20, 500)
MAP_AT_MOST = 60  # ids in one header, which may hold 8 KiB
MODIFIED = "lastModifiedAt"


def _value(answer: Answer, status: int = 200) -> Any:
    if answer.status != status:
        raise Violation("unexpected_answer", f"{answer.status} instead of {status}", [str(answer)])
    try:
        return json.loads(answer.body)
    except ValueError as error:
        raise Violation("malformed_answer", f"the body is not JSON: {error}", [str(answer)]) from error


def _data(record: Json, *beside: str) -> Json:
    return {name: value for name, value in record.items() if name not in ("id", *beside)}


@dataclass
class Copy:
    """Rows as one route tells of them, and where it stands."""

    session: Session
    rows: dict[Key, Json] = field(default_factory=dict)
    place: str | None = None
    in_scan: bool = False  # whether the place is within a scan, whose end stands since its first page
    touched: set[Key] = field(default_factory=set)
    shown: str = ""  # the last answer

    def put(self, key: Key, data: Json | None) -> None:
        if data is None:
            self.rows.pop(key, None)
        else:
            self.rows[key] = data
        self.touched.add(key)

    def whole(self, shown: str, rows: dict[Key, Json] | None = None) -> None:
        """Everything up to some version is here: causes before their effects, no group in part."""
        held = {key: (0, data) for key, data in (self.rows if rows is None else rows).items()}
        self.session.observe(held, self.touched, 0, 0, shown)
        self.touched = set()


class DialectReader:
    """One caller's copies of a scope: by cursor, by stamp, by the time and by the map of a delta header."""

    def __init__(self, scope: ScopeLedger, wire: Wire, name: str):
        self.scope, self.wire = scope, wire
        self.cursors = {entity: self._copy(f"{name}, {entity} by cursor") for entity in ENTITIES}
        self.times = {entity: self._copy(f"{name}, {entity} by time") for entity in ENTITIES}
        self.maps = {entity: self._copy(f"{name}, {entity} by map") for entity in ENTITIES}
        self.stamped = self._copy(f"{name}, by stamp")
        self.updated = dict.fromkeys(ENTITIES, "")
        self.stamp, self.began = 0, None

    def _copy(self, name: str) -> Copy:
        return Copy(Session(self.scope, name))

    def step(self, scope_client: ScopeClient) -> None:
        entity = scope_client.dice.choice(ENTITIES)
        limit = scope_client.dice.choice(LIMITS)
        route: Callable[[str, int], bool] = scope_client.dice.choice((self.cursor, self.time, self.map, self.by_stamp))
        route(entity, limit)

    def catch_up(self) -> None:
        for entity in ENTITIES:
            # A scan ends where it was to end when it began.
            for _ in range(2):
                while not self.cursor(entity, 500):
                    pass
            self.time(entity, 500)
            self.map(entity, 500)
        while not self.by_stamp("", 500):
            pass

    def check(self, rows: dict[Key, tuple[int, Json]]) -> None:
        """In the end each route has brought what the acknowledged writes add up to."""
        for entity in ENTITIES:
            expected = {key: data for key, (_, data) in rows.items() if key[0] == entity}
            listed = self.maps[entity]
            listed.rows = {key: _data(row, MODIFIED) for key, row in listed.rows.items()}
            for copy in (self.cursors[entity], self.times[entity], listed):
                self._equal(copy, expected)
        self._equal(self.stamped, {key: data for key, (_, data) in rows.items()})

    @staticmethod
    def _equal(copy: Copy, expected: dict[Key, Json]) -> None:
        for key in sorted(expected.keys() | copy.rows.keys()):
            mine, theirs = expected.get(key), copy.rows.get(key)
            if mine != theirs:
                wrong = f"in the end {copy.session.reader} has {key} as {theirs}, not {mine} (I4)"
                raise Violation("convergence", wrong, [copy.shown])

    # The cursor delta (W87)

    def cursor(self, entity: str, limit: int) -> bool:
        copy, path = self.cursors[entity], f"/{quote(entity, safe='')}/delta"
        answer = self.wire.get(path, self.scope.name, cursor=copy.place, limit=limit)
        page = _value(answer)
        if copy.in_scan and self.wire.dice.random() < 0.8:
            again = self.wire.get(path, self.scope.name, cursor=copy.place, limit=limit)
            self.wire.verdict.count("pages by cursor asked for twice")
            if again.status == 200 and again.body != answer.body:
                shown = [str(answer), str(again)]
                raise Violation("page_differs", "a cursor within a scan gave two pages (W87)", shown)
        rows = [(row["updatedAt"], row["id"], _data(row, "updatedAt")) for row in page["upserts"]]
        rows += [(row["deletedAt"], row["id"], None) for row in page["tombstones"]]
        for moment, record, data in sorted(rows, key=lambda row: (row[0], row[1])):
            if moment <= self.updated[entity]:
                raise Violation(
                    "stamp_order", f"{record} was made at {moment}, after {self.updated[entity]} (W16)", [str(answer)]
                )
            self.updated[entity] = moment
            copy.put((entity, record), data)
        copy.in_scan = page["nextCursor"] is not None
        copy.place = page["nextCursor"] or answer.headers.get("tidemark-checkpoint")
        if page["nextCursor"] is None and entity == REGISTER:
            copy.whole(str(answer))
        copy.shown = str(answer)
        self.wire.verdict.count("pages by cursor")
        return page["nextCursor"] is None

    # Delta headers (W86)

    def time(self, entity: str, limit: int) -> bool:
        copy = self.times[entity]
        header = {"x-apiomat-delta": f'"{copy.place or 0}"'}
        place, answer = None, None
        while answer is None or place is not None:
            answer = self.wire.get(
                f"/rest/{quote(entity, safe='')}", self.scope.name, header, limit=limit, cursor=place
            )
            self._take(copy, entity, answer)
            # The scan may be left here and go on from its stamp.
            copy.place = answer.headers["tidemark-stamp"]
            place = _next(answer)
        if entity == REGISTER:
            copy.whole(str(answer))
        copy.shown = str(answer)
        self.wire.verdict.count("lists by time")
        return True

    def map(self, entity: str, limit: int) -> bool:
        copy = self.maps[entity]
        # A map of some of the ids would say nothing of the others. Where they are too many, all are asked for.
        held = {key[1]: str(row[MODIFIED]) for key, row in copy.rows.items()}
        header = {"x-apiomat-delta": json.dumps(held, ensure_ascii=True)} if len(held) <= MAP_AT_MOST else {}
        place, answer = None, None
        while answer is None or place is not None:
            answer = self.wire.get(
                f"/rest/{quote(entity, safe='')}", self.scope.name, header, limit=limit, cursor=place
            )
            for row in _value(answer):
                copy.rows[entity, row["id"]] = _data(row)
                if not header:
                    held.pop(row["id"], None)
            if header:
                for record in json.loads(answer.headers["x-apiomat-delta-deleted"]):
                    copy.rows.pop((entity, record), None)
            place = _next(answer)
        if not header:
            for record in held:
                copy.rows.pop((entity, record), None)
        copy.shown = str(answer)
        self.wire.verdict.count("lists by map")
        return True

    def _take(self, copy: Copy, entity: str, answer: Answer) -> None:
        for row in _value(answer):
            copy.put((entity, row["id"]), _data(row, MODIFIED))
        for record in json.loads(answer.headers["x-apiomat-delta-deleted"]):
            copy.put((entity, record), None)

    # Two stamps (W88)

    def by_stamp(self, _: str, limit: int) -> bool:
        body: Json = {"clientStamp": self.stamp, "limit": limit, "items": []}
        if self.began is not None:
            body["began"] = self.began
        answer = self.wire.post(f"/sync/stamped?scope={self.scope.name}", self.scope.name, json.dumps(body).encode())
        page = _value(answer)
        if page["clientStamp"] < self.stamp:
            raise Violation("stamp_order", f"clientStamp went back from {self.stamp} (W88)", [str(answer)])
        for item in page["items"]:
            self.stamped.put((item["entity"], item["id"]), None if item.get("deleted") else item["data"])
        self.stamp, self.began = page["clientStamp"], page.get("began")
        if not page["hasMore"]:
            self.stamped.whole(str(answer))
        self.stamped.shown = str(answer)
        self.wire.verdict.count("pages by stamp")
        return not page["hasMore"]


def _next(answer: Answer) -> str | None:
    link = answer.headers.get("link", "")
    if not link:
        return None
    return link[1 : link.index(">")].partition("cursor=")[2].partition("&")[0]


class DialectWriter:
    """Puts records of its own, each request with a key and repeated until it has an answer (W84, W85)."""

    RECORDS = 3

    def __init__(self, scope_client: ScopeClient):
        self.scope_client, self.count = scope_client, 0
        self.waiting: tuple[Write, str, str] | None = None
        self.done: tuple[str, str, str, Answer] | None = None

    def step(self) -> None:
        if self.waiting is None and self.done and self.scope_client.dice.random() < 0.2:
            return self._again()
        if self.waiting is None:
            self._plan()
        self.finish()

    def finish(self) -> None:
        if self.waiting is None:
            return
        write, key, path = self.waiting
        body = json.dumps(write.operation["fields"])
        answer = self._put(path, body, key)
        # Lost here: it is sent again, under its key.
        record = _value(answer, 201 if answer.status == 201 else 200)
        if _data(record, MODIFIED) != write.operation["fields"]:
            raise Violation("wrong_verdict", "PUT answers with another record (W84)", [str(write), str(answer)])
        version = int(answer.headers["etag"].strip('"').partition("-")[0])
        self.scope_client.scope.note_verdict(write, {"status": "applied", "version": version}, str(answer))
        self.waiting, self.done = None, (path, body, key, answer)
        self.scope_client.wire.verdict.count("records put")

    def _again(self) -> None:
        assert self.done
        path, body, key, first = self.done
        again = self._put(path, body, key)
        if again.headers.get("idempotency-replayed") != "true":
            raise Violation("replay_differs", "the key's second answer does not say so (W85)", [str(first), str(again)])
        # A server whose clock has gone on shows the record as it is by then.
        shown, known = _value(again, again.status), json.loads(first.body)
        if shown["n"] < known["n"] or shown["n"] == known["n"] and again.headers["etag"] != first.headers["etag"]:
            raise Violation("replay_differs", "the key got another answer (W85)", [str(first), str(again)])
        self.scope_client.wire.verdict.count("keys repeated")

    def _put(self, path: str, body: str, key: str) -> Answer:
        return self.scope_client.wire.put(path, self.scope_client.scope.name, body.encode(), {"Idempotency-Key": key})

    def _plan(self) -> None:
        scope_client = self.scope_client
        self.count += 1
        record = f"p{scope_client.client}.{self.count % self.RECORDS}"
        fields = {"n": self.count, "text": scope_client.scope.text(record, scope_client.client, self.count)}
        write = Write(scope_client.client, scope_client.scope.name, 0, _upsert(record, fields), {})
        scope_client.scope.plan(write)
        key = str(uuid.UUID(int=scope_client.dice.getrandbits(128)))
        self.waiting = write, key, f"/rest/{PLAIN}/{quote(record, safe='')}"


def _upsert(record: str, fields: Json) -> Json:
    return {"type": "upsert", "entity": PLAIN, "id": record, "fields": fields, "lane": "rest", "number": 0}
