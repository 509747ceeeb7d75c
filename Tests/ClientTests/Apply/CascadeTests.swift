import GRDB
import Testing
import TidemarkServer

@testable import Tidemark

@Suite("A parent that goes elsewhere takes nothing along that only this device has, without a word (I13, F8)")
struct CascadeTests {
    private static func schema(_ action: String = "CASCADE") -> String {
        """
        CREATE TABLE p (id TEXT PRIMARY KEY, v);
        CREATE TABLE t (id TEXT PRIMARY KEY, p REFERENCES p(id) ON UPDATE CASCADE ON DELETE \(action), v);
        """
    }

    private func pair(_ schema: String = schema()) async throws -> (Device, Device) {
        let directory = try TestDirectory()
        let server = try Device.server(in: directory)
        let first = try await Device(schema, tables: ["p", "t"], server: server, in: directory, name: "first")
        let second = try await Device(schema, tables: ["p", "t"], server: server, in: directory, name: "second")
        try await first.sql("INSERT INTO p VALUES ('p1', 1); INSERT INTO t VALUES ('c1', 'p1', 'old')")
        try await first.sync()
        try await second.sync()
        return (first, second)
    }

    private static let partings = [
        "DELETE FROM t; DELETE FROM p", "UPDATE p SET id = 'P1'", "UPDATE p SET id = 'p9'",
    ]

    @Test("a row that cannot travel stays", arguments: partings)
    func unable(parting: String) async throws {
        let (first, second) = try await pair()
        try await second.sql(
            """
            INSERT INTO t VALUES (NULL, 'p1', 'only copy'), ('big', 'p1', zeroblob(2000000)),
                ('bad', 'p1', CAST(x'ff' AS TEXT))
            """)
        _ = try? await second.sync()
        #expect(try await second.engine().status().rows.unable == 3)
        try await first.sql(parting)
        for device in [first, second, second] { try await device.sync() }
        #expect(try await second.count("t WHERE id IS NOT 'c1'") == 3)
        let status = try await second.engine().status()
        #expect(status.rows.unable == 3 && !status.isConfirmed)
        #expect(try await second.engine().rejectedOperations().map(\.record).sorted() == ["bad", "big"])
    }

    @Test("an unsent edit is listed, and can be made again", arguments: partings, [false, true])
    func unsent(parting: String, isNew: Bool) async throws {
        let (first, second) = try await pair()
        try await first.sql(parting)
        try await second.sql(
            isNew ? "INSERT INTO t VALUES ('c2', 'p1', 'mine')" : "UPDATE t SET v = 'mine' WHERE id = 'c1'")
        for device in [first, second, first, second] { try await device.sync() }
        let record = isNew ? "c2" : "c1"
        let rows = try await second.rows("SELECT id FROM t WHERE v = 'mine'")
        guard rows.isEmpty else {
            // The children went with the key, and the edit with them.
            #expect(!isNew && parting.hasPrefix("UPDATE"))
            return
        }
        let conflict = try #require(
            try await second.engine().conflicts().first { $0.record == record }, "nothing is told")
        #expect(conflict.whole?["v"] == .text("mine"))
        // The schema asks for a parent again.
        try await second.sql("INSERT OR IGNORE INTO p VALUES ('p1', 'again')")
        try await second.engine().resolve(conflict, with: .keepMine)
        for device in [second, first] { try await device.sync() }
        #expect(try await first.rows("SELECT v FROM t WHERE id = '\(record)'") == [#""mine""#])
        for device in [first, second] { #expect(try await device.engine().verify().isClean) }
    }

    @Test("a reference that is cleared in an unsent edit is listed", arguments: ["SET NULL", "SET DEFAULT"])
    func cleared(action: String) async throws {
        let (first, second) = try await pair(Self.schema(action))
        try await first.sql("DELETE FROM t; DELETE FROM p")
        try await second.sql("INSERT INTO t VALUES ('c2', 'p1', 'mine')")
        for device in [first, second, first] { try await device.sync() }
        #expect(try await first.rows("SELECT id, p, v FROM t") == [#""c2"|NULL|"mine""#])
        let conflict = try #require(try await second.engine().conflicts().first { $0.record == "c2" })
        #expect(conflict.fields.map(\.name) == ["p"] && conflict.fields.first?.mine == .text("p1"))
    }

    @Test("rows that wait for a word go with a conflict each, and nothing waits for a word any more")
    func inferred() async throws {
        let (first, second) = try await pair()
        try await first.sql(
            """
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1200)
            INSERT INTO t SELECT 'n' || i, 'p1', i FROM n
            """)
        for device in [first, second] { try await device.sync() }
        try await second.sql(
            """
            CREATE TABLE fresh AS SELECT id, p, 'unseen ' || v AS v FROM t; DROP TABLE t; \(
                Self.schema().split(separator: "\n")[1])
            INSERT INTO t SELECT * FROM fresh; DROP TABLE fresh
            """)
        try await second.sync()
        #expect(try await second.engine().status().rows.stalled == 1201)
        try await first.sql("PRAGMA foreign_keys = OFF; DELETE FROM p")
        for device in [first, second, second] { try await device.sync() }
        #expect(try await second.count("t") == 0)
        #expect(try await second.engine().inferredEdits().isEmpty)
        #expect(try await second.engine().conflicts().count == 1201)
    }

    @Test("a key of type ANY in a STRICT table takes what looks like a number", arguments: ["", " WITHOUT ROWID"])
    func anyKey(option: String) async throws {
        let directory = try TestDirectory()
        let server = try Device.server(in: directory)
        let schema = "CREATE TABLE t (k ANY PRIMARY KEY NOT NULL, a ANY) STRICT\(option.isEmpty ? "" : ",\(option)")"
        let first = try await Device(schema, tables: ["t"], server: server, in: directory, name: "first")
        let second = try await Device(schema, tables: ["t"], server: server, in: directory, name: "second")
        try await first.sql("INSERT INTO t VALUES ('007', '08'), (7, 7), ('7', '1e3'), (x'07', 2.5)")
        for device in [first, second] { try await device.sync() }
        let rows = "SELECT typeof(k), k, typeof(a), a FROM t ORDER BY typeof(k), k"
        #expect(try await second.rows(rows) == first.rows(rows))
        for device in [first, second] { #expect(try await device.engine().status().isConfirmed) }
    }
}
