"""A reader of a stream notices a row that is skipped, one that comes twice and a head that it was not shown; and a
machine without PostgreSQL says so."""

from __future__ import annotations

import random
import unittest
from typing import Any
from unittest import mock

import cluster
import postgres_server
import standby
from report import Budget, Report
from stream import Reader, Setup, Stream


def page(rows: list[tuple[str, int]], head: int) -> dict[str, Any]:
    changes = [{"id": name, "version": version} for name, version in rows]
    return {"changes": changes, "nextSince": "s", "hasMore": False, "head": head}


class StreamTests(unittest.TestCase):
    def setUp(self) -> None:
        self.stream = Stream(Setup([1], b"secret", batch=1), "scope", writers=2, readers=1)
        self.reader: Reader = self.stream.readers[0]

    def shown(self, *pages: dict[str, Any]) -> list[str]:
        for each in pages:
            with mock.patch.object(Reader, "ask", return_value=each):
                self.reader.act()
        return self.stream.tally.faults

    def test_everything_in_its_turn(self) -> None:
        self.assertEqual([], self.shown(page([("0-1", 1), ("1-1", 2)], 2), page([], 2), page([("0-2", 3)], 3)))
        self.assertEqual((3, 0, 0), (self.reader.rows, self.reader.missed, self.reader.twice))

    def test_skipped_version(self) -> None:
        self.assertIn("1-1 at 3", self.shown(page([("0-1", 1), ("1-1", 3)], 3))[0])
        self.assertEqual(1, self.reader.missed)

    def test_skipped_record(self) -> None:
        self.assertIn("0-3 at 2", self.shown(page([("0-1", 1), ("0-3", 2)], 2))[0])
        self.assertEqual(1, self.reader.missed)

    def test_record_that_comes_twice(self) -> None:
        self.assertIn("0-1 at 2", self.shown(page([("0-1", 1), ("0-1", 2)], 2))[0])
        self.assertEqual(1, self.reader.twice)

    def test_head_without_its_row(self) -> None:
        self.assertIn("the head is 2", self.shown(page([("0-1", 1)], 2))[0])

    def test_acknowledged_and_not_there(self) -> None:
        self.shown(page([("0-1", 1)], 1))
        self.stream.tally.acknowledged = {0: 2}
        self.stream.writers[0].done = 2
        self.assertFalse(self.reader.holds())
        self.assertEqual(1, self.stream.lost)
        self.assertIn("holds 1 rows", self.stream.verify()[0])

    def test_no_postgres(self) -> None:
        missing = postgres_server.NotInstalled("no initdb found")
        for scenario in (cluster.run, standby.run):
            report = Report("scenario")
            with mock.patch.object(postgres_server, "binaries", side_effect=missing):
                scenario(report, Budget(1, random.Random(1)))
            self.assertEqual(["no initdb found"], report.not_run)
            self.assertEqual({}, report.counts)


if __name__ == "__main__":
    unittest.main()
