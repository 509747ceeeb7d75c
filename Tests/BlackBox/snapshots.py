"""Snapshot scans, with writes between their pages."""

from __future__ import annotations

from typing import Callable

from ledger import Json
from replica import Replica
from seat import Seat
from violation import Violation
from wire import Answer


def scan(seat: Seat, priorities: dict[str, int], between: Callable[[], None] | None = None) -> None:
    seat.in_snapshot = True
    try:
        _scan(seat, priorities, between)
    finally:
        seat.in_snapshot = False


def _scan(seat: Seat, priorities: dict[str, int], between: Callable[[], None] | None) -> None:
    floor, limit = seat.session.newest_own, seat.dice.choice((1, 3, 10, 40, 500))
    fresh, order = Replica(seat.scope), ((-1,), "", b"")
    answer = seat.wire.get("/sync/snapshot", seat.scope.name, limit=limit)
    head = answer.expect(200)["head"]
    while True:
        page = answer.json
        _check_frame(page, head, answer)
        for change in page["changes"]:
            place = ((priorities.get(change["entity"], 0),), change["entity"], change["id"].encode())
            if change["type"] != "upsert" or change["version"] > head or not order < place:
                raise Violation(
                    "snapshot_row", f"{change} is a tombstone, too new or out of order (W18)", [str(answer)]
                )
            order = place
            fresh.fold(change, answer)
        if not page["hasMore"]:
            break
        if between is not None and seat.dice.random() < 0.5:
            between()
        answer = _next(seat, page, limit)
    if page["pageCursor"] is not None:
        raise Violation("snapshot_row", "the last page has a cursor (W18)", [str(answer)])
    fresh.since, fresh.epoch, fresh.complete, fresh.position = page["nextSince"], page["epoch"], head, head
    seat.wire.verdict.count("snapshots")
    seat.replace(fresh, floor, str(answer))


def _check_frame(page: Json, head: int, answer: Answer) -> None:
    if page["head"] != head or not page["consistent"]:
        raise Violation("horizon_moved", "a snapshot is of one version within the window (W18, W19)", [str(answer)])
    if page["hasMore"] == ("nextSince" in page):
        raise Violation("snapshot_row", "nextSince stands on the last page only (W18)", [str(answer)])


def _next(seat: Seat, page: Json, limit: int) -> Answer:
    query = {"snapshotToken": page["snapshotToken"], "pageCursor": page["pageCursor"], "limit": limit}
    answer = seat.wire.get("/sync/snapshot", seat.scope.name, **query)
    answer.expect(200)
    tag = answer.headers.get("etag", "")
    if not tag.startswith('"'):
        raise Violation("missing_header", "a page of a snapshot has a strong ETag (W19)", [str(answer)])
    if seat.dice.random() < 0.2:
        again = seat.wire.get("/sync/snapshot", seat.scope.name, **query)
        if again.body != answer.body:
            raise Violation(
                "page_differs", "a page of a snapshot has the same bytes for ever (W19)", [str(answer), str(again)]
            )
        kept = seat.wire.get("/sync/snapshot", seat.scope.name, {"If-None-Match": again.headers["etag"]}, **query)
        same_form = kept.headers.get("etag") == again.headers["etag"]
        if kept.status != 304 and same_form:
            raise Violation("unexpected_answer", "If-None-Match with the page's ETag is 304 (W19)", [str(kept)])
        seat.wire.verdict.count("pages of snapshots asked for twice")
    return answer
