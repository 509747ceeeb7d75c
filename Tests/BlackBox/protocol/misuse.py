"""Questions that must not be answered, and one key used for two payloads."""

from __future__ import annotations

import json
from typing import Callable

from protocol.ledger import Json, NOTE
from protocol.scope_client import ScopeClient
from protocol.violation import Violation
from protocol.wire import Answer, Wire


def forbidden(scope_client: ScopeClient, foreign: str) -> None:
    """A scope that the token lacks, and one that nobody ever had: one answer for both (W6)."""
    wire, dice = scope_client.wire, scope_client.dice
    nowhere = foreign[:-4] + "none"
    body: Json = {"clientId": wire.client_id, "operations": []}
    stray = {"lane": "stray-lane", "number": 1, "type": "upsert", "entity": "note", "id": "stray", "fields": {"a": 1}}
    routes: list[Callable[[str], Answer]] = [
        lambda s: wire.get("/sync/changes", s, since=dice.choice((None, scope_client.replica.since))),
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


def foreign_checkpoint(scope_client: ScopeClient, other: ScopeClient) -> None:
    since = other.replica.since
    if since is None or other is scope_client:
        return
    answer = scope_client.wire.get("/sync/changes", scope_client.scope.name, since=since)
    if answer.status != 400 or answer.json["code"] != "invalid_checkpoint":
        raise Violation("checkpoint", "another scope's checkpoint is 400 invalid_checkpoint (W15)", [str(answer)])
    at = scope_client.dice.randrange(len(since))
    altered = since[:at] + ("A" if since[at] != "A" else "B") + since[at + 1 :]
    answer = other.wire.get("/sync/changes", other.scope.name, since=altered)
    if answer.status != 400 or answer.json["code"] != "invalid_checkpoint":
        raise Violation("checkpoint", "an altered checkpoint is 400 invalid_checkpoint (W15)", [str(answer)])
    scope_client.wire.verdict.count("bad checkpoints refused")


def mismatch(scope_client: ScopeClient) -> None:
    """The key of a finished operation with another payload: the first one stays (W33)."""
    if not scope_client.finished:
        return
    write = scope_client.dice.choice(scope_client.finished).writes[0]
    forged = write.operation | {"entity": NOTE, "id": f"never.{scope_client.scope.marker}"}
    body = {"scope": scope_client.scope.name, "clientId": scope_client.wire.client_id, "operations": [forged]}
    answer = scope_client.wire.post("/sync/push", scope_client.scope.name, json.dumps(body).encode())
    result = answer.expect(200)["results"][0]
    code = result.get("error", {}).get("code")
    if result["status"] != "settled" and code != "operation_mismatch":
        raise Violation("replay_differs", "another payload under a used key is operation_mismatch (W33)", [str(answer)])
    scope_client.wire.verdict.count("forged keys refused")


def outsiders(scope_client: ScopeClient) -> None:
    """No token, and a protocol that nobody speaks."""
    token, scope_client.wire.token = scope_client.wire.token, scope_client.wire.token[:-6] + "AAAAAA"
    try:
        answer = scope_client.wire.get("/sync/changes", scope_client.scope.name)
    finally:
        scope_client.wire.token = token
    if answer.status != 401 or scope_client.wire.secrets[scope_client.scope.name] in answer.body:
        raise Violation("scope_leak", "a forged token is 401 (W6)", [str(answer)])
    answer = scope_client.wire.get("/sync/changes", scope_client.scope.name, {"Tidemark-Protocol": "2"})
    if answer.status != 400 or answer.json["code"] != "unsupported_protocol" or "supported" not in answer.json:
        raise Violation("unexpected_answer", "protocol 2 is 400 unsupported_protocol (W5)", [str(answer)])
    scope_client.wire.verdict.count("outsiders refused")


def write_without_grant(scope_client: ScopeClient) -> None:
    stray = {"lane": "stray-lane", "number": 1, "type": "upsert", "entity": "note", "id": "stray", "fields": {"a": 1}}
    body = {"scope": scope_client.scope.name, "clientId": scope_client.wire.client_id, "operations": [stray]}
    answer = scope_client.wire.post("/sync/push", scope_client.scope.name, json.dumps(body).encode())
    if answer.status != 403 or answer.json["code"] != "scope_read_only":
        raise Violation("scope_leak", "a push with `r` is 403 scope_read_only (W6)", [str(answer)])
    scope_client.wire.verdict.count("pushes without grant refused")
