import GRDB
import Testing
import TidemarkWire

@testable import Tidemark

@Suite("Which scope a row is in: the code and the SQL say the same")
struct ScopeRuleTests {
    private func shape(
        _ columns: String, _ rule: SyncedTable.ScopeRule = .column("w", prefix: "w:")
    ) throws -> (DatabaseQueue, TableSchema) {
        let queue = try DatabaseQueue()
        let shape = try queue.write { db in
            try db.execute(sql: "CREATE TABLE t (id TEXT PRIMARY KEY, \(columns))")
            return try TableSchema(db, table: "t", rule: rule)
        }
        return (queue, shape)
    }

    @Test(
        "for every kind of value, in a column of any type",
        arguments: ["w", "w TEXT", "w TEXT COLLATE NOCASE", "w INTEGER", "w NUMERIC", "w REAL"])
    func agree(column: String) throws {
        let (queue, shape) = try shape(column)
        let values = [
            "NULL", "''", "'1'", "1", "01", "'01'", "-7", "1.5", "1e300", "'a b'", "'é'", "x'41'", "'A'", "'a'",
            "'a' || char(0)", "char(0)", "'a-b.c_d:e@f'", "'[x]'", "'" + String(repeating: "x", count: 126) + "'",
            "'" + String(repeating: "x", count: 127) + "'", "9223372036854775807", "-9223372036854775808",
        ]
        try queue.write { db in
            for (index, value) in values.enumerated() {
                try db.execute(sql: "INSERT INTO t VALUES ('\(index)', \(value))")
            }
            let rows = try Query(db, "SELECT id, w, \(shape.scopeSQL("t")) FROM t").rows(db) { row in
                (key: row.cells(0..<1), cells: row.cells(1..<2), name: row.text(2))
            }
            #expect(rows.count == values.count)
            var scopes: Set<Scope> = ["w:1", "w:none"]
            for row in rows {
                let scope = shape.scope(ofKey: row.key, row.cells)
                #expect(row.name == scope?.name ?? "", "\(row.cells)")
                if let scope { scopes.insert(scope) }
            }
            for scope in scopes {
                let found = try Query(db, "SELECT id FROM t WHERE \(shape.isInSQL(scope, "t"))")
                    .rows(db) { $0.cells(0..<1) }
                let expected = rows.filter { shape.scope(ofKey: $0.key, $0.cells) == scope }.map(\.key)
                #expect(Set(found) == Set(expected), "\(scope)")
            }
        }
    }

    @Test("an index on the column serves the question for a scope's rows")
    func indexed() throws {
        let (queue, shape) = try shape("w TEXT")
        try queue.write { db in
            try db.execute(sql: "CREATE INDEX t_w ON t(w)")
            let plan = try Row.fetchAll(
                db, sql: "EXPLAIN QUERY PLAN SELECT id FROM t WHERE \(shape.isInSQL("w:1", "t"))")
            #expect(plan.first?["detail"] == "SEARCH t USING INDEX t_w (w=?)")
        }
    }

    @Test("a rule survives its writing into the file")
    func description() {
        let rules: [SyncedTable.ScopeRule] = [
            .constant("user:42"), .column("w", prefix: "w:"), .column("my column"), .column("w"),
        ]
        for rule in rules { #expect(SyncedTable.ScopeRule(rule.description) == rule) }
        #expect(SyncedTable.ScopeRule("later kind") == nil)
    }

    @Test("a table holds rows of the scopes that its rule can name")
    func mayHaveRows() {
        #expect(SyncedTable.ScopeRule.column("w", prefix: "w:").mayHaveRows(in: "w:1"))
        #expect(!SyncedTable.ScopeRule.column("w", prefix: "w:").mayHaveRows(in: "w:"))
        #expect(!SyncedTable.ScopeRule.column("w", prefix: "w:").mayHaveRows(in: "user:1"))
        #expect(SyncedTable.ScopeRule.column("w").mayHaveRows(in: "user:1"))
        #expect(!SyncedTable.ScopeRule.constant("w:1").mayHaveRows(in: "w:2"))
    }

    @Test("a column that the table lacks, and a prefix that begins no scope's name, are refused")
    func refused() throws {
        #expect(throws: SyncError.self) { try shape("w TEXT", .column("v")) }
        #expect(throws: SyncError.self) { try shape("v TEXT, w TEXT AS (v)", .column("w")) }
        let error = #expect(throws: SyncError.self) {
            try SyncedTable.resolve([.table("t", scope: .column("w", prefix: "a b"))], scopes: ["w:1"])
        }
        #expect(error?.code == .configurationInvalid)
    }
}
