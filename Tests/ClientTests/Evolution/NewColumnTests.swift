import GRDB
import Testing
import TidemarkServer

@testable import Tidemark

@Suite("A migration's values of a new column never overwrite what others wrote there (F5, I4)")
struct NewColumnTests {
    /// What this device had done before its app was replaced.
    enum Before: String, CaseIterable, Sendable {
        case nothing, edit, requestLost, answerLost, delete, deleteLost, editedElsewhere, deletedElsewhere, insert
        case insertLost
    }

    /// How the new app gives the table its column.
    enum Migration: String, CaseIterable, Sendable {
        case added, rebuilt, rebuiltAnnounced, rebuiltAndEdited, addedTwice, addedAnew, afterDrop, copied
    }

    private static let schema = "CREATE TABLE note (id TEXT PRIMARY KEY, title TEXT, body TEXT);"
    private static let mood = "ALTER TABLE note ADD COLUMN mood TEXT DEFAULT 'calm'"
    private static let rows = "SELECT id, title, body, mood FROM note ORDER BY id"

    private static func rebuild(_ columns: String, keeping kept: String) -> String {
        """
        CREATE TABLE fresh (id TEXT PRIMARY KEY, \(columns));
        INSERT INTO fresh (id, \(kept)) SELECT id, \(kept) FROM note;
        DROP TABLE note; ALTER TABLE fresh RENAME TO note;
        """
    }

    private func migrate(_ device: Device, _ migration: Migration) async throws {
        let withMood = Self.rebuild("title TEXT, body TEXT, mood TEXT DEFAULT 'calm'", keeping: "title, body")
        switch migration {
        case .added: try await device.sql(Self.mood)
        case .rebuilt: try await device.sql(withMood)
        case .rebuiltAnnounced:
            try await device.writer.write { db in
                try SyncEngine.removeCapture(db)
                try db.execute(sql: withMood)
            }
        case .rebuiltAndEdited:
            try await device.sql(withMood + "UPDATE note SET body = 'unseen' WHERE id IN ('n1', 'n2')")
        case .addedTwice:
            try await device.sql(Self.mood)
            try await device.engine().install()
            try await device.sql("ALTER TABLE note ADD COLUMN more TEXT DEFAULT 'more'")
        case .addedAnew:
            try await device.sql(Self.mood)
            try await device.engine().install()
            try await device.sql(Self.rebuild("title TEXT, body TEXT", keeping: "title, body"))
            try await device.engine().install()
            try await device.sql(Self.mood)
        case .afterDrop:
            try await device.sql(Self.rebuild("title TEXT", keeping: "title"))
            try await device.engine().install()
            try await device.sql("ALTER TABLE note ADD COLUMN body TEXT; \(Self.mood)")
        case .copied:
            try await device.sql(
                """
                ALTER TABLE note RENAME TO old; CREATE TABLE note (id TEXT PRIMARY KEY, title TEXT, body TEXT,
                mood TEXT DEFAULT 'calm'); INSERT INTO note (id, title, body) SELECT id, title, body FROM old;
                DROP TABLE old;
                """)
        }
    }

    private func prepare(_ first: Device, _ second: Device, _ before: Before) async throws {
        switch before {
        case .nothing: return
        case .editedElsewhere:
            try await second.sql("UPDATE note SET title = 'theirs', mood = 'happy' WHERE id = 'n1'")
            return try await second.sync()
        case .deletedElsewhere:
            try await second.sql("DELETE FROM note WHERE id = 'n1'")
            return try await second.sync()
        case .edit, .requestLost, .answerLost: try await first.sql("UPDATE note SET title = 'mine' WHERE id = 'n1'")
        case .delete, .deleteLost: try await first.sql("DELETE FROM note WHERE id = 'n1'")
        case .insert, .insertLost: try await first.sql("INSERT INTO note (id, title) VALUES ('n9', 'mine')")
        }
        switch before {
        case .requestLost, .deleteLost: await first.wire.loseRequest()
        case .answerLost, .insertLost: await first.wire.loseAnswer()
        default: return
        }
        await #expect(throws: SyncError.self) { try await first.sync() }
    }

    @Test(
        "others' values stay, whatever was on its way", .records("base present, compared deleted"),
        arguments: Migration.allCases, Before.allCases)
    func stay(migration: Migration, before: Before) async throws {
        let directory = try TestDirectory()
        let server = try Device.server(in: directory)
        let first = try await Device(Self.schema, tables: ["note"], server: server, in: directory, name: "first")
        let second = try await Device(
            Self.schema + Self.mood, tables: ["note"], server: server, in: directory, name: "second")
        try await second.sql(
            """
            INSERT INTO note VALUES ('n1', 'a', 'x', 'glad'), ('n2', 'b', 'x', 'glad'), ('n3', 'c', 'x', 'glad'),
                ('n4', 'd', 'x', NULL)
            """)
        try await second.sync()
        try await first.sync()
        try await prepare(first, second, before)
        try await migrate(first, migration)
        for device in [first, first, second, first, second] { try await device.sync() }
        let rows = try await second.rows(Self.rows)
        #expect(try await first.rows(Self.rows) == rows)
        #expect(rows.contains { $0.hasPrefix(#""n2"|"b""#) && $0.hasSuffix(#""glad""#) }, "\(rows)")
        #expect(rows.contains(#""n3"|"c"|"x"|"glad""#), "\(rows)")
        let first1 = rows.first { $0.hasPrefix(#""n1""#) }
        switch before {
        case .delete, .deleteLost, .deletedElsewhere: #expect(first1 == nil)
        case .editedElsewhere: #expect(first1?.hasSuffix(#""happy""#) == true, "\(rows)")
        default: #expect(first1?.hasSuffix(#""glad""#) == true, "\(rows)")
        }
        if [.edit, .requestLost, .answerLost].contains(before) {
            #expect(first1?.hasPrefix(#""n1"|"mine""#) == true, "\(rows)")
        }
        #expect(rows.contains { $0.hasPrefix(#""n9""#) } == [.insert, .insertLost].contains(before))
        #expect(try await first.engine().status().pending == 0)
        #expect(try await first.engine().verify().isClean)
    }

    @Test("a default that each device works out is sent like any value")
    func computed() async throws {
        let directory = try TestDirectory()
        let server = try Device.server(in: directory)
        let first = try await Device(Self.schema, tables: ["note"], server: server, in: directory, name: "first")
        try await first.sql("INSERT INTO note VALUES ('a', 'A', 'x'), ('b', 'B', 'x')")
        try await first.sync()
        // Within the same day every row has the default that a new one would get.
        let made = Self.schema.replacing("body TEXT", with: "body TEXT, day TEXT NOT NULL DEFAULT (date('now'))")
        let second = try await Device(made, tables: ["note"], server: server, in: directory, name: "second")
        try await first.sql(
            Self.rebuild("title TEXT, body TEXT, day TEXT NOT NULL DEFAULT (date('now'))", keeping: "title, body"))
        for device in [first, first] { try await device.sync() }
        try await second.sync()
        #expect(try await second.count("note WHERE day = date('now')") == 2)
        let third = try await Device(
            made.replacing("date('now')", with: "'other'"), tables: ["note"], server: server, in: directory,
            name: "third")
        try await third.sync()
        let days = "SELECT id, day FROM note ORDER BY id"
        #expect(try await third.rows(days) == (try await first.rows(days)))
        #expect(try await first.engine().verify().isClean)
    }

    @Test(
        "a key of another type is refused, since its ids would be others",
        arguments: [
            ("TEXT", "UUID"), ("TEXT", "BLOB"), ("INTEGER", "NUMERIC"),
        ])
    func keyType(old: String, new: String) async throws {
        let table = "CREATE TABLE note (id \(old) PRIMARY KEY, title TEXT);"
        let device = try await Device(table, tables: ["note"])
        try await device.sql("INSERT INTO note VALUES (1, 'A')")
        try await device.sync()
        let rebuild = """
            CREATE TABLE fresh (id \(new) PRIMARY KEY, title TEXT); INSERT INTO fresh SELECT * FROM note;
            DROP TABLE note; ALTER TABLE fresh RENAME TO note;
            """
        try await device.sql(rebuild + "UPDATE note SET title = 'mine'")
        let error = await #expect(throws: SyncError.self) { try await device.sync() }
        #expect(error?.code == .tableUnsupported && error?.detail.contains(old) == true)
        // Back in its old form it goes on, with what was written meanwhile.
        try await device.sql(rebuild.replacing("id \(new)", with: "id \(old)"))
        #expect(try await device.engine().syncNow().pushed == 1)
    }

    @Test("an INTEGER PRIMARY KEY DESC is no row number: it may be NULL, and such rows are counted")
    func descendingKey() async throws {
        let device = try await Device("CREATE TABLE note (id INTEGER PRIMARY KEY DESC, title TEXT);", tables: ["note"])
        try await device.sql("INSERT INTO note (title) VALUES ('no key'); INSERT INTO note VALUES (1, 'A')")
        try await device.sync()
        let rows = try await device.engine().status().rows
        #expect((rows.confirmed, rows.unable) == (1, 1))
    }

    @Test("a row that was deleted, and that the migration makes anew, keeps what it has in the new column")
    func madeAnew() async throws {
        let directory = try TestDirectory()
        let server = try Device.server(in: directory)
        let first = try await Device(Self.schema, tables: ["note"], server: server, in: directory, name: "first")
        let second = try await Device(
            Self.schema + Self.mood, tables: ["note"], server: server, in: directory, name: "second")
        try await second.sql("INSERT INTO note VALUES ('a', 'A', 'x', 'glad'), ('b', 'B', 'x', 'glad')")
        for device in [second, first] { try await device.sync() }
        try await first.sql("DELETE FROM note WHERE id = 'a'")
        try await first.sql(
            Self.rebuild("title TEXT, body TEXT, mood TEXT DEFAULT 'calm'", keeping: "title, body")
                + "INSERT INTO note VALUES ('a', 'again', 'y', 'own')")
        for device in [first, second, first] { try await device.sync() }
        for device in [first, second] {
            #expect(
                try await device.rows(Self.rows) == [#""a"|"again"|"y"|"own""#, #""b"|"B"|"x"|"glad""#])
        }
    }
}
