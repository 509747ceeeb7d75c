import Foundation
import GRDB
import GRDBSQLite
import TidemarkServer

// The rows of a scope as a reader sees them.
extension SQLiteScope {
    func newest(entity: String, record: RecordID) throws -> StoredRecord? {
        guard let id else { return nil }
        let select = try newestSelect.get()
        try select.bind(id, at: 1)
        try select.bind(entity, at: 2)
        try select.bind(record.text, at: 3)
        let found = try select.first { row in
            let newest = StoredRecord(
                version: row.integer(0), time: row.integer(3), payload: row.blob(1), fieldVersions: row.blob(2),
                originals: row.blob(4))
            return (newest: newest, kind: RowKind(rawValue: row.integer(5)))
        }
        lastNewest = (entity, record, found?.kind, found?.newest.payload, found?.newest.size ?? ScopeSize())
        return found?.newest
    }

    func row(entity: String, record: RecordID, at version: Version) throws -> StoredRecord? {
        guard let id else { return nil }
        let statement = try db.cachedStatement(
            sql: """
                SELECT version, CASE kind WHEN 1 THEN NULL ELSE payload END, field_versions, time, originals FROM change
                WHERE scope = ?1 AND entity = ?2 AND record = ?3 AND version <= ?4
                  AND (superseded_by IS NULL OR superseded_by > ?4) ORDER BY version DESC LIMIT 1
                """)
        return try Row.fetchOne(statement, arguments: [id, entity, record.text, version]).map(stored)
    }

    private func stored(_ row: Row) -> StoredRecord {
        StoredRecord(
            version: row[0], time: row[3], payload: (row[1] as Data?).map { [UInt8]($0) },
            fieldVersions: (row[2] as Data?).map { [UInt8]($0) }, originals: (row[4] as Data?).map { [UInt8]($0) })
    }

    func newest(entity: String, record: RecordID, _ visit: (BorrowedChange) -> Void) throws {
        guard let id else { return }
        let statement = try db.cachedStatement(
            sql: """
                SELECT version, kind, time, entity, record, payload, NULL FROM change
                WHERE scope = ? AND entity = ? AND record = ? AND superseded_by IS NULL ORDER BY version DESC LIMIT 1
                """)
        try visitRows(statement, [id, entity, record.text]) { change in
            visit(change)
            return false
        }
    }

    func changes(
        after position: Version, through horizon: Version, tombstonesAfter: Version,
        _ visit: (BorrowedChange) -> Bool
    ) throws {
        guard let id else { return }
        let statement = try db.cachedStatement(
            sql: """
                SELECT version, kind, time, entity, record, payload,
                  CASE WHEN kind = 0 AND length(field_versions) <= \(BorrowedChange.largestNote)
                    THEN field_versions END FROM change
                WHERE scope = ?1 AND version > ?2 AND version <= ?3
                  AND (superseded_by IS NULL OR superseded_by > ?3) AND (kind IN (0, 2) OR version > ?4)
                ORDER BY version
                """)
        try visitRows(statement, [id, position, horizon, tombstonesAfter], visit)
    }

    func records(
        of entity: String, above base: Version, at horizon: Version?, after record: RecordID?,
        _ visit: (BorrowedChange) -> Bool
    ) throws {
        guard let id else { return }
        let statement = try db.cachedStatement(
            sql: """
                SELECT version, kind, time, entity, record, payload, NULL FROM change
                WHERE scope = ?1 AND entity = ?2 AND record > ?3 AND version > ?4 AND version <= ?5
                  AND (superseded_by IS NULL OR superseded_by > ?5) AND (kind <> 1 OR ?4 > 0)
                ORDER BY record
                """)
        try visitRows(statement, [id, entity, record?.text ?? "", base, horizon ?? Int64.max], visit)
    }

    func aged(
        after version: Version, through last: Version, before moment: Int64, events: Bool, limit: Int
    ) throws -> (through: Version, rows: Int) {
        guard let id else { return (version, 0) }
        let statement = try db.cachedStatement(
            sql: """
                SELECT version, kind, time FROM change WHERE scope = ? AND version > ? AND version <= ?
                ORDER BY version LIMIT ?
                """)
        var aged = (through: version, rows: 0)
        let rows = try Row.fetchCursor(statement, arguments: [id, version, last, limit])
        while let row = try rows.next(), (row[2] as Int64) < moment {
            aged.through = row[0]
            if RowKind(rawValue: row[1])?.expires(withEvents: events) == true { aged.rows += 1 }
        }
        return aged
    }

    private func visitRows(
        _ statement: Statement, _ arguments: StatementArguments, _ visit: (BorrowedChange) -> Bool
    ) throws {
        let cursor = try Row.fetchCursor(statement, arguments: arguments)
        // The columns are read where SQLite holds them: a row goes from its page into the answer in one copy.
        let raw = statement.sqliteStatement
        while try cursor.next() != nil {
            guard let kind = RowKind(rawValue: sqlite3_column_int64(raw, 1)) else {
                throw DatabaseError(resultCode: .SQLITE_CORRUPT, message: "A row of an unknown kind.")
            }
            let change = BorrowedChange(
                version: sqlite3_column_int64(raw, 0), kind: kind, time: sqlite3_column_int64(raw, 2),
                entity: column(raw, 3), record: column(raw, 4), payload: column(raw, 5),
                fieldVersions: column(raw, 6))
            if !visit(change) { return }
        }
    }

    private func column(_ statement: OpaquePointer, _ index: Int32) -> UnsafeRawBufferPointer {
        let start = sqlite3_column_blob(statement, index)
        return UnsafeRawBufferPointer(start: start, count: Int(sqlite3_column_bytes(statement, index)))
    }
}
