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

    /// Returns the row of an edited record that the schema keeps off the table; `nil` where there is none, or the app
    /// has deleted it.
    static func edited(
        _ db: Database, _ shape: TableSchema, _ id: RecordID, _ shadow: Shadow?, _ scope: String
    ) throws -> [Cell]? {
        guard let shadow, !shadow.isGone else { return nil }
        return try cells(db, shape, id, scope)
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

    /// The table's rows as they are kept, each with its record and scope.
    static func data(_ db: Database, of entity: String) throws -> [(record: String, data: [UInt8], scope: String)] {
        try Query(db, "SELECT record, data, scope FROM tidemark_quarantine WHERE entity = ?1")
            .rows(db, [.text(entity)]) { ($0.text(0), $0.blob(1), $0.text(2)) }
    }

    /// The rows that wait for their place in a table, each with its record and its scope; `nil` stands for none.
    static func rows(
        _ db: Database, _ shape: TableSchema
    ) throws -> [(record: String, scope: Scope?, cells: [Cell])] {
        try Query(db, "SELECT record, scope, data FROM tidemark_quarantine WHERE entity = ?1 AND move = 0")
            .rows(db, [.text(shape.name)]) { ($0.text(0), Scope($0.text(1)), try decode($0.blob(2), shape)) }
    }

    /// The records of a table with rows that were refused for this reason.
    static func records(_ db: Database, _ entity: String, refusedFor reason: String) throws -> [String] {
        try Query(db, "SELECT record FROM tidemark_quarantine WHERE entity = ?1 AND reason = ?2")
            .rows(db, [.text(entity), .text(reason)]) { $0.text(0) }
    }

    /// Whether another scope has the record too, and its row contends for the place in the table.
    static func isContending(
        _ db: Database, _ entity: String, _ record: String, besides scope: Scope
    ) throws -> Bool {
        try Query(
            db,
            """
            SELECT 1 FROM tidemark_quarantine
            WHERE entity = ?1 AND record = ?2 AND scope <> ?3 AND move = 0 AND contends LIMIT 1
            """
        ).first(db, [.text(entity), .text(record), .text(scope.name)]) { _ in true } ?? false
    }

    /// The next row of a table that is due to be tried again, by record and scope; `nil` behind the last one.
    static func nextDue(
        _ db: Database, _ entity: String, after last: (record: String, scope: String)
    ) throws -> (record: String, scope: String)? {
        try Query(
            db,
            """
            SELECT record, scope FROM tidemark_quarantine
            WHERE entity = ?1 AND record >= ?2 AND (record, scope) > (?2, ?3) AND move = 0 AND (contends OR fresh)
            ORDER BY record, scope LIMIT 1
            """
        ).first(db, [.text(entity), .text(last.record), .text(last.scope)]) { ($0.text(0), $0.text(1)) }
    }

    /// Keeps a row.
    ///
    /// - Parameters:
    ///   - reason: why the row is not in the table, for people.
    ///   - contends: other rows decide whether the schema takes the row, so that it is tried after each page. Any other
    ///     row is tried again where the row or the app's schema has changed: the column `fresh` says so, and
    ///     ``tryAgain(_:except:)`` and ``rewrite(_:_:_:_:data:)`` set it.
    /// - Throws: `DatabaseError` where the file cannot be written.
    static func put(
        _ db: Database, _ shape: TableSchema, record: String, scope: String, version: Version?, cells: [Cell],
        reason: String, contends: Bool
    ) throws {
        try Query(
            db,
            """
            INSERT INTO tidemark_quarantine(entity, record, scope, version, reason, contends, fresh, data)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, 0, ?7)
            ON CONFLICT(entity, record, scope) DO UPDATE SET version = coalesce(excluded.version, version),
              reason = excluded.reason, contends = excluded.contends, fresh = excluded.fresh, data = excluded.data
            """
        ).execute([
            .text(shape.name), .text(record), .text(scope), .optional(version), .text(reason),
            .integer(contends ? 1 : 0), .blob(encode(cells, shape)),
        ])
        try changed(db)
    }

    static func remove(_ db: Database, _ entity: String, _ record: String, _ scope: String) throws {
        try Query(db, "DELETE FROM tidemark_quarantine WHERE entity = ?1 AND record = ?2 AND scope = ?3")
            .execute([.text(entity), .text(record), .text(scope)])
        try changed(db)
    }

    /// Removes a record's rows that were refused for this reason. The caller calls ``changed(_:)`` behind the last one.
    static func remove(_ db: Database, _ entity: String, _ record: String, refusedFor reason: String) throws {
        try Query(db, "DELETE FROM tidemark_quarantine WHERE entity = ?1 AND record = ?2 AND reason = ?3")
            .execute([.text(entity), .text(record), .text(reason)])
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

    /// Has all rows tried again, but for those that were refused for this reason.
    static func tryAgain(_ db: Database, except reason: String) throws {
        try Query(db, "UPDATE tidemark_quarantine SET fresh = 1 WHERE fresh = 0 AND reason <> ?1")
            .execute([.text(reason)])
    }

    /// Replaces what is kept of a row, and has it tried again.
    static func rewrite(
        _ db: Database, _ entity: String, _ record: String, _ scope: String, data: [UInt8]
    ) throws {
        try Query(
            db,
            """
            UPDATE tidemark_quarantine SET data = ?4, fresh = 1 WHERE entity = ?1 AND record = ?2 AND scope = ?3
            """
        ).execute([.text(entity), .text(record), .text(scope), .blob(data)])
        try changed(db)
    }

    /// Forgets the versions of a scope's rows that the server has lost: those after `survived`.
    static func forgetVersions(_ db: Database, _ scope: Scope, after survived: Version) throws {
        try Query(db, "UPDATE tidemark_quarantine SET version = NULL WHERE scope = ?1 AND version > ?2")
            .execute([.text(scope.name), .integer(survived)])
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

    /// Returns why a record is quarantined; `nil` where no row of it is, or one only leaves for another scope.
    static func reason(_ db: Database, of name: RecordName) throws -> String? {
        try Query(db, "SELECT reason FROM tidemark_quarantine WHERE entity = ?1 AND record = ?2 AND move = 0")
            .first(db, [.text(name.entity), .text(name.record)]) { $0.text(0) }
    }

    /// Counts the rows that wait for their place in the table, without those that leave for another scope.
    static func count(_ db: Database) throws -> Int {
        try Query.count(db, "SELECT count(*) FROM tidemark_quarantine WHERE move = 0")
    }

    /// Counts those of one scope, up to a limit.
    static func count(_ db: Database, _ scope: Scope, limit: Int) throws -> Int64 {
        let kept = "tidemark_quarantine WHERE move = 0 AND scope = \(literal(scope.name))"
        return Int64(try Query.count(db, "SELECT count(*) FROM (SELECT 1 FROM \(kept) LIMIT \(limit))"))
    }

    /// Whether any row is on its way out of a scope.
    static func isAnyLeaving(_ db: Database, _ scope: Scope) throws -> Bool {
        try Query(db, "SELECT 1 FROM tidemark_quarantine WHERE move <> 0 AND scope = ?1 LIMIT 1")
            .first(db, [.text(scope.name)]) { _ in true } ?? false
    }

    /// Returns all rows of a table, in whichever scope, and whether they leave for another one.
    static func all(_ db: Database, _ entity: String) throws -> [(record: String, scope: String, isLeaving: Bool)] {
        try Query(db, "SELECT record, scope, move FROM tidemark_quarantine WHERE entity = ?1")
            .rows(db, [.text(entity)]) { ($0.text(0), $0.text(1), $0.integer(2) != 0) }
    }

    /// Returns the records of a table that have such a row, with the scope of each.
    static func places(_ db: Database, _ entity: String) throws -> [(record: String, scope: String)] {
        try all(db, entity).map { ($0.record, $0.scope) }
    }
}

extension RecordTable {
    /// Writes a record's row, with what was edited here. A row that the app's schema refuses is quarantined: its old
    /// row would pass for an edit. A row that was quarantined before is so no more.
    func writeOrQuarantine(_ db: Database, _ key: [Cell], _ id: RecordID, _ cells: [Cell], scope: String) throws {
        do {
            try writeRow(db, key, cells)
            guard try QuarantinedRow.cells(db, shape, id, scope) != nil else { return }
            try QuarantinedRow.remove(db, shape.name, id.text, scope)
        } catch let error as DatabaseError where error.refusesRow {
            try attemptDelete(db, key)
            try quarantineEdits(db, key)
            try QuarantinedRow.put(
                db, shape, record: id.text, scope: scope, version: nil, cells: cells, reason: error.refusal,
                contends: error.dependsOnOthers)
        }
    }

    /// Quarantines a row, already out of its table, whose place or unique value another row has. Its scope is its
    /// shadow's or, where that names none, the one that its column names.
    func quarantineContender(_ db: Database, _ key: [Cell], _ id: RecordID, _ cells: [Cell]) throws {
        let shadow = try shadow(db, key)
        let place = shape.scope(ofKey: key, cells)?.name ?? ""
        if shadow?.isGone == true { try quarantineEdits(db, key) }
        // An edited row that was never sent is found again where its mark is.
        if let shadow, shape.isScopedByColumn, shadow.scope == nil { try setRoutingScope(db, key, place) }
        try QuarantinedRow.put(
            db, shape, record: id.text, scope: shadow?.scope ?? place, version: nil, cells: cells,
            reason: "Another record holds the same unique value, or another scope the record.", contends: true)
    }
}
