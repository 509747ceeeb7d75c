"""Several nodes on one PostgreSQL, measured: whether a row is ever missed, and what nodes and scopes cost. Exit code 1
if a row was missed, lost or repeated."""

from __future__ import annotations

import argparse
import signal
import sys
import threading
import time
from collections.abc import Sequence

from cluster.nodes import Cluster
from cluster.stream import Caller, Setup, Stream
from support.postgres_server import NotInstalled

BATCH = 250
IN_SYNC_SECONDS = 300


def part(seconds: Sequence[float], share: float) -> float:
    """Milliseconds below which so many of the answers stayed."""
    ordered = sorted(seconds)
    return 1000 * ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0


SLOW_COMMITS = """
CREATE FUNCTION tidemark_log.dawdle() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN PERFORM pg_sleep(random() * 0.04); RETURN NULL; END $$;
CREATE CONSTRAINT TRIGGER dawdle AFTER INSERT OR UPDATE ON tidemark_log.writer
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION tidemark_log.dawdle();
"""


def missed(rows: int, writers: int, nodes: int, slowly: bool) -> int:
    """All rows into one scope, by writers and to readers on every node, half of them by cursor: the worst case for one
    that is skipped. Where it goes slowly, each transaction takes up to 40 ms more between its last write and its
    commit."""
    with Cluster(nodes) as cluster:
        if slowly:
            cluster.primary.psql(SLOW_COMMITS, "log")
        setup = Setup(cluster.ports, cluster.secret, BATCH, 60)
        stream = Stream(setup, "load.one", writers, 2 * nodes, rows, cursors=True)
        began = time.monotonic()
        stream.start()
        while any(writer.is_alive() for writer in stream.writers):
            time.sleep(0.2)
            if time.monotonic() - began > 60 + rows / 100:
                break
        wrote = time.monotonic() - began
        took = stream.finish(IN_SYNC_SECONDS)
        wrong = stream.verify() + ([] if took is not None else [f"not in sync after {IN_SYNC_SECONDS} s"])
        read = sum(reader.rows for reader in stream.readers)
        print(f"{stream.acknowledged:,} rows by {writers} writers in {wrote:.1f} s through {nodes} nodes")
        print(f"{read:,} rows read in their turn by {len(stream.readers)} readers while they were written")
        print(f"missing {stream.lost}, repeated {stream.twice}")
        size = int(cluster.primary.psql("SELECT pg_total_relation_size('tidemark_log.change')", "log"))
        print(f"{size / max(1, stream.acknowledged):.0f} bytes of the table of changes for each, with its indexes")
        return _tell(wrong)


def rates(seconds: float, writers: int, most: int, batch: int) -> int:
    """The same load through one node, two and three."""
    print(f"{'nodes':>6}{'pushes/s':>10}{'rows/s':>9}{'push p50':>10}{'p99':>7}{'pull p50':>10}{'p99':>7}  ms")
    wrong: list[str] = []
    with Cluster(most) as cluster:
        for nodes in range(1, most + 1):
            setup = Setup(cluster.ports[:nodes], cluster.secret, batch, 60)
            streams = [Stream(setup, f"rate.{nodes}.{n}", writers // 4, 1) for n in range(4)]
            took, wrong_here = _load(streams, seconds)
            wrong += wrong_here
            pushes = [s for stream in streams for writer in stream.writers for s in writer.seconds]
            pulls = [s for stream in streams for reader in stream.readers for s in reader.seconds]
            rows = sum(stream.acknowledged for stream in streams)
            print(
                f"{nodes:>6}{len(pushes) / took:>10.0f}{rows / took:>9.0f}{part(pushes, 0.5):>10.1f}"
                f"{part(pushes, 0.99):>7.0f}{part(pulls, 0.5):>10.1f}{part(pulls, 0.99):>7.0f}",
                flush=True,
            )
    return _tell(wrong)


def scopes(seconds: float, writers: int, nodes: int) -> int:
    """One hot scope against many: each push has one row, so that what counts is the scope's lock and the commit."""
    print(f"{'scopes':>7}{'pushes/s':>10}{'p50':>7}{'p99':>7}  ms")
    wrong: list[str] = []
    with Cluster(nodes) as cluster:
        for count in (1, 1_000, 1, 1_000):
            setup = Setup(cluster.ports, cluster.secret, 1, 60)
            spread = count > 1
            streams = [Stream(setup, f"lock.{n}", 1, 0) for n in range(count)] if spread else []
            if not spread:
                streams = [Stream(setup, f"lock.hot.{time.monotonic_ns()}", writers, 0)]
            took, wrong_here = _turns(streams, writers, seconds) if spread else _load(streams, seconds)
            wrong += wrong_here
            pushes = [s for stream in streams for writer in stream.writers for s in writer.seconds]
            row = f"{count:>7}{len(pushes) / took:>10.0f}{part(pushes, 0.5):>7.1f}{part(pushes, 0.99):>7.0f}"
            print(row, flush=True)
    return _tell(wrong)


def partitions(seconds: float, writers: int, batch: int, count: int) -> int:
    """The same load into many scopes, with the tables of the log whole and divided."""
    print(f"{'partitions':>11}{'pushes/s':>10}{'push p50':>10}{'p99':>7}{'pull p50':>10}{'p99':>7}  ms")
    wrong: list[str] = []
    with Cluster(1) as whole, Cluster(1, partitions=count) as divided:
        for turn in range(2):
            for cluster, parts in ((whole, 0), (divided, count)):
                setup = Setup(cluster.ports, cluster.secret, batch, 60)
                streams = [Stream(setup, f"part.{turn}.{n}", 1, 1 if n % 8 == 0 else 0) for n in range(writers)]
                took, wrong_here = _load(streams, seconds)
                wrong += wrong_here
                pushes = [s for stream in streams for writer in stream.writers for s in writer.seconds]
                pulls = [s for stream in streams for reader in stream.readers for s in reader.seconds]
                print(
                    f"{parts:>11}{len(pushes) / took:>10.0f}{part(pushes, 0.5):>10.1f}{part(pushes, 0.99):>7.0f}"
                    f"{part(pulls, 0.5):>10.1f}{part(pulls, 0.99):>7.0f}",
                    flush=True,
                )
    return _tell(wrong)


def _load(streams: list[Stream], seconds: float) -> tuple[float, list[str]]:
    began = time.monotonic()
    for stream in streams:
        stream.start()
    time.sleep(seconds)
    callers: list[Caller] = [c for stream in streams for c in [*stream.writers, *stream.readers]]
    for stream in streams:
        for writer in stream.writers:
            writer.finishing.set()
    for stream in streams:
        for writer in stream.writers:
            writer.join(60)
    took = time.monotonic() - began
    wrong = [] if all(stream.finish(60) is not None for stream in streams) else ["not in sync after 60 s"]
    wrong += [reason for stream in streams for reason in stream.verify()]
    lost = sum(caller.lost for caller in callers)
    return took, wrong + ([f"{lost} answers were lost"] if lost else [])


def _turns(streams: list[Stream], workers: int, seconds: float) -> tuple[float, list[str]]:
    """As many at once as on the hot scope, each going from one of its scopes to the next."""
    over = threading.Event()

    def work(mine: list[Stream]) -> None:
        last = mine[-1].writers[0]
        while True:
            for stream in mine:
                if over.is_set():
                    return
                writer = stream.writers[0]
                writer.take_over(last)  # one connection for each worker, as on the hot scope
                writer.act()
                last = writer

    began = time.monotonic()
    threads = [threading.Thread(target=work, args=(streams[n::workers],)) for n in range(workers)]
    for thread in threads:
        thread.start()
    time.sleep(seconds)
    over.set()
    for thread in threads:
        thread.join()
    return time.monotonic() - began, [fault for stream in streams for fault in stream.tally.faults]


def _tell(wrong: list[str]) -> int:
    for reason in wrong:
        print(f"  WRONG: {reason}", file=sys.stderr)
    return 1 if wrong else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("missed", "rates", "scopes", "partitions"))
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--writers", type=int, default=32)
    parser.add_argument("--nodes", type=int, default=3)
    parser.add_argument("--slow-commits", action="store_true", help="for `missed`: commits that dawdle")
    parser.add_argument("--batch", type=int, default=10, help="operations of a push, for `rates` and `partitions`")
    parser.add_argument("--seconds", type=float, default=15, help="of each row of the table")
    parser.add_argument("--partitions", type=int, default=16, help="of each table, for `partitions`")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        if options.what == "missed":
            return missed(options.rows, options.writers, options.nodes, options.slow_commits)
        if options.what == "rates":
            return rates(options.seconds, options.writers, options.nodes, options.batch)
        if options.what == "partitions":
            return partitions(options.seconds, options.writers, options.batch, options.partitions)
        return scopes(options.seconds, options.writers, options.nodes)
    except NotInstalled as missing:
        print(f"cluster_load: {missing}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
