"""Strong convergence: in the end everybody holds what the acknowledged writes add up to, by whatever route they ask."""

from __future__ import annotations

from urllib.parse import quote

from protocol import digests, snapshots
from protocol.acknowledged_log import Log
from protocol.client import Client, Reader
from protocol.ledger import ScopeLedger
from protocol.replica import Replica
from protocol.scope_client import ScopeClient
from protocol.violation import Violation

NAMES_PER_QUESTION = 100


def check(scope: ScopeLedger, clients: list[Client]) -> None:
    log = Log(scope)
    wholes = log.check()
    scope_clients = [each for client in clients for each in client.scope_clients if each.scope is scope]
    for scope_client in scope_clients:
        _equal(log, scope_client.replica, scope_client.session.reader)
    for client in clients:
        if isinstance(client, Reader):
            client.dialects[scope.name].check(log.rows)
    last = scope_clients[0]
    last.wire.verdict.count("whole states compared with the log", wholes)
    kept = last.replica
    last.replica = Replica(scope)
    last.catch_up()
    _equal(log, last.replica, "a scan from the beginning")
    snapshots.scan(last, clients[0].priorities)
    _equal(log, last.replica, "a snapshot")
    digests.compare(last)
    _records(log, last)
    last.replica = kept


def _equal(log: Log, replica: Replica, who: str) -> None:
    difference = log.difference(replica.live())
    if difference:
        raise Violation("convergence", f"in the end {who} of {log.scope.name} {difference} (I4)")


def _records(log: Log, scope_client: ScopeClient) -> None:
    """By name, the dead ones too."""
    for entity in sorted({key[0] for key in [*log.rows, *log.deleted]}):
        names = sorted(key[1] for key in [*log.rows, *log.deleted] if key[0] == entity)
        for at in range(0, len(names), NAMES_PER_QUESTION):
            asked = names[at : at + NAMES_PER_QUESTION]
            answer = scope_client.wire.get(f"/sync/records/{quote(entity, safe='')}", scope_client.scope.name, id=asked)
            changes = answer.expect(200)["changes"]
            for name, change in zip(asked, changes, strict=True):
                row = log.rows.get((entity, name))
                found = (change["version"], change["data"]) if change["type"] == "upsert" else None
                if change["id"] != name or found != row:
                    raise Violation("convergence", f"{name} by name is not {row} (W61)", [str(answer)])
