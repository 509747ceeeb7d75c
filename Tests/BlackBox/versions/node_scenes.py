"""Two nodes of two versions on one PostgreSQL."""

from __future__ import annotations

import http.client
import json

from cluster.nodes import Cluster
from cluster.stream import Setup, Stream
from support.postgres_server import NotInstalled
from support.report import Budget, Report, patiently
from support.tokens import mint
from versions.file_scenes import ROUNDS, SCOPE
from versions.mixed_fleet import MixedFleet, Version

WRITERS, READERS, BATCH = 4, 4, 5
IN_SYNC_SECONDS = 60
# Of a phase: until so many writes were acknowledged in it, and so long at most.
PHASE_WRITES, PHASE_SECONDS = 300, 60
STREAM = "fleet.stream"


def nodes(report: Report, budget: Budget, old: Version, new: Version) -> None:
    try:
        # None is started by itself: the first one is the old version's, which makes the schema.
        with Cluster(nodes=0) as cluster:
            first = cluster.add(old.program)
            before = form(cluster)
            second = cluster.add(new.program)
            if form(cluster) == before:
                _together(report, budget, cluster, old, new)
            else:
                first.terminate()
                second.terminate()
                _apart(report, budget, old, new, before, form(cluster))
    except NotInstalled as missing:
        report.not_run.append(str(missing))


def _together(report: Report, budget: Budget, cluster: Cluster, old: Version, new: Version) -> None:
    """Old and new side by side; then the old one is replaced while everybody goes on, and the new one goes back."""
    fleet = MixedFleet(cluster.folder, cluster.nodes[0].url, cluster.secret, SCOPE, budget)
    setup = Setup(cluster.ports, cluster.secret, BATCH, pause=0.02)
    stream = Stream(setup, STREAM, WRITERS, READERS, seed=budget.dice.random(), cursors=old.has("compact"))
    stream.start()
    try:
        fleet.join(old, new)
        _by_turns(report, fleet, cluster, stream)
        for node, version in ((0, new), (1, old)):
            cluster.nodes[node].terminate()
            cluster.nodes[node].program = version.program
            cluster.nodes[node].start()
            report.add("nodes replaced under load")
            _by_turns(report, fleet, cluster, stream)
    finally:
        took = stream.finish(IN_SYNC_SECONDS)
    report.require(took is not None, f"not every reader is at the head {IN_SYNC_SECONDS} s after the load")
    for reason in stream.verify():
        report.fail(reason)
    report.require(stream.lost == 0, f"{stream.lost} acknowledged rows are not with every reader")
    report.require(stream.twice == 0, f"{stream.twice} rows came twice")
    fleet.converge(report, True)
    for scope in (STREAM, SCOPE):
        told = {answer(cluster, port, scope) for port in cluster.ports}
        report.require(len(told) == 1, f"the nodes differ about {scope}: {[head[:200] for head in told]}")
    report.add("acknowledged writes", stream.acknowledged)
    report.add("rows read in their turn", sum(reader.rows for reader in stream.readers))


def _apart(report: Report, budget: Budget, old: Version, new: Version, before: str, after: str) -> None:
    """A form that the new version changes: all old nodes end before the first new one begins, and none begins again."""
    report.not_run.append(f"{old.name} and {new.name} side by side: the schema's form is {before} and {after}")
    with Cluster(nodes=0) as cluster:
        node = cluster.add(old.program)
        fleet = MixedFleet(cluster.folder, node.url, cluster.secret, SCOPE, budget)
        fleet.join(old, new)
        fleet.work(report, ROUNDS)
        node.terminate()
        for member in fleet.members:
            member.edit(5)
        node.program = new.program
        node.start()
        fleet.work(report, ROUNDS)
        fleet.converge(report, True)
        node.terminate()
        node.program = old.program
        try:
            node.start()
            report.fail("an old node begins on a schema of a newer form")
        except RuntimeError as refusal:
            report.require("newer" in str(refusal), f"the old node does not say why it refuses: {refusal}")
        report.add("upgrades of a schema with every node at rest")


def _by_turns(report: Report, fleet: MixedFleet, cluster: Cluster, stream: Stream) -> None:
    """Each device goes to the other node with every round, and so do its checkpoints."""
    before = stream.acknowledged
    for turn in range(ROUNDS):
        for place, member in enumerate(fleet.members):
            member.url = cluster.nodes[(place + turn) % len(cluster.nodes)].url
        fleet.work(report, 1)
    took = patiently(lambda: stream.acknowledged >= before + PHASE_WRITES, PHASE_SECONDS, pause=0.02)
    report.require(took is not None, f"only {stream.acknowledged - before} writes in {PHASE_SECONDS} s")


def form(cluster: Cluster) -> str:
    # Builds from before have their tables in another schema.
    schema = cluster.primary.psql(
        "SELECT max(nspname) FROM pg_namespace WHERE nspname IN ('tidemark', 'tidemark_log')", "log"
    )
    return cluster.primary.psql(f"SELECT number FROM {schema}.meta WHERE key = 'schema'", "log")


def answer(cluster: Cluster, port: int, scope: str) -> str:
    """The head and the digest of a scope, as one node tells them."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    headers = {"Authorization": f"Bearer {mint(cluster.secret, 'looker', {scope: 'r'})}"}
    connection.request("GET", f"/sync/digest?scope={scope}", headers=headers)
    said = json.loads(connection.getresponse().read())
    connection.close()
    return json.dumps([said["version"], said["entities"]], sort_keys=True)
