"""Capture that goes away: triggers dropped, tables renamed, dropped and restored, columns that come, change and go."""

from __future__ import annotations


from files import table_status
from files.app_file import AppFile, Told, quoted
from files.file_test_case import SCHEMA, FileTestCase, filled, rebuild

TABLES = ("t", "u")


class DroppedTriggerTests(FileTestCase):
    def bare(self, rows: int = 30) -> tuple[AppFile, AppFile]:
        first, second = self.pair(SCHEMA, filled(rows), TABLES)
        self.assertTrue(first.drop_capture("t"), "no triggers were found on t")
        return first, second

    def test_edits_while_the_triggers_were_gone(self) -> None:
        first, second = self.bare()
        first.script(
            "INSERT INTO t VALUES('new', 'n', 1); UPDATE t SET a = 'edited' WHERE id = 'r00003';"
            "DELETE FROM t WHERE id = 'r00005'; INSERT OR REPLACE INTO t VALUES('r00006', 'replaced', 6)"
        )
        wanted = first.dump("t")
        self.assert_counted(first)
        self.decided(first)
        self.assert_counted(first)
        self.assert_rows(wanted, first.dump("t"), "t before and after the sync")
        self.all_synced(second, first)
        self.assert_rows(wanted, second.dump("t"), "t here and elsewhere")
        self.assert_in_sync(first, second)

    def test_each_trigger_alone(self) -> None:
        first, second = self.pair(SCHEMA, filled(30), TABLES)
        for n, name in enumerate(first.capture("t")):
            first.run(f"DROP TRIGGER {quoted(name)}")
            first.script(
                f"INSERT INTO t VALUES('new{n}', 'n', {n}); UPDATE t SET a = 'edit {n}' WHERE id = 'r0000{n}';"
                f"DELETE FROM t WHERE id = 'r0001{n}'"
            )
            wanted = first.dump("t")
            self.assert_counted(first)
            self.decided(first)
            self.synced(second)
            self.assert_rows(wanted, second.dump("t"), f"without {name}, t here and elsewhere")

    def test_a_row_inserted_unseen_and_then_edited(self) -> None:
        """One trigger is gone, or `status` puts them back in between: the edit is of a row that nobody knows. It was
        refused as `record_deleted`, so that the whole row stayed here, and the row counted as confirmed."""
        first, second = self.pair(SCHEMA, filled(5), TABLES)
        (insert,) = [name for name in first.capture("t") if name.startswith("tidemark_capture_insert_")]
        first.run(f"DROP TRIGGER {quoted(insert)}")
        first.script("INSERT INTO t VALUES('x', 'n', 1), ('y', 'n', 1); UPDATE t SET a = 'edited' WHERE id = 'x'")
        first.run("DELETE FROM t WHERE id = 'y'")
        self.assert_counted(first)
        self.synced(first, second)
        self.assertEqual([("x", "edited")], second.query("SELECT id, a FROM t WHERE id IN ('x', 'y')"))
        first.drop_capture("t")
        first.script("INSERT INTO t VALUES('v', 'n', 1), ('w', 'n', 1); DELETE FROM t WHERE id = 'r00001'")
        self.assert_counted(first)
        first.script("UPDATE t SET a = 'edited' WHERE id = 'v'; DELETE FROM t WHERE id = 'w'")
        first.run("INSERT INTO t VALUES('r00001', 'again', 1)")
        self.assert_counted(first)
        self.synced(first, second)
        self.assert_in_sync(first, second)
        found = second.query("SELECT id, a FROM t WHERE id IN ('v', 'w', 'r00001') ORDER BY 1")
        self.assertEqual([("r00001", "again"), ("v", "edited")], found)

    def test_a_row_inserted_unseen_and_edited_before_capture_is_lost_again(self) -> None:
        """The second loss forgot that nobody knows the row: its edit was refused, and the row stayed here."""
        first, second = self.pair(SCHEMA, filled(5), TABLES)
        same = rebuild("t", "id TEXT PRIMARY KEY, a TEXT, b INTEGER", "id, a, b")
        first.script(same + "; INSERT INTO t VALUES('x', 'n', 1), ('y', 'n', 1), ('z', 'n', 1)")
        self.assert_counted(first)
        first.script("UPDATE t SET a = 'edited' WHERE id = 'x'; UPDATE t SET id = 'yy' WHERE id = 'y'")
        first.run("DELETE FROM t WHERE id = 'z'")
        self.assert_counted(first)
        first.script(same + "; UPDATE t SET a = 'again' WHERE id = 'x'")
        self.assert_counted(first)
        wanted = first.dump("t")
        self.synced(first, second)
        self.assert_rows(wanted, second.dump("t"), "t here and elsewhere")
        self.assert_in_sync(first, second)

    def test_triggers_dropped_for_a_bulk_load_and_made_again(self) -> None:
        """As tools do for speed: they keep the triggers' SQL, and afterwards everything looks as before."""
        first, second = self.pair(SCHEMA, filled(30), TABLES)
        again = self.triggers(first)
        drop = ";".join(f"DROP TRIGGER {quoted(name)}" for name in first.capture("t"))
        first.script(
            f"{drop}; INSERT INTO t VALUES('new', 'n', 1); UPDATE t SET a = 'edited' WHERE b = 3;"
            f"DELETE FROM t WHERE b = 5; {again}"
        )
        wanted = first.dump("t")
        self.assert_counted(first)
        self.decided(first)
        self.synced(second)
        self.assert_rows(wanted, second.dump("t"), "t here and elsewhere")
        self.assert_in_sync(first, second)

    def test_writes_with_triggers_switched_off(self) -> None:
        """By another program, for its connection: nothing in the file tells, until somebody verifies."""
        first, second = self.pair(SCHEMA, filled(30), TABLES)
        done = first.shell(
            ".dbconfig enable_trigger off\n"
            "INSERT INTO t VALUES('new', 'n', 1); UPDATE t SET a = 'edited' WHERE b = 3;"
        )
        self.assertEqual([0, 31], [done.returncode, first.count("t")], done.stderr)
        wanted = first.dump("t")
        self.assertEqual(3, self.not_crashed(first.verify()).code)
        self.not_crashed(first.repair())
        # What the server did not know is sent. A value that it has otherwise gives way, and stays in the list.
        self.assertEqual(1, first.count("t", "a = 'n'"), f"{wanted}")
        kept = [field for meeting in first.status().json["conflicts"] for field in meeting["fields"]]
        self.assertEqual(["'edited'"], [field["mine"] for field in kept if field["name"] == "a"])
        self.quiesced(first, second)
        self.assertEqual(1, second.count("t", "a = 'n'"))
        self.assert_in_sync(first, second)

    def test_a_repair_while_the_triggers_were_gone(self) -> None:
        """Finding 1's last step: what the server does not know is sent, not taken away."""
        first, second = self.bare()
        first.script("INSERT INTO t VALUES('new', 'n', 1); UPDATE t SET a = 'edited' WHERE id = 'r00003'")
        wanted = first.dump("t")
        self.not_crashed(first.repair())
        self.assert_rows(wanted, first.dump("t"), "t before and after a repair")
        self.all_synced(first, second)
        self.assert_rows(wanted, second.dump("t"), "t here and elsewhere")

    def test_verify_tells_what_the_server_does_not_know(self) -> None:
        first, _ = self.bare()
        first.run("INSERT INTO t VALUES('new', 'n', 1)")
        told = self.not_crashed(first.verify())
        self.assertEqual(1, first.count("t", "id = 'new'"))
        said = told.code == 3 or told.json.get("differing") or self.server_knows(first, "new")
        self.assertTrue(said, f"an insert that nobody captured was neither sent nor told: {told}")

    def server_knows(self, app: AppFile, record: str) -> bool:
        other = self.app("asks", SCHEMA, TABLES)
        self.synced(other)
        return other.count("t", f"id = '{record}'") == 1

    def test_discard_local_is_a_word_of_its_own(self) -> None:
        first, second = self.bare()
        before = second.dump("t")
        first.script(
            "INSERT INTO t VALUES('new', 'n', 1); UPDATE t SET a = 'edited' WHERE id = 'r00003';"
            "DELETE FROM t WHERE id = 'r00005'"
        )
        self.clean(first.discard_local())
        self.assert_rows(before, first.dump("t"), "t of the server and after local changes were discarded")
        self.all_synced(second, first)
        self.assert_rows(before, second.dump("t"), "t before and after it was discarded elsewhere")


class RenamedTableTests(FileTestCase):
    def test_a_table_renamed_with_a_new_row(self) -> None:
        """Finding 14: one pending edit, exit 3, for ever."""
        first, second = self.pair(SCHEMA, filled(10), TABLES)
        first.script("INSERT INTO t VALUES('new', 'n', 1); ALTER TABLE t RENAME TO t2")
        first.run("UPDATE t2 SET a = 'edited' WHERE id = 'r00003'")
        told = self.not_crashed(first.sync(tables=[]))
        self.assertEqual(11, first.count("t2"))
        self.assert_told(told, first, "t")
        for app in (first, second):
            app.tables = ["t2", "u"]
        second.script("DROP TABLE t; CREATE TABLE t2(id TEXT PRIMARY KEY, a TEXT, b INTEGER)")
        self.quiesced(first, second)
        self.assert_alike(first, second)
        self.assertEqual([("r00003", "edited")], second.query("SELECT id, a FROM t2 WHERE a = 'edited'"))
        self.assertEqual(1, second.count("t2", "id = 'new'"), "the row that was new before the rename is lost")
        waits = table_status.waits(first.status().json)
        self.assertEqual(0, waits, "edits wait for a table that is not there any more")
        self.assert_counted(first, second)

    def assert_told(self, told: Told, app: AppFile, table: str) -> None:
        for each in (told, app.sync(tables=[], as_json=False), app.status(as_json=False)):
            self.assertRegex(each.text, rf"\b{table}\b", f"that {table} vanished is not told: {each}")

    def test_a_table_dropped_is_told_and_its_rows_stay_elsewhere(self) -> None:
        first, second = self.pair(SCHEMA, filled(10), TABLES)
        first.script("UPDATE t SET a = 'edited' WHERE id = 'r00001'; INSERT INTO u VALUES('u1', 1); DROP TABLE t")
        told = self.not_crashed(first.sync(tables=[]))
        self.assert_told(told, first, "t")
        self.synced(second)
        self.assertEqual([10, 1], [second.count("t"), second.count("u")])
        self.assert_counted(first, second)

    def test_a_table_dropped_and_made_anew_is_filled_again(self) -> None:
        """A drop is not the deletion of every row for everybody."""
        first, second = self.pair(SCHEMA, filled(300), TABLES)
        first.script("DROP TABLE t")
        self.not_crashed(first.sync(tables=[]))
        first.script("CREATE TABLE t(id TEXT PRIMARY KEY, a TEXT, b INTEGER); INSERT INTO t VALUES('new', 'n', 1)")
        self.not_crashed(first.sync())
        self.synced(second)
        self.assertEqual(301, second.count("t"), "rows were deleted everywhere because a table was dropped here")
        self.assert_counted(first)

    def test_a_table_made_anew_under_another_key(self) -> None:
        first, second = self.pair(SCHEMA, filled(5), TABLES)
        first.script("DROP TABLE t; CREATE TABLE t(id INTEGER PRIMARY KEY, a TEXT, b INTEGER)")
        first.run("INSERT INTO t VALUES(1, 'other', 1)")
        self.not_crashed(first.sync())
        self.not_crashed(first.status())
        self.synced(second)
        self.assertGreaterEqual(second.count("t"), 5)
        self.assertEqual(1, first.count("t", "a = 'other'"), "a row of the new table is gone")


class RestoredTableTests(FileTestCase):
    def test_a_table_restored_from_a_copy(self) -> None:
        """I6: rows that were deleted elsewhere since do not come back by themselves; what is kept is to be seen."""
        first, second = self.pair(SCHEMA, filled(20), TABLES)
        first.script("CREATE TABLE copy AS SELECT * FROM t")
        second.script("DELETE FROM t WHERE b IN (5, 6); UPDATE t SET a = 'newer' WHERE b = 7")
        self.synced(second, first)
        first.script(
            "DROP TABLE t; CREATE TABLE t(id TEXT PRIMARY KEY, a TEXT, b INTEGER); INSERT INTO t SELECT * FROM copy;"
            "INSERT INTO t VALUES('new', 'n', 1)"
        )
        self.assert_counted(first)
        self.decided(first)
        self.quiesced(second, first)
        self.assertEqual(0, second.count("t", "b IN (5, 6)"), "rows that were deleted came back by themselves (I6)")
        self.assertEqual(1, second.count("t", "id = 'new'"), "a new row was taken for an old one")
        apart = "SELECT id, a, b FROM t WHERE b NOT IN (5, 6) ORDER BY id"
        self.assertEqual(first.query(apart), second.query(apart))
        self.assert_counted(first, second)
        with self.subTest("I13"):
            counts, orphaned = self.counts(first), table_status.orphaned(first.status().json)
            self.assertEqual(2, counts.stalled + counts.quarantined + orphaned, f"two rows are out of sight: {counts}")

    def test_a_table_restored_with_its_triggers(self) -> None:
        """All that belongs to a table comes from a backup, capture triggers too: they stand, and saw nothing."""
        first, second = self.pair(SCHEMA, filled(20), TABLES)
        dumped = first.shell(".dump t").stdout + self.triggers(first)
        self.assertIn("tidemark", dumped)
        second.script("DELETE FROM t WHERE b = 5; UPDATE t SET a = 'newer' WHERE b = 7")
        first.run("UPDATE t SET a = 'mine' WHERE b = 9")
        self.synced(first, second, first)
        first.run("DROP TABLE t")
        done = first.shell(dumped.replace("INSERT INTO t VALUES('r00003'", "INSERT INTO t VALUES('new'"))
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertEqual(20, first.count("t"))
        self.assert_counted(first)
        self.decided(first)
        self.quiesced(second, first)
        found = [second.count("t", where) for where in ("b = 5", "id = 'new'", "id = 'r00003'")]
        self.assertEqual([0, 1, 0], found, "the deleted, the new and the missing row")
        apart = "SELECT id, a, b FROM t WHERE b <> 5 ORDER BY id"
        self.assertEqual(first.query(apart), second.query(apart))
        self.assert_counted(first, second)

    def test_a_file_restored_from_a_copy(self) -> None:
        first, second = self.pair(SCHEMA, filled(20), TABLES)
        copy = first.path.read_bytes()
        first.run("UPDATE t SET a = 'mine' WHERE b = 3")
        second.run("DELETE FROM t WHERE b IN (5, 6)")
        self.synced(first, second, first)
        first.path.write_bytes(copy)
        first.script("INSERT INTO t VALUES('new', 'n', 1); UPDATE t SET a = 'later' WHERE b IN (3, 6)")
        self.quiesced(first, second)
        self.assertEqual([("later",)], second.query("SELECT a FROM t WHERE b = 3"))
        self.assertEqual([0, 1], [second.count("t", "b = 5"), second.count("t", "id = 'new'")])
        self.assert_counted(first, second)


class ColumnTests(FileTestCase):
    def test_a_column_renamed(self) -> None:
        first, second = self.pair(SCHEMA, filled(10), TABLES)
        for app in (first, second):
            app.script("ALTER TABLE t RENAME COLUMN a TO title")
        first.script("UPDATE t SET title = 'edited' WHERE id = 'r00001'; INSERT INTO t VALUES('new', 'n', 1)")
        self.assert_counted(first)
        self.all_synced(first, second)
        self.assert_in_sync(first, second)
        self.assertEqual([("edited",)], second.query("SELECT title FROM t WHERE id = 'r00001'"))

    def test_a_column_added_and_written_at_once(self) -> None:
        """Capture knows nothing of it yet."""
        first, second = self.pair(SCHEMA, filled(10), TABLES)
        first.script(
            "ALTER TABLE t ADD COLUMN c TEXT DEFAULT 'd'; UPDATE t SET c = 'seen' WHERE id = 'r00001';"
            "INSERT INTO t VALUES('new', 'n', 1, 'c'); UPDATE t SET a = 'x', c = 'y' WHERE id = 'r00002'"
        )
        self.assert_counted(first)
        self.synced(first, second)
        second.script("ALTER TABLE t ADD COLUMN c TEXT DEFAULT 'd'")
        self.all_synced(second, first)
        found = second.query("SELECT id, c FROM t WHERE c <> 'd' ORDER BY 1")
        self.assertEqual([("new", "c"), ("r00001", "seen"), ("r00002", "y")], found)
        self.assert_in_sync(first, second)

    def test_a_column_dropped(self) -> None:
        """SQLite may refuse it while triggers name the column; then whoever drops it drops them, too."""
        first, second = self.pair(SCHEMA, filled(10), TABLES)
        if first.shell("ALTER TABLE t DROP COLUMN b").returncode:
            first.drop_capture("t")
            done = first.shell("ALTER TABLE t DROP COLUMN b")
            self.assertEqual(0, done.returncode, done.stderr)
        first.script("UPDATE t SET a = 'edited' WHERE id = 'r00001'; INSERT INTO t VALUES('new', 'n')")
        self.assert_counted(first)
        self.decided(first)
        self.all_synced(second, first)
        self.assertEqual(first.query("SELECT id, a FROM t ORDER BY 1"), second.query("SELECT id, a FROM t ORDER BY 1"))
        self.assertEqual(list(range(10)), [b for (b,) in second.query("SELECT b FROM t WHERE b >= 0 ORDER BY 1")])
        self.assert_all_confirmed(first, second)

    def test_a_column_that_goes_with_a_rebuild_and_comes_back_with_another_meaning(self) -> None:
        first, second = self.pair(SCHEMA, filled(5), TABLES)
        first.script(rebuild("t", "id TEXT PRIMARY KEY, a TEXT", "id, a"))
        self.decided(first)
        first.script(rebuild("t", "id TEXT PRIMARY KEY, a TEXT, b INTEGER DEFAULT -1", "id, a, -1"))
        self.not_crashed(first.sync())
        self.quiesced(first, second)
        self.assert_alike(first, second)
        self.assert_counted(first, second)
