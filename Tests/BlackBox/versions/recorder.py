"""Records what devices of the oldest version ask, and what the oldest server answers, as files that the tests of every
build play again (Tests/EndToEndTests/Routes/RecordedVersionTests.swift). Of the versions named, those that play
`clients` and `servers` first."""

from __future__ import annotations

import argparse
import gzip
import http.client
import json
import sqlite3
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from support.server_process import ServerProcess, binary
from support.tokens import mint
from versions.file_scenes import serving
from versions.mixed_fleet import Version

SCOPE = "recorded:1"
SYNC_SECONDS = 60
SCHEMA = "CREATE TABLE task (id TEXT PRIMARY KEY NOT NULL, title TEXT, done INTEGER, weight REAL, photo BLOB)"
FIRST = [
    "INSERT INTO task VALUES ('t1', 'Milk', 0, 1.5, NULL)",
    "INSERT INTO task VALUES ('t2', 'a\nb \"quoted\" \\', 1, -0.0, x'00ff10')",
    "INSERT INTO task VALUES ('t3', 'Größe ✓', 9007199254740993, NULL, x'')",
]


class Recorder:
    """Stands between devices and a server and notes each question with its answer, both inflated."""

    def __init__(self, port: int):
        self.exchanges: list[dict[str, Any]] = []
        recorder = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                recorder.pass_on(self, port)

            do_POST = do_GET

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def pass_on(self, handler: BaseHTTPRequestHandler, port: int) -> None:
        body = handler.rfile.read(int(handler.headers.get("Content-Length") or 0))
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=SYNC_SECONDS)
        sent = {name: value for name, value in handler.headers.items() if name.lower() != "host"}
        connection.request(handler.command, handler.path, body, sent)
        response = connection.getresponse()
        raw = response.read()
        connection.close()
        asked = urlsplit(handler.path)
        note: dict[str, Any] = {"method": handler.command, "path": asked.path}
        if asked.query:
            note["query"] = parse_qsl(asked.query)
        # Names and versions only; the token is nobody's business.
        kept = ("Content-Type", "Tidemark-Client", "Tidemark-Protocol")
        note["headers"] = {name: handler.headers[name] for name in kept if name in handler.headers}
        if body:
            note["body"] = inflated(body, handler.headers.get("Content-Encoding")).decode()
        note["status"] = response.status
        note["answer"] = inflated(raw, response.getheader("Content-Encoding")).decode()
        note["type"] = response.getheader("Content-Type")
        note["declarations"] = response.getheader("Tidemark-Declarations")
        self.exchanges.append(note)
        handler.send_response(response.status)
        for name, value in response.getheaders():
            if name.lower() not in ("transfer-encoding", "connection", "content-length", "date", "server"):
                handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(raw)))
        handler.end_headers()
        handler.wfile.write(raw)

    def take(self) -> list[dict[str, Any]]:
        taken, self.exchanges = self.exchanges, []
        return taken


def inflated(body: bytes, encoding: str | None) -> bytes:
    return gzip.decompress(body) if encoding == "gzip" else body


class VersionedDevice:
    """One device: its file, and the command of one version."""

    def __init__(self, name: str, version: Version, server: ServerProcess, url: str):
        self.path, self.version, self.url = server.folder / f"{name}.sqlite", version, url
        self.token = mint(server.secret, name, {SCOPE: "rw"})
        self.run(SCHEMA)

    def run(self, *statements: str) -> list[str]:
        db = sqlite3.connect(self.path)
        with db:
            for statement in statements:
                db.execute(statement)
        db.close()
        return list(statements)

    def rows(self) -> list[str]:
        db = sqlite3.connect(self.path)
        cells = " || '|' || ".join(f"quote({name})" for name in ("id", "title", "done", "weight", "photo"))
        found = [row for (row,) in db.execute(f"SELECT {cells} FROM task ORDER BY id")]
        db.close()
        return found

    def sync(self) -> None:
        words = ["sync", str(self.path), "--server", self.url, "--scope", SCOPE, "--table", "task"]
        done = subprocess.run(
            [self.version.program, *words],
            env={"TIDEMARK_TOKEN": self.token},
            capture_output=True,
            text=True,
            timeout=SYNC_SECONDS,
        )
        if done.returncode not in (0, 3):
            raise SystemExit(f"recorder: {self.version.name} did not sync: {done.stderr.strip()}")


def requests(old: Version) -> dict[str, Any]:
    """Two devices of one version edit, meet, delete what the other edits, and get their verdicts."""
    with serving(old) as server:
        recorder = Recorder(server.port)
        first, second = (VersionedDevice(name, old, server, recorder.url) for name in ("first", "second"))
        first.run(*FIRST)
        first.sync()
        second.sync()
        first.run("UPDATE task SET title = 'Oat milk' WHERE id = 't1'", "DELETE FROM task WHERE id = 't2'")
        second.run("UPDATE task SET done = 1 WHERE id = 't1'", "UPDATE task SET title = 'late' WHERE id = 't2'")
        second.run("INSERT INTO task VALUES ('t4', NULL, -1, 1e300, NULL)")
        for device in (first, second, first, second):
            device.sync()
        return {"version": old.name, "exchanges": recorder.take(), "rows": first.rows()}


def answers(old: Version, today: Version) -> dict[str, Any]:
    """A device of today is filled by an old server, hears what others do, edits, and is met by others' edits."""
    with serving(old) as server:
        recorder = Recorder(server.port)
        other = VersionedDevice("other", old, server, server.url)
        device = VersionedDevice("seat", today, server, recorder.url)
        other.run(*FIRST)
        other.sync()
        steps = []

        def step(*statements: str) -> None:
            done = device.run(*statements)
            device.sync()
            steps.append({"statements": done, "exchanges": recorder.take(), "rows": device.rows()})

        step()
        other.run("UPDATE task SET title = 'Oat milk' WHERE id = 't1'", "DELETE FROM task WHERE id = 't2'")
        other.run("INSERT INTO task VALUES ('t4', NULL, -1, 1e300, NULL)")
        other.sync()
        step("INSERT INTO task VALUES ('t5', 'mine', 0, 0.1, NULL)", "UPDATE task SET done = 1 WHERE id = 't1'")
        other.run("UPDATE task SET title = 'theirs' WHERE id = 't5'", "DELETE FROM task WHERE id = 't3'")
        other.sync()
        step("DELETE FROM task WHERE id = 't4'", "UPDATE task SET weight = 2.5 WHERE id = 't5'")
        return {"version": old.name, "steps": steps}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--old", action="append", required=True, metavar="NAME[:SCENES]=PROGRAM")
    parser.add_argument("--folder", type=Path, required=True, help="where the recordings stand")
    options = parser.parse_args()
    found: dict[str, Version] = {}
    for text in options.old:
        words, _, program = text.partition("=")
        name, _, scenes = words.partition(":")
        for scene in scenes.split(",") if scenes else ("clients", "servers"):
            found.setdefault(scene, Version(name, program))
    options.folder.mkdir(exist_ok=True)
    recorded = {
        "oldest-requests.json": requests(found["clients"]),
        "oldest-answers.json": answers(found["servers"], Version("this version", binary())),
    }
    for name, what in recorded.items():
        (options.folder / name).write_text(json.dumps(what, indent=1, ensure_ascii=False) + "\n")
        print(f"recorded {name} of {what['version']}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
