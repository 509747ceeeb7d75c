"""Rows whose key cannot travel, and tables with names that nobody here would choose."""

from __future__ import annotations

from collections.abc import Sequence

from files import table_status
from files.app_file import AppFile, quoted
from files.file_test_case import FileTestCase
from support.tokens import mint

NULL_KEYS = "CREATE TABLE t(k TEXT PRIMARY KEY, v TEXT)"
COMPOSITE = "CREATE TABLE t(k TEXT, n TEXT, v TEXT, PRIMARY KEY (k, n))"
ODD = {
    "empty": "",
    "tab": "a\tb",
    "line feed": "a\nb",
    "nul": "a\0b",
    "escape": "\x1b[31m",
    "long": "x" * 129,
    "longer": "ü" * 4000,
    "blank": " ",
    "quotes": "'\"\\",
    "bytes": "\u202e\ufeff\U0001f600",
}


class UntransportableKeyTests(FileTestCase):
    """Keys that are NULL never travel; the others may, or are counted."""

    def mixed(self) -> tuple[AppFile, AppFile]:
        first, second = self.app("a", NULL_KEYS), self.app("b", NULL_KEYS)
        first.script("INSERT INTO t VALUES(NULL, 'n1'), (NULL, 'n2'), ('ok', '1')")
        return first, second

    def assert_unable(self, app: AppFile, unable: int) -> None:
        self.assert_counted(app)
        with self.subTest("I13", app=app.path.name):
            counts = self.counts(app)
            self.assertEqual(unable, counts.unable + counts.stalled, f"{counts}")
            self.assertEqual(3 if unable else 0, app.status().code)

    def test_rows_with_null_keys_are_counted(self) -> None:
        """Finding 3: 22,650 rows of proj.db were not sent, exit 0, and nothing was said."""
        first, second = self.mixed()
        told = first.sync()
        self.assert_unable(first, 2)
        self.assertEqual(3, told.code, f"rows that cannot travel are passed over in silence: {told}")
        self.assertEqual(3, first.verify().code)
        plain = first.status(as_json=False)
        self.assertRegex(plain.text, r"(?i)null", f"the reason is not told: {plain}")
        self.synced(second)
        self.assertEqual([("ok", "1")], second.query("SELECT * FROM t"))
        self.assert_unable(second, 0)

    def test_null_keys_written_after_the_first_sync(self) -> None:
        first, second = self.mixed()
        first.sync()
        steps = [
            ("INSERT INTO t VALUES(NULL, 'n3')", 3),
            ("UPDATE t SET v = 'edited' WHERE v = 'n1'", 3),
            ("UPDATE t SET k = 'named' WHERE v = 'n2'", 2),
            ("UPDATE t SET k = NULL WHERE k = 'ok'", 3),
            ("DELETE FROM t WHERE v = 'n3'", 2),
            ("DELETE FROM t WHERE v = 'edited'", 1),
        ]
        for sql, unable in steps:
            first.run(sql)
            self.assert_counted(first)
            self.assertIn(first.sync().code, (0, 3))
            self.assert_unable(first, unable)
            waits = table_status.waits(first.status().json)
            self.assertEqual(0, waits, f"{waits} edits wait for ever after {sql}")
        self.synced(second)
        self.assertEqual([("named", "n2")], second.query("SELECT * FROM t"))
        first.run("DELETE FROM t WHERE k IS NULL")
        self.synced(first)
        self.assert_in_sync(first, second)

    def test_a_repair_and_null_keys(self) -> None:
        first, _ = self.mixed()
        first.sync()
        for _ in range(2):
            self.not_crashed(first.repair())
            self.assertEqual(3, first.count("t"), "a repair took away rows that cannot travel")
        self.assert_unable(first, 2)

    def test_a_scope_lost_and_regained(self) -> None:
        """Finding 2: the row was gone, and was not orphaned."""
        first, second = self.mixed()
        first.sync()
        first.run("UPDATE t SET v = 'unsent' WHERE k = 'ok'")
        other = mint(self.server.secret, first.sub, {"elsewhere": "rw"})
        lost = self.not_crashed(first.sync(token=other))
        self.assertNotEqual(0, lost.code)
        self.assertEqual(2, first.count("t", "k IS NULL"), f"rows that cannot travel went with the scope: {lost}")
        self.assert_counted(first)
        plain = first.status(as_json=False)
        self.assertIn(self.scope, plain.text)
        self.assertRegex(plain.text, r"(?i)access|grant|lost", f"the lost access is not told: {plain}")
        first.sync()
        self.assertEqual([(None, "n1"), (None, "n2"), ("ok", "unsent")], first.query("SELECT * FROM t ORDER BY k, v"))
        self.assert_unable(first, 2)
        self.synced(second)
        self.assertEqual([("ok", "unsent")], second.query("SELECT * FROM t"))

    def test_a_composite_key_with_a_null_in_it(self) -> None:
        first, second = self.app("a", COMPOSITE), self.app("b", COMPOSITE)
        first.script("INSERT INTO t VALUES('a', NULL, '1'), (NULL, 'b', '2'), (NULL, NULL, '3'), ('a', '', '4')")
        first.sync()
        self.assert_counted(first)
        with self.subTest("I13"):
            self.assertGreaterEqual(self.counts(first).unable, 3)
        first.script("UPDATE t SET n = 'n' WHERE v = '1'; DELETE FROM t WHERE v = '2'")
        first.sync()
        self.assert_counted(first)
        self.synced(second)
        self.assertEqual(1, second.count("t", "v = '1'"))
        self.assertEqual(3, first.count("t"))

    def test_a_rebuild_of_a_table_with_null_keys(self) -> None:
        first, _ = self.mixed()
        first.sync()
        first.script(
            "CREATE TABLE n(k TEXT PRIMARY KEY, v TEXT, w); INSERT INTO n SELECT k, v, 0 FROM t; DROP TABLE t;"
            "ALTER TABLE n RENAME TO t; INSERT INTO t VALUES(NULL, 'n3', 1)"
        )
        self.assert_counted(first)
        first.sync()
        self.assertEqual(4, first.count("t"))
        self.assert_unable(first, 3)


class OddKeyTests(FileTestCase):
    def keyed(self, key: str, name: str) -> tuple[AppFile, AppFile]:
        first, second = self.app(f"a-{name}", NULL_KEYS), self.app(f"b-{name}", NULL_KEYS)
        for app in (first, second):
            app.in_scope(f"odd:{name}")
        first.script("INSERT INTO t VALUES('ok', '1')")
        self.synced(first)
        first.run("INSERT INTO t VALUES(?, 'odd')", key)
        self.assert_counted(first)
        return first, second

    def travels_or_is_counted(self, first: AppFile, second: AppFile) -> bool:
        told = self.not_crashed(first.sync())
        self.assert_counted(first)
        self.synced(second)
        if second.count("t") == first.count("t"):
            self.assert_alike(first, second)
            return True
        self.assertEqual(3, told.code, f"a row that did not travel is passed over in silence: {told}")
        return False

    def test_odd_keys_travel_or_are_counted(self) -> None:
        for name, key in ODD.items():
            with self.subTest(key=name):
                first, second = self.keyed(key, name.replace(" ", "-"))
                travels = self.travels_or_is_counted(first, second)
                first.run("UPDATE t SET v = 'edited' WHERE k = ?", key)
                self.assertEqual(travels, self.travels_or_is_counted(first, second))
                self.not_crashed(first.repair())
                self.assertEqual(2, first.count("t"), "a repair took away a row that cannot travel")
                first.run("DELETE FROM t WHERE k = ?", key)
                self.clean(first.sync(), "after the row was deleted again:")
                self.synced(second)
                self.assert_in_sync(first, second)

    def test_discarding_an_insert_whose_key_cannot_be_sent(self) -> None:
        """Finding 4: the row stayed, on one device only, and all was exit 0 and "0 differ"."""
        first, second = self.app("a", NULL_KEYS), self.app("b", NULL_KEYS)
        first.many("INSERT INTO t VALUES(?, ?)", [(key, name) for name, key in ODD.items()])
        first.sync()
        for refusal in first.refusals():
            first.rejected("--discard", str(refusal["number"]))
        self.assertEqual([], first.refusals())
        self.quiesced(first, second)
        self.assert_counted(first, second)
        if first.status().code == 0:
            self.assert_in_sync(first, second)

    def test_odd_keys_and_a_scope_lost_and_regained(self) -> None:
        first = self.app("a", NULL_KEYS)
        first.many("INSERT INTO t VALUES(?, ?)", [(key, name) for name, key in ODD.items()])
        first.sync()
        wanted = first.dump("t")
        first.sync(token=mint(self.server.secret, first.sub, {"elsewhere": "rw"}))
        self.assert_counted(first)
        first.sync()
        self.assert_rows(wanted, first.dump("t"), "t before the scope was lost and after it came back")
        self.assert_counted(first)

    def test_integer_keys_are_warned_of_at_the_first_sync(self) -> None:
        """Finding 6: two devices offline insert a playlist each, and one with both sets of tracks remains."""
        schema = "CREATE TABLE playlist(id INTEGER PRIMARY KEY, name TEXT)"
        first = self.app("a", schema, ["playlist"])
        first.run("INSERT INTO playlist(name) VALUES('mine')")
        for told in (first.sync(), first.status(), first.sync(as_json=False), first.status(as_json=False)):
            remedy = r"(UUID|uuid|ids: server)"
            self.assertRegex(told.text, rf"playlist[^\n]*{remedy}|{remedy}[^\n]*playlist", f"{told}")


class TableNameTests(FileTestCase):
    def both_ways(self, table: str, columns: Sequence[str], elsewhere: str = "", others: Sequence[str] = ()) -> None:
        """Insert, edit and delete, from the one and from the other."""
        names = [(table, columns), (elsewhere or table, others or columns)]
        schemas = [
            f"CREATE TABLE {quoted(name)}({quoted(key)} TEXT PRIMARY KEY, {quoted(value)} TEXT, {quoted(number)})"
            for name, (key, value, number) in names
        ]
        first = self.app("a", schemas[0], [names[0][0]])
        second = self.app("b", schemas[1], [names[1][0]])
        for app, other in ((first, second), (second, first)):
            (name,) = app.tables
            key, value, number = map(quoted, columns if app is first else others or columns)
            for n in range(3):
                app.run(f"INSERT INTO {quoted(name)} VALUES(?, 'v', ?)", f"{app.sub}{n}", n)
            self.synced(app, other)
            app.run(f"UPDATE {quoted(name)} SET {value} = 'edited' WHERE {key} = ?", f"{app.sub}1")
            app.run(f"UPDATE {quoted(name)} SET {number} = {number} + 1 WHERE {key} = ?", f"{app.sub}2")
            app.run(f"DELETE FROM {quoted(name)} WHERE {key} = ?", f"{app.sub}0")
            self.assert_counted(app)
            self.synced(app, other)
            found = [each.query(f"SELECT * FROM {quoted(each.tables[0])} ORDER BY 1") for each in (app, other)]
            self.assertEqual(found[0], found[1], f"{names}")
        self.assertEqual(4, len(found[0]))
        self.assert_verified(first, second)
        self.assert_all_confirmed(first, second)

    def test_order_details(self) -> None:
        self.both_ways("Order Details", ("Order ID", "Unit Price", "Quantity (pieces)"))

    def test_keywords(self) -> None:
        self.both_ways("select", ("group", "order", "from"))

    def test_not_ascii(self) -> None:
        self.both_ways("Bestellübersicht №1", ("Schlüssel", "名前", "größe"))

    def test_quotes_and_punctuation(self) -> None:
        self.both_ways('it\'s a "table", [really]', ("a.b", "c'd\"e", "f\\g;--"))

    def test_a_digit_first_and_an_emoji(self) -> None:
        self.both_ways("2024 📈", ("1", "%s", "{}"))

    def test_variants_in_case_are_one_entity(self) -> None:
        """Finding 7: `MiXed` here, `mixed` there; rows were not applied, exit 0."""
        self.both_ways("MiXed", ("id", "value", "n"), "mixed", ("id", "value", "n"))

    def test_a_table_named_in_another_case_on_the_command_line(self) -> None:
        first = self.app("a", "CREATE TABLE MiXed(id TEXT PRIMARY KEY, v); INSERT INTO MiXed VALUES('1', 1)", ["mixed"])
        second = self.app("b", "CREATE TABLE mixed(id TEXT PRIMARY KEY, v)", ["MIXED"])
        self.synced(first, second)
        self.assertEqual(1, second.count("mixed"))

    def test_a_table_renamed_in_case_only(self) -> None:
        first, second = self.pair(NULL_KEYS, "INSERT INTO t VALUES('1', 'a')")
        first.script("ALTER TABLE t RENAME TO x; ALTER TABLE x RENAME TO T; UPDATE T SET v = 'edited'")
        self.synced(first, second)
        self.assertEqual("edited", second.one("SELECT v FROM t"))
        self.assert_counted(first)

    def test_names_that_are_too_long_or_alike_are_told(self) -> None:
        for name in ("x" * 300, "tidemark_own", "a\tb"):
            with self.subTest(name=name[:20]):
                app = self.app(f"long{len(name)}", f"CREATE TABLE {quoted(name)}(id TEXT PRIMARY KEY, v)", [name])
                told = self.not_crashed(app.sync())
                if told.code != 0:
                    self.assertIn(told.code, (1, 3))
                    self.assertIn("hint", told.err)
                app.run(f"INSERT INTO {quoted(name)} VALUES('1', 1)")
