"""What a machine cannot do is no failure, unless it was asked for by its name."""

from __future__ import annotations

import contextlib
import io
import unittest
from unittest import mock

from support import postgres_server
from support.report import Budget, Report
from torture import drain, runner

NAMES = ("drain", "cluster", "standby")


def hold(report: Report, budget: Budget) -> None:
    report.add("syncs")


class NotRunTests(unittest.TestCase):
    def told(self, *words: str) -> tuple[int, str]:
        """Of a machine without PostgreSQL, where everything else holds."""
        missing, told = postgres_server.NotInstalled("no initdb found"), io.StringIO()
        with (
            mock.patch.object(postgres_server, "binaries", side_effect=missing),
            mock.patch.object(drain, "run", hold),
            mock.patch.object(runner, "SCENARIOS", {name: (runner.SCENARIOS[name][0], 1) for name in NAMES}),
            mock.patch("sys.argv", ["torture", "--seed", "1", *words]),
            contextlib.redirect_stdout(told),
            contextlib.redirect_stderr(told),
        ):
            return runner.main(), told.getvalue()

    def test_among_all(self) -> None:
        code, told = self.told()
        self.assertEqual(0, code)
        self.assertIn("1 of 3 held, 2 not run: ['cluster', 'standby'], in part: [], failed: []", told)

    def test_asked_for(self) -> None:
        for words in (["--only", "standby"], ["--only", "drain", "--only", "cluster"], ["--only", "standby", "--json"]):
            self.assertEqual(1, self.told(*words)[0], words)
        self.assertIn("0 of 1 held, 1 not run: ['standby']", self.told("--only", "standby")[1])
        self.assertEqual(0, self.told("--only", "drain")[0])
