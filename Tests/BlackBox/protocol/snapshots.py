"""Snapshot scans, with writes between their pages."""

from __future__ import annotations

from typing import Callable

from protocol.ledger import Json
from protocol.replica import Replica
from protocol.scope_client import ScopeClient
from protocol.violation import Violation
from protocol.wire import Answer


def scan(scope_client: ScopeClient, priorities: dict[str, int], between: Callable[[], None] | None = None) -> None:
    scope_client.in_snapshot = True
    try:
        _scan(scope_client, priorities, between)
    finally:
        scope_client.in_snapshot = False


def _scan(scope_client: ScopeClient, priorities: dict[str, int], between: Callable[[], None] | None) -> None:
    floor, limit = scope_client.session.newest_own, scope_client.dice.choice((1, 3, 10, 40, 500))
    fresh, order = Replica(scope_client.scope), ((-1,), "", b"")
    answer = scope_client.wire.get("/sync/snapshot", scope_client.scope.name, limit=limit)
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
        if between is not None and scope_client.dice.random() < 0.5:
            between()
        answer = _next(scope_client, page, limit)
    if page["pageCursor"] is not None:
        raise Violation("snapshot_row", "the last page has a cursor (W18)", [str(answer)])
    fresh.since, fresh.epoch, fresh.complete, fresh.position = page["nextSince"], page["epoch"], head, head
    scope_client.wire.verdict.count("snapshots")
    scope_client.replace(fresh, floor, str(answer))


def _check_frame(page: Json, head: int, answer: Answer) -> None:
    if page["head"] != head or not page["consistent"]:
        raise Violation("horizon_moved", "a snapshot is of one version within the window (W18, W19)", [str(answer)])
    if page["hasMore"] == ("nextSince" in page):
        raise Violation("snapshot_row", "nextSince stands on the last page only (W18)", [str(answer)])


def _next(scope_client: ScopeClient, page: Json, limit: int) -> Answer:
    query = {"snapshotToken": page["snapshotToken"], "pageCursor": page["pageCursor"], "limit": limit}
    answer = scope_client.wire.get("/sync/snapshot", scope_client.scope.name, **query)
    answer.expect(200)
    tag = answer.headers.get("etag", "")
    if not tag.startswith('"'):
        raise Violation("missing_header", "a page of a snapshot has a strong ETag (W19)", [str(answer)])
    if scope_client.dice.random() < 0.2:
        again = scope_client.wire.get("/sync/snapshot", scope_client.scope.name, **query)
        if again.body != answer.body:
            raise Violation(
                "page_differs", "a page of a snapshot has the same bytes for ever (W19)", [str(answer), str(again)]
            )
        headers = {"If-None-Match": again.headers["etag"]}
        kept = scope_client.wire.get("/sync/snapshot", scope_client.scope.name, headers, **query)
        same_form = kept.headers.get("etag") == again.headers["etag"]
        if kept.status != 304 and same_form:
            raise Violation("unexpected_answer", "If-None-Match with the page's ETag is 304 (W19)", [str(kept)])
        scope_client.wire.verdict.count("pages of snapshots asked for twice")
    return answer
