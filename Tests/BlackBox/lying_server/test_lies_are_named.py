"""For each lie that a server could tell, the checker names it; for none, it is content."""

from __future__ import annotations

import inspect
import unittest

from lying_server import dialect_lies, read_lies, write_lies
from lying_server.proxy import Lie, Proxy
from protocol import digests
from protocol.checker import Settings, check
from support.server_process import ServerProcess


def lies() -> list[type[Lie]]:
    found = []
    for module in (dialect_lies, read_lies, write_lies):
        found += [c for _, c in inspect.getmembers(module, inspect.isclass) if issubclass(c, Lie) and c is not Lie]
    return found


class DigestTests(unittest.TestCase):
    def test_the_example_of_the_document(self) -> None:
        rows: digests.Rows = {
            ("task", "t1"): (1, {"title": "Buy milk", "done": 0, "weight": 1.5}),
            ("task", "t2"): (2, {"title": "a\nb", "done": None, "weight": -0.0}),
            ("task", "é"): (3, {"title": "é"}),
        }
        sums = digests.digest(rows)["task"]
        self.assertEqual((3, "b727f7b790525277"), (sums["count"], sums["records"]))
        self.assertEqual({"sum": "462664c1b6730b8c"}, sums["fields"]["title"])
        done = {"sum": "9899b58d331cbe1b", "count": 2, "having": "9c4ba4a0299209b6"}
        self.assertEqual(done, sums["fields"]["done"])
        self.assertEqual("5080f80fbc865113", sums["fields"]["weight"]["sum"])


class CheckerTests(unittest.TestCase):
    server: ServerProcess

    @classmethod
    def setUpClass(cls) -> None:
        cls.server = ServerProcess.temporary()

    @classmethod
    def tearDownClass(cls) -> None:
        cls.server.remove()

    def settings(self, url: str, seconds: float) -> Settings:
        return Settings(url, self.server.secret, seconds, clients=4, scopes=2, rate=150, seed=1)

    def test_truth(self) -> None:
        with Proxy(self.server.url, Lie()) as proxy:
            verdict = check(self.settings(proxy.url, 2))
        self.assertEqual([], verdict.violations)
        self.assertGreater(verdict.counts["verdicts"], 50)
        counted = ("rows in part", "records put", "pages by cursor", "pages by stamp", "lists by time", "lists by map")
        for what in counted:
            self.assertGreater(verdict.counts[what], 0, what)

    def test_lies(self) -> None:
        self.assertGreaterEqual(len(lies()), 8)
        for kind in lies():
            with self.subTest(kind.__name__):
                lie = kind()
                with Proxy(self.server.url, lie) as proxy:
                    verdict = check(self.settings(proxy.url, lie.seconds))
                self.assertGreater(lie.told, 0, "the lie was never told")
                self.assertTrue(verdict.violations, "nobody noticed")
                self.assertIn(verdict.violations[0].kind, lie.kinds, str(verdict.violations[0]))
                self.assertTrue(verdict.violations[0].evidence, "no request shows it")
