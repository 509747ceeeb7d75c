import GRDB
import GRDBSQLite
import Testing

@testable import TidemarkSQLite

@Suite("Statements of the SQLite store that are bound with SQLite's own calls")
struct BoundStatementTests {
    private let queue: DatabaseQueue

    init() throws {
        queue = try DatabaseQueue()
        try queue.write { db in try db.execute(sql: "CREATE TABLE t (a INTEGER UNIQUE, b TEXT NOT NULL, c BLOB)") }
    }

    private func insert(_ db: Database, _ a: Int64?, _ b: String, _ c: [UInt8]?) throws {
        let insert = try BoundStatement(db, "INSERT INTO t VALUES (?, ?, ?)")
        try insert.bind(a, at: 1)
        try insert.bind(b, at: 2)
        try insert.bind(c, at: 3)
        try insert.run(db)
    }

    @Test("Every byte arrives, and what is empty is not NULL")
    func bytes() throws {
        try queue.write { db in
            try insert(db, .min, "", [])
            try insert(db, nil, "a\0é", nil)
            try insert(db, .max, String(repeating: "long ", count: 1000), [0, 255])
            let rows = try String.fetchAll(
                db,
                sql: """
                    SELECT quote(a) || ' ' || substr(hex(CAST(b AS BLOB)), 1, 8) || ' ' || quote(c)
                    FROM t ORDER BY rowid
                    """)
            #expect(
                rows == ["-9223372036854775808  X''", "NULL 6100C3A9 NULL", "9223372036854775807 6C6F6E67 X'00FF'"])
            let read = try BoundStatement(db, "SELECT a, c, typeof(b) FROM t WHERE a IS ?")
            try read.bind(.max, at: 1)
            #expect(try read.first { ($0.integer(0), $0.blob(1)) }! == (.max, [0, 255]))
            try read.bind(nil as Int64?, at: 1)
            #expect(try read.first { $0.blob(1) } == .some(nil))
            try read.bind(.min, at: 1)
            #expect(try read.first { $0.blob(1) } == [])
        }
    }

    @Test("A row is not written alone where the transaction is gone")
    func alone() throws {
        queue.inDatabase { db in
            let error = #expect(throws: DatabaseError.self) { try insert(db, 1, "b", nil) }
            #expect(error?.resultCode == .SQLITE_ABORT)
        }
        #expect(try queue.read { db in try Int.fetchOne(db, sql: "SELECT count(*) FROM t") } == 0)
    }

    @Test("A refused row says why, and the next one is written")
    func refused() throws {
        try queue.write { db in
            try insert(db, 1, "b", nil)
            let error = #expect(throws: DatabaseError.self) { try insert(db, 1, "b", nil) }
            #expect(error?.extendedResultCode == .SQLITE_CONSTRAINT_UNIQUE)
            try insert(db, 2, "b", nil)
            #expect(try Int.fetchOne(db, sql: "SELECT count(*) FROM t") == 2)
        }
    }

    @Test("A statement that is interrupted, as for a cancelled task, says that the task was cancelled")
    func cancelled() throws {
        try queue.write { db in
            let connection = Int(bitPattern: db.sqliteConnection)
            let stop = DatabaseFunction("stop", argumentCount: 0) { _ in
                sqlite3_interrupt(OpaquePointer(bitPattern: connection))
                return 1
            }
            db.add(function: stop)
            let read = try BoundStatement(
                db, "WITH RECURSIVE n(i) AS (SELECT stop() UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n")
            #expect(throws: CancellationError.self) { try read.first { $0.integer(0) } }
        }
    }
}
