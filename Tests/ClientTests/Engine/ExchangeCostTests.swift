import GRDB
import GRDBSQLite
import Synchronization
import Testing

@testable import Tidemark

/// The statements of a sync, as SQLite was asked to run them.
private final class Statements: Sendable {
    private let seen = Mutex<Set<String>>([])

    var all: [String] { seen.withLock { $0.sorted() } }

    func watch(_ db: Database) {
        db.trace { event in
            guard case .statement(let statement) = event else { return }
            self.seen.withLock { _ = $0.insert(statement.sql) }
        }
    }
}

@Suite("Cost follows the number of changes, not the size of what is there")
struct ExchangeCostTests {
    /// Tables that grow with the data, or with all that was ever sent.
    private static let growing = ["note", "tidemark_shadow_note", "tidemark_operation", "tidemark_conflict"]

    @Test("no statement of a sync, or of the status, reads through a table that grows")
    func plans() async throws {
        let directory = try TestDirectory()
        let server = try Device.server(in: directory)
        let schema = """
            CREATE TABLE note (id TEXT PRIMARY KEY, title TEXT, parent TEXT REFERENCES note(id));
            CREATE INDEX note_parent ON note(parent);
            """
        let here = try await Device(schema, tables: ["note"], server: server, in: directory, name: "a")
        let there = try await Device(schema, tables: ["note"], server: server, in: directory, name: "b")
        try await here.sql("INSERT INTO note VALUES ('a', 'A', NULL), ('b', 'B', 'a'), ('c', 'C', 'a')")
        for device in [here, there, here] { try await device.sync() }
        let statements = Statements()
        try await here.writer.writeWithoutTransaction { db in statements.watch(db) }
        try await there.sql("UPDATE note SET title = 'there' WHERE id = 'a'; DELETE FROM note WHERE id = 'c'")
        try await there.sync()
        try await here.sql("UPDATE note SET title = 'here' WHERE id = 'b'; INSERT INTO note VALUES ('d', 'D', 'b')")
        let engine = try here.engine()
        _ = try await engine.syncNow()
        _ = try await engine.syncNow()
        _ = try await engine.status()
        try await here.writer.writeWithoutTransaction { db in db.trace(options: []) }
        #expect(statements.all.count > 50)
        for sql in statements.all where Self.isPlanned(sql) {
            let scans = try await here.writer.read { db in try Self.scans(db, sql) }
            #expect(scans == [], "\(sql)")
        }
    }

    @Test("a statement that does read through one is found")
    func plantedScan() async throws {
        let device = try await Device("CREATE TABLE note (id TEXT PRIMARY KEY, title TEXT)", tables: ["note"])
        let found = try await device.writer.read { db in
            try Self.scans(db, "SELECT 1 FROM tidemark_operation WHERE state IN ('rejected', 'conflict')")
        }
        #expect(found == ["SCAN tidemark_operation"])
    }

    @Test("an answer that only confirms makes SQLite compile nothing anew, the app's own statements neither")
    func compiled() async throws {
        let directory = try TestDirectory()
        let server = try Device.server(in: directory)
        let schema = "CREATE TABLE note (id TEXT PRIMARY KEY, title TEXT, parent TEXT REFERENCES note(id))"
        let device = try await Device(schema, tables: ["note"], server: server, in: directory)
        let engine = try device.engine()
        _ = try await engine.syncNow()
        let before = try await Self.compilations(device)
        try await device.sql("INSERT INTO note VALUES ('a', 'A', NULL), ('b', 'B', 'a')")
        _ = try await engine.syncNow()
        _ = try await engine.syncNow()
        #expect(try await Self.compilations(device) == before)
        try await device.writer.writeWithoutTransaction { db in
            try db.execute(sql: "PRAGMA foreign_keys = OFF; PRAGMA foreign_keys = ON")
        }
        #expect(try await Self.compilations(device) == before + 1)
    }

    /// How often SQLite compiled a statement of the app's anew.
    private static func compilations(_ device: Device) async throws -> Int32 {
        try await device.writer.writeWithoutTransaction { db in
            let statement = try db.cachedStatement(sql: "SELECT title FROM note")
            _ = try Row.fetchAll(statement)
            return sqlite3_stmt_status(statement.sqliteStatement, SQLITE_STMTSTATUS_REPREPARE, 0)
        }
    }

    /// Whether there is any, and how many edits wait, may be asked.
    private static func isPlanned(_ sql: String) -> Bool {
        let asksWhetherAny = sql.hasSuffix("LIMIT 1") && !sql.contains("WHERE")
        return !sql.hasPrefix("SELECT count(*)") && !asksWhetherAny
            && ["SELECT", "UPDATE", "DELETE", "INSERT"].contains { sql.hasPrefix($0) }
    }

    /// An index that holds only the open, or the refused, is no reading through everything.
    private static func scans(_ db: Database, _ sql: String) throws -> [String] {
        let statement = try db.makeStatement(sql: "EXPLAIN QUERY PLAN \(sql)")
        statement.setUncheckedArguments(StatementArguments())
        let plan = try Row.fetchAll(statement).map { $0["detail"] as String }
        return plan.filter { line in
            growing.contains { line.hasPrefix("SCAN \($0)") }
                && !["_open", "_rejected", "_mark"].contains { line.contains("USING INDEX") && line.contains($0) }
        }
    }
}
