"""A table is rebuilt at the worst moment: in the middle of a scan, beside a crash, after a day with much going on."""

from __future__ import annotations

import os
import random
import subprocess
import time

from files import table_status
from files.app_file import AppFile
from files.file_test_case import SCHEMA, FileTestCase, filled, rebuild
from lying_server.proxy import Asked, Given, Lie, Proxy
from support.server_process import binary

SAME = ("id TEXT PRIMARY KEY, a TEXT, b INTEGER", "id, a, b")
WITH_C = ("id TEXT PRIMARY KEY, a TEXT, b INTEGER, c TEXT", "id, a, b, NULL")
KILLS = 8


class CutAfter(Lie):
    """Some answers, and then none."""

    def __init__(self, answers: int):
        super().__init__()
        self.left = answers

    def tell(self, asked: Asked, given: Given) -> None:
        self.left -= 1
        if self.left < 0:
            self.told += 1
            raise OSError("the answer is lost")


class MomentTests(FileTestCase):
    def cut(self, app: AppFile, answers: int, *words: str) -> None:
        with Proxy(self.server.url, CutAfter(answers)) as proxy:
            app.url = proxy.url
            told = self.not_crashed(app.sync(*words))
            self.assertEqual(1, told.code, f"the scan was not cut: {told}")
        app.url = self.server.url

    def agree(self, first: AppFile, second: AppFile) -> None:
        self.decided(first)
        self.quiesced(second, first)
        self.assert_alike(first, second)
        self.assert_counted(first, second)
        for app in (first, second):
            told = app.status()
            self.assertEqual(set(), table_status.open_conflicts(told.json, "t"), f"{told}")

    def test_a_rebuild_in_the_middle_of_a_scan(self) -> None:
        """Rows of its first pages have come already, above `complete`: they are no edits."""
        first, second = self.pair(SCHEMA, filled(800))
        second.script("UPDATE t SET a = 'B' WHERE b < 600; DELETE FROM t WHERE b >= 750")
        self.synced(second)
        self.cut(first, 2, "--page", "100")
        self.assertNotIn(first.count("t", "a = 'B'"), (0, 600))
        first.script(rebuild("t", *WITH_C))
        first.script("UPDATE t SET a = 'A' WHERE b BETWEEN 700 AND 709; INSERT INTO t(id, a) VALUES('new', 'n')")
        first.run("DELETE FROM t WHERE b = 720")
        self.assert_counted(first)
        self.decided(first)
        second.script(rebuild("t", *WITH_C))
        self.agree(first, second)
        counts = [second.count("t", f"a = '{value}'") for value in ("B", "A", "n")]
        self.assertEqual([600, 10, 1], counts)
        self.assertEqual(750, second.count("t"))

    def test_a_rebuild_in_the_middle_of_the_first_filling(self) -> None:
        first = self.app("a", SCHEMA)
        first.script(filled(900))
        self.synced(first)
        second = self.app("b", SCHEMA)
        second.script("INSERT INTO t VALUES('mine', 'm', -1)")
        self.cut(second, 3, "--page", "50")
        second.script(rebuild("t", *SAME) + "; INSERT INTO t VALUES('new', 'n', -2)")
        self.assert_counted(second)
        self.agree(second, first)
        self.assertEqual(902, first.count("t"))

    def test_a_rebuild_while_the_answer_to_a_push_is_lost(self) -> None:
        first, second = self.pair(SCHEMA, filled(60))
        first.script("UPDATE t SET a = 'sent' WHERE b < 20; INSERT INTO t VALUES('sent', 's', -1)")
        first.run("DELETE FROM t WHERE b = 50")
        self.cut(first, 0)
        first.script(rebuild("t", *SAME) + "; UPDATE t SET a = 'later' WHERE b < 10; DELETE FROM t WHERE b = 51")
        self.assert_counted(first)
        self.agree(first, second)
        self.assertEqual([11, 10], [second.count("t", f"a = '{value}'") for value in ("later", "sent")])
        self.assertEqual(59, second.count("t"))

    def test_killed_again_and_again_after_a_rebuild(self) -> None:
        first, second = self.pair(SCHEMA, filled(2000))
        second.run("UPDATE t SET a = 'B' WHERE b >= 1500")
        self.synced(second)
        first.script(rebuild("t", *SAME))
        first.script("UPDATE t SET a = 'A' WHERE b < 90; DELETE FROM t WHERE b BETWEEN 1000 AND 1039")
        first.run("INSERT INTO t SELECT 'n' || id, 'new', b - 5000 FROM t WHERE b < 90")
        dice = random.Random(18)
        for _ in range(KILLS):
            words = ["sync", str(first.path), "--server", self.server.url, "--scope", self.scope, "--table", "t"]
            process = subprocess.Popen(
                [binary(), *words],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={**os.environ, "TIDEMARK_TOKEN": first.token},
            )
            time.sleep(dice.uniform(0.02, 0.5))  # because any moment is one to die at
            process.kill()
            process.wait()
        self.agree(first, second)
        counts = [second.count("t", f"a = '{value}'") for value in ("A", "B", "new")]
        self.assertEqual([90, 500, 90], counts)
        self.assertEqual(2000 - 40 + 90, second.count("t"))
        self.assertEqual("ok", first.one("PRAGMA integrity_check"))

    def test_a_rebuild_after_a_day_with_thousands_of_changes_elsewhere(self) -> None:
        first, second = self.pair(SCHEMA, filled(5000))
        second.script("UPDATE t SET a = 'B' WHERE b < 4000; DELETE FROM t WHERE b BETWEEN 4000 AND 4199")
        second.run("INSERT INTO t SELECT 'n' || id, 'new', b + 10000 FROM t WHERE b < 500")
        self.synced(second)
        first.script(rebuild("t", *SAME) + "; UPDATE t SET a = 'A' WHERE b BETWEEN 4500 AND 4549")
        first.script("INSERT INTO t VALUES('new', 'n', -1); DELETE FROM t WHERE b = 4600")
        self.assert_counted(first)
        self.agree(first, second)
        self.assertEqual(5000 - 200 + 500 + 1 - 1, second.count("t"))
        self.assertEqual([4000, 50], [first.count("t", f"a = '{value}'") for value in ("B", "A")])

    def test_a_rebuild_after_the_server_lost_history(self) -> None:
        """What was written while nobody captured is told from what the server lost."""
        first, second = self.pair(SCHEMA, filled(50))
        copy = self.folder / "store"
        self.server.terminate()
        copy.write_bytes(self.server.store.read_bytes())
        self.server.start()
        second.run("UPDATE t SET a = 'B' WHERE b < 10")
        self.synced(second, first)
        first.script(rebuild("t", *SAME) + "; UPDATE t SET a = 'A' WHERE b BETWEEN 20 AND 29")
        first.script("INSERT INTO t VALUES('new', 'n', -1); DELETE FROM t WHERE b = 40")
        self.server.terminate()
        for ending in ("-wal", "-shm"):
            self.server.store.with_name(self.server.store.name + ending).unlink(missing_ok=True)
        self.server.store.write_bytes(copy.read_bytes())
        self.server.start()
        self.assert_counted(first)
        self.decided(first)
        self.quiesced(second, first)
        self.assert_counted(first, second)
        self.assertEqual([10, 1], [second.count("t", f"a = '{value}'") for value in ("B", "n")])
        # A version of another history says little about what was there: somebody may have to decide.
        undecided = table_status.open_conflicts(first.status().json, "t")
        arrived = {key for (key,) in second.query("SELECT id FROM t WHERE a = 'A'")}
        self.assertEqual({f"r{n:05d}" for n in range(20, 30)}, (undecided | arrived) - {"r00040"})
        self.assertTrue("r00040" in undecided or not second.count("t", "b = 40"))

    def test_a_rebuild_while_the_scope_is_lost(self) -> None:
        first, second = self.pair(SCHEMA, filled(40))
        first.run("UPDATE t SET a = 'unsent' WHERE b = 1")
        token = first.token
        first.in_scope("elsewhere:1")
        first.scope = self.scope
        first.script(rebuild("t", *SAME) + "; UPDATE t SET a = 'A' WHERE b = 2; INSERT INTO t VALUES('new', 'n', -1)")
        self.assertNotEqual(0, self.not_crashed(first.sync()).code)
        self.assert_counted(first)
        first.token = token
        self.agree(first, second)
        found = second.query("SELECT a FROM t WHERE b IN (1, 2, -1) ORDER BY b")
        self.assertEqual([("n",), ("unsent",), ("A",)], found)

    def test_a_rebuild_while_the_command_watches(self) -> None:
        """Nobody starts it anew: it has to notice by itself."""
        first, second = self.pair(SCHEMA, filled(20))
        words = ["sync", str(first.path), "--server", self.server.url, "--scope", self.scope, "--watch"]
        process = subprocess.Popen(
            [binary(), *words],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "TIDEMARK_TOKEN": first.token},
        )
        try:
            first.script(rebuild("t", *SAME) + "; UPDATE t SET a = 'A' WHERE b = 2")
            first.run("INSERT INTO t VALUES('new', 'n', -1)")
            deadline = time.monotonic() + 60
            while second.count("t", "a IN ('A', 'n')") < 2 and time.monotonic() < deadline:
                self.synced(second)
        finally:
            process.terminate()
            process.wait(30)
        self.assertEqual(2, second.count("t", "a IN ('A', 'n')"), "a rebuild was not noticed within a minute")
