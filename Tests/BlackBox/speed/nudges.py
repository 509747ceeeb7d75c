"""How long an edit takes from one device that watches to another, from the commit in one file until it stands in the
other, beside a bare exchange with the same server; alone, and with listeners who are nudged too: how long after the
request a nudge is with each of them. Machines differ; the ratios are what to compare. Exit code 1 where an edit or a
nudge does not arrive."""

from __future__ import annotations

import argparse
import http.client
import json
import os
import resource
import selectors
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from support.server_process import ServerProcess, binary
from support.tokens import mint

SCOPE = "list:1"
WAIT_SECONDS = 30
LOOK_SECONDS = 0.001


class Listeners(threading.Thread):
    """Streams of nudges: they are read, and the times at which they come are kept."""

    def __init__(self, server: ServerProcess, count: int):
        super().__init__(daemon=True)
        self.selector, self.times, self.open = selectors.DefaultSelector(), [], True
        self.sockets = []
        for number in range(count):
            token = mint(server.secret, f"listener-{number}", {SCOPE: "r"})
            listener = socket.create_connection(("127.0.0.1", server.port))
            listener.sendall(
                f"GET /sync/events?scope={SCOPE} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\r\n".encode()
            )
            if not listener.recv(4096).startswith(b"HTTP/1.1 200"):
                raise SystemExit("a listener was refused: raise limits.streams")
            self.selector.register(listener, selectors.EVENT_READ)
            self.sockets.append(listener)

    def run(self) -> None:
        while self.open:
            for key, _ in self.selector.select(0.2):
                key.fileobj.recv(65536)  # type: ignore[union-attr]
                self.times.append(time.monotonic())

    def nudges(self, server: ServerProcess, count: int) -> tuple[list[float], list[float]]:
        """How long exchanges take that nudge all, and how long after the request each listener has its nudge."""
        answers, times = [], []
        for began in posts(server, SCOPE, "nudging", count):
            answers.append(time.monotonic() - began)
            until = time.monotonic() + WAIT_SECONDS
            while len(self.times) < len(self.sockets):
                if time.monotonic() > until:
                    raise SystemExit(f"{len(self.times)} of {len(self.sockets)} nudges came within {WAIT_SECONDS} s")
                time.sleep(LOOK_SECONDS)
            times += [moment - began for moment in self.times]
            time.sleep(0.15)  # so that no nudge waits for the one before
            self.times.clear()
        return answers, times

    def close(self) -> None:
        self.open = False
        self.join()
        for listener in self.sockets:
            listener.close()


def resident(pid: int) -> int:
    fields = Path(f"/proc/{pid}/statm").read_text().split()
    return int(fields[1]) * resource.getpagesize()


def device(path: Path) -> sqlite3.Connection:
    database = sqlite3.connect(path, isolation_level=None, timeout=10)
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("CREATE TABLE item (id TEXT PRIMARY KEY NOT NULL, title TEXT)")
    return database


def watch(server: ServerProcess, path: Path) -> subprocess.Popen[bytes]:
    arguments = ["sync", str(path), "--server", server.url, "--scope", SCOPE, "--table", "item", "--watch"]
    token = mint(server.secret, "ada", {SCOPE: "rw"})
    with open(f"{path}.log", "wb") as log:
        # No tick comes while this runs: what arrives was nudged.
        return subprocess.Popen(
            [binary(), *arguments, "--interval", "1h"],
            env={**os.environ, "TIDEMARK_TOKEN": token}, stdout=log, stderr=log,
        )


def arrival(here: sqlite3.Connection, there: sqlite3.Connection, name: str) -> float:
    began = time.monotonic()
    here.execute("INSERT INTO item VALUES (?, 'text')", (name,))
    while there.execute("SELECT 1 FROM item WHERE id = ?", (name,)).fetchone() is None:
        if time.monotonic() - began > WAIT_SECONDS:
            raise SystemExit(f"{name} did not arrive within {WAIT_SECONDS} s")
        time.sleep(LOOK_SECONDS)
    return time.monotonic() - began


def posts(server: ServerProcess, scope: str, name: str, count: int) -> Iterator[float]:
    """Bare exchanges, each an edit with its verdict, on a connection that stays open; when each began."""
    token = mint(server.secret, name, {scope: "rw"})
    connection = http.client.HTTPConnection("127.0.0.1", server.port)
    for number in range(1, count + 1):
        operation = {
            "lane": f"lane-of-{name}", "number": number, "type": "upsert", "entity": "item", "id": f"{name}{number}",
            "fields": {"title": "text"},
        }
        body = {"scope": scope, "clientId": f"device-of-{name}", "acked": {}, "operations": [operation]}
        began = time.monotonic()
        connection.request(
            "POST", "/sync", json.dumps(body),
            {"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
        )
        answer = connection.getresponse()
        if answer.status != 200 or b'"applied"' not in answer.read():
            raise SystemExit(f"the exchange was refused with {answer.status}")
        yield began


def exchanges(server: ServerProcess, name: str, count: int) -> list[float]:
    return [time.monotonic() - began for began in posts(server, "list:2", name, count)]


def shown(times: list[float]) -> str:
    ordered = sorted(times)
    p50, p99 = (ordered[min(len(ordered) - 1, int(len(ordered) * part))] * 1000 for part in (0.5, 0.99))
    return f"p50 {p50:6.1f} ms   p99 {p99:6.1f} ms   of {len(times)}"


def measure(server: ServerProcess, pair: list[sqlite3.Connection], count: int, name: str) -> None:
    print(f"  a bare exchange   {shown(exchanges(server, name, count))}")
    times = []
    for number in range(count):
        here, there = pair if number % 2 else reversed(pair)
        times.append(arrival(here, there, f"{name}{number}"))
        time.sleep(0.05 + number % 7 * 0.03)  # so that no edit meets another one's nudge
    print(f"  device to device  {shown(times)}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--edits", type=int, default=100)
    parser.add_argument("--listeners", type=int, default=1000)
    options = parser.parse_args()
    # Or the thread of the listeners keeps the others waiting for 5 ms at a time.
    sys.setswitchinterval(0.0001)
    most = options.listeners + 16
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, most + 200)), hard))
    limits = f"limits: {{streams: {most}, connections: {most + 100}, streamsPerPrincipal: 64}}\n"
    with ServerProcess.temporary(limits) as server, tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / f"{name}.sqlite" for name in ("one", "two")]
        pair = [device(file) for file in files]
        watchers = [watch(server, file) for file in files]
        try:
            arrival(pair[0], pair[1], "first")
            print("alone")
            measure(server, pair, options.edits, "a")
            before = resident(server.pid)
            listeners = Listeners(server, options.listeners)
            listeners.start()
            time.sleep(2)
            grown = (resident(server.pid) - before) / max(1, options.listeners)
            print(f"with {options.listeners} listeners, {grown / 1024:.1f} KiB of the server's memory each")
            measure(server, pair, options.edits, "b")
            listeners.times.clear()
            answers, times = listeners.nudges(server, options.edits)
            print(f"  nudging exchange  {shown(answers)}")
            print(f"  nudge to listener {shown(times)}")
            listeners.close()
        finally:
            for watcher in watchers:
                watcher.terminate()
            for watcher in watchers:
                watcher.wait(20)
    return 0


if __name__ == "__main__":
    sys.exit(main())
