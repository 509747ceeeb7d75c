import GRDB
import Testing

@testable import Tidemark

@Suite("Schema: a column's default is what SQLite puts into a new row")
struct ColumnDefaultTests {
    private static let expressions = [
        "NULL", "null", "0", "7", "-0", "+5", "-12", "007", "9223372036854775807", "-9223372036854775808",
        "9223372036854775808", "9007199254740993", "1.0", "1e3", "0x10", "TRUE", "FALSE", "'a'", "''", "'7'", "' 7 '",
        "'1.0'", "'1e2'", "'it''s'", "''''", "'ä'", "('a' || 'b')", "x'00ff'", "\"quoted\"", "word", "(1 + 1)",
        "'null'", "'0x10'", "'inf'", "'x\u{0301}'",
    ]

    @Test("for each type and each kind of literal", arguments: ["INTEGER", "TEXT", "BLOB", "REAL", "NUMERIC", ""])
    func defaults(type: String) throws {
        let queue = try DatabaseQueue()
        try queue.write { db in
            for expression in Self.expressions {
                try db.execute(sql: "CREATE TABLE t (id TEXT PRIMARY KEY, c \(type) DEFAULT \(expression))")
                try db.execute(sql: "INSERT INTO t(id) VALUES ('1')")
                let shape = try TableSchema(db, table: "t", rule: .constant("w:1"))
                let held = try RecordTable(shape).row(db, [.text(Array("1".utf8))])
                #expect(held == shape.data.map(\.defaultCell), "\(type) DEFAULT \(expression)")
                try db.execute(sql: "DROP TABLE t")
            }
        }
    }

    @Test("a plain default is read without a change of the schema, after which all statements are compiled anew")
    func plain() throws {
        let queue = try DatabaseQueue()
        try queue.write { db in
            try db.execute(
                sql: "CREATE TABLE t (id TEXT PRIMARY KEY, n INTEGER DEFAULT 0, r REAL DEFAULT 1, s TEXT DEFAULT 'a')")
            let before = try Int.fetchOne(db, sql: "PRAGMA temp.schema_version")
            _ = try TableSchema(db, table: "t", rule: .constant("w:1"))
            #expect(try Int.fetchOne(db, sql: "PRAGMA temp.schema_version") == before)
        }
    }
}
