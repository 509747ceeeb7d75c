"""PostgreSQL and three nodes under load: one node is killed, PostgreSQL is stopped like by a power cut, and in the end
every node has every acknowledged write, once. Exit code 1 if not."""

from __future__ import annotations

import argparse
import http.client
import json
import signal
import sys
import time

from cluster.nodes import Cluster
from cluster.stream import Setup, Stream
from support.postgres_server import NotInstalled
from support.tokens import mint

WRITERS, READERS, BATCH = 6, 3, 10
PATIENCE_SECONDS = 5
IN_SYNC_SECONDS = 60


def say(text: str, began: float) -> None:
    print(f"{time.monotonic() - began:5.1f} s  {text}", flush=True)


def answers(cluster: Cluster, scope: str) -> list[tuple[int, str]]:
    """The head and the digest of the scope, of each node."""
    token = mint(cluster.secret, "looker", {scope: "r"})
    found = []
    for port in cluster.ports:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        connection.request("GET", f"/sync/digest?scope={scope}", headers={"Authorization": f"Bearer {token}"})
        said = json.loads(connection.getresponse().read())
        connection.close()
        found.append((said["version"], json.dumps(said["entities"], sort_keys=True)))
    return found


def run(seconds: float) -> int:
    began = time.monotonic()
    with Cluster() as cluster:
        say(f"PostgreSQL runs in {cluster.postgres.path}, and three nodes on it: {cluster.ports}", began)
        stream = Stream(
            Setup(cluster.ports, cluster.secret, BATCH, PATIENCE_SECONDS, pause=0.02), "demo", WRITERS, READERS
        )
        stream.start()
        say(f"{WRITERS} clients push and {READERS} pull, each through any node that answers", began)
        time.sleep(seconds / 4)
        victim = cluster.nodes[1]
        before = stream.acknowledged
        say(f"{before:,} writes are acknowledged; kill -9 of the node at {victim.port}", began)
        victim.kill()
        time.sleep(seconds / 4)
        say(f"{stream.acknowledged - before:,} more through the other two; the killed one starts again", began)
        victim.start()
        time.sleep(seconds / 8)
        before = stream.acknowledged
        say(f"{before:,} are acknowledged; pg_ctl stop -m immediate", began)
        cluster.primary.stop("immediate")
        before = stream.acknowledged
        time.sleep(1)
        say("PostgreSQL starts again, and mends itself from its log", began)
        up = time.monotonic()
        cluster.primary.start()
        while stream.acknowledged == before and time.monotonic() - up < IN_SYNC_SECONDS:
            time.sleep(0.01)
        back = time.monotonic() - up
        say(f"writes are acknowledged again, {back:.2f} s after; no node was started anew for it", began)
        time.sleep(seconds / 4)
        took = stream.finish(IN_SYNC_SECONDS)
        say("the load ends; all readers come to the head", began)
        return table(stream, took, back, answers(cluster, "demo"))


def table(stream: Stream, took: float | None, back: float, heads: list[tuple[int, str]]) -> int:
    wrong = stream.verify()
    if took is None:
        wrong.append(f"not everybody is in sync after {IN_SYNC_SECONDS} s")
    if len(set(heads)) != 1:
        wrong.append(f"the nodes differ: versions {[head for head, _ in heads]}")
    if heads[0][0] != stream.acknowledged:
        wrong.append(f"{heads[0][0]} versions of {stream.acknowledged} writes")
    callers = [*stream.writers, *stream.readers]
    rows = [
        ("writes acknowledged", f"{stream.acknowledged:,}"),
        ("lost", f"{stream.lost}"),
        ("repeated", f"{stream.twice}"),
        ("versions without a gap", f"1 to {heads[0][0]:,}" if not wrong else "no"),
        ("nodes that answer the same", f"{3 if len(set(heads)) == 1 else 0} of {len(heads)}"),
        ("answers that were lost on the way", f"{sum(caller.lost for caller in callers):,}"),
        ("pushes answered as repeats, with no second effect", f"{sum(writer.repeats for writer in stream.writers):,}"),
        ("seconds from PostgreSQL's start to the next write", f"{back:.2f}"),
        ("seconds from the end of the load to all in sync", f"{took:.2f}" if took is not None else "never"),
    ]
    print()
    for what, figure in rows:
        print(f"  {what:<52}{figure:>14}")
    for reason in wrong:
        print(f"  WRONG: {reason}", file=sys.stderr)
    return 1 if wrong else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=16, help="of load")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that everything is taken down then, too
    try:
        return run(options.seconds)
    except NotInstalled as missing:
        print(f"demo-cluster: {missing}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("demo-cluster: interrupted; nothing is left running", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
