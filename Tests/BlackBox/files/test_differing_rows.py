"""Rows that differ from the server's for a reason are no edits, whatever happens to the table: values that a column
changes, columns that only others know, rows that are quarantined, tables that travel one way."""

from __future__ import annotations


from files.app_file import AppFile
from files.file_test_case import SCHEMA, FileTestCase, filled, rebuild

UNTYPED = "CREATE TABLE t(id TEXT PRIMARY KEY, v)"


class ValueTests(FileTestCase):
    def test_a_column_that_changes_values_sends_none_of_them_back(self) -> None:
        """'007' is 7 in an INTEGER column. After a rebuild there it must not look like an edit."""
        first, second = self.app("a", UNTYPED), self.app("b", "CREATE TABLE t(id TEXT PRIMARY KEY, v INTEGER)")
        first.script("INSERT INTO t VALUES('1', '007'), ('2', 2), ('3', 3.0), ('4', '5'), ('5', 'x')")
        wanted = first.dump("t")
        self.synced(first)
        self.quiesced(second)
        self.assert_counted(second)
        second.script(rebuild("t", "id TEXT PRIMARY KEY, v INTEGER", "id, v"))
        self.quiesced(second, first)
        self.assert_rows(wanted, first.dump("t"), "t before and after another device with INTEGER was rebuilt")
        self.not_crashed(second.repair())
        self.quiesced(second, first)
        self.assert_rows(wanted, first.dump("t"), "t before and after another device with INTEGER was repaired")
        second.run("UPDATE t SET v = 8 WHERE id = '1'")
        self.quiesced(second, first)
        self.assertEqual(8, first.one("SELECT v FROM t WHERE id = '1'"), "an edit there did not arrive")

    def test_a_difference_that_cannot_be_repaired_says_why(self) -> None:
        first, second = self.app("a", UNTYPED), self.app("b", "CREATE TABLE t(id TEXT PRIMARY KEY, v INTEGER)")
        first.script("INSERT INTO t VALUES('1', '007')")
        self.synced(first)
        self.quiesced(second)
        told = self.not_crashed(second.verify("--repair", as_json=False))
        if told.code:
            self.assertRegex(told.text, r"\bv\b", f"the column is not named: {told}")
        else:
            self.assertNotIn("1 differ", told.text)

    def test_columns_that_only_others_know_survive_a_rebuild(self) -> None:
        wide = SCHEMA.replace("b INTEGER", "b INTEGER, c TEXT")
        first, second = self.app("a", wide), self.app("b", SCHEMA)
        first.script(filled(20) + "; UPDATE t SET c = 'mine ' || b")
        self.synced(first, second)
        wanted = first.dump("t")
        second.script(rebuild("t", "id TEXT PRIMARY KEY NOT NULL, a TEXT, b INTEGER", "id, a, b"))
        told = self.decided(second)
        self.assertEqual(0, told.json["pushed"], f"{told}")
        second.run("UPDATE t SET a = 'edited' WHERE b = 3")
        self.quiesced(second, first)
        self.assertEqual([("edited", "mine 3")], first.query("SELECT a, c FROM t WHERE b = 3"))
        others = [[row for row in rows if "'r00003'" not in row] for rows in (wanted, first.dump("t"))]
        self.assertEqual(*others)

    def test_quarantined_rows_are_not_deleted_by_a_rebuild(self) -> None:
        refusing = SCHEMA.replace("a TEXT", "a TEXT CHECK (a <> 'bad')")
        first, second = self.app("a", SCHEMA), self.app("b", refusing)
        first.script(filled(10) + "; UPDATE t SET a = 'bad' WHERE b IN (3, 4)")
        self.synced(first)
        self.assertEqual(3, self.not_crashed(second.sync()).code)
        self.assert_counted(second)
        with self.subTest("I13"):
            self.assertEqual([8, 2], [self.counts(second).rows, self.counts(second).quarantined])
        still = "id TEXT PRIMARY KEY, a TEXT CHECK (a <> 'bad'), b INTEGER CHECK (b >= 0)"
        second.script(rebuild("t", still, "id, a, b"))
        self.decided(second)
        self.assert_counted(second)
        self.synced(first)
        self.assertEqual(10, first.count("t"), "rows that were quarantined were deleted everywhere")
        second.script(rebuild("t", "id TEXT PRIMARY KEY, a TEXT, b INTEGER", "id, a, b"))
        self.decided(second)
        self.quiesced(first, second)
        self.assertEqual([10, 10], [first.count("t"), second.count("t")], "room was made, and they did not come")
        self.assert_in_sync(first, second)

    def test_refused_edits_survive_a_rebuild(self) -> None:
        """A row over the limit cannot be sent; it is there, and counted, before and after."""
        first, second = self.pair(UNTYPED, "INSERT INTO t VALUES('1', 'a')")
        first.script("INSERT INTO t VALUES('big', 1); UPDATE t SET v = zeroblob(2000000)")
        self.assertEqual(3, first.sync().code)
        self.assert_counted(first)
        first.script(rebuild("t", "id TEXT PRIMARY KEY, v, w", "id, v, 0"))
        self.assert_counted(first)
        self.assertEqual(3, self.not_crashed(first.sync()).code)
        self.not_crashed(first.repair())
        self.assertEqual([("1", 2000000), ("big", 2000000)], first.query("SELECT id, length(v) FROM t ORDER BY id"))
        self.assert_counted(first)
        first.run("UPDATE t SET v = 'small'")
        self.synced(first, second)
        self.assertEqual([("1", "small"), ("big", "small")], second.query("SELECT id, v FROM t ORDER BY id"))

    def test_keys_that_are_not_utf8_are_counted_one_by_one(self) -> None:
        """Two keys that both show as U+FFFD are two rows; only one was listed."""
        first = self.app("a", UNTYPED)
        first.script("INSERT INTO t VALUES(CAST(x'61ff62' AS TEXT), 1), (CAST(x'61fe62' AS TEXT), 2), ('ok', 3)")
        self.assertEqual(3, first.sync().code)
        self.assert_counted(first)
        with self.subTest("I13"):
            self.assertEqual(2, self.counts(first).unable + self.counts(first).stalled)
        first.run("DELETE FROM t WHERE id <> 'ok'")
        self.synced(first)
        self.assert_all_confirmed(first)

    def test_a_row_that_is_replaced_for_a_second_unique_column(self) -> None:
        """`INSERT OR REPLACE` deletes other rows without a trigger."""
        schema = "CREATE TABLE t(id TEXT PRIMARY KEY, email TEXT UNIQUE, v)"
        first, second = self.pair(schema, "INSERT INTO t VALUES('1', 'x', 'a'), ('2', 'y', 'b'), ('3', 'z', 'c')")
        first.run("INSERT OR REPLACE INTO t VALUES('4', 'x', 'n')")
        first.run("UPDATE OR REPLACE t SET email = 'y' WHERE id = '3'")
        self.assert_counted(first)
        self.all_synced(first, second)
        self.assert_in_sync(first, second)
        self.assertEqual([("3", "y"), ("4", "x")], second.query("SELECT id, email FROM t ORDER BY 1"))

    def test_a_key_column_renamed_stops_nothing_else(self) -> None:
        """ "SQL logic error … tried again by itself", for all tables of the file and for ever."""
        first, second = self.pair(SCHEMA, filled(5) + "; INSERT INTO u VALUES('u', 1)", ("t", "u"))
        first.script("ALTER TABLE t RENAME COLUMN id TO key; UPDATE t SET a = 'edited' WHERE b = 1")
        first.run("UPDATE u SET v = 2")
        told = self.not_crashed(first.sync())
        self.assertNotIn("SQL logic error", told.text)
        self.assert_counted(first)
        self.synced(second)
        self.assertEqual(2, second.one("SELECT v FROM u"), f"another table is held up: {told}")
        second.script("ALTER TABLE t RENAME COLUMN id TO key")
        self.quiesced(first, second)
        self.assertEqual("edited", second.one("SELECT a FROM t WHERE b = 1"))


class DeclaredTests(FileTestCase):
    config = """
entities:
  pulled: {direction: pull}
  pushed: {direction: push}
  logged: {kind: events}
  served: {serverFields: [summary]}
"""
    TABLES = ("pulled", "pushed", "logged", "served")
    SCHEMA = ";".join(f"CREATE TABLE {name}(id TEXT PRIMARY KEY, v TEXT, summary TEXT)" for name in TABLES)

    def rebuilt(self, app: AppFile) -> None:
        for table in self.TABLES:
            app.script(rebuild(table, "id TEXT PRIMARY KEY, v TEXT, summary TEXT, c TEXT", "id, v, summary, NULL"))

    def test_a_rebuild_of_tables_that_travel_one_way(self) -> None:
        first, second = (self.app(name, self.SCHEMA, self.TABLES) for name in "ab")
        for table in ("pushed", "logged", "served"):
            first.script(f"INSERT INTO {table}(id, v) VALUES('1', 'a'), ('2', 'b'), ('3', 'c')")
        self.synced(first, second)
        self.assertEqual([0, 3, 3], [second.count(table) for table in ("pushed", "logged", "served")])
        first.run("DELETE FROM logged WHERE id = '1'")
        self.synced(first)
        self.rebuilt(first)
        first.script("INSERT INTO pushed(id, v) VALUES('4', 'd'); INSERT INTO logged(id, v) VALUES('4', 'd')")
        first.script("DELETE FROM logged WHERE id = '2'; UPDATE served SET v = 'edited' WHERE id = '1'")
        first.run("INSERT INTO pulled(id, v) VALUES('mine', 'x')")
        for app in (first, second):
            self.assert_counted(app)
            self.assertIn(self.not_crashed(app.sync()).code, (0, 3))
        self.quiesced(first, second)
        self.assertEqual(["1", "2", "3", "4"], [key for (key,) in second.query("SELECT id FROM logged ORDER BY 1")])
        self.assertEqual(0, second.count("pulled"), "a row of a table that only comes down was sent")
        self.assertEqual("edited", second.one("SELECT v FROM served WHERE id = '1'"))
        self.assertEqual(["3", "4"], [key for (key,) in first.query("SELECT id FROM logged ORDER BY 1")])
        self.assert_counted(first, second)

    def test_capture_lost_on_events_sends_each_of_them_once(self) -> None:
        first, second = (self.app(name, self.SCHEMA, self.TABLES) for name in "ab")
        first.script("INSERT INTO logged(id, v) VALUES('1', 'a'), ('2', 'b')")
        self.synced(first, second)
        first.drop_capture("logged")
        first.run("INSERT INTO logged(id, v) VALUES('3', 'c')")
        told = self.decided(first)
        self.assertEqual(1, told.json["pushed"], f"{told}")
        self.quiesced(second, first)
        self.assertEqual([("1", "a"), ("2", "b"), ("3", "c")], second.query("SELECT id, v FROM logged ORDER BY id"))
        self.assertEqual([], first.refusals())
        self.assert_counted(first, second)
