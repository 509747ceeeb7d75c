"""How fast a file's rows travel, measured in one run with a server of its own on embedded SQLite: a million rows up and
down, and PROJ's database with its own triggers down, beside the same rows inserted by SQLite alone. TIDEMARK_BIN names
the build; TIDEMARK_OTHER another one, with which each round is run in turn. Machines differ; the ratios are what to
compare. Exit code 1 where the files do not hold the same rows."""

from __future__ import annotations

import argparse
import os
import sqlite3
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from files import app_file, real_files
from files.app_file import AppFile, quoted
from support.server_process import ServerProcess, binary

UP_SECONDS, DOWN_SECONDS, PROJ_RATIO = 40, 8, 1.3
SYNC_SECONDS = 900
SCHEMA = "CREATE TABLE item (id TEXT PRIMARY KEY, title TEXT, done INTEGER, rank INTEGER, owner TEXT)"
# Some 90 bytes with its key; the keys are of the order in which a UUID of version 7 comes.
FILL = """
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
    INSERT INTO item SELECT printf('%08x-%04x-7%03x-8000-%012x', i / 4096, i % 65536, i % 4096, i * 7919),
        'Row number ' || i || ' of the list', i % 2, i % 97, 'owner-' || (i % 1000) FROM n
"""


@dataclass
class Times:
    """Seconds of one build."""

    program: str
    up: list[float] = field(default_factory=list)
    down: list[float] = field(default_factory=list)
    plain: list[float] = field(default_factory=list)
    single: list[float] = field(default_factory=list)


def told(name: str, value: float, limit: float, unit: str) -> None:
    verdict = "held" if value <= limit else "MISSED"
    print(f"{name:<46} {value:8.2f} {unit:<18} target {limit:g}: {verdict}", flush=True)


def sync(app: AppFile, program: str) -> float:
    os.environ["TIDEMARK_BIN"] = program
    began = time.monotonic()
    done = app.sync()
    if done.code not in (0, 3):
        raise SystemExit(f"{app.path.name}: {done}")
    return time.monotonic() - began


def started(folder: Path, program: str) -> ServerProcess:
    folder.mkdir()
    server = ServerProcess(folder)
    server.program = program
    server.start()
    return server


# A million rows


def many_rows(folder: Path, times: Times, count: int) -> bool:
    with started(folder, times.program) as server:
        apps = [AppFile(folder / f"{name}.sqlite", server, "list:1", ["item"]) for name in ("first", "second")]
        for app in apps:
            app.script(SCHEMA)
        apps[0].run(FILL, count)
        times.up.append(sync(apps[0], times.program))
        times.down.append(sync(apps[1], times.program))
        plain = sqlite3.connect(folder / "plain.sqlite", isolation_level=None)
        plain.execute("PRAGMA journal_mode = WAL")
        plain.execute(SCHEMA)
        rows = apps[0].query("SELECT * FROM item ORDER BY id")
        began = time.monotonic()
        plain.execute("BEGIN")
        plain.executemany("INSERT INTO item VALUES (?, ?, ?, ?, ?)", rows)
        plain.execute("COMMIT")
        times.plain.append(time.monotonic() - began)
        plain.close()
        return len(rows) == count and rows == apps[1].query("SELECT * FROM item ORDER BY id")


# PROJ's database


def proj_app(folder: Path, name: str, server: ServerProcess) -> AppFile:
    app = AppFile(real_files.proj(folder, name), server, "proj:1", [])
    tables = app.query("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
    app.tables = [name for (name,) in tables if app.query("SELECT 1 FROM pragma_table_info(?) WHERE pk > 0", name)]
    return app


def emptied(app: AppFile) -> AppFile:
    app.script(";".join(f"DELETE FROM {quoted(table)}" for table in app.tables))
    app.run("DELETE FROM usage")
    return app


def inserted(app: AppFile, source: AppFile, together: bool) -> float:
    """The same rows, by SQLite alone: tables in the order in which their triggers let them in. Together in one
    transaction, or each in its own, as an app or a script inserts them that does not think of it."""
    rows = {t: source.query(f"SELECT * FROM {quoted(t)} WHERE {travels(source, t)}") for t in app.tables}
    db = app.open()
    db.isolation_level = None
    db.execute("PRAGMA journal_mode = WAL")
    began = time.monotonic()
    if together:
        db.execute("BEGIN")
    for table in app.tables:
        if rows[table]:
            marks = ", ".join("?" * len(rows[table][0]))
            db.executemany(f"INSERT INTO {quoted(table)} VALUES ({marks})", rows[table])
    if together:
        db.execute("COMMIT")
    seconds = time.monotonic() - began
    db.close()
    return seconds


def travels(app: AppFile, table: str) -> str:
    """A row with NULL in its key stays where it is."""
    keys = app.query("SELECT name FROM pragma_table_info(?) WHERE pk > 0", table)
    return " AND ".join(f"{quoted(name)} IS NOT NULL" for (name,) in keys)


def proj(folder: Path, times: Times) -> bool:
    with started(folder, times.program) as server:
        first = proj_app(folder, "first", server)
        # This table names what stands in others, and so comes behind them.
        first.tables.sort(key=lambda table: table == "grid_alternatives")
        second, plain, single = (emptied(proj_app(folder, name, server)) for name in ("second", "plain", "single"))
        second.tables = plain.tables = single.tables = first.tables
        sync(first, times.program)
        times.down.append(sync(second, times.program))
        times.plain.append(inserted(plain, first, together=True))
        times.single.append(inserted(single, first, together=False))
        counts = [
            [app.one(f"SELECT count(*) FROM {quoted(t)} WHERE {travels(app, t)}") for t in first.tables]
            for app in (first, second, plain, single)
        ]
        print(f"  {sum(counts[0])} rows of {len(first.tables)} tables", flush=True)
        return all(count == counts[0] for count in counts)


def main() -> int:
    app_file.COMMAND_SECONDS = SYNC_SECONDS
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=["rows", "proj", "all"], nargs="?", default="all")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=1)
    arguments = parser.parse_args()
    programs = [binary(), *filter(None, [os.environ.get("TIDEMARK_OTHER")])]
    is_right = True
    print(f"load at the start: {os.getloadavg()[0]:.1f} of {os.cpu_count()} cores")
    for part in ["rows", "proj"] if arguments.part == "all" else [arguments.part]:
        all_times = [Times(program) for program in programs]
        for number in range(arguments.rounds):
            for times in all_times:
                with tempfile.TemporaryDirectory(prefix="tidemark-speed-") as place:
                    folder = Path(place) / f"round{number}"
                    is_right &= many_rows(folder, times, arguments.rows) if part == "rows" else proj(folder, times)
        for times in all_times:
            print(times.program)
            down, plain = statistics.median(times.down), statistics.median(times.plain)
            print(f"{'the same rows by SQLite alone, one transaction':<46} {plain:8.2f} s")
            if part == "rows":
                scale = arguments.rows / 1_000_000
                told("rows up", statistics.median(times.up), UP_SECONDS * scale, "s")
                told("rows down", down, DOWN_SECONDS * scale, "s")
            else:
                single = statistics.median(times.single)
                print(f"{'the same, each insert by itself':<46} {single:8.2f} s")
                print(f"{'proj.db down':<46} {down:8.2f} s, {down / plain:.1f} times those in one transaction")
                told("proj.db down", down / single, PROJ_RATIO, "times the inserts")
    return 0 if is_right else 1


if __name__ == "__main__":
    sys.exit(main())
