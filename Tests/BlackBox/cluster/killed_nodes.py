"""Three nodes on one PostgreSQL under writers and readers, while nodes and database are killed, stopped and starved."""

from __future__ import annotations

import os
import signal
import time

from cluster.nodes import Cluster
from cluster.stream import Setup, Stream
from protocol.checker import Run, Settings
from support.postgres_server import NotInstalled
from support.report import Budget, Report, patiently

WRITERS_PER_SCOPE, READERS_PER_SCOPE = 12, 3
SCOPES = ("torture.one", "torture.two")
SYNC_SECONDS = 60
MID_COMMIT = "(wait_event_type = 'IO' OR wait_event IN ('WALWrite', 'WALSync', 'transactionid') OR state = 'active')"


def run(report: Report, budget: Budget) -> None:
    try:
        with Cluster(connections=60) as cluster:
            _run(report, budget, cluster)
    except NotInstalled as missing:
        report.not_run.append(str(missing))


def _run(report: Report, budget: Budget, cluster: Cluster) -> None:
    setup = Setup(cluster.ports, cluster.secret, batch=5, patience=4, pause=0.1)
    seed = budget.dice.getrandbits(32)
    streams = [Stream(setup, scope, WRITERS_PER_SCOPE, READERS_PER_SCOPE, seed=seed, cursors=True) for scope in SCOPES]
    urls = [node.url for node in cluster.nodes]
    settings = Settings(urls[0], cluster.secret, 0, clients=4, scopes=2, rate=60, seed=seed, others=urls[1:])
    with Run(settings) as checkers:
        checkers.clients[0].attempt(checkers.start)
        for stream in streams:
            stream.start()
        faults = [_stop_database, _end_sessions, _end_in_commit, _kill_node, _hold_node, _take_connections]
        while budget.left(0.85) > 0 and not checkers.verdict.over.is_set():
            for fault in budget.dice.sample(faults, len(faults)):
                if budget.left(0.85) > 0:
                    fault(report, budget, cluster)
                    _go_on(streams, report)
        _end(report, checkers, streams)
    report.require(all(node.is_up() for node in cluster.nodes), "a node is gone")
    if report.failures:
        for node in cluster.nodes:
            lines = node.log.read_text(errors="replace").splitlines()
            told = [line for line in lines if " error " in line and "connection to server" not in line]
            report.failures += [f"{node.log.stem} said: {line[:600]}" for line in told[-5:]]


def _go_on(streams: list[Stream], report: Report) -> None:
    """In each scope, since a lock that nobody releases holds up one only."""
    before = [stream.acknowledged for stream in streams]
    took = patiently(lambda: all(s.acknowledged > b for s, b in zip(streams, before)), SYNC_SECONDS, pause=0.01)
    report.require(took is not None, f"no write was acknowledged in {SYNC_SECONDS} s after a fault")
    report.worst("worst seconds from the end of a fault to writes in all scopes", took or SYNC_SECONDS)


def _end(report: Report, checkers: Run, streams: list[Stream]) -> None:
    began = time.monotonic()
    for stream in streams:
        took = stream.finish(SYNC_SECONDS)
        report.require(took is not None, f"{stream.tally.scope} is not in sync {SYNC_SECONDS} s after the last fault")
    report.worst("seconds to be in sync", time.monotonic() - began)
    checkers.stop()
    for stream in streams:
        for reason in stream.verify():
            report.fail(f"{stream.tally.scope}: {reason}")
        report.require(stream.lost == 0, f"{stream.lost} acknowledged rows are not with every reader")
        report.require(stream.twice == 0, f"{stream.twice} rows came twice")
        report.add("acknowledged writes", stream.acknowledged)
        report.add("rows read in their turn", sum(reader.rows for reader in stream.readers))
        report.add("answers lost", sum(caller.lost for caller in [*stream.writers, *stream.readers]))
        report.add("pushes answered as repeats", sum(writer.repeats for writer in stream.writers))
    counts = checkers.verdict.counts
    report.add("verdicts to checking clients", counts.get("verdicts", 0))
    report.add("whole states they checked", counts.get("whole states checked", 0))
    for violation in checkers.verdict.violations:
        report.fail(str(violation))


def _stop_database(report: Report, budget: Budget, cluster: Cluster) -> None:
    cluster.primary.stop("immediate")
    time.sleep(budget.dice.choice((0, 0, 0.5, 1.5)))
    cluster.primary.start()
    report.add("immediate stops of PostgreSQL")


def _end_sessions(report: Report, budget: Budget, cluster: Cluster) -> None:
    for _ in range(budget.dice.randint(1, 4)):
        report.add("sessions ended", cluster.primary.end_sessions(budget.dice.choice((1, 3, 50))))
        time.sleep(budget.dice.uniform(0, 0.2))


def _end_in_commit(report: Report, budget: Budget, cluster: Cluster) -> None:
    for _ in range(budget.dice.randint(3, 8)):
        report.add("sessions ended in the middle of something", cluster.primary.end_sessions(2, MID_COMMIT))


def _kill_node(report: Report, budget: Budget, cluster: Cluster) -> None:
    node = budget.dice.choice(cluster.nodes)
    node.kill()
    time.sleep(budget.dice.uniform(0, 1))
    node.start()
    report.add("kills of a node")


def _hold_node(report: Report, budget: Budget, cluster: Cluster) -> None:
    """A machine that stands still for a while, with whatever locks it holds, and goes on as if nothing were."""
    node = budget.dice.choice(cluster.nodes)
    os.kill(node.pid, signal.SIGSTOP)
    time.sleep(budget.dice.uniform(0.5, 2))
    os.kill(node.pid, signal.SIGCONT)
    report.add("nodes that stood still")


def _take_connections(report: Report, budget: Budget, cluster: Cluster) -> None:
    """Others have every connection that is free, and then those that the nodes had."""
    try:
        cluster.primary.occupy()
        cluster.primary.end_sessions(50)
        report.worst("connections that others took", cluster.primary.occupy())
        time.sleep(budget.dice.uniform(0.5, 2))
    finally:
        cluster.primary.leave()
    report.add("times that no connection was left")
