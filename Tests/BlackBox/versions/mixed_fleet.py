"""Devices of several versions in one scope, and what has to hold for them in the end."""

from __future__ import annotations

import sqlite3
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from support.device import Device
from support.report import Budget, Report, patiently

IN_SYNC_SECONDS = 60
HELP_SECONDS = 30
NOTES, CONTESTED = 3, 4
NOTE_LINES = 60
TABLES = ("task", "shared", "note")


@dataclass(frozen=True)
class Version:
    """One build of the command."""

    name: str
    program: str

    @cached_property
    def commands(self) -> str:
        words = [self.program, "--help"]
        return subprocess.run(words, capture_output=True, text=True, timeout=HELP_SECONDS, check=True).stdout

    def has(self, command: str) -> bool:
        return f"  {command} " in self.commands


class Member(Device):
    """A device that also edits what others edit at the same time, deletes it and makes it anew; and long texts, which
    travel as patches, and a field at a time, between versions that know how."""

    def __init__(self, version: Version, number: int, folder: Path, url: str, secret: bytes, scope: str, seed: str):
        super().__init__(number, folder, url, secret, scope, seed)
        self.version, self.program = version, version.program
        with self.open() as db:
            db.execute("ALTER TABLE shared ADD COLUMN everybody TEXT")
            db.execute("CREATE TABLE note (id TEXT PRIMARY KEY, body TEXT, n INTEGER)")
            if number == 0:
                body = "\n".join(f"line {n} of a long text, which is edited in its middle" for n in range(NOTE_LINES))
                db.executemany("INSERT INTO note VALUES (?, ?, 0)", [(f"n{n}", body) for n in range(NOTES)])
                self.edits += NOTES
        db.close()

    @property
    def name(self) -> str:
        return f"{self.path.name} of {self.version.name}"

    def become(self, version: Version) -> None:
        self.version, self.program = version, version.program

    def start_sync(self) -> subprocess.Popen[bytes]:
        words = self.command("sync", str(self.path), *(word for table in TABLES for word in ("--table", table)))
        return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=self._environment())

    def _one(self, db: sqlite3.Connection, size: int) -> dict[str, str | None]:
        chance = self.dice.random()
        if chance > 0.35:
            return super()._one(db, size)
        self.edits += 1
        text = f"{self.number}/{self.edits}"
        if chance < 0.15:
            # A line of its own in a text of everybody: who wrote last has the text, so only agreement is looked at.
            line = f"line {self.number * 7} of a long text"
            note = f"n{self.dice.randrange(NOTES)}"
            db.execute("UPDATE note SET body = replace(body, ?, ?) WHERE id = ?", (line, f"{line} ({text})", note))
        elif chance < 0.25:
            row = f"s{self.dice.randrange(CONTESTED)}"
            db.execute("UPDATE shared SET everybody = ? WHERE id = ?", (text, row))
        else:
            row = f"c{self.dice.randrange(CONTESTED)}"
            if self.dice.random() < 0.4:
                db.execute("DELETE FROM task WHERE id = ?", (row,))
            elif not db.execute("UPDATE task SET title = ? WHERE id = ?", (text, row)).rowcount:
                db.execute("INSERT INTO task VALUES (?, ?, 1)", (row, text))
        return {}

    def dump(self) -> dict[str, str]:
        """Every row of every table, with the types of its values."""
        db = self.open()
        try:
            rows = {}
            for table in TABLES:
                names = sorted(name for _, name, *_ in db.execute(f"PRAGMA table_info({table})"))
                cells = " || ' ' || ".join(f"quote({name})" for name in names)
                for row, told in db.execute(f"SELECT id, {cells} FROM {table}"):
                    rows[f"{table} {row}"] = told
            return rows
        finally:
            db.close()


class MixedFleet:
    def __init__(self, folder: Path, url: str, secret: bytes, scope: str, budget: Budget):
        self.place = (folder, url, secret, scope)
        self.seed = budget.dice.random()
        self.members: list[Member] = []
        self.errors: set[str] = set()

    def join(self, *versions: Version) -> None:
        for version in versions:
            number = len(self.members)
            self.members.append(Member(version, number, *self.place, f"{self.seed}/{number}"))
            self.sync(self.members[-1:])

    def move(self, url: str) -> None:
        for member in self.members:
            member.url = url

    def sync(self, members: list[Member] | None = None) -> bool:
        """All of them at once."""
        chosen = self.members if members is None else members
        with ThreadPoolExecutor(len(chosen)) as threads:
            told = list(threads.map(lambda member: member.sync(), chosen))
        for member, (code, _, error) in zip(chosen, told):
            if code not in (0, 3):
                self.errors.add(f"{member.version.name}: {error.strip()[:300]}")
        # 3 is one whose edit was refused, since somebody had deleted its record.
        return all(code in (0, 3) for code, _, _ in told)

    def work(self, report: Report, rounds: int, edits: int = 6) -> None:
        for _ in range(rounds):
            for member in self.members:
                member.edit(edits)
            report.require(self.sync(), f"a sync failed: {sorted(self.errors)}")

    def converge(self, report: Report, verifiers: bool) -> None:
        """In sync within a minute; the same rows everywhere; every last edit among them, and none taken twice."""
        took = patiently(lambda: self.sync() and self.sync() and self._waits() == {}, IN_SYNC_SECONDS)
        report.require(took is not None, f"not in sync: {self._waits()} {sorted(self.errors)[-4:]}")
        self.agree(report)
        for member in self.members if verifiers else []:
            if member.version.has("verify"):
                code, found, error = member.verify()
                report.require(found.get("isClean") is True, f"verify of {member.name}: {code} {found} {error[:300]}")
                report.add("files compared with the server by digest")
        heads = {scope["head"] for member in self.members for scope in member.status().get("scopes", [])}
        edits = sum(member.edits for member in self.members)
        report.require(max(heads, default=0) <= edits, f"{max(heads)} versions of {edits} edits: one was taken twice")
        report.add("edits", edits)

    def agree(self, report: Report) -> None:
        """Asks the files alone."""
        first = self.members[0]
        rows = first.dump()
        for member in self.members:
            others = member.dump()
            differ = sorted(key for key in rows.keys() | others.keys() if rows.get(key) != others.get(key))
            told = [f"{key}: {rows.get(key, '-')[-90:]} / {others.get(key, '-')[-90:]}" for key in differ[:3]]
            report.require(not differ, f"{first.name} and {member.name} differ in {told}")
            cells = member.contents()
            lost = [f"{k}: {v!r} is {cells.get(k)!r}" for k, v in member.expected.items() if cells.get(k) != v]
            report.require(not lost, f"{len(lost)} edits of {member.name} are lost: {lost[:3]}")
            report.require(member.integrity() == "ok", f"{member.name} is damaged")
        report.add("rows that are alike on every device", len(rows) * len(self.members))

    def _waits(self) -> dict[str, Any]:
        found = {}
        for member in self.members:
            stands = member.status()
            counted = ("pending", "sent", "blocked", "quarantined")
            waits = {name: stands.get(name) for name in counted if stands.get(name)}
            refused = [one for one in stands.get("rejected", []) if one["code"] != "record_deleted"]
            if waits or refused:
                found[member.name] = (waits, refused)
        return found
