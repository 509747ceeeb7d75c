import Foundation
import GRDB
import GRDBSQLite
import Testing
import TidemarkServer
import TidemarkTesting

@testable import Tidemark

@Suite("Rows that a REPLACE evicts are captured, whichever index evicts them (I13)")
struct ReplaceEvictionTests {
    enum Eviction: String, CaseIterable, Sendable {
        case expression, conditional, commented, defaulted, defaultedUpdate, defaultedByConstraint, newIndex, newPartial
        case droppedIndex, droppedIndexMadeAgain

        var table: String {
            switch self {
            case .defaulted, .defaultedUpdate: "CREATE TABLE t (id TEXT PRIMARY KEY, a NOT NULL DEFAULT 'x' UNIQUE, b)"
            case .defaultedByConstraint:
                "CREATE TABLE t (id TEXT PRIMARY KEY, a NOT NULL ON CONFLICT REPLACE DEFAULT 'x' UNIQUE, b)"
            default: "CREATE TABLE t (id TEXT PRIMARY KEY, a, b)"
            }
        }

        /// There before the table is captured.
        var index: String {
            switch self {
            case .expression: "CREATE UNIQUE INDEX i ON t(lower(a) DESC)"
            case .conditional: "CREATE UNIQUE INDEX i ON t(lower(a), coalesce(b, 'no, (none)')) WHERE a <> 'free'"
            case .commented:
                """
                CREATE UNIQUE INDEX "i (of" ON t( -- its key, in short
                  upper(a) /* (all */ COLLATE NOCASE ASC
                ) WHERE b IS NULL -- those that are there
                """
            default: ""
            }
        }

        /// Made while the table is captured, and what evicts row 1.
        var statement: String {
            switch self {
            case .expression, .conditional, .commented: "INSERT OR REPLACE INTO t VALUES ('9', 'X', NULL)"
            case .defaulted: "INSERT OR REPLACE INTO t VALUES ('9', NULL, NULL)"
            case .defaultedUpdate: "UPDATE OR REPLACE t SET a = NULL WHERE id = '2'"
            case .defaultedByConstraint: "INSERT OR REPLACE INTO t VALUES ('9', NULL, NULL)"
            case .newIndex: "CREATE UNIQUE INDEX i ON t(a); INSERT OR REPLACE INTO t VALUES ('9', 'x', NULL)"
            case .newPartial:
                """
                CREATE UNIQUE INDEX i ON t(a) WHERE b IS NULL; INSERT OR REPLACE INTO t VALUES ('9', 'x', NULL)
                """
            case .droppedIndex:
                """
                CREATE UNIQUE INDEX i ON t(lower(a)); INSERT OR REPLACE INTO t VALUES ('9', 'X', NULL); DROP INDEX i
                """
            case .droppedIndexMadeAgain:
                """
                CREATE UNIQUE INDEX i ON t(a); INSERT OR REPLACE INTO t VALUES ('9', 'x', NULL); DROP INDEX i;
                INSERT INTO t VALUES ('1', 'again', NULL)
                """
            }
        }
    }

    @Test(
        "the evicted row goes everywhere, the counts add up, and a repair revives nothing",
        arguments: Eviction.allCases)
    func evicts(_ eviction: Eviction) async throws {
        let directory = try TestDirectory()
        let server = try Device.server(in: directory)
        func device(_ name: String) async throws -> Device {
            try await Device(
                "\(eviction.table); \(eviction.index)", tables: ["t"], server: server, in: directory, name: name)
        }
        let (first, second) = (try await device("first"), try await device("second"))
        try await first.sql("INSERT INTO t VALUES ('1', 'x', NULL), ('2', 'y', NULL), ('3', 'z', NULL)")
        try await first.sync()
        try await second.sync()
        try await first.sql(eviction.statement)
        let expected = try await first.rows("SELECT * FROM t ORDER BY id")
        #expect(!expected.contains { $0.hasPrefix("\"1\"|\"x\"") })
        #expect(try await first.engine().status().rows.total == expected.count)
        try await first.sync()
        try await second.sync()
        #expect(try await second.rows("SELECT * FROM t ORDER BY id") == expected)
        _ = try await first.engine().verify(repairing: true)
        #expect(try await first.rows("SELECT * FROM t ORDER BY id") == expected)
        for device in [first, second] {
            let rows = try await device.engine().status().rows
            #expect((rows.confirmed, rows.total) == (expected.count, expected.count))
            #expect(try await device.engine().verify().isClean)
        }
    }

    @Test(
        "an index that cannot be spliced into a trigger keeps no app from writing",
        arguments: [
            "t(a) WHERE t.b IS NULL", "t(a) WHERE b = \"none\"", "t(lower(a), t.b) WHERE b IS NULL", "t(a, n % 2)",
            "t(a, coalesce(b, \"none\"))", "t(a || \"none\")",
        ], [true, false])
    func unspliceable(index: String, isFirst: Bool) async throws {
        let directory = try TestDirectory()
        let path = directory.url.appending(path: "device.sqlite").path
        var configuration = Configuration()
        configuration.acceptsDoubleQuotedStringLiterals = true
        let queue = try DatabaseQueue(path: path, configuration: configuration)
        let create = "CREATE UNIQUE INDEX i ON \(index)"
        try await queue.write { db in
            try db.execute(sql: "CREATE TABLE t (n INTEGER PRIMARY KEY, a, b)")
            // SQLite takes a name with its table in the condition of an index only.
            if isFirst { try? db.execute(sql: create) }
        }
        let server = try Device.server(in: directory)
        let engine = try SyncEngine(
            for: queue, tables: [.table("t")], scopes: [Device.scope],
            transport: InProcessTransport(to: server) { _ in .readWrite(as: "ada") })
        try await engine.install()
        try await queue.write { db in try db.execute(sql: "INSERT INTO t (a, b) VALUES ('x', NULL), ('y', NULL)") }
        try await engine.syncNow()
        if !isFirst { try await queue.write { db in try? db.execute(sql: create) } }
        try await engine.install()
        // A plain connection, as another process has it.
        let other = try DatabaseQueue(path: path)
        try await other.write { db in try db.execute(sql: "INSERT OR REPLACE INTO t (a, b) VALUES ('x', NULL)") }
        try await engine.syncNow()
        let count = try await other.read { db in try Int.fetchOne(db, sql: "SELECT count(*) FROM t") }
        #expect(try await engine.status().rows.total == count || index.contains("||"))
        try await other.write { db in try db.execute(sql: "UPDATE t SET b = 1; DROP INDEX IF EXISTS i") }
        try await engine.syncNow()
        try await other.write { db in try db.execute(sql: "INSERT INTO t (a) VALUES ('z')") }
        try await engine.syncNow()
    }

    @Test("a computed default makes no trigger anew, and no scan, at each installation")
    func computedDefault() async throws {
        let device = try await Device(
            "CREATE TABLE t (id TEXT PRIMARY KEY, a NOT NULL DEFAULT (random()) UNIQUE)", tables: ["t"])
        let triggers = "SELECT rowid, sql FROM sqlite_master WHERE type = 'trigger' ORDER BY rowid"
        let before = try await device.rows(triggers)
        try await device.engine().install()
        #expect(try await device.rows(triggers) == before)
    }

    @Test(
        "an insert looks at the rows that it may evict, not at the table",
        arguments: ["t(a) WHERE b IS NULL", "t(lower(a))", "t(lower(a), b COLLATE NOCASE) WHERE a <> 'free'"])
    func cost(index: String) async throws {
        let device = try await Device(
            "CREATE TABLE t (id TEXT PRIMARY KEY, a, b); CREATE UNIQUE INDEX i ON \(index)", tables: ["t"])
        try await device.sql(
            """
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500)
            INSERT INTO t SELECT 'r' || i, 'a' || i, NULL FROM n
            """)
        let steps = try await device.writer.write { db in
            let statement = try db.makeStatement(sql: "INSERT INTO t VALUES ('new', 'new', NULL)")
            try statement.execute()
            return sqlite3_stmt_status(statement.sqliteStatement, SQLITE_STMTSTATUS_FULLSCAN_STEP, 0)
        }
        #expect(steps < 20)
    }

    @Test("the text of an index is read, whatever stands in it")
    func text() {
        let text = IndexText(
            #"CREATE INDEX "a(b" ON [t(] (x, json_extract(y, '$."a,b)"'), f(g(z, 1), 2) desc) where x>'where' --end"#
        )
        #expect(text.terms == ["x", #"json_extract(y, '$."a,b)"')"#, "f(g(z, 1), 2)"])
        #expect(text.condition == "x>'where'")
        #expect(IndexText("CREATE INDEX i ON t(a)").condition == nil)
        #expect(IndexText("").terms == [])
    }
}
