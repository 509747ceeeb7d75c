"""A test that is a story of several devices: one server for all stories of a class, a scope for each."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
import subprocess
import tempfile
import unittest
from collections.abc import Sequence
from pathlib import Path

from files import table_status
from files.app_file import AppFile, Told
from support.server_process import ServerProcess, binary

SYNCS_AT_MOST = 4
SCHEMA = "CREATE TABLE t(id TEXT PRIMARY KEY, a TEXT, b INTEGER); CREATE TABLE u(id TEXT PRIMARY KEY, v)"
# Longer than a server keeps what was replaced.
PAST_THE_WINDOW_MS = 20 * 60 * 1000


def rebuild(table: str, columns: str, select: str, where: str = "1") -> str:
    """SQLite's steps for a change of schema that ALTER TABLE cannot make."""
    return (
        f"CREATE TABLE new_one({columns}); INSERT INTO new_one SELECT {select} FROM {table} WHERE {where};"
        f" DROP TABLE {table}; ALTER TABLE new_one RENAME TO {table}"
    )


def filled(rows: int) -> str:
    """Rows r00000, r00001, … in `t(id, a, b)`."""
    return (
        f"WITH n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < {rows - 1})"
        " INSERT INTO t(id, a, b) SELECT printf('r%05d', i), 'old ' || i, i FROM n"
    )


class FileTestCase(unittest.TestCase):
    config: str | None = None
    server: ServerProcess
    maxDiff = 4000

    @classmethod
    def setUpClass(cls) -> None:
        cls.server = ServerProcess.temporary(cls.config)
        cls.addClassCleanup(cls.server.remove)

    def setUp(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="tidemark-story-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.scope = "story:" + re.sub(r"\W", ".", ".".join(self.id().split(".")[-2:]))[-100:]

    def app(self, name: str, schema: str, tables: Sequence[str] = ("t",)) -> AppFile:
        app = AppFile(self.folder / f"{name}.db", self.server, self.scope, tables)
        app.script(schema)
        return app

    def pair(self, schema: str, filling: str = "", tables: Sequence[str] = ("t",)) -> tuple[AppFile, AppFile]:
        """Two devices with the same schema, the first one's rows on both."""
        first, second = self.app("a", schema, tables), self.app("b", schema, tables)
        if filling:
            first.script(filling)
        self.synced(first)
        self.synced(second)
        self.assert_alike(first, second)
        return first, second

    # Steps

    def clean(self, told: Told, why: str = "") -> Told:
        self.assertEqual(0, told.code, f"{why} {told}")
        return told

    def not_crashed(self, told: Told) -> Told:
        self.assertIn(told.code, (0, 1, 3, 64), f"neither done nor refused: {told}")
        self.assertNotIn("Fatal error", told.text)
        return told

    def synced(self, *apps: AppFile) -> None:
        for app in apps:
            self.clean(app.sync(), f"{app.path.name}:")

    def all_synced(self, *apps: AppFile) -> None:
        """As often as it takes until what one sends is on the others."""
        for app in (*apps, *apps):
            self.synced(app)

    def quiesced(self, *apps: AppFile) -> None:
        """Syncs until nothing moves any more, whatever waits for a decision."""
        for _ in range(SYNCS_AT_MOST):
            moved = 0
            for app in apps:
                told = self.not_crashed(app.sync())
                self.assertIn(told.code, (0, 3), f"{app.path.name}: {told}")
                moved += told.json.get("pushed", 0) + told.json.get("applied", 0)
            if not moved:
                return

    def decided(self, app: AppFile) -> Told:
        """A sync, and a confirmation where it asks for one."""
        told = self.not_crashed(app.sync())
        if told.code == 3:
            told = app.confirm()
        self.assertIn(told.code, (0, 3), f"{app.path.name}: {told}")
        return told

    def age_store(self) -> None:
        """As if 20 minutes had gone by: what was replaced until now is swept from the server's store."""
        db = sqlite3.connect(self.server.store, timeout=30)
        with db:
            db.execute("UPDATE change SET superseded_at = superseded_at - ?", (PAST_THE_WINDOW_MS,))
        db.close()
        done = subprocess.run(
            [binary(), "compact", "--store", self.server.address, "--json"], capture_output=True, timeout=60
        )
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertGreater(json.loads(done.stdout)["replaced"], 0, "nothing was swept")

    def triggers(self, app: AppFile) -> str:
        """The SQL of all triggers on `t`."""
        found = app.query("SELECT sql FROM sqlite_master WHERE type = 'trigger' AND tbl_name = 't'")
        return ";\n".join(sql for (sql,) in found) + ";"

    # Questions

    def assert_alike(self, *apps: AppFile, tables: Sequence[str] | None = None) -> None:
        first, *others = apps
        for other in others:
            for table in tables or first.tables:
                self.assert_rows(first.dump(table), other.dump(table), f"{table} on {first.sub} and {other.sub}")

    def assert_rows(self, expected: list[tuple[object, ...]], found: list[tuple[object, ...]], what: str) -> None:
        if expected == found:
            return
        missing = sorted(set(expected) - set(found))
        more = sorted(set(found) - set(expected))
        self.fail(f"{what} differ: {len(missing)} only here {missing[:3]}, {len(more)} only there {more[:3]}")

    def assert_verified(self, *apps: AppFile) -> None:
        for app in apps:
            told = self.clean(app.verify(), f"verify of {app.path.name}:")
            self.assertTrue(told.json.get("isClean"), f"{told}")

    def assert_counted(self, *apps: AppFile) -> None:
        """I13: every row of every synced table is counted once, and what does not travel makes the exit code 3.

        The story goes on after a wrong count, so that a test also says what was lost."""
        for app in apps:
            with self.subTest("I13", app=app.path.name):
                self._counted(app)

    def _counted(self, app: AppFile) -> None:
        told = self.not_crashed(app.status())
        found = table_status.counts(told.json)
        for table in app.tables:
            if not app.has(table):
                continue
            self.assertIn(table.lower(), found, f"{table} is not in the status of {app.path.name}: {told}")
            counts, rows = found[table.lower()], app.count(table)
            where = f"{table} of {app.path.name}: {counts}"
            self.assertEqual(rows, counts.rows, f"rows are not counted right: {where}")
            self.assertEqual(rows, counts.of_rows, f"rows are out of sight: {where}")
            self.assertGreaterEqual(min(vars(counts).values()), 0, where)
        held = any(c.held_up or c.outgoing or c.deletes or c.quarantined for c in found.values())
        if held:
            self.assertEqual(3, told.code, f"something waits in silence: {told}")

    def counts(self, app: AppFile, table: str = "t") -> table_status.Counts:
        told = app.status()
        found = table_status.counts(told.json)
        self.assertIn(table.lower(), found, f"{told}")
        return found[table.lower()]

    def assert_all_confirmed(self, *apps: AppFile) -> None:
        self.assert_counted(*apps)
        for app in apps:
            for table in app.tables:
                with self.subTest("I13", app=app.path.name, table=table):
                    counts = self.counts(app, table)
                    self.assertEqual(counts.rows, counts.confirmed, f"{table} of {app.path.name}: {counts}")

    def assert_in_sync(self, *apps: AppFile) -> None:
        """All that can be asked of devices that have nothing left to do."""
        self.assert_alike(*apps)
        self.assert_verified(*apps)
        self.assert_all_confirmed(*apps)
        for app in apps:
            self.clean(app.status(), f"{app.path.name}:")
