"""An app whose owner does to its file whatever SQL allows, by dice; and what must be in the file in the end.

Each device writes rows of its own only, so that what is there in the end does not depend on the order of things."""

from __future__ import annotations

import os
import random
import subprocess
import time
from collections.abc import Callable

from files.app_file import AppFile, quoted
from files.file_test_case import rebuild
from support.server_process import binary
from support.tokens import mint

COLUMNS = "k TEXT PRIMARY KEY, a TEXT, b"


class RandomOwner:
    def __init__(self, app: AppFile, dice: random.Random):
        self.app, self.dice = app, dice
        self.expected: dict[str, tuple[object, object]] = {}
        self.nameless = 0  # rows without a key: they stay here
        self.made = 0
        self.done: list[str] = []
        self.extra = False  # whether the table has a column that the others do not have

    def act(self) -> None:
        acts: list[Callable[[], None]] = (
            [self.write] * 8
            + [self.nameless_row]
            + [self.bare] * 2
            + [
                self.rebuild,
                self.reindexed,
                self.swap,
                self.vacuum,
                self.add_column,
            ]
        )
        act = self.dice.choice(acts)
        self.done.append(act.__name__)
        act()

    # Ordinary life

    def write(self, times: int = 0) -> None:
        statements = [self.statement() for _ in range(times or self.dice.randint(1, 6))]
        self.app.script(";".join(statements))

    def statement(self) -> str:
        self.made += 1
        chance, mine = self.dice.random(), sorted(self.expected)
        if chance < 0.45 or not mine:
            return self.insert(f"{self.app.sub}{self.dice.choice(('-', '-', ' ü☃'))}{self.made}", "INSERT")
        key = self.dice.choice(mine)
        if chance < 0.6:
            return self.insert(key, "INSERT OR REPLACE")
        if chance < 0.85:
            self.expected[key] = (f"e{self.made}", self.expected[key][1])
            return f"UPDATE t SET a = 'e{self.made}' WHERE k = {text(key)}"
        if chance < 0.92:
            del self.expected[key]
            return f"DELETE FROM t WHERE k = {text(key)}"
        moved = f"{self.app.sub}-m{self.made}"
        self.expected[moved] = self.expected.pop(key)
        return f"UPDATE t SET k = {text(moved)} WHERE k = {text(key)}"

    def insert(self, key: str, how: str) -> str:
        value = self.dice.choice((self.made, self.made + 0.5, f"v{self.made}", None))
        self.expected[key] = (f"i{self.made}", value)
        shown = "NULL" if value is None else text(value) if isinstance(value, str) else repr(value)
        return f"{how} INTO t(k, a, b) VALUES({text(key)}, 'i{self.made}', {shown})"

    # Less ordinary

    def nameless_row(self) -> None:
        if self.nameless and self.dice.random() < 0.5:
            self.app.run("DELETE FROM t WHERE rowid = (SELECT min(rowid) FROM t WHERE k IS NULL)")
            self.nameless -= 1
        else:
            self.app.run("INSERT INTO t(k, a) VALUES(NULL, 'nameless')")
            self.nameless += 1

    def bare(self) -> None:
        """Writes while some of the capture triggers are gone."""
        names = self.app.capture("t")
        for name in self.dice.sample(names, self.dice.randint(min(1, len(names)), len(names))):
            self.app.run(f"DROP TRIGGER {quoted(name)}")
        self.write()

    def rebuild(self) -> None:
        self.extra = False
        self.app.script(rebuild("t", COLUMNS, "k, a, b") + ";" + self.statement())
        if self.dice.random() < 0.7:
            self.write()

    def reindexed(self) -> None:
        self.app.script("DROP INDEX IF EXISTS by_a; CREATE INDEX by_a ON t(a)")

    def swap(self) -> None:
        """The table comes from a copy, under the same name."""
        self.extra = False
        self.app.script(
            f"CREATE TABLE kept AS SELECT k, a, b FROM t; DROP TABLE t; CREATE TABLE t({COLUMNS});"
            f"INSERT INTO t SELECT k, a, b FROM kept ORDER BY random(); DROP TABLE kept; {self.statement()}"
        )

    def vacuum(self) -> None:
        self.app.shell("VACUUM")

    def away_and_back(self) -> None:
        """Renamed twice, with writes under the other name: the triggers go along."""
        statement = self.statement().replace("INTO t(", "INTO away(").replace("UPDATE t ", "UPDATE away ")
        statement = statement.replace("FROM t ", "FROM away ")
        self.app.script(f"ALTER TABLE t RENAME TO away; {statement}; ALTER TABLE away RENAME TO t")

    def lose_scope(self) -> None:
        """For one sync; what was not sent is orphaned, and comes back with the next one."""
        self.app.sync(token=mint(self.app.server.secret, self.app.sub, {"elsewhere": "rw"}))

    def killed(self) -> None:
        process = subprocess.Popen(
            [binary(), "sync", str(self.app.path), "--server", self.app.url, "--scope", self.app.scope],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "TIDEMARK_TOKEN": self.app.token},
        )
        time.sleep(self.dice.uniform(0, 0.2))  # because any moment is one to die at
        process.kill()
        process.wait()

    def drop_column(self) -> None:
        """SQLite refuses it while triggers name the column; then they go, too."""
        for column in [name for name in self.app.columns("t") if name.startswith("c")]:
            if self.app.shell(f"ALTER TABLE t DROP COLUMN {column}").returncode:
                self.app.drop_capture("t")
                self.app.run(f"ALTER TABLE t DROP COLUMN {column}")
        self.extra = False
        self.write()

    def add_column(self) -> None:
        if not self.extra:
            self.extra = True
            self.app.script(f"ALTER TABLE t ADD COLUMN c{self.made} TEXT; {self.statement()}")


def text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def rows(app: AppFile, sub: str) -> dict[str, tuple[object, object]]:
    """The rows that one device made."""
    found = app.query("SELECT k, a, b FROM t WHERE k IS NOT NULL")
    return {key: (a, b) for key, a, b in found if key.startswith((f"{sub}-", f"{sub} "))}
