import GRDB
import GRDBSQLite
import TidemarkWire

/// A prepared statement bound and read with SQLite's own calls, which keep every byte; GRDB's conversions repair text.
///
/// Writes still run through GRDB's `execute`, so that the app's observations hear of them.
struct Query {
    private let statement: Statement
    private let handle: OpaquePointer

    init(_ db: Database, _ sql: String) throws {
        statement = try db.cachedStatement(sql: sql)
        // Bound below with SQLite's calls; GRDB must not look for arguments of its own.
        statement.setUncheckedArguments([])
        handle = statement.sqliteStatement
    }

    // MARK: Binding, from 1

    func reset() { sqlite3_reset(handle) }

    func bind(_ cell: Cell, at index: Int) {
        let index = Int32(index)
        switch cell {
        case .null: sqlite3_bind_null(handle, index)
        case .integer(let value): sqlite3_bind_int64(handle, index, value)
        case .real(let bits): sqlite3_bind_double(handle, index, Double(bitPattern: bits))
        case .text(let bytes): bytes.withUnsafeBytes { bind(text: $0, at: Int(index), copied: true) }
        case .blob(let bytes): bytes.withUnsafeBytes { bind(blob: $0, at: Int(index)) }
        }
    }

    func bind(integer value: Int64, at index: Int) { sqlite3_bind_int64(handle, Int32(index), value) }
    func bind(integer value: Int64?, at index: Int) {
        if let value { bind(integer: value, at: index) } else { bindNull(at: index) }
    }

    func bind(text value: String, at index: Int) {
        var value = value
        value.withUTF8 { bind(text: UnsafeRawBufferPointer($0), at: index, copied: true) }
    }

    func bind(real value: Double, at index: Int) { sqlite3_bind_double(handle, Int32(index), value) }
    func bindNull(at index: Int) { sqlite3_bind_null(handle, Int32(index)) }

    /// `copied: false` leaves the bytes where they are: they must stay until `clear()`.
    func bind(text bytes: UnsafeRawBufferPointer, at index: Int, copied: Bool) {
        guard let start = bytes.baseAddress?.assumingMemoryBound(to: CChar.self) else {
            // An empty buffer may have no address, which SQLite would take for NULL.
            sqlite3_bind_text(handle, Int32(index), "", 0, transient)
            return
        }
        sqlite3_bind_text64(
            handle, Int32(index), start, UInt64(bytes.count), copied ? transient : nil, UInt8(SQLITE_UTF8))
    }

    func bind(blob bytes: UnsafeRawBufferPointer, at index: Int) {
        guard !bytes.isEmpty else {
            sqlite3_bind_zeroblob(handle, Int32(index), 0)
            return
        }
        sqlite3_bind_blob64(handle, Int32(index), bytes.baseAddress, UInt64(bytes.count), transient)
    }

    func clear() {
        sqlite3_reset(handle)
        sqlite3_clear_bindings(handle)
    }

    // MARK: Running

    /// - Throws: `TransactionUndone` where the app's schema has ended the transaction that the statement ran in.
    func execute() throws {
        try UndoneStatements.current?.check(handle)
        let wasInside = isInsideTransaction
        do { try statement.execute() } catch let error as DatabaseError
            where error.refusesRow && wasInside && !isInsideTransaction
        { throw TransactionUndone(cause: error, statement: UndoneStatements.text(of: handle)) }
    }

    private var isInsideTransaction: Bool { sqlite3_get_autocommit(sqlite3_db_handle(handle)) == 0 }

    func execute(_ cells: [Cell]) throws {
        bind(cells)
        try execute()
        sqlite3_reset(handle)
    }

    func bind(_ cells: [Cell]) {
        sqlite3_reset(handle)
        for (offset, cell) in cells.enumerated() { bind(cell, at: offset + 1) }
    }

    /// Steps a reading statement; `false` at the end.
    func step(_ db: Database) throws -> Bool {
        switch sqlite3_step(handle) {
        case SQLITE_ROW: return true
        case SQLITE_DONE:
            sqlite3_reset(handle)
            return false
        case let code:
            let message = String(cString: sqlite3_errmsg(db.sqliteConnection))
            sqlite3_reset(handle)
            throw DatabaseError(resultCode: ResultCode(rawValue: code), message: message)
        }
    }

    func rows<T>(_ db: Database, _ cells: [Cell] = [], _ read: (Query) throws -> T) throws -> [T] {
        bind(cells)
        defer { reset() }
        var result: [T] = []
        while try step(db) { result.append(try read(self)) }
        return result
    }

    func first<T>(_ db: Database, _ cells: [Cell] = [], _ read: (Query) throws -> T) throws -> T? {
        bind(cells)
        defer { reset() }
        return try step(db) ? try read(self) : nil
    }

    // MARK: Reading, from 0

    func cell(_ column: Int) -> Cell {
        let column = Int32(column)
        switch sqlite3_column_type(handle, column) {
        case SQLITE_INTEGER: return .integer(sqlite3_column_int64(handle, column))
        case SQLITE_FLOAT: return .real(sqlite3_column_double(handle, column))
        case SQLITE_TEXT:
            let start = UnsafeRawPointer(sqlite3_column_text(handle, column))
            return .text(bytes(start, Int(sqlite3_column_bytes(handle, column))))
        case SQLITE_BLOB:
            let start = sqlite3_column_blob(handle, column)
            return .blob(bytes(start, Int(sqlite3_column_bytes(handle, column))))
        default: return .null
        }
    }

    func integer(_ column: Int) -> Int64 { sqlite3_column_int64(handle, Int32(column)) }

    func optionalInteger(_ column: Int) -> Int64? {
        if case .integer(let value) = cell(column) { value } else { nil }
    }

    func text(_ column: Int) -> String { optionalText(column) ?? "" }

    func optionalText(_ column: Int) -> String? {
        if case .text(let bytes) = cell(column) { String(decoding: bytes, as: UTF8.self) } else { nil }
    }

    func optionalBlob(_ column: Int) -> [UInt8]? { cell(column) == .null ? nil : blob(column) }

    func blob(_ column: Int) -> [UInt8] {
        switch cell(column) {
        case .blob(let bytes), .text(let bytes): bytes
        case .null, .integer, .real: []
        }
    }

    func cells(_ range: Range<Int>) -> [Cell] { range.map(cell) }

    private func bytes(_ start: UnsafeRawPointer?, _ count: Int) -> [UInt8] {
        guard let start, count > 0 else { return [] }
        return Array(UnsafeRawBufferPointer(start: start, count: count))
    }
}

/// Statements that are kept for the length of one transaction. GRDB lets go of one by which the app's schema has
/// refused a row, and for the next row it would be compiled anew, with all triggers and views that it comes to.
final class RowStatements {
    private var queries: [String: Query] = [:]

    func query(_ db: Database, _ sql: String) throws -> Query {
        if let known = queries[sql] { return known }
        let query = try Query(db, sql)
        queries[sql] = query
        return query
    }
}

extension Database {
    /// The collation that a column was declared with, by which it is compared where no index says otherwise.
    func declaredCollation(of column: String, in table: String) -> String? {
        var name: UnsafePointer<CChar>?
        let code = sqlite3_table_column_metadata(sqliteConnection, "main", table, column, nil, &name, nil, nil, nil)
        return code == SQLITE_OK ? name.map { String(cString: $0) } : nil
    }
}

extension Cell {
    static func text(_ string: String) -> Cell { .text(Array(string.utf8)) }
    static func optional(_ integer: Int64?) -> Cell { integer.map(Cell.integer) ?? .null }
    static func optional(_ string: String?) -> Cell { string.map { .text(Array($0.utf8)) } ?? .null }
}

/// SQLITE_TRANSIENT: the C macro casts -1 to a function pointer, which Swift does not import.
private let transient = unsafeBitCast(-1, to: sqlite3_destructor_type.self)

extension Query {
    /// The number that a statement counts.
    static func count(_ db: Database, _ sql: String) throws -> Int {
        Int(try Query(db, sql).first(db) { $0.integer(0) } ?? 0)
    }
}
