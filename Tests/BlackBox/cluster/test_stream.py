"""A reader of a stream notices a row that is skipped, one that comes twice and a head that it was not shown; and a
machine without PostgreSQL says so."""

from __future__ import annotations

import random
import unittest
from typing import Any
from unittest import mock

from cluster import killed_nodes, standby
from cluster.stream import CursorReader, Reader, Setup, Stream
from support import postgres_server
from support.report import Budget, Report


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
        for scenario in (killed_nodes.run, standby.run):
            report = Report("scenario")
            with mock.patch.object(postgres_server, "binaries", side_effect=missing):
                scenario(report, Budget(1, random.Random(1)))
            self.assertEqual(["no initdb found"], report.not_run)
            self.assertEqual({}, report.counts)


class CursorTests(unittest.TestCase):
    """The same of a reader that scans a cursor delta."""

    def setUp(self) -> None:
        self.stream = Stream(Setup([1], b"secret", batch=1), "scope", writers=2, readers=2, cursors=True)
        self.reader = self.stream.readers[1]
        self.assertIsInstance(self.reader, CursorReader)

    def shown(self, *pages: dict[str, Any]) -> list[str]:
        for each in pages:
            with mock.patch.object(CursorReader, "ask", return_value=each):
                self.reader.act()
        return self.stream.tally.faults

    @staticmethod
    def page(*rows: str, at: int = 0, then: str | None = None) -> dict[str, Any]:
        times = [f"2026-01-01T00:00:00.{at + place:03}Z" for place in range(len(rows))]
        upserts = [{"id": name, "updatedAt": time} for name, time in zip(rows, times, strict=True)]
        return {"upserts": upserts, "tombstones": [], "nextCursor": then}

    def test_everything_in_its_turn(self) -> None:
        self.assertEqual([], self.shown(self.page("0-1", "1-1", then="c"), self.page(at=2), self.page("0-2", at=3)))
        self.assertEqual((3, 0, 0), (self.reader.rows, self.reader.missed, self.reader.twice))

    def test_skipped_record(self) -> None:
        self.assertIn("0-3 at 2", self.shown(self.page("0-1", "0-3"))[0])
        self.assertEqual(1, self.reader.missed)

    def test_record_that_comes_twice(self) -> None:
        self.assertIn("0-1 at 2", self.shown(self.page("0-1", "0-1"))[0])
        self.assertEqual(1, self.reader.twice)

    def test_time_that_stands_still(self) -> None:
        self.assertIn("0-2 at", self.shown(self.page("0-1"), self.page("0-2"))[0])

    def test_deletion_of_nobody(self) -> None:
        self.assertIn("nobody", self.shown(self.page() | {"tombstones": [{"id": "0-1"}]})[0])

    def test_same_cursor_other_page(self) -> None:
        self.reader.since, self.reader.in_scan = "c", True
        pages = [self.page("0-1", then="d"), self.page("0-1", "0-2", then="d")]
        with mock.patch.object(CursorReader, "ask", side_effect=pages):
            self.reader.act()
        self.assertIn("the same cursor", self.stream.tally.faults[0])
