"""The questions at the end of each scene of versions notice rows that differ, in type too, and edits that are lost."""

from __future__ import annotations

import random
import shutil
import tempfile
import unittest
from pathlib import Path

from support.report import Budget, Report
from versions.mixed_fleet import Member, MixedFleet, Version


class CrewTests(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="tidemark-mixed-fleet-"))
        self.addCleanup(shutil.rmtree, self.folder)
        # No server is asked: two copies of one device's file are a fleet in agreement.
        place = (self.folder, "http://127.0.0.1:1", b"secret", "scope")
        self.fleet = MixedFleet(*place, Budget(1, random.Random(3)))
        self.fleet.members = [Member(Version("one", "none"), number, *place, f"{number}") for number in range(2)]
        first, second = self.fleet.members
        first.edit(80)
        with first.open() as db:
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        db.close()
        shutil.copy(first.path, second.path)

    def failures(self) -> list[str]:
        report = Report("agreement")
        self.fleet.agree(report)
        return report.failures

    def spoil(self, statement: str, *numbers: int) -> None:
        for number in numbers:
            with self.fleet.members[number].open() as db:
                self.assertGreater(db.execute(statement).rowcount, 0)
            db.close()

    def test_agreement(self) -> None:
        self.assertEqual([], self.failures())

    def test_difference_in_a_text_of_everybody(self) -> None:
        self.spoil("UPDATE note SET body = body || 'x' WHERE id = 'n1'", 1)
        self.assertIn('differ in ["note n1: ', self.failures()[0])

    def test_difference_of_types(self) -> None:
        self.spoil("UPDATE note SET n = x'00' WHERE id = 'n1'", 1)
        self.assertIn('differ in ["note n1: ', self.failures()[0])

    def test_lost_edit(self) -> None:
        self.spoil("UPDATE task SET title = 'older' WHERE id = (SELECT min(id) FROM task WHERE id LIKE 't%')", 0, 1)
        self.assertIn("1 edits of app-0.sqlite of one are lost", self.failures()[0])

    def test_delete_that_came_back(self) -> None:
        gone = next(row for row, value in self.fleet.members[0].expected.items() if value is None)
        self.spoil(f"INSERT INTO task VALUES ('{gone}', 'back', 0)", 0, 1)
        self.assertIn(gone, self.failures()[0])
