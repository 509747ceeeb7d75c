"""A device: an app's own file, edited by a program that knows nothing of syncing, and `tidemark sync` beside it."""

from __future__ import annotations

import json
import os
import random
import sqlite3
import subprocess
from pathlib import Path
from typing import Any

from support.server_process import binary
from support.tokens import mint

SHARED_ROWS = 8
DEVICES_AT_MOST = 6
SYNC_SECONDS = 90


class Device:
    """Each device edits rows of its own and its own column of shared rows, so that what must be there in the end is
    what it wrote last, whatever order the server saw."""

    def __init__(self, number: int, folder: Path, url: str, secret: bytes, scope: str, seed: str):
        self.number, self.url, self.scope = number, url, scope
        self.program: str | None = None  # another build than that of everybody
        self.path = folder / f"app-{number}.sqlite"
        self.dice = random.Random(seed)
        self.token = mint(secret, f"device-{number}", {scope: "rw"})
        self.expected: dict[str, str | None] = {}
        self.edits = 0
        columns = ", ".join(f"d{n} TEXT" for n in range(DEVICES_AT_MOST))
        with self.open() as db:
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("CREATE TABLE task (id TEXT PRIMARY KEY, title TEXT, done INTEGER)")
            db.execute(f"CREATE TABLE shared (id TEXT PRIMARY KEY, {columns})")
            if number == 0:
                db.executemany("INSERT INTO shared (id) VALUES (?)", [(f"s{n}",) for n in range(SHARED_ROWS)])
                self.edits += SHARED_ROWS
        db.close()

    def open(self) -> sqlite3.Connection:
        return sqlite3.connect(self.path, timeout=30)

    def edit(self, times: int = 1, size: int = 0) -> None:
        """Transactions of the app; what they leave behind is remembered once they are committed."""
        db = self.open()
        try:
            for _ in range(times):
                after: dict[str, str | None] = {}
                with db:
                    for _ in range(self.dice.choice((1, 1, 2, 5))):
                        after |= self._one(db, size)
                self.expected |= after
        finally:
            db.close()

    def _one(self, db: sqlite3.Connection, size: int) -> dict[str, str | None]:
        self.edits += 1
        text = f"{self.number}/{self.edits}" + "x" * size
        mine = [key for key, value in self.expected.items() if value is not None and not key.startswith("s")]
        chance = self.dice.random()
        if chance < 0.3:
            row = f"s{self.dice.randrange(SHARED_ROWS)}"
            changed = db.execute(f"UPDATE shared SET d{self.number} = ? WHERE id = ?", (text, row)).rowcount
            return {f"{row}.{self.number}": text} if changed else {}
        if chance < 0.7 or not mine:
            row = f"t{self.number}-{self.edits}"
            db.execute("INSERT INTO task VALUES (?, ?, 0)", (row, text))
            return {row: text}
        row = self.dice.choice(mine)
        if chance < 0.9:
            # It may be gone by now, through this very transaction.
            changed = db.execute("UPDATE task SET title = ?, done = done + 1 WHERE id = ?", (text, row)).rowcount
            return {row: text} if changed else {}
        db.execute("DELETE FROM task WHERE id = ?", (row,))
        return {row: None}

    def command(self, *words: str) -> list[str]:
        return [self.program or binary(), *words, "--server", self.url, "--scope", self.scope, "--json"]

    def start_sync(self) -> subprocess.Popen[bytes]:
        words = self.command("sync", str(self.path), "--table", "task", "--table", "shared")
        return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=self._environment())

    def sync(self) -> tuple[int, dict[str, Any], str]:
        process = self.start_sync()
        try:
            out, err = process.communicate(timeout=SYNC_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            return -1, {}, f"no end within {SYNC_SECONDS} s"
        return process.returncode, _report(out), err.decode("utf-8", "replace")

    def verify(self) -> tuple[int, dict[str, Any], str]:
        words = self.command("verify", str(self.path))
        done = subprocess.run(words, capture_output=True, env=self._environment(), timeout=SYNC_SECONDS)
        return done.returncode, _report(done.stdout), done.stderr.decode("utf-8", "replace")

    def status(self) -> dict[str, Any]:
        words = [self.program or binary(), "status", str(self.path), "--json"]
        done = subprocess.run(words, capture_output=True, timeout=SYNC_SECONDS)
        return _report(done.stdout)

    def integrity(self) -> str:
        db = self.open()
        try:
            return str(db.execute("PRAGMA integrity_check").fetchone()[0])
        finally:
            db.close()

    def contents(self) -> dict[str, str]:
        """Every cell that is not NULL, as `expected` names them."""
        db = self.open()
        try:
            cells = {str(row): str(title) for row, title in db.execute("SELECT id, title FROM task")}
            for row, *values in db.execute("SELECT * FROM shared"):
                cells |= {f"{row}.{n}": value for n, value in enumerate(values) if value is not None}
            return cells
        finally:
            db.close()

    def _environment(self) -> dict[str, str]:
        return {**os.environ, "TIDEMARK_TOKEN": self.token}


def _report(out: bytes) -> dict[str, Any]:
    try:
        value = json.loads(out)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
