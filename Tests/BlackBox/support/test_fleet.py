"""The questions at the end of a scenario notice an edit that is lost, one that came back, and devices that differ."""

from __future__ import annotations

import random
import shutil
import tempfile
import unittest
from pathlib import Path

from support.fleet import Fleet
from support.report import Budget, Report


class FleetTests(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="tidemark-fleet-"))
        self.addCleanup(shutil.rmtree, self.folder)
        # No server is asked: two copies of one device's file are a fleet in agreement.
        self.fleet = Fleet(2, self.folder, "http://127.0.0.1:1", b"secret", "scope", Budget(1, random.Random(3)))
        first, second = self.fleet.devices
        first.edit(60)
        with first.open() as db:
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        db.close()
        shutil.copy(first.path, second.path)

    def failures(self) -> list[str]:
        report = Report("agreement")
        self.fleet._agree(report)
        return report.failures

    def spoil(self, number: int, statement: str) -> None:
        with self.fleet.devices[number].open() as db:
            self.assertGreater(db.execute(statement).rowcount, 0)
        db.close()

    def test_agreement(self) -> None:
        self.assertEqual([], self.failures())

    def test_difference(self) -> None:
        self.spoil(1, "UPDATE shared SET d3 = 'x' WHERE id = 's0'")
        self.assertIn("differ in ['s0.3']", self.failures()[0])

    def test_lost_edit(self) -> None:
        for number in (0, 1):
            self.spoil(number, "UPDATE task SET title = 'older' WHERE id = (SELECT min(id) FROM task)")
        self.assertIn("1 edits of device 0 are lost", self.failures()[0])

    def test_delete_that_came_back(self) -> None:
        gone = next(row for row, value in self.fleet.devices[0].expected.items() if value is None)
        for number in (0, 1):
            self.spoil(number, f"INSERT INTO task VALUES ('{gone}', 'back', 0)")
        self.assertIn(gone, self.failures()[0])
