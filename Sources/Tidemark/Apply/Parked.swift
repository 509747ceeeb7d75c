import GRDB
import TidemarkWire

/// Rows that the app's schema does not take as things stand: kept whole, shown in the status, tried again.
enum Parked {
    static func cells(_ db: Database, _ shape: TableShape, _ id: RecordID) throws -> [Cell]? {
        guard
            let bytes = try Query(db, "SELECT data FROM tidemark_parked WHERE entity = ?1 AND record = ?2")
                .first(db, [.text(shape.name), .text(id.text)], { $0.blob(0) })
        else { return nil }
        return try decode(bytes, shape)
    }

    static func isEmpty(_ db: Database, _ entity: String) throws -> Bool {
        try Query(db, "SELECT 1 FROM tidemark_parked WHERE entity = ?1 LIMIT 1")
            .first(db, [.text(entity)]) { _ in true } == nil
    }

    static func records(_ db: Database, _ entity: String, _ scope: Scope) throws -> [String] {
        try Query(db, "SELECT record FROM tidemark_parked WHERE entity = ?1 AND scope = ?2 ORDER BY record")
            .rows(db, [.text(entity), .text(scope.name)]) { $0.text(0) }
    }

    static func put(
        _ db: Database, _ shape: TableShape, record: String, scope: Scope, version: Version?, cells: [Cell],
        reason: String, contends: Bool, fresh: Bool
    ) throws {
        try Query(
            db,
            """
            INSERT INTO tidemark_parked(entity, record, scope, version, reason, contends, fresh, data)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
            ON CONFLICT(entity, record) DO UPDATE SET version = coalesce(excluded.version, version),
              reason = excluded.reason, contends = excluded.contends, fresh = excluded.fresh, data = excluded.data
            """
        ).execute([
            .text(shape.name), .text(record), .text(scope.name), .optional(version), .text(reason),
            .integer(contends ? 1 : 0), .integer(fresh ? 1 : 0), .blob(encode(cells, shape)),
        ])
    }

    static func remove(_ db: Database, _ entity: String, _ record: String) throws {
        try Query(db, "DELETE FROM tidemark_parked WHERE entity = ?1 AND record = ?2")
            .execute([.text(entity), .text(record)])
    }

    private static func encode(_ cells: [Cell], _ shape: TableShape) -> [UInt8] {
        var data = DataObject.Builder(capacity: 256)
        for (column, cell) in zip(shape.data, cells) {
            data.append(name: column.wireName) { writer in
                // Text that is no UTF-8 can only come from this device; its bytes are what matters.
                guard case .text(let bytes) = cell, !cell.isSendable else { return writer.cell(cell) }
                writer.cell(.blob(bytes))
            }
        }
        return data.finish().bytes
    }

    private static func decode(_ bytes: [UInt8], _ shape: TableShape) throws -> [Cell] {
        var cells = shape.data.map(\.defaultCell)
        for (index, cell) in try DataObject(stored: bytes).cells(in: shape) { cells[index] = cell }
        return cells
    }
}

extension DatabaseError {
    /// Whether the app's schema refused one row, which must not stop the others.
    var refusesRow: Bool {
        switch resultCode {
        case .SQLITE_CONSTRAINT, .SQLITE_MISMATCH, .SQLITE_TOOBIG, .SQLITE_ERROR: true
        default: false
        }
    }

    /// Whether other rows decide it, so that the row is tried again after each page: a unique value that another one
    /// holds, or a trigger of the app's own that looks for one.
    var dependsOnOthers: Bool { isUniqueViolation || extendedResultCode == .SQLITE_CONSTRAINT_TRIGGER }

    var isUniqueViolation: Bool {
        [.SQLITE_CONSTRAINT_UNIQUE, .SQLITE_CONSTRAINT_PRIMARYKEY, .SQLITE_CONSTRAINT_ROWID]
            .contains(extendedResultCode)
    }

    /// The refusal in words that hold no row data.
    var refusal: String { message ?? "\(extendedResultCode)" }
}
