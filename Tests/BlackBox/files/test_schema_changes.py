"""Tables that are rebuilt, renamed, dropped and restored under the command: what nobody captured is found and sent.

Each test says by its name what was lost, or would be."""

from __future__ import annotations


from files import table_status
from files.app_file import AppFile
from files.file_test_case import SCHEMA, FileTestCase, filled, rebuild

WITH_C = ("id TEXT PRIMARY KEY, a TEXT, b INTEGER, c TEXT", "id, a, b, NULL")
ALIKE = ("id TEXT PRIMARY KEY, a TEXT, b INTEGER", "id, a, b")


class RebuildTests(FileTestCase):
    def grown(self, rows: int = 40) -> tuple[AppFile, AppFile]:
        return self.pair(SCHEMA, filled(rows) + "; INSERT INTO u VALUES('u1', 1)", ("t", "u"))

    def migrated(self, app: AppFile, how: tuple[str, str], where: str = "1", and_then: str = "") -> None:
        app.script(rebuild("t", *how, where) + and_then)
        self.assert_counted(app)

    def arrives(self, first: AppFile, second: AppFile) -> None:
        """What the first one has is everywhere, and nothing else is anywhere."""
        wanted = first.dump("t")
        self.decided(first)
        self.assert_counted(first)
        self.assert_rows(wanted, first.dump("t"), "t before and after the sync")
        self.all_synced(second, first)
        self.assert_rows(wanted, first.dump("t"), "t before and after it was synced again")

    def test_a_rebuild_lost_an_insert_and_a_repair_deleted_it(self) -> None:
        """Finding 1, as it was found."""
        first, second = self.pair(SCHEMA, "INSERT INTO t VALUES('1', 'x', 1), ('2', 'y', 2)", ("t", "u"))
        first.script(
            "CREATE TABLE n(id TEXT PRIMARY KEY, a, c); INSERT INTO n(id, a) SELECT id, a FROM t; DROP TABLE t;"
            "ALTER TABLE n RENAME TO t; INSERT INTO t(id, a) VALUES('3', 'NEW')"
        )
        self.assertIn("t", table_status.names(first.status().json), "t is silently gone from the status")
        self.assert_counted(first)
        first.sync(tables=[])
        first.repair()
        self.assertEqual(3, first.count("t"), "a repair deleted a row that was never sent")
        self.quiesced(first, second)
        self.assertEqual([("NEW",)], second.query("SELECT a FROM t WHERE id = '3'"), "the insert did not arrive")
        self.assertEqual(3, second.count("t"))
        self.assert_counted(first, second)

    def test_the_only_table_of_a_file_is_rebuilt(self) -> None:
        """Nothing was left by which the command knew that anything was synced: exit 0, "not synced yet"."""
        first, second = self.pair("CREATE TABLE t(id TEXT PRIMARY KEY, a TEXT, b INTEGER)", filled(5), ("t",))
        first.script(rebuild("t", *ALIKE) + "; INSERT INTO t VALUES('new', 'n', 1)")
        self.assertEqual({"t"}, table_status.names(first.status().json))
        self.assert_counted(first)
        self.clean(first.sync(tables=[]))
        self.synced(second)
        self.assert_in_sync(first, second)
        second.script(rebuild("t", *ALIKE) + "; UPDATE t SET a = 'edited' WHERE b = 2")
        told = self.not_crashed(second.verify())
        self.assertIn("t", {table["table"] for table in told.json.get("tables", [])}, f"{told}")
        self.quiesced(second, first)
        self.assertEqual("edited", first.one("SELECT a FROM t WHERE b = 2"))

    def test_the_only_table_of_a_file_is_dropped(self) -> None:
        """The same words, as if the file had never been synced."""
        first, second = self.pair("CREATE TABLE t(id TEXT PRIMARY KEY, a TEXT, b INTEGER)", filled(5), ("t",))
        first.script("DROP TABLE t")
        self.assertEqual(["t"], first.status().json["missingTables"])
        self.synced(second)
        self.assertEqual(5, second.count("t"), "a table that was dropped on one device took rows of the other one")

    def test_a_rebuild_is_noticed_by_status_alone(self) -> None:
        first, _ = self.grown()
        self.migrated(first, WITH_C)
        first.run("INSERT INTO t(id, a) VALUES('new', 'n')")
        self.assert_counted(first)
        self.assertGreaterEqual(self.counts(first).outgoing, 1, "a row that nobody compared yet is not outgoing")
        self.assertEqual(3, first.status().code)

    def test_edits_after_a_rebuild_that_adds_a_column(self) -> None:
        first, second = self.grown()
        self.migrated(first, WITH_C)
        first.script(
            "INSERT INTO t VALUES('new', 'n', 1, 'c'); UPDATE t SET a = 'edited', c = 'seen' WHERE id = 'r00003';"
            "DELETE FROM t WHERE id = 'r00005'"
        )
        self.assert_counted(first)
        self.decided(first)
        self.assert_counted(first)
        self.synced(second)
        found = second.query("SELECT id, a FROM t WHERE id IN ('new', 'r00003', 'r00005') ORDER BY 1")
        self.assertEqual([("new", "n"), ("r00003", "edited")], found)
        second.script(rebuild("t", *WITH_C))
        self.decided(second)
        self.all_synced(first, second)
        self.assert_in_sync(first, second)
        self.assertEqual("seen", second.one("SELECT c FROM t WHERE id = 'r00003'"))

    def test_edits_after_a_rebuild_that_drops_a_column(self) -> None:
        first, second = self.grown()
        kept = second.query("SELECT id, b FROM t WHERE id <> 'r00005' ORDER BY 1")
        self.migrated(first, ("id TEXT PRIMARY KEY, a TEXT", "id, a"))
        first.script(
            "INSERT INTO t VALUES('new', 'n'); UPDATE t SET a = 'edited' WHERE id = 'r00003';"
            "DELETE FROM t WHERE id = 'r00005'"
        )
        self.assert_counted(first)
        self.decided(first)
        self.all_synced(second, first)
        self.assertEqual(first.query("SELECT id, a FROM t ORDER BY 1"), second.query("SELECT id, a FROM t ORDER BY 1"))
        self.assertEqual(kept, second.query("SELECT id, b FROM t WHERE id <> 'new' ORDER BY 1"), "column b was wiped")
        self.assert_all_confirmed(first, second)

    def test_what_the_migration_itself_wrote(self) -> None:
        first, second = self.grown(20)
        self.migrated(first, ("id TEXT PRIMARY KEY, a TEXT, b INTEGER", "id, upper(a), b + 1"))
        self.arrives(first, second)
        self.assertEqual("OLD 7", second.one("SELECT a FROM t WHERE id = 'r00007'"), "the migration's work is undone")
        self.assert_in_sync(first, second)

    def test_rows_that_the_migration_leaves_out(self) -> None:
        first, second = self.grown(20)
        self.migrated(first, ALIKE, "b <> 4")
        self.arrives(first, second)
        self.assertEqual(19, second.count("t"), "a row that the migration removed lives on")
        self.assert_in_sync(first, second)

    def test_a_rebuild_to_the_same_columns(self) -> None:
        """A new CHECK, another order: nothing about the columns tells that the triggers are gone."""
        first, second = self.grown()
        self.migrated(first, ("b INTEGER CHECK (b < 10000), id TEXT PRIMARY KEY, a TEXT", "b, id, a"))
        first.script("UPDATE t SET b = 77 WHERE id = 'r00001'; INSERT INTO t(id, a) VALUES('new', 'n')")
        self.arrives(first, second)
        self.assert_in_sync(first, second)

    def test_a_rebuild_without_rowid_and_twice_before_a_sync(self) -> None:
        first, second = self.grown()
        first.script(
            "CREATE TABLE n(id TEXT PRIMARY KEY NOT NULL, a TEXT, b INTEGER) WITHOUT ROWID;"
            "INSERT INTO n SELECT id, a, b FROM t; DROP TABLE t; ALTER TABLE n RENAME TO t;"
            "UPDATE t SET a = 'between' WHERE id = 'r00001'"
        )
        self.migrated(first, ALIKE, and_then="; INSERT OR REPLACE INTO t VALUES('r00002', 'replaced', 2)")
        self.arrives(first, second)
        self.assertEqual("between", second.one("SELECT a FROM t WHERE id = 'r00001'"))
        self.assert_in_sync(first, second)

    def test_edits_captured_before_and_made_after_a_rebuild_of_one_row(self) -> None:
        first, second = self.grown()
        first.script(
            "UPDATE t SET a = 'captured' WHERE id IN ('r00001', 'r00002'); INSERT INTO t VALUES('new', 'n', 1);"
            "DELETE FROM t WHERE id IN ('r00003', 'r00004')"
        )
        self.migrated(first, WITH_C)
        first.script(
            "UPDATE t SET a = 'later' WHERE id = 'r00002'; UPDATE t SET b = 9 WHERE id = 'new';"
            "INSERT INTO t(id, a) VALUES('r00004', 'again')"
        )
        self.assert_counted(first)
        self.decided(first)
        self.synced(second)
        found = second.query("SELECT id, a, b FROM t WHERE id < 'r00005' ORDER BY 1")
        wanted = first.query("SELECT id, a, b FROM t WHERE id < 'r00005' ORDER BY 1")
        self.assertEqual(wanted, found)
        self.assert_counted(first, second)

    def test_a_rebuild_beside_hundreds_of_edits_elsewhere(self) -> None:
        """Changed on both sides is an open conflict; everything else arrives."""
        first, second = self.grown(600)
        second.run("UPDATE t SET a = 'B' WHERE b BETWEEN 5 AND 404")
        second.run("DELETE FROM t WHERE b BETWEEN 500 AND 519")
        self.synced(second)
        first.script(
            rebuild("t", "id TEXT PRIMARY KEY, a TEXT, b INTEGER", "id, CASE WHEN b < 10 THEN 'A' ELSE a END, b")
            + "; INSERT INTO t VALUES('new', 'n', -1); UPDATE t SET a = 'A' WHERE b = 599"
        )
        self.assert_counted(first)
        self.decided(first)
        self.assert_counted(first)
        both = {f"r{n:05d}" for n in range(5, 10)}
        told = first.status()
        self.assertEqual(both, table_status.open_conflicts(told.json, "t"), f"{told}")
        self.quiesced(second, first)
        apart = "a FROM t WHERE id NOT IN ('r00005', 'r00006', 'r00007', 'r00008', 'r00009') ORDER BY id"
        self.assertEqual(first.query(f"SELECT id, {apart}"), second.query(f"SELECT id, {apart}"))
        values: dict[str, str] = dict(second.query("SELECT id, a FROM t"))
        self.assertEqual(581, len(values))
        ours = [values.get(key) for key in ("r00000", "r00004", "r00599", "new")]
        self.assertEqual(["A", "A", "A", "n"], ours, "the migration's own rows did not arrive")
        self.assertEqual({"B"}, {values[f"r{n:05d}"] for n in range(5, 405)}, "the other device's edits are lost")

    def test_a_rebuild_that_is_found_after_the_digests_window(self) -> None:
        """The server has swept what was replaced, so it has no digest of the state that this device had."""
        first, second = self.grown(300)
        for value in ("B", "C"):
            second.run("UPDATE t SET a = ? WHERE b BETWEEN 100 AND 199", value)
            self.synced(second)
        self.migrated(first, WITH_C)
        first.script(
            "UPDATE t SET a = 'A' WHERE b < 5; INSERT INTO t(id, a) VALUES('new', 'n'); DELETE FROM t WHERE b = 250"
        )
        self.age_store()
        self.decided(first)
        self.assert_counted(first)
        self.quiesced(second, first)
        values: dict[str, str] = dict(second.query("SELECT id, a FROM t"))
        self.assertEqual(300, len(values))
        self.assertEqual(["A", "A", "n"], [values.get(key) for key in ("r00000", "r00004", "new")])
        self.assertEqual({"C"}, {values[f"r{n:05d}"] for n in range(100, 200)})
        self.assertEqual(set(), table_status.open_conflicts(first.status().json, "t"))
        self.assertEqual(sorted(values.items()), first.query("SELECT id, a FROM t ORDER BY 1"))

    def test_a_repair_right_after_a_rebuild(self) -> None:
        """Not one sync between them: what may be unsent stays."""
        first, second = self.grown()
        self.migrated(first, WITH_C)
        first.script("INSERT INTO t(id, a) VALUES('new', 'n'); UPDATE t SET a = 'edited' WHERE id = 'r00003'")
        wanted = first.dump("t")
        self.not_crashed(first.repair())
        self.assert_rows(wanted, first.dump("t"), "t before and after a repair")
        self.assert_counted(first)
        self.all_synced(first, second)
        self.assertEqual(first.query("SELECT id, a FROM t ORDER BY 1"), second.query("SELECT id, a FROM t ORDER BY 1"))

    def test_a_migration_on_both_devices_is_no_conflict(self) -> None:
        """Both apps are updated and do the same to their rows."""
        first, second = self.grown(30)
        upper = rebuild("t", "id TEXT PRIMARY KEY, a TEXT, b INTEGER", "id, upper(a), b")
        first.script(upper)
        second.script(upper + "; UPDATE t SET a = 'mine' WHERE id = 'r00009'")
        self.decided(first)
        self.decided(second)
        self.quiesced(first, second)
        for app in (first, second):
            self.assertEqual(set(), table_status.open_conflicts(app.status().json, "t") - {"r00009"})
        self.assertEqual("OLD 8", first.one("SELECT a FROM t WHERE id = 'r00008'"))
        self.assert_counted(first, second)

    def test_values_of_every_type_after_a_rebuild(self) -> None:
        """Comparing must not take 1 for 1.0, nor -0.0 for 0.0, nor an edit for none."""
        first, second = self.grown(5)
        first.script(
            "INSERT INTO u VALUES('int', 1), ('real', 1.5), ('zero', -0.0), ('text', '1'), ('blob', x'00ff'),"
            " ('null', NULL), ('inf', 9e999), ('max', 9223372036854775807), ('nul', 'a' || char(0) || 'b')"
        )
        self.all_synced(first, second)
        before = second.dump("u")
        first.script(rebuild("u", "id TEXT PRIMARY KEY, v", "id, v"))
        told = self.decided(first)
        self.assertEqual(0, told.json.get("pushed"), f"rows that nobody changed were sent: {told}")
        self.synced(second)
        self.assert_rows(before, second.dump("u"), "u before and after")
        first.script(rebuild("u", "id TEXT PRIMARY KEY, v", "id, CASE id WHEN 'int' THEN 1.0 ELSE v END"))
        self.decided(first)
        self.synced(second)
        self.assertEqual("real", second.one("SELECT typeof(v) FROM u WHERE id = 'int'"), "1 was taken for 1.0")
