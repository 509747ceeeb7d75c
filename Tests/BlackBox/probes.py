"""Questions that must not be answered, and one key used for two payloads."""

from __future__ import annotations

import json
from typing import Callable

from ledger import NOTE, Json
from seat import Seat
from violation import Violation
from wire import Answer, Wire


def forbidden(seat: Seat, foreign: str) -> None:
    """A scope that the token lacks, and one that nobody ever had: one answer for both (W6)."""
    wire, dice = seat.wire, seat.dice
    nowhere = foreign[:-4] + "none"
    body: Json = {"clientId": wire.client_id, "operations": []}
    stray = {"lane": "stray-lane", "number": 1, "type": "upsert", "entity": "note", "id": "stray", "fields": {"a": 1}}
    routes: list[Callable[[str], Answer]] = [
        lambda s: wire.get("/sync/changes", s, since=dice.choice((None, seat.replica.since))),
        lambda s: wire.get("/sync/snapshot", s),
        lambda s: wire.get("/sync/digest", s),
        lambda s: wire.get("/sync/records/note", s, id="n1"),
        lambda s: wire.post("/sync", s, json.dumps(body | {"scope": s}).encode()),
        lambda s: wire.post("/sync/push", s, json.dumps(body | {"scope": s, "operations": [stray]}).encode()),
    ]
    ask = dice.choice(routes)
    state = dice.getstate()
    first = _watched(wire, ask, foreign)
    dice.setstate(state)
    second = _watched(wire, ask, nowhere)
    if first.status != 403 or first.json["code"] != "scope_forbidden":
        raise Violation("scope_leak", "a scope that is not granted is 403 scope_forbidden (W6)", [str(first)])
    if first.body.replace(foreign.encode(), b"") != second.body.replace(nowhere.encode(), b""):
        raise Violation("scope_leak", "the answer tells whether the scope exists (W6)", [str(first), str(second)])
    wire.verdict.count("forbidden questions")


def _watched(wire: Wire, ask: Callable[[str], Answer], scope: str) -> Answer:
    """To this asker even the scope's own marker is a secret."""
    answer = ask(scope)
    for name, secret in wire.secrets.items():
        if secret in answer.body + repr(answer.headers).encode():
            raise Violation("scope_leak", f"data of scope {name} without its grant (I9)", [str(answer)])
    return answer


def foreign_checkpoint(seat: Seat, other: Seat) -> None:
    since = other.replica.since
    if since is None or other is seat:
        return
    answer = seat.wire.get("/sync/changes", seat.scope.name, since=since)
    if answer.status != 400 or answer.json["code"] != "invalid_checkpoint":
        raise Violation("checkpoint", "another scope's checkpoint is 400 invalid_checkpoint (W15)", [str(answer)])
    at = seat.dice.randrange(len(since))
    altered = since[:at] + ("A" if since[at] != "A" else "B") + since[at + 1 :]
    answer = other.wire.get("/sync/changes", other.scope.name, since=altered)
    if answer.status != 400 or answer.json["code"] != "invalid_checkpoint":
        raise Violation("checkpoint", "an altered checkpoint is 400 invalid_checkpoint (W15)", [str(answer)])
    seat.wire.verdict.count("bad checkpoints refused")


def mismatch(seat: Seat) -> None:
    """The key of a finished operation with another payload: the first one stays (W33)."""
    if not seat.finished:
        return
    write = seat.dice.choice(seat.finished).writes[0]
    forged = write.operation | {"entity": NOTE, "id": f"never.{seat.scope.marker}"}
    body = {"scope": seat.scope.name, "clientId": seat.wire.client_id, "operations": [forged]}
    answer = seat.wire.post("/sync/push", seat.scope.name, json.dumps(body).encode())
    result = answer.expect(200)["results"][0]
    code = result.get("error", {}).get("code")
    if result["status"] != "settled" and code != "operation_mismatch":
        raise Violation("replay_differs", "another payload under a used key is operation_mismatch (W33)", [str(answer)])
    seat.wire.verdict.count("forged keys refused")


def outsiders(seat: Seat) -> None:
    """No token, and a protocol that nobody speaks."""
    token, seat.wire.token = seat.wire.token, seat.wire.token[:-6] + "AAAAAA"
    try:
        answer = seat.wire.get("/sync/changes", seat.scope.name)
    finally:
        seat.wire.token = token
    if answer.status != 401 or seat.wire.secrets[seat.scope.name] in answer.body:
        raise Violation("scope_leak", "a forged token is 401 (W6)", [str(answer)])
    answer = seat.wire.get("/sync/changes", seat.scope.name, {"Tidemark-Protocol": "2"})
    if answer.status != 400 or answer.json["code"] != "unsupported_protocol" or "supported" not in answer.json:
        raise Violation("unexpected_answer", "protocol 2 is 400 unsupported_protocol (W5)", [str(answer)])
    seat.wire.verdict.count("outsiders refused")


def write_without_grant(seat: Seat) -> None:
    stray = {"lane": "stray-lane", "number": 1, "type": "upsert", "entity": "note", "id": "stray", "fields": {"a": 1}}
    body = {"scope": seat.scope.name, "clientId": seat.wire.client_id, "operations": [stray]}
    answer = seat.wire.post("/sync/push", seat.scope.name, json.dumps(body).encode())
    if answer.status != 403 or answer.json["code"] != "scope_read_only":
        raise Violation("scope_leak", "a push with `r` is 403 scope_read_only (W6)", [str(answer)])
    seat.wire.verdict.count("pushes without grant refused")
