import GRDB
import TidemarkWire

/// Rows that a scope holds and the table does not: kept whole, shown in the status, tried again.
enum QuarantinedRow {
    /// A row that left for another scope stays here until the server has taken its delete (Protocol.md).
    enum Move: Int64 {
        /// The row does not leave.
        case no = 0
        /// The server has not said yet whether it took the row in its new scope.
        case waiting = 1
        /// The server took the row in its new scope; the delete here is to be sealed.
        case moved = 2
        /// The server did not take it there, and the row was deleted here meanwhile: the delete here is to be sealed.
        case deleted = 3
        /// The delete is sealed, and has no verdict yet.
        case sealed = 4
    }

    struct Entry {
        var cells: [Cell]
        var version: Version?
        var move: Move
    }

    /// - Parameter scope: by name; the empty text stands for rows that were never sent and belong to none.
    static func entry(_ db: Database, _ shape: TableSchema, _ id: RecordID, _ scope: String) throws -> Entry? {
        try Query(
            db, "SELECT data, version, move FROM tidemark_quarantine WHERE entity = ?1 AND record = ?2 AND scope = ?3"
        ).first(db, [.text(shape.name), .text(id.text), .text(scope)]) { row in
            Entry(
                cells: try decode(row.blob(0), shape), version: row.optionalInteger(1),
                move: Move(rawValue: row.integer(2)) ?? .no)
        }
    }

    /// A record's row that would be in the table if the schema took it, with the edits made here.
    static func cells(_ db: Database, _ shape: TableSchema, _ id: RecordID, _ scope: String) throws -> [Cell]? {
        guard let entry = try entry(db, shape, id, scope), entry.move == .no else { return nil }
        return entry.cells
    }

    /// Whether any scope has the record here, off the table.
    static func exists(_ db: Database, _ entity: String, _ record: String) throws -> Bool {
        try Query(db, "SELECT 1 FROM tidemark_quarantine WHERE entity = ?1 AND record = ?2 LIMIT 1")
            .first(db, [.text(entity), .text(record)]) { _ in true } ?? false
    }

    static func isEmpty(_ db: Database, _ entity: String) throws -> Bool {
        try Query(db, "SELECT 1 FROM tidemark_quarantine WHERE entity = ?1 LIMIT 1")
            .first(db, [.text(entity)]) { _ in true } == nil
    }

    static func records(_ db: Database, _ entity: String, _ scope: Scope) throws -> [String] {
        try Query(db, "SELECT record FROM tidemark_quarantine WHERE entity = ?1 AND scope = ?2 ORDER BY record")
            .rows(db, [.text(entity), .text(scope.name)]) { $0.text(0) }
    }

    static func put(
        _ db: Database, _ shape: TableSchema, record: String, scope: String, version: Version?, cells: [Cell],
        reason: String, contends: Bool, fresh: Bool
    ) throws {
        try Query(
            db,
            """
            INSERT INTO tidemark_quarantine(entity, record, scope, version, reason, contends, fresh, data)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
            ON CONFLICT(entity, record, scope) DO UPDATE SET version = coalesce(excluded.version, version),
              reason = excluded.reason, contends = excluded.contends, fresh = excluded.fresh, data = excluded.data
            """
        ).execute([
            .text(shape.name), .text(record), .text(scope), .optional(version), .text(reason),
            .integer(contends ? 1 : 0), .integer(fresh ? 1 : 0), .blob(encode(cells, shape)),
        ])
        try changed(db)
    }

    static func remove(_ db: Database, _ entity: String, _ record: String, _ scope: String) throws {
        try Query(db, "DELETE FROM tidemark_quarantine WHERE entity = ?1 AND record = ?2 AND scope = ?3")
            .execute([.text(entity), .text(record), .text(scope)])
        try changed(db)
    }

    /// Tells the app's observations, which SQLite tells nothing of a table WITHOUT ROWID.
    static func changed(_ db: Database) throws {
        try db.notifyChanges(in: Table("tidemark_quarantine"))
    }

    /// The app made a record anew whose edited row was quarantined: that row is no more, also where the new one was
    /// taken away again. A quarantined row of a record that was never sent is its own only where no scope of this
    /// file can have brought it.
    static func forgetOwn(_ db: Database, _ entity: String, _ record: String, _ shadow: Shadow) throws {
        try Query(
            db,
            """
            DELETE FROM tidemark_quarantine WHERE entity = ?1 AND record = ?2 AND move = 0
              AND CASE WHEN ?3 IS NULL THEN scope NOT IN (SELECT name FROM tidemark_scope) ELSE scope = ?3 END
            """
        ).execute([.text(entity), .text(record), .optional(shadow.scope)])
        try changed(db)
    }

    static func encode(_ cells: [Cell], _ shape: TableSchema) -> [UInt8] {
        var data = DataObject.Builder(capacity: 256)
        for (column, cell) in zip(shape.data, cells) {
            data.append(name: column.wireName) { $0.kept(cell) }
        }
        return data.finish().bytes
    }

    static func decode(_ bytes: [UInt8], _ shape: TableSchema) throws -> [Cell] {
        var cells = shape.data.map(\.defaultCell)
        for (index, cell) in try DataObject(stored: bytes).cells(in: shape) { cells[index] = cell }
        return cells
    }
}

extension RecordTable {
    /// Writes a record's row, with what was edited here. A row that the app's schema refuses is quarantined: its old
    /// row would pass for an edit.
    func writeOrQuarantine(_ db: Database, _ key: [Cell], _ id: RecordID, _ cells: [Cell], scope: String) throws {
        do { try write(db, key, cells) } catch let error as DatabaseError where error.refusesRow {
            try attemptDelete(db, key)
            try quarantineEdits(db, key)
            try QuarantinedRow.put(
                db, shape, record: id.text, scope: scope, version: nil, cells: cells, reason: error.refusal,
                contends: error.dependsOnOthers, fresh: false)
        }
    }
}
