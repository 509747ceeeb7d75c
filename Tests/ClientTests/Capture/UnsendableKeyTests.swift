import Foundation
import GRDB
import Testing
import TidemarkWire

@testable import Tidemark

@Suite("Keys that cannot be record ids")
struct UnsendableKeyTests {
    /// As SQL writes them.
    private static let keys = [
        "''", "'a' || char(9) || 'b'", "'a' || char(10)", "char(127)", "printf('%.*c', 129, 'x')",
        "CAST(x'ff41' AS TEXT)", "x'00'", "CAST(x'6100' AS TEXT)",
    ]

    private func device(_ keys: [String]) async throws -> Device {
        let device = try await Device("CREATE TABLE t (k TEXT PRIMARY KEY, v TEXT)", tables: ["t"])
        for key in keys { try await device.sql("INSERT INTO t VALUES (\(key), 'x')") }
        try await device.sync()
        return device
    }

    @Test("an insert under one is undone when it is given up", arguments: keys)
    func discarded(key: String) async throws {
        let device = try await device([key, "'good'"])
        let engine = try device.engine()
        let refused = try await engine.rejectedOperations()
        #expect(refused.count == 1 && refused[0].isInsert)
        #expect(try await engine.status().rejected == 1)
        try await engine.discard(try #require(refused.first))
        #expect(try await device.rows("SELECT k FROM t") == [#""good""#])
        try await device.sync()
        #expect(try await engine.status().rejected == 0)
        #expect(try await engine.verify().isClean)
        #expect(try await device.count("tidemark_shadow_t") == 0)
    }

    @Test("a good key in its place takes the refusal away", arguments: keys)
    func mended(key: String) async throws {
        let device = try await device([key])
        try await device.sql("UPDATE t SET k = 'good'")
        try await device.sync()
        #expect(try await device.engine().status().rejected == 0)
        #expect(try await device.engine().status().pending == 0)
        #expect(try await device.engine().verify().records == 1)
        #expect(try await device.engine().verify().isClean)
    }

    @Test(
        "the refusal says what is wrong with the key, in which column, and what to change",
        arguments: zip(
            keys,
            [
                "'k' is empty", "'k' holds a tab", "'k' holds a line feed", "'k' holds a control character",
                "'k' has 129 bytes, and an id has up to 128", "'k' holds text that is not UTF-8",
                "'k' does not hold text", "'k' holds a NUL character",
            ]))
    func reasons(key: String, reason: String) async throws {
        let refused = try await device([key]).engine().rejectedOperations()
        #expect(refused.first?.detail == "Its key cannot be a record id: column \(reason).")
        #expect(refused.first?.hint.hasSuffix("; the row is sent then.") == true)
    }

    @Test("deleting the row takes the refusal away", arguments: keys)
    func deleted(key: String) async throws {
        let device = try await device([key])
        try await device.sql("DELETE FROM t")
        try await device.sync()
        #expect(try await device.engine().status().rejected == 0)
        #expect(try await device.engine().status().pending == 0)
    }

    @Test("it is shown as JSON, and is another record than the one whose id is that text")
    func namesakes() async throws {
        let device = try await device(["''", "'[\"\"]'", "CAST(x'ff' AS TEXT)", "x'ff'"])
        let engine = try device.engine()
        let refused = try await engine.rejectedOperations()
        #expect(refused.map(\.record) == [#"[""]"#, #"[[{"$blob":"/w=="}]]"#, #"[{"$blob":"/w=="}]"#])
        #expect(try await engine.state(of: "t", id: #"[""]"#) == .confirmed)
        try await device.sql(#"UPDATE t SET v = 'y' WHERE k = '[""]'"#)
        try await device.sync()
        #expect(try await engine.status().rejected == 3)
        for operation in refused { try await engine.discard(operation) }
        #expect(try await device.rows("SELECT v FROM t") == [#""y""#])
    }

    @Test("one of several columns is found again, and sent once it is mended")
    func composite() async throws {
        let device = try await Device(
            "CREATE TABLE t (a TEXT, b INTEGER, v TEXT, PRIMARY KEY (a, b))", tables: ["t"])
        let long = String(repeating: "long ", count: 30)
        try await device.sql("INSERT INTO t VALUES ('\(long)', 1, 'x'), ('\(long)', 2, 'x')")
        try await device.sync()
        let engine = try device.engine()
        let refused = try await engine.rejectedOperations()
        #expect(refused.map(\.record) == [#"["\#(long)",1]"#, #"["\#(long)",2]"#])
        #expect(refused[0].detail.contains("'a', 'b' as a JSON array have 156 bytes"), "\(refused[0].detail)")
        try await engine.discard(refused[0])
        #expect(try await device.rows("SELECT b FROM t") == ["2"])
        try await device.sql("UPDATE t SET a = 'short'")
        try await device.sync()
        #expect(try await engine.status().rejected == 0)
        #expect(try await engine.verify().records == 1)
    }

    @Test("the index over rows without a key goes with the triggers, and comes back with them")
    func index() async throws {
        let device = try await Device("CREATE TABLE t (k TEXT PRIMARY KEY, v TEXT)", tables: ["t"])
        try await device.sql("INSERT INTO t VALUES (NULL, 'x'), ('a', 'y'), (NULL, 'z')")
        try await device.sync()
        let indexes = "sqlite_master WHERE type = 'index' AND tbl_name = 't' AND sql IS NOT NULL"
        #expect(try await device.count(indexes) == 1)
        try await device.writer.write { db in try SyncEngine.removeCapture(db) }
        #expect(try await device.count(indexes) == 0)
        // As a program rebuilds a table: partial indexes that it finds stop it.
        try await device.sql(
            """
            CREATE TABLE t_new (k TEXT PRIMARY KEY, v TEXT, more TEXT); INSERT INTO t_new(k, v) SELECT k, v FROM t;
            DROP TABLE t; ALTER TABLE t_new RENAME TO t
            """)
        try await device.sync()
        #expect(try await device.count(indexes) == 1)
        #expect(try await device.engine().status().tables["t"]?.unable == 2)
        #expect(try await device.engine().status().tables["t"]?.confirmed == 1)
    }

    @Test("one in a group blocks the others, and they go together")
    func grouped() async throws {
        let device = try await device([])
        let engine = try device.engine()
        try await engine.atomically { db in try db.execute(sql: "INSERT INTO t VALUES ('', 'x'), ('good', 'x')") }
        try await engine.syncNow()
        let refused = try await engine.rejectedOperations()
        #expect(refused.map(\.record).sorted() == [#"[""]"#, "good"])
        #expect(Set(refused.map(\.group)).count == 1 && refused[0].group != nil)
        try await engine.discard(try #require(refused.first { $0.record != "good" }))
        #expect(try await device.count("t") == 0)
        #expect(try await engine.status().rejected == 0)
    }
}
