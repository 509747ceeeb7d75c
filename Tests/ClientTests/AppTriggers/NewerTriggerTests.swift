import GRDB
import Testing
import TidemarkServer

@testable import Tidemark

/// SQLite runs the newest trigger first, and temporary ones before all others.
@Suite("Triggers of the app's that are newer than the library's hide no edit and no row (I13)")
struct NewerTriggerTests {
    enum Kind: String, CaseIterable, Sendable {
        case after, before, temporary
    }

    private static let schema = """
        CREATE TABLE note (id TEXT PRIMARY KEY, title TEXT, space TEXT DEFAULT '1', touched TEXT);
        CREATE TABLE item (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT, touched TEXT);
        """

    private static func triggers(_ kind: Kind) -> String {
        let temp = kind == .temporary ? "TEMP " : ""
        let time = kind == .before ? "BEFORE" : "AFTER"
        return ["note", "item"].map { table in
            """
            CREATE \(temp)TRIGGER touch_\(table) \(time) UPDATE ON \(table) WHEN NEW.touched IS OLD.touched
              BEGIN UPDATE \(table) SET touched = 'u' WHERE id = OLD.id; END;
            CREATE \(temp)TRIGGER new_\(table) AFTER INSERT ON \(table)
              BEGIN UPDATE \(table) SET touched = 'i' WHERE id = NEW.id; END;
            """
        }.joined(separator: "\n")
    }

    private func pair(_ synced: [SyncedTable]) async throws -> (first: Device, second: Device) {
        let directory = try TestDirectory()
        let server = try Device.server(in: directory)
        func device(_ name: String) async throws -> Device {
            try await Device(Self.schema, tables: [], server: server, in: directory, name: name, synced: synced)
        }
        let (first, second) = (try await device("first"), try await device("second"))
        try await first.sql(
            """
            INSERT INTO note (id, title) VALUES ('a', 'A'), ('b', 'B'), ('c', 'C');
            INSERT INTO item (name) VALUES ('x')
            """)
        try await first.sync()
        try await second.sync()
        return (first, second)
    }

    private static let notes = "SELECT id, title, touched FROM note ORDER BY id"
    private static let items = "SELECT id, name, touched FROM item ORDER BY id"

    @Test("edits, new rows and new keys arrive", arguments: Kind.allCases, [false, true])
    func arrive(kind: Kind, isScopedByColumn: Bool) async throws {
        let note: SyncedTable =
            isScopedByColumn ? .table("note", scope: .column("space", prefix: "w:")) : .table("note")
        let (first, second) = try await pair([note, .table("item")])
        try await first.sql(Self.triggers(kind))
        try await first.sql(
            """
            UPDATE note SET title = 'mine' WHERE id = 'a';
            UPDATE note SET id = 'bb' WHERE id = 'b';
            INSERT INTO note (id, title) VALUES ('d', 'D');
            INSERT INTO item (name) VALUES ('y');
            UPDATE item SET name = 'mine' WHERE id = 1;
            INSERT OR REPLACE INTO note (id, title) VALUES ('c', 'again')
            """)
        for device in [first, first, second] { try await device.sync() }
        #expect(
            try await second.rows("SELECT id, title FROM note ORDER BY id")
                == [#""a"|"mine""#, #""bb"|"B""#, #""c"|"again""#, #""d"|"D""#])
        #expect(try await second.rows("SELECT id, name FROM item ORDER BY id") == [#"1|"mine""#, #"2|"y""#])
        for (sql, device) in [(Self.notes, second), (Self.items, second)] {
            #expect(try await first.rows(sql) == (try await device.rows(sql)))
        }
        let status = try await first.engine().status()
        #expect(status.pending == 0 && status.rejected == 0)
        #expect(try await first.engine().verify().isClean)
        try await first.sql("DELETE FROM note WHERE id = 'd'; UPDATE note SET title = 'more' WHERE id = 'a'")
        for device in [first, second] { try await device.sync() }
        #expect(try await first.rows(Self.notes) == (try await second.rows(Self.notes)))
        #expect(try await second.count("note WHERE title = 'more'") == 1)
    }

    @Test("a row that waits outside its table keeps its base when the app makes another one under its key")
    func quarantined() async throws {
        let (first, second) = try await pair([.table("note"), .table("item")])
        try await first.sql("CREATE UNIQUE INDEX title ON note(title); UPDATE note SET title = 'T' WHERE id = 'a'")
        try await second.sql("UPDATE note SET title = 'T' WHERE id = 'b'")
        for device in [second, first] { try await device.sync() }
        #expect(try await first.engine().status().quarantined == 1)
        try await first.sql("INSERT INTO note (id, title) VALUES ('b', 'own')")
        for device in [first, second, first] { try await device.sync() }
        #expect(try await second.rows("SELECT title FROM note WHERE id = 'b'") == [#""own""#])
        #expect(try await first.rows(Self.notes) == (try await second.rows(Self.notes)))
    }

    @Test(
        "a row that others deleted goes, also where a trigger forbids it or skips it",
        arguments: ["BEFORE", "AFTER"], ["ABORT, 'stays'", "FAIL, 'stays'", "IGNORE"])
    func deleted(time: String, action: String) async throws {
        let (first, second) = try await pair([.table("note"), .table("item")])
        try await second.sql(
            "CREATE TRIGGER stays \(time) DELETE ON note WHEN OLD.id = 'a' BEGIN SELECT RAISE(\(action)); END")
        try await first.sql("DELETE FROM note WHERE id IN ('a', 'b')")
        for device in [first, second, first] { try await device.sync() }
        #expect(try await second.rows("SELECT id FROM note") == [#""c""#])
        #expect(try await second.engine().status().rows.confirmed == 2)
        #expect(try await second.engine().verify().isClean)
        #expect(try await first.count("note") == 1)
    }

    @Test("others' values stand, also where a trigger skips them", arguments: ["INSERT", "UPDATE"])
    func skipped(event: String) async throws {
        let (first, second) = try await pair([.table("note"), .table("item")])
        try await second.sql("CREATE TRIGGER skips BEFORE \(event) ON note BEGIN SELECT RAISE(IGNORE); END")
        try await first.sql(
            "INSERT INTO note (id, title) VALUES ('d', 'D'); UPDATE note SET title = 'mine' WHERE id = 'a'")
        for device in [first, second] { try await device.sync() }
        #expect(try await first.rows(Self.notes) == (try await second.rows(Self.notes)))
        #expect(try await second.engine().verify().isClean)
    }

    @Test(
        "a record that is made anew under its key stays the one that others know", arguments: Kind.allCases,
        [
            "INSERT OR REPLACE INTO note (id, title) VALUES ('a', 'X')",
            "DELETE FROM note WHERE id = 'a'; INSERT INTO note (id, title) VALUES ('a', 'X')",
        ])
    func madeAnew(kind: Kind, sql: String) async throws {
        let (first, second) = try await pair([.table("note"), .table("item")])
        try await first.sql(Self.triggers(kind))
        try await first.sql(sql)
        try await first.sql("DELETE FROM note WHERE id = 'a'")
        for device in [first, second] { try await device.sync() }
        #expect(try await second.count("note WHERE id = 'a'") == 0)
    }
}
