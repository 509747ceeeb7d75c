"""Brakes: on a device what was inferred waits where it is much, and on a server deletes, where that was declared."""

from __future__ import annotations


from files import table_status
from files.app_file import AppFile
from files.file_test_case import SCHEMA, FileTestCase, filled, rebuild

TABLES = ("t", "u")


class InferredBrakeTests(FileTestCase):
    def bare(self, rows: int) -> tuple[AppFile, AppFile]:
        first, second = self.pair(SCHEMA, filled(rows), TABLES)
        self.assertTrue(first.drop_capture("t"), "no triggers were found on t")
        return first, second

    def test_many_inferred_deletes_wait_for_a_confirmation(self) -> None:
        first, second = self.bare(900)
        first.run("DELETE FROM t WHERE b >= 100")
        told = self.not_crashed(first.sync())
        self.assertEqual(3, told.code, f"800 deletes that nobody captured went out: {told}")
        plain = first.sync(as_json=False)
        self.assertIn("800", plain.text, f"the count is not told: {plain}")
        self.assertIn(table_status.CONFIRM, plain.text, f"the way on is not told: {plain}")
        self.assert_counted(first)
        with self.subTest("I13"):
            self.assertEqual(800, self.counts(first).deletes)
        self.synced(second)
        self.assertEqual(900, second.count("t"), "deletes that wait for a decision went out")
        self.clean(first.confirm())
        self.synced(second)
        self.assertEqual(100, second.count("t"))
        self.assert_in_sync(first, second)

    def test_many_inferred_deletes_that_were_a_mistake(self) -> None:
        """The table is there again, but empty: the server's rows come back where somebody says so."""
        first, second = self.pair(SCHEMA, filled(900), TABLES)
        wanted = second.dump("t")
        first.script("DROP TABLE t; CREATE TABLE t(id TEXT PRIMARY KEY, a TEXT, b INTEGER)")
        self.assertEqual(3, self.not_crashed(first.sync()).code)
        second.run("UPDATE u SET v = 1")
        self.synced(second)
        self.assertEqual(900, second.count("t"))
        self.clean(first.take_servers())
        self.assert_rows(wanted, first.dump("t"), "t elsewhere and taken from the server")
        self.assert_in_sync(first, second)

    def test_many_inferred_rewrites_wait_for_a_confirmation(self) -> None:
        first, second = self.bare(3000)
        first.run("UPDATE t SET a = upper(a)")
        told = self.not_crashed(first.sync())
        self.assertEqual(3, told.code, f"3,000 rewrites that nobody captured went out: {told}")
        self.assert_counted(first)
        with self.subTest("I13"):
            self.assertEqual(3000, self.counts(first).outgoing + self.counts(first).stalled)
        self.synced(second)
        self.assertEqual(0, second.count("t", "a = upper(a)"))
        self.clean(first.confirm())
        self.synced(second)
        self.assert_in_sync(first, second)
        self.assertEqual(3000, second.count("t", "a = upper(a)"))

    def test_captured_deletes_are_never_held_up(self) -> None:
        first, second = self.pair(SCHEMA, filled(900), TABLES)
        first.run("DELETE FROM t WHERE b >= 10")
        self.synced(first, second)
        self.assertEqual(10, second.count("t"))

    def test_captured_edits_beside_inferred_ones_that_wait(self) -> None:
        first, second = self.bare(900)
        first.run("DELETE FROM t WHERE b >= 100")
        self.not_crashed(first.sync())
        first.script("INSERT INTO u VALUES('u1', 1); INSERT INTO t VALUES('new', 'n', 1)")
        first.sync()
        self.synced(second)
        self.assertEqual([1, 1], [second.count("u"), second.count("t", "id = 'new'")], "a brake held up an insert")
        self.assertEqual(901, second.count("t"))

    def test_what_waits_survives_another_rebuild_and_is_still_counted(self) -> None:
        first, second = self.bare(900)
        first.script("DELETE FROM t WHERE b >= 100")
        self.assertEqual(3, self.not_crashed(first.sync()).code)
        first.script(rebuild("t", "id TEXT PRIMARY KEY, a TEXT, b INTEGER", "id, a, b"))
        first.run("UPDATE t SET a = 'edited' WHERE b = 1")
        self.assert_counted(first)
        self.assertEqual(3, self.not_crashed(first.sync()).code)
        self.synced(second)
        self.assertEqual([900, 1], [second.count("t"), second.count("t", "a = 'edited'")])
        with self.subTest("I13"):
            self.assertEqual(800, self.counts(first).deletes)
        self.clean(first.confirm())
        self.synced(second)
        self.assert_in_sync(first, second)
        self.assertEqual(100, second.count("t"))

    def test_what_waits_and_is_changed_elsewhere_meanwhile(self) -> None:
        first, second = self.bare(900)
        first.script("DELETE FROM t WHERE b >= 100")
        self.assertEqual(3, self.not_crashed(first.sync()).code)
        second.run("UPDATE t SET a = 'theirs' WHERE b BETWEEN 150 AND 159")
        self.synced(second)
        self.not_crashed(first.sync())
        self.assert_counted(first)
        self.not_crashed(first.confirm())
        self.quiesced(second, first)
        self.assertEqual([], second.query("SELECT id FROM t WHERE b >= 100 AND a <> 'theirs'"))
        kept = second.count("t", "a = 'theirs'")
        listed = [conflict for app in (first, second) for conflict in table_status.conflicts(app.status().json, "t")]
        self.assertEqual(10, kept + len({conflict["record"] for conflict in listed}), "edits went without a conflict")

    def test_rows_written_again_while_their_deletes_wait(self) -> None:
        first, second = self.bare(900)
        first.script("DELETE FROM t WHERE b >= 100")
        self.assertEqual(3, self.not_crashed(first.sync()).code)
        first.run("INSERT INTO t VALUES('r00500', 'back', 500)")
        self.assert_counted(first)
        self.not_crashed(first.sync())
        self.assert_counted(first)
        self.not_crashed(first.confirm())
        self.quiesced(second, first)
        self.assertEqual([(101,), (1,)], [(second.count("t"),), (second.count("t", "a = 'back'"),)])
        self.assert_in_sync(first, second)


class ServerBrakeTests(FileTestCase):
    config = "entities: {t: {brake: true}}\n"

    def test_many_deletes_are_refused_until_they_are_confirmed(self) -> None:
        """100 rows within an hour; u has no brake."""
        schema = SCHEMA.replace("u(id TEXT PRIMARY KEY, v)", "u(id TEXT PRIMARY KEY, a TEXT, b INTEGER)")
        first, second = self.pair(schema, filled(400) + "; INSERT INTO u SELECT * FROM t", TABLES)
        first.script("DELETE FROM t WHERE b >= 100; DELETE FROM u WHERE b >= 100; INSERT INTO t VALUES('new', 'n', -1)")
        told = self.not_crashed(first.sync())
        self.assertEqual(3, told.code, f"{told}")
        self.assert_counted(first)
        with self.subTest("I13"):
            self.assertEqual(200, self.counts(first).deletes)
        self.assertEqual({"delete_brake"}, {refusal["code"] for refusal in first.refusals()})
        self.synced(second)
        self.assertEqual([301, 100], [second.count("t"), second.count("u")])
        self.assertIn(table_status.CONFIRM, first.sync(as_json=False).text, "the way on is not told")
        self.clean(first.confirm())
        self.synced(second)
        self.assert_in_sync(first, second)
        self.assertEqual(101, second.count("t"))
