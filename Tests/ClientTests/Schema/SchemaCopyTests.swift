import GRDB
import Testing

@testable import Tidemark

@Suite("A file with the library's tables and none of their rows")
struct SchemaCopyTests {
    private static let schema = "CREATE TABLE note (id TEXT PRIMARY KEY, title TEXT); CREATE TABLE mine (a);"

    /// The statements that a synced file's schema is made of, as a shell's `.schema` writes them.
    private func copied(_ device: Device) async throws -> String {
        try await device.writer.read { db in
            try String.fetchAll(
                db,
                sql: """
                    SELECT sql || ';' FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite%'
                    ORDER BY type = 'trigger', rowid
                    """)
        }.joined(separator: "\n")
    }

    private func objects(_ db: Database) throws -> Int {
        try Int.fetchOne(db, sql: "SELECT count(*) FROM sqlite_master WHERE name LIKE 'tidemark%'") ?? 0
    }

    @Test("a copy of the schema alone is set up anew, and syncs with what was written to it")
    func setUpAnew() async throws {
        let directory = try TestDirectory()
        let server = try Device.server(in: directory)
        let first = try await Device(Self.schema, tables: ["note"], server: server, in: directory, name: "first")
        try await first.sql("INSERT INTO note VALUES ('1', 'first')")
        try await first.sync()
        // Its triggers are live before anything syncs it.
        let copy = try await Device(
            copied(first) + "INSERT INTO note VALUES ('2', 'second'); UPDATE note SET title = 'copy' WHERE id = '2';",
            tables: ["note"], server: server, in: directory, name: "copy")
        try await Device.sync(copy, first)
        for device in [first, copy] {
            #expect(try await device.rows("SELECT title FROM note ORDER BY id") == [#""first""#, #""copy""#])
        }
        #expect(try await copy.engine().verify().isClean)
        #expect(
            try await first.rows("SELECT value FROM tidemark_meta WHERE key = 'clientId'")
                != copy.rows("SELECT value FROM tidemark_meta WHERE key = 'clientId'"))
    }

    @Test("the library can be taken out of it, and the status of it is one of a file that never synced")
    func takenOut() async throws {
        let first = try await Device(Self.schema, tables: ["note"])
        try await first.sync()
        let copy = try DatabaseQueue()
        let statements = try await copied(first)
        try await copy.write { db in
            try db.execute(sql: statements + "INSERT INTO note VALUES ('1', 'mine')")
            #expect(try SyncStatus(db, scopes: [Device.scope]).pending == 0)
            #expect(try FileInspection(db).warnings.count == 1)
            let removed = try SyncEngine.uninstall(db)
            #expect(removed.triggers > 5 && removed.libraryTables > 20 && removed.tables == [])
            #expect(try objects(db) == 0)
            #expect(try String.fetchOne(db, sql: "SELECT title FROM note") == "mine")
        }
    }

    @Test("a file that only lost what identifies it is no such copy: its edits stay")
    func damaged() async throws {
        let device = try await Device(Self.schema, tables: ["note"])
        try await device.sql("INSERT INTO note VALUES ('1', 'mine'); DELETE FROM tidemark_meta")
        let error = await #expect(throws: SyncError.self) { try await device.sync() }
        #expect(error?.code == .databaseFailed && error?.detail.contains("tidemark_meta is empty") == true)
        #expect(try await device.count("tidemark_shadow_note WHERE tidemark_mark IS NOT NULL") == 1)
    }

    @Test(
        "another program's table of that name is told apart, and stays as it is",
        arguments: [
            "CREATE TABLE tidemark_meta (a)", "CREATE TABLE tidemark_meta (key TEXT PRIMARY KEY, value)",
            "CREATE TABLE tidemark_meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID;"
                + "INSERT INTO tidemark_meta VALUES ('x', 1)",
            "CREATE VIEW tidemark_meta AS SELECT 1 AS a",
        ])
    func foreign(table: String) async throws {
        let error = await #expect(throws: SyncError.self) {
            _ = try await Device("CREATE TABLE note (id TEXT PRIMARY KEY); \(table);", tables: ["note"])
        }
        #expect(error?.code == .schemaUnsupported && error?.hint.contains("RENAME TO") == true, "\(error as Any)")
        let file = try DatabaseQueue()
        try await file.write { db in
            try db.execute(sql: table)
            let before = try Row.fetchAll(db, sql: "SELECT * FROM sqlite_master")
            #expect(throws: SyncError.self) { try SyncEngine.uninstall(db) }
            #expect(throws: SyncError.self) { try FileInspection(db) }
            #expect(try Row.fetchAll(db, sql: "SELECT * FROM sqlite_master") == before)
        }
    }
}
