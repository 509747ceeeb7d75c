import GRDB
import GRDBSQLite

/// A prepared statement that is bound and read with SQLite's own calls: one that each operation of a push runs. GRDB
/// first makes a list of boxed values, which takes longer than many a statement.
///
/// It runs past GRDB's observation of transactions, which nothing in a server asks for. Positions of what is bound
/// begin at 1, those of columns at 0.
struct BoundStatement {
    private let statement: Statement
    private let handle: OpaquePointer

    init(_ db: Database, _ sql: String) throws {
        statement = try db.cachedStatement(sql: sql)
        handle = statement.sqliteStatement
    }

    // MARK: Binding

    func bind(_ integer: Int64?, at index: Int32) throws {
        try check(integer.map { sqlite3_bind_int64(handle, index, $0) } ?? sqlite3_bind_null(handle, index))
    }

    func bind(_ text: String, at index: Int32) throws {
        var text = text
        let code = text.withUTF8 { bytes -> Int32 in
            // An empty text may have no address, which SQLite would take for NULL.
            guard let start = bytes.baseAddress else { return sqlite3_bind_text(handle, index, "", 0, transient) }
            return start.withMemoryRebound(to: CChar.self, capacity: bytes.count) {
                sqlite3_bind_text64(handle, index, $0, UInt64(bytes.count), transient, UInt8(SQLITE_UTF8))
            }
        }
        try check(code)
    }

    func bind(_ blob: [UInt8]?, at index: Int32) throws {
        guard let blob else { return try check(sqlite3_bind_null(handle, index)) }
        let code = blob.withUnsafeBytes { bytes in
            bytes.isEmpty
                ? sqlite3_bind_zeroblob(handle, index, 0)
                : sqlite3_bind_blob64(handle, index, bytes.baseAddress, UInt64(bytes.count), transient)
        }
        try check(code)
    }

    /// A value that could not be bound would be NULL.
    private func check(_ code: Int32) throws {
        guard code == SQLITE_OK else { throw failure(code) }
    }

    // MARK: Running

    /// Runs a writing statement to its end, and lets go of what was bound.
    ///
    /// - Throws: `DatabaseError`; of `SQLITE_ABORT` where SQLite has undone the transaction by itself, as it does when
    ///   the disk is full: the row would be committed alone.
    func run(_ db: Database) throws {
        defer { clear() }
        guard db.isInsideTransaction else { throw failure(SQLITE_ABORT, "the transaction was undone") }
        while try step() {}
    }

    /// Reads the first row; `nil` where there is none.
    func first<Result>(_ read: (BoundStatement) throws -> Result) throws -> Result? {
        defer { clear() }
        return try step() ? try read(self) : nil
    }

    private func step() throws -> Bool {
        switch sqlite3_step(handle) {
        case SQLITE_ROW: return true
        case SQLITE_DONE: return false
        // GRDB interrupts for a cancelled task, and nothing else does.
        case SQLITE_INTERRUPT: throw CancellationError()
        case let code: throw failure(code)
        }
    }

    private func failure(_ code: Int32, _ message: String? = nil) -> DatabaseError {
        DatabaseError(
            resultCode: ResultCode(rawValue: code),
            message: message ?? String(cString: sqlite3_errmsg(sqlite3_db_handle(handle))), sql: statement.sql)
    }

    private func clear() {
        sqlite3_reset(handle)
        sqlite3_clear_bindings(handle)
    }

    // MARK: Reading

    func integer(_ column: Int32) -> Int64 { sqlite3_column_int64(handle, column) }

    func blob(_ column: Int32) -> [UInt8]? {
        guard sqlite3_column_type(handle, column) != SQLITE_NULL else { return nil }
        let start = sqlite3_column_blob(handle, column)
        return Array(UnsafeRawBufferPointer(start: start, count: Int(sqlite3_column_bytes(handle, column))))
    }
}

/// SQLITE_TRANSIENT: the C macro casts -1 to a function pointer, which Swift does not import.
private let transient = unsafeBitCast(-1, to: sqlite3_destructor_type.self)
