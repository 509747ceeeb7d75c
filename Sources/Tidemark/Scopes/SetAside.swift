import GRDB
public import TidemarkWire

/// An edit that was not sent when access to its scope was lost, or the scope was left. It is given back as an edit when
/// the scope is filled again; until then the app may show it, export it or let go of it.
public struct SetAsideEdit: Hashable, Sendable, Identifiable {
    /// What was done to the record.
    public enum Kind: String, Hashable, Sendable, CaseIterable {
        /// The record was made here, or moved into the scope; `fields` is all of it.
        case insert
        /// Some fields were edited.
        case update
        /// The record was deleted.
        case delete
    }

    /// The place in the list.
    public var id: Int64
    /// Where the record belongs.
    public var scope: Scope
    /// The table's name.
    public var entity: String
    /// The record's id on the wire.
    public var record: String
    /// What was done to it.
    public var kind: Kind
    /// The fields as they were edited; text that is not UTF-8 is a BLOB here.
    public var fields: [String: Value]
    /// Why it could not be given back, where that was tried.
    public var reason: String?
    /// When it was set aside, in milliseconds since 1970.
    public var setAsideAt: Int64
}

enum SetAside {
    static func note(
        _ db: Database, _ scope: Scope, _ shape: TableShape, _ id: RecordID, _ kind: SetAsideEdit.Kind,
        fields: [Int: Cell], now: Int64
    ) throws {
        var data = DataObject.Builder(capacity: 128)
        for (index, cell) in fields.sorted(by: { $0.key < $1.key }) {
            data.append(name: shape.data[index].wireName) { writer in
                guard case .text(let bytes) = cell, !cell.isSendable else { return writer.cell(cell) }
                writer.cell(.blob(bytes))
            }
        }
        try Query(
            db,
            """
            INSERT INTO tidemark_aside(scope, entity, record, kind, fields, noted_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
            """
        ).execute([
            .text(scope.name), .text(shape.name), .text(id.text), .text(kind.rawValue), .blob(data.finish().bytes),
            .integer(now),
        ])
    }

    static func remove(_ db: Database, _ id: Int64) throws {
        try Query(db, "DELETE FROM tidemark_aside WHERE id = ?1").execute([.integer(id)])
    }

    private struct Entry {
        var id: Int64
        var scope: String
        var entity: String
        var record: String
        var kind: SetAsideEdit.Kind
        var fields: DataObject
        var reason: String?
        var notedAt: Int64
    }

    private static func entries(_ db: Database, _ condition: String, _ cells: [Cell] = []) throws -> [Entry] {
        try Query(
            db,
            """
            SELECT id, scope, entity, record, kind, fields, reason, noted_at FROM tidemark_aside
            \(condition) ORDER BY id
            """
        ).rows(db, cells) { row in
            Entry(
                id: row.integer(0), scope: row.text(1), entity: row.text(2), record: row.text(3),
                kind: SetAsideEdit.Kind(rawValue: row.text(4)) ?? .update, fields: try DataObject(stored: row.blob(5)),
                reason: row.optionalText(6), notedAt: row.integer(7))
        }
    }

    static func all(_ db: Database) throws -> [SetAsideEdit] {
        try entries(db, "").compactMap { entry in
            guard let scope = Scope(entry.scope) else { return nil }
            return SetAsideEdit(
                id: entry.id, scope: scope, entity: entry.entity, record: entry.record, kind: entry.kind,
                fields: entry.fields.values, reason: entry.reason, setAsideAt: entry.notedAt)
        }
    }

    /// Makes the edits anew, over the rows that have come: captured, so that they travel. Runs with the flag down, in
    /// the transaction that ends the scope's filling; what cannot be done stays in the list, with the reason.
    /// Returns how many were made.
    static func giveBack(_ db: Database, _ layout: Layout, _ scope: Scope) throws -> Int {
        // Rows that are still to come by themselves come first.
        guard try Backfills.next(db, layout, scope) == nil else { return 0 }
        var made = 0
        for entry in try entries(db, "WHERE scope = ?1", [.text(scope.name)]) {
            guard let shape = layout[entry.entity], shape.rule.mayHold(scope), let id = RecordID(entry.record),
                let key = shape.key(of: id)
            else { continue }
            do {
                guard let reason = try redo(db, entry, RecordTable(shape), key, scope) else {
                    try remove(db, entry.id)
                    made += 1
                    continue
                }
                try keep(db, entry, reason)
            } catch let error as DatabaseError where error.refusesRow {
                try keep(db, entry, error.refusal)
            }
        }
        return made
    }

    private static func keep(_ db: Database, _ entry: Entry, _ reason: String) throws {
        try Query(db, "UPDATE tidemark_aside SET reason = ?2 WHERE id = ?1")
            .execute([.integer(entry.id), .text(reason)])
    }

    /// The record has moved on meanwhile: only this scope's row of it goes, which is kept aside.
    private static func depart(_ db: Database, _ entry: Entry, _ shape: TableShape, _ scope: Scope) throws {
        guard let id = RecordID(entry.record), let held = try Parked.entry(db, shape, id, scope.name),
            held.leaving == .no, let key = shape.key(of: id), try RecordTable(shape).holder(db, key) != nil
        else { return }
        let base = try held.version ?? ScopeRecord.read(db, scope).base(of: entry.entity)
        try Parked.leave(db, shape, id, from: scope.name, cells: held.cells, version: held.version, base: base)
        try Parked.set(db, entry.entity, entry.record, scope.name, .moved)
    }

    /// Returns why it cannot be done; `nil` where it is.
    private static func redo(
        _ db: Database, _ entry: Entry, _ table: RecordTable, _ key: [Cell], _ scope: Scope
    ) throws -> String? {
        let shape = table.shape
        let row = try table.row(db, key)
        let isHere = row.map { shape.scope(ofKey: key, $0) == scope } ?? false
        switch entry.kind {
        case .delete:
            if isHere { try table.deleteRow(db, key) } else { try depart(db, entry, shape, scope) }
            return nil
        case .update where !isHere: return "The record is not there any more."
        case .insert, .update:
            var cells = row ?? shape.data.map(\.defaultCell)
            for (index, cell) in entry.fields.cells(in: shape) { cells[index] = cell }
            try table.write(db, key, cells)
            return nil
        }
    }
}
