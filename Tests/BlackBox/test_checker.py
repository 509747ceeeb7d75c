"""For each lie that a server could tell, the checker names it; for none, it is content."""

from __future__ import annotations

import inspect
import unittest

import lies_about_pages
import lies_about_writes
from checker import Settings, check
from proxy import Lie, Proxy
from server_process import ServerProcess

SECONDS_PER_LIE = 8


def lies() -> list[type[Lie]]:
    found = []
    for module in (lies_about_pages, lies_about_writes):
        found += [c for _, c in inspect.getmembers(module, inspect.isclass) if issubclass(c, Lie) and c is not Lie]
    return found


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

    def test_lies(self) -> None:
        self.assertGreaterEqual(len(lies()), 8)
        for kind in lies():
            with self.subTest(kind.__name__):
                lie = kind()
                with Proxy(self.server.url, lie) as proxy:
                    verdict = check(self.settings(proxy.url, SECONDS_PER_LIE))
                self.assertGreater(lie.told, 0, "the lie was never told")
                self.assertTrue(verdict.violations, "nobody noticed")
                self.assertIn(verdict.violations[0].kind, lie.kinds, str(verdict.violations[0]))
                self.assertTrue(verdict.violations[0].evidence, "no request shows it")


if __name__ == "__main__":
    unittest.main()
