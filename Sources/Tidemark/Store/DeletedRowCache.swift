import Foundation
import GRDB
import TidemarkWire

/// Rows that were deleted elsewhere, as they last came from the server (E8).
enum DeletedRowCache {
    /// Rows that are kept at most; the oldest go first.
    static let limit = 10_000

    static func keep(
        _ db: Database, _ shape: TableSchema, record: RecordID, scope: Scope, cells: [Cell], now: Int64
    ) throws {
        try forget(db, shape.name, record.text)
        try Query(
            db, "INSERT INTO tidemark_deleted_row(scope, entity, record, data, deleted_at) VALUES (?1, ?2, ?3, ?4, ?5)"
        ).execute([
            .text(scope.name), .text(shape.name), .text(record.text), .blob(QuarantinedRow.encode(cells, shape)),
            .integer(now),
        ])
        try Query(db, "DELETE FROM tidemark_deleted_row WHERE id <= (SELECT max(id) FROM tidemark_deleted_row) - ?1")
            .execute([.integer(Int64(limit))])
    }

    static func all(_ db: Database, _ schema: SyncSchema, table: String?) throws -> [DeletedRecord] {
        let records = try Query(
            db,
            """
            SELECT id, scope, entity, record, data, deleted_at FROM tidemark_deleted_row
            WHERE ?1 IS NULL OR entity = ?1 ORDER BY id DESC
            """
        ).rows(db, [.optional(table.map { schema[$0]?.name ?? $0 })]) { row -> DeletedRecord? in
            guard let scope = Scope(row.text(1)), let data = try? DataObject(stored: row.blob(4)) else { return nil }
            var fields: [String: Value] = [:]
            for field in data.fields { fields[data.nameString(field)] = data.value(data.nameString(field)) }
            return DeletedRecord(
                id: row.integer(0), scope: scope, entity: row.text(2), record: row.text(3), fields: fields,
                deletedAt: Date(milliseconds: row.integer(5)))
        }
        // A record that somebody made anew is no longer a deleted one.
        return try records.compactMap { $0 }.filter { record in
            guard let shape = schema[record.entity], let id = RecordID(record.record), let key = shape.key(of: id)
            else { return false }
            return try RecordTable(shape).row(db, key) == nil
        }
    }

    static func restore(_ db: Database, _ schema: SyncSchema, _ record: DeletedRecord) throws {
        guard let shape = schema[record.entity], let id = RecordID(record.record), let key = shape.key(of: id),
            let bytes = try Query(db, "SELECT data FROM tidemark_deleted_row WHERE id = ?1")
                .first(db, [.integer(record.id)], { $0.blob(0) })
        else { return }
        let table = RecordTable(shape)
        // Captured like any insert of the app's.
        if try table.row(db, key) == nil { try table.writeRow(db, key, QuarantinedRow.decode(bytes, shape)) }
        try forget(db, record.entity, record.record)
    }

    private static func forget(_ db: Database, _ entity: String, _ record: String) throws {
        try Query(db, "DELETE FROM tidemark_deleted_row WHERE entity = ?1 AND record = ?2")
            .execute([.text(entity), .text(record)])
    }

    static func clear(_ db: Database, _ scope: Scope, entity: String) throws {
        try Query(db, "DELETE FROM tidemark_deleted_row WHERE scope = ?1 AND entity = ?2")
            .execute([.text(scope.name), .text(entity)])
    }

    /// Drops what was kept long enough, and all of tables that do not keep any more.
    static func prune(_ db: Database, _ schema: SyncSchema, now: Int64) throws {
        let entities = try Query(db, "SELECT DISTINCT entity FROM tidemark_deleted_row").rows(db) { $0.text(0) }
        for entity in entities {
            let limit = schema[entity]?.keepsDeleted.map { now.saturatingSubtracting($0) } ?? .max
            try Query(db, "DELETE FROM tidemark_deleted_row WHERE entity = ?1 AND deleted_at <= ?2")
                .execute([.text(entity), .integer(limit)])
        }
    }

    /// Whether a row of a record is kept, whichever scope it was deleted in.
    static func contains(_ db: Database, _ name: RecordName) throws -> Bool {
        try Query(db, "SELECT 1 FROM tidemark_deleted_row WHERE entity = ?1 AND record = ?2 LIMIT 1")
            .first(db, [.text(name.entity), .text(name.record)]) { _ in true } ?? false
    }
}
