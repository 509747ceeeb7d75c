"""The digest of a scope, added up here by the document's rules (W65-W68) and compared with what the server says."""

from __future__ import annotations

import json
from typing import Any

from protocol.ledger import Json, Key
from protocol.scope_client import ScopeClient
from protocol.violation import Violation

MASK = (1 << 64) - 1
KEY = bytes(range(16))
Rows = dict[Key, tuple[int, Json]]


def siphash(data: bytes) -> int:
    k0, k1 = int.from_bytes(KEY[:8], "little"), int.from_bytes(KEY[8:], "little")
    v = [k0 ^ 0x736F6D6570736575, k1 ^ 0x646F72616E646F6D, k0 ^ 0x6C7967656E657261, k1 ^ 0x7465646279746573]

    def turn(x: int, bits: int) -> int:
        return (x << bits | x >> (64 - bits)) & MASK

    def rounds(count: int) -> None:
        for _ in range(count):
            v[0] = (v[0] + v[1]) & MASK
            v[1] = turn(v[1], 13) ^ v[0]
            v[0] = turn(v[0], 32)
            v[2] = (v[2] + v[3]) & MASK
            v[3] = turn(v[3], 16) ^ v[2]
            v[0] = (v[0] + v[3]) & MASK
            v[3] = turn(v[3], 21) ^ v[0]
            v[2] = (v[2] + v[1]) & MASK
            v[1] = turn(v[1], 17) ^ v[2]
            v[2] = turn(v[2], 32)

    padded = data + bytes(7 - len(data) % 8) + bytes([len(data) & 0xFF])
    for at in range(0, len(padded), 8):
        word = int.from_bytes(padded[at : at + 8], "little")
        v[3] ^= word
        rounds(2)
        v[0] ^= word
    v[2] ^= 0xFF
    rounds(4)
    return v[0] ^ v[1] ^ v[2] ^ v[3]


def text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def record_number(entity: str, record: str) -> int:
    return siphash(entity.encode().lower() + b"\0" + record.encode()) | 1


def cell_number(name: str, value: Any) -> int:
    return 0 if value is None else siphash(text(name)[1:-1].encode() + b"\0" + text(value).encode())


def digest(rows: Rows) -> Json:
    entities: dict[str, list[tuple[int, Json]]] = {}
    for (entity, record), (_, data) in rows.items():
        entities.setdefault(entity, []).append((record_number(entity, record), data))
    return {entity: _entity(records) for entity, records in entities.items()}


def _entity(records: list[tuple[int, Json]]) -> Json:
    sums: dict[str, tuple[int, int, int]] = {}
    for number, data in records:
        for name, value in data.items():
            total, count, having = sums.get(name, (0, 0, 0))
            sums[name] = total + number * cell_number(name, value), count + 1, having + number
    fields: Json = {}
    for name, (total, count, having) in sums.items():
        fields[name] = {"sum": _hex(total)}
        if count < len(records):
            fields[name] |= {"count": count, "having": _hex(having)}
    return {"count": len(records), "records": _hex(sum(number for number, _ in records)), "fields": fields}


def _hex(number: int) -> str:
    return f"{number & MASK:016x}"


def compare(scope_client: ScopeClient) -> None:
    """Of the present checkpoint, if the rows are whole as of it."""
    if scope_client.replica.in_scan or scope_client.replica.since is None or scope_client.replica.is_ahead():
        return
    rows, since = scope_client.replica.live(), scope_client.replica.since
    answer = scope_client.wire.get("/sync/digest", scope_client.scope.name, at=since)
    if answer.status == 409 and answer.json["code"] == "digest_unavailable":
        scope_client.wire.verdict.count("digests unavailable")
        return
    said = answer.expect(200)
    own = digest(rows)
    theirs = {entity: sums for entity, sums in said["entities"].items() if sums["count"]}
    if said["version"] != scope_client.replica.complete or theirs != own:
        reason = f"as of {scope_client.replica.complete} own sums are {text(own)} (W65-W67)"
        raise Violation("digest", reason, [str(answer)])
    _compare_parts(scope_client, rows, since)
    scope_client.wire.verdict.count("digests compared")


def _compare_parts(scope_client: ScopeClient, rows: Rows, since: str) -> None:
    entities = sorted({entity for entity, _ in rows})
    if not entities:
        return
    entity, every = scope_client.dice.choice(entities), scope_client.dice.choice((1, 4, 400))
    records = sorted((key[1].encode(), data) for key, (_, data) in rows.items() if key[0] == entity)
    fields = sorted({name for _, data in records for name in data})[:3]
    query: Json = {"at": since, "entity": entity, "every": every, "field": fields}
    answer = scope_client.wire.get("/sync/digest", scope_client.scope.name, None, **query)
    if answer.status == 409:
        return
    said = answer.expect(200)
    for at, part in enumerate(said["parts"]):
        chunk = records[at * every : (at + 1) * every]
        numbers = [(record_number(entity, record.decode()), data) for record, data in chunk]
        total = sum(n * cell_number(f, data[f]) for n, data in numbers for f in fields if f in data)
        expected = (len(chunk), _hex(sum(n for n, _ in numbers)), _hex(total))
        if (part["count"], part["records"], part["sum"]) != expected:
            raise Violation("digest", f"part {at} of {entity} is {expected} here (W68)", [str(answer)])
