"""Somebody's SQLite file: edited by SQL, known to nobody here, with the command beside it."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from files import table_status
from support.server_process import ServerProcess, binary
from support.tokens import mint

COMMAND_SECONDS = 120
Row = tuple[Any, ...]


@dataclass(frozen=True)
class Told:
    """How a command ended, and what it said."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        """The last line that is an object: `--watch` tells one after the other."""
        for line in reversed(self.out.splitlines()):
            if line.startswith("{"):
                value = json.loads(line)
                assert isinstance(value, dict)
                return value
        return {}

    @property
    def text(self) -> str:
        return self.out + self.err

    def __str__(self) -> str:
        return f"exit {self.code}: {self.out.strip()[-900:]} {self.err.strip()[-900:]}"


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


class AppFile:
    def __init__(self, path: Path, server: ServerProcess, scope: str, tables: Sequence[str], sub: str = ""):
        self.path, self.server, self.tables = path, server, list(tables)
        self.sub = sub or path.stem
        self.collations: dict[str, Any] = {}
        self.url = server.url
        self.in_scope(scope)

    def in_scope(self, scope: str) -> None:
        self.scope = scope
        self.token = mint(self.server.secret, self.sub, {scope: "rw"})

    # What its owner does

    def open(self) -> sqlite3.Connection:
        db = sqlite3.connect(self.path, timeout=30)
        db.text_factory = lambda data: data.decode("utf-8", "surrogateescape")
        for name, collation in self.collations.items():
            db.create_collation(name, collation)
        return db

    def script(self, sql: str, *, keys: bool = False) -> None:
        """All of it or nothing, as a migration does; without enforced foreign keys unless they are asked for."""
        db = self.open()
        try:
            db.isolation_level = None
            db.execute(f"PRAGMA foreign_keys = {'ON' if keys else 'OFF'}")
            try:
                db.executescript(f"BEGIN IMMEDIATE;\n{sql};\nCOMMIT;")
            except BaseException:
                if db.in_transaction:
                    db.execute("ROLLBACK")
                raise
        finally:
            db.close()

    def run(self, sql: str, *values: Any) -> int:
        """One statement; how many rows it changed."""
        db = self.open()
        try:
            with db:
                return db.execute(sql, values).rowcount
        finally:
            db.close()

    def many(self, sql: str, rows: Iterable[Row]) -> None:
        db = self.open()
        try:
            with db:
                db.executemany(sql, rows)
        finally:
            db.close()

    def query(self, sql: str, *values: Any) -> list[Row]:
        db = self.open()
        try:
            return db.execute(sql, values).fetchall()
        finally:
            db.close()

    def one(self, sql: str, *values: Any) -> Any:
        rows = self.query(sql, *values)
        return rows[0][0] if rows else None

    def shell(self, sql: str) -> subprocess.CompletedProcess[str]:
        """Another program: the `sqlite3` shell."""
        return subprocess.run(
            ["sqlite3", str(self.path)], input=sql, capture_output=True, text=True, timeout=COMMAND_SECONDS
        )

    def columns(self, table: str) -> list[str]:
        """Those that are stored, in a fixed order: two devices may have added them in different ones."""
        found = self.query("SELECT name, hidden FROM pragma_table_xinfo(?)", table)
        return sorted(name for name, hidden in found if hidden == 0)

    def dump(self, table: str) -> list[Row]:
        """Every row with the type of each value, so that 1, 1.0 and '1' differ."""
        parts = [f"typeof({c}), quote({c})" for c in map(quoted, self.columns(table))]
        return sorted(self.query(f"SELECT {', '.join(parts)} FROM {quoted(table)}"))

    def count(self, table: str, where: str = "1") -> int:
        return int(self.one(f"SELECT count(*) FROM {quoted(table)} WHERE {where}"))

    def has(self, table: str) -> bool:
        found = self.query("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ? COLLATE NOCASE", table)
        return bool(found)

    def capture(self, table: str) -> list[str]:
        """The triggers on a table that are not the app's."""
        found = self.query(
            "SELECT name FROM sqlite_master WHERE type = 'trigger' AND tbl_name = ? COLLATE NOCASE"
            " AND name LIKE 'tidemark%'",
            table,
        )
        return [name for (name,) in found]

    def drop_capture(self, table: str) -> list[str]:
        names = self.capture(table)
        for name in names:
            self.run(f"DROP TRIGGER {quoted(name)}")
        return names

    # What the command does

    def command(self, *words: str, token: str | None = None) -> Told:
        done = subprocess.run(
            [binary(), *words],
            capture_output=True,
            env={**os.environ, "TIDEMARK_TOKEN": token or self.token},
            timeout=COMMAND_SECONDS,
        )
        return Told(done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace"))

    def _online(self, name: str, *words: str, token: str | None = None, as_json: bool = True) -> Told:
        shape = ["--json"] if as_json else []
        asked = [name, str(self.path), "--server", self.url, "--scope", self.scope, *shape, *words]
        return self.command(*asked, token=token)

    def sync(
        self, *words: str, tables: Sequence[str] | None = None, token: str | None = None, as_json: bool = True
    ) -> Told:
        named = [word for table in (self.tables if tables is None else tables) for word in ("--table", table)]
        return self._online("sync", *named, *words, token=token, as_json=as_json)

    def verify(self, *words: str, as_json: bool = True) -> Told:
        return self._online("verify", *words, as_json=as_json)

    def repair(self, *words: str) -> Told:
        return self.verify("--repair", *words)

    def discard_local(self) -> Told:
        return self.verify("--repair", table_status.DISCARD_LOCAL)

    def confirm(self) -> Told:
        return self.sync(table_status.CONFIRM)

    def take_servers(self) -> Told:
        return self.sync(table_status.TAKE_SERVERS)

    def status(self, *, as_json: bool = True) -> Told:
        return self.command("status", str(self.path), *(["--json"] if as_json else []))

    def rejected(self, *words: str) -> Told:
        return self.command("rejected", str(self.path), *words)

    def refusals(self) -> list[dict[str, Any]]:
        found = json.loads(self.rejected("--json").out or "[]")
        assert isinstance(found, list)
        return found
