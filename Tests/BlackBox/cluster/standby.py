"""A standby that is behind takes over, and what it never had is replayed by the devices that wrote it."""

from __future__ import annotations

import http.client
import json
import threading
import time
from typing import Any

from cluster.nodes import Cluster
from support.fleet import Fleet
from support.postgres_server import NotInstalled, PostgresServer
from support.report import Budget, Report, patiently
from support.tokens import mint

SCOPE = "torture.standby"
DEVICES = 3
BACK_SECONDS = 60


def run(report: Report, budget: Budget) -> None:
    try:
        with (
            Cluster(nodes=2, standby=True) as cluster,
            Fleet(DEVICES, cluster.folder, cluster.nodes[0].url, cluster.secret, SCOPE, budget) as fleet,
        ):
            _run(report, budget, cluster, fleet)
    except NotInstalled as missing:
        report.not_run.append(str(missing))


def _run(report: Report, budget: Budget, cluster: Cluster, fleet: Fleet) -> None:
    for device in fleet.devices:
        device.url = cluster.nodes[device.number % len(cluster.nodes)].url
    fleet.begin(report)
    while not report.failures and (budget.left(0.7) > 0 or not report.counts.get("takeovers")):
        _take_over(report, budget, cluster, fleet)
        if budget.dice.random() < 0.5:
            _edit_and_sync(fleet, 2)
    fleet.converge(report)
    report.add("acknowledged to devices", fleet.pushed)


def _take_over(report: Report, budget: Budget, cluster: Cluster, fleet: Fleet) -> None:
    primary, standby = cluster.primary, cluster.standby
    assert standby is not None
    _edit_and_sync(fleet, 3)
    kept = _head(cluster)
    caught_up = patiently(lambda: _replayed(primary, standby), 30)
    report.require(caught_up is not None, "the standby does not follow")
    # From here on the standby hears nothing more.
    standby.psql("ALTER SYSTEM SET primary_conninfo = ''")
    standby.psql("SELECT pg_reload_conf()")
    report.require(patiently(lambda: not _follows(standby), 30) is not None, "the standby does not stop following")
    _edit_and_sync(fleet, budget.dice.randint(1, 4))
    ahead = _head(cluster)
    lost = ahead["version"] - kept["version"]
    idle = threading.Event()
    pushers = [threading.Thread(target=_sync_until, args=(fleet, n, idle)) for n in range(budget.dice.randint(0, 2))]
    for pusher in pushers:
        pusher.start()
    time.sleep(budget.dice.uniform(0, 0.5))
    primary.stop("immediate")
    standby.promote()
    began = time.monotonic()
    told: list[dict[str, Any]] = []
    back = patiently(lambda: _answers(cluster, told), BACK_SECONDS)
    report.require(back is not None, f"no node reaches the new primary in {BACK_SECONDS} s: {told[-1:]}")
    report.worst("worst seconds from promotion to answer", time.monotonic() - began)
    idle.set()
    for pusher in pushers:
        pusher.join()
    _checkpoints(report, cluster, fleet, kept, ahead, lost)
    report.add("takeovers")
    report.add("versions that the new primary never had", lost)
    cluster.primary, cluster.standby = standby, cluster.postgres.standby(standby, primary.port)


def _edit_and_sync(fleet: Fleet, rounds: int) -> None:
    for _ in range(rounds):
        for device in fleet.devices:
            device.edit(device.dice.randint(1, 3))
            _sync(fleet, device.number)


def _sync(fleet: Fleet, number: int) -> None:
    code, told, error = fleet.devices[number].sync()
    fleet.syncs += 1
    fleet.pushed += told.get("pushed", 0)
    if code != 0:
        fleet.failed_syncs += 1
        fleet.errors.add(error.strip()[:160])


def _sync_until(fleet: Fleet, number: int, idle: threading.Event) -> None:
    while not idle.is_set():
        fleet.devices[number].edit(1)
        _sync(fleet, number)
        idle.wait(0.1)


def _replayed(primary: PostgresServer, standby: PostgresServer) -> bool:
    written = primary.psql("SELECT pg_current_wal_lsn()")
    return standby.psql(f"SELECT pg_last_wal_replay_lsn() >= '{written}'") == "t"


def _follows(standby: PostgresServer) -> bool:
    return standby.psql("SELECT count(*) FROM pg_stat_wal_receiver") != "0"


def _ask(cluster: Cluster, node: int, query: str) -> tuple[int, dict[str, Any]]:
    token = mint(cluster.secret, "looker", {SCOPE: "r"})
    connection = http.client.HTTPConnection("127.0.0.1", cluster.ports[node], timeout=30)
    headers = {"Authorization": f"Bearer {token}", "Tidemark-Client": "looker-0001"}
    try:
        connection.request("GET", f"/sync/changes?scope={SCOPE}{query}", headers=headers)
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    finally:
        connection.close()


def _head(cluster: Cluster) -> dict[str, Any]:
    """A checkpoint of everything that is there now."""
    since = ""
    while True:
        status, page = _ask(cluster, 0, f"&limit=5000{since}")
        if status != 200:
            raise RuntimeError(f"a pull is {status} {page}")
        since = f"&since={page['nextSince']}"
        if not page["hasMore"]:
            return {"version": page["head"], "since": since}


def _answers(cluster: Cluster, told: list[dict[str, Any]]) -> bool:
    found = [_ask(cluster, node, "&limit=1") for node in range(len(cluster.nodes))]
    told += [page for status, page in found if status != 200]
    return all(status == 200 for status, _ in found)


def _checkpoints(
    report: Report, cluster: Cluster, fleet: Fleet, kept: dict[str, Any], ahead: dict[str, Any], lost: int
) -> None:
    """Nobody may go on from what is not there any more, and whoever has seen only what is may."""
    for node in range(len(cluster.nodes)):
        status, told = _ask(cluster, node, f"&limit=1{kept['since']}")
        report.require(status == 200, f"a checkpoint that the standby had is {status} {told}")
        status, told = _ask(cluster, node, f"&limit=1{ahead['since']}")
        if lost:
            noticed = status == 410 and told.get("reason") in ("ahead", "epoch")
            report.require(noticed, f"a checkpoint of the lost tail is {status} {told}")
            report.add("lost checkpoints that were noticed", noticed)
    # Also when the history has grown beyond it again.
    for _ in range(lost):
        if _head(cluster)["version"] > ahead["version"]:
            break
        _edit_and_sync(fleet, 2)
    for node in range(len(cluster.nodes)):
        status, told = _ask(cluster, node, f"&limit=1{ahead['since']}")
        noticed = status == 410 and told.get("reason") == "epoch"
        report.require(noticed or not lost, f"a checkpoint of the lost tail is {status} {told} once there is more")
        report.add("lost checkpoints that were noticed, later on", noticed)
