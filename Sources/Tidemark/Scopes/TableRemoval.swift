import GRDB
import TidemarkWire

/// Takes one table's rows of a scope off the device, and sets aside what was not sent.
struct TableRemoval {
    let db: Database
    let scope: Scope
    let table: RecordTable
    let reserved: Set<Int>
    let now: Int64
    /// Rows that are in the scope by this one too stay.
    var staying: TableShape?

    private var shape: TableShape { table.shape }

    func run() throws {
        try setAsideDepartures()
        for key in try edited() { try setAside(key) }
        try deleteRows()
    }

    /// Keys of records with edits that have to do with the scope.
    private func edited() throws -> [[Cell]] {
        let keys = shape.key.map(\.sql).joined(separator: ", ")
        let name = literal(scope.name)
        let isConcerned = shape.isScopedByColumn ? "tidemark_scope = \(name) OR tidemark_place = \(name)" : "1"
        return try Query(db, "SELECT \(keys) FROM \(shape.shadowSQL) WHERE \(isConcerned)")
            .rows(db) { $0.cells(0..<shape.key.count) }
    }

    /// Rows that were leaving: the delete is an edit like any other.
    private func setAsideDepartures() throws {
        guard shape.isScopedByColumn else { return }
        let records = try Query(
            db, "SELECT record FROM tidemark_parked WHERE entity = ?1 AND scope = ?2 AND leaving <> 0"
        ).rows(db, [.text(shape.name), .text(scope.name)]) { RecordID($0.text(0)) }
        for case let id? in records { try SetAside.note(db, scope, shape, id, .delete, fields: [:], now: now) }
    }

    private func setAside(_ key: [Cell]) throws {
        guard let shadow = try table.shadow(db, key), let id = shape.recordID(key) else { return }
        let owner = shape.isScopedByColumn ? shadow.scope : scope.name
        let parked = owner ?? shadow.place ?? scope.name
        let current = try table.row(db, key) ?? Parked.cells(db, shape, id, parked)
        if let staying, (current ?? shadow.cells).count == staying.data.count,
            staying.scope(ofKey: key, current ?? shadow.cells) == scope
        {
            return
        }
        let place = current.flatMap { shape.scope(ofKey: key, $0) }
        if owner == scope.name, let place, place != scope { return try detach(key, id, shadow, place) }
        if let owner, owner != scope.name { return try turnBack(key, id, shadow, owner, current) }
        try note(id, Edits(shape: shape, shadow: shadow, operation: nil, current: current, reserved: reserved), shadow)
        try drop(key)
        try Parked.remove(db, shape.name, id.text, parked)
        // A scope that the record was leaving for this one has it back.
        try Parked.settle(db, shape.name, id.text, as: current == nil ? .deleted : .no)
    }

    private func note(_ id: RecordID, _ edits: Edits, _ shadow: Shadow) throws {
        switch edits {
        case .none: return
        case .deleted: try SetAside.note(db, scope, shape, id, .delete, fields: [:], now: now)
        case .fields(let fields):
            let kind: SetAsideEdit.Kind = shadow.state == .absent ? .insert : .update
            try SetAside.note(db, scope, shape, id, kind, fields: fields, now: now)
        }
    }

    /// The record was moved on from here, and that was not sent: it is new where it goes, and a delete here.
    private func detach(_ key: [Cell], _ id: RecordID, _ shadow: Shadow, _ place: Scope) throws {
        if shadow.state != .absent { try SetAside.note(db, scope, shape, id, .delete, fields: [:], now: now) }
        var detached = shadow
        detached.state = .absent
        detached.cells = shape.data.map(\.defaultCell)
        (detached.version, detached.bases, detached.originals) = (nil, [:], [:])
        (detached.scope, detached.place) = (nil, place.name)
        try table.write(db, key, detached)
        try Query(db, "UPDATE \(shape.shadowSQL) SET tidemark_mark = (SELECT n FROM tidemark_counter) WHERE \(isKey)")
            .execute(key)
    }

    /// The record was moved here, and that was not sent: it is again where it was.
    private func turnBack(_ key: [Cell], _ id: RecordID, _ shadow: Shadow, _ owner: String, _ current: [Cell]?) throws {
        guard let current else { return }
        let fields = Dictionary(uniqueKeysWithValues: current.enumerated().map { ($0, $1) })
        try SetAside.note(db, scope, shape, id, .insert, fields: fields, now: now)
        let operation = try Outbox.overlay(db, entity: shape.name, record: id.text, scope: owner)
        let before = shadow.overlaid(with: operation, shape: shape)
        try deleteRow(key)
        try Parked.remove(db, shape.name, id.text, owner)
        if let before {
            try Parked.put(
                db, shape, record: id.text, scope: owner, version: shadow.version, cells: before,
                reason: "Waiting for its place.", contends: true, fresh: true)
        }
        guard operation != nil else { return try table.dropShadow(db, key) }
        var sent = shadow
        (sent.mark, sent.since, sent.place) = (nil, nil, owner)
        try table.write(db, key, sent)
    }

    private var isKey: String {
        shape.key.enumerated().map { "\($1.sql) = ?\($0 + 1)" }.joined(separator: " AND ")
    }

    private func drop(_ key: [Cell]) throws {
        try deleteRow(key)
        try table.dropShadow(db, key)
    }

    private func deleteRow(_ key: [Cell]) throws {
        do { try table.deleteRow(db, key) } catch let error as DatabaseError where error.refusesRow {}
    }

    /// What is left are clean rows.
    private func deleteRows() throws {
        let isStaying = staying.map { " AND NOT (\($0.isInSQL(scope, "t")))" } ?? ""
        let rows = "\(shape.sql) AS t WHERE \(shape.isInSQL(scope, "t"))" + isStaying
        do { try db.execute(sql: "DELETE FROM \(rows)") } catch let error as DatabaseError where error.refusesRow {
            // A trigger of the app's own keeps one of them: the others go all the same.
            let keys = shape.key.map(\.sql).joined(separator: ", ")
            for key in try Query(db, "SELECT \(keys) FROM \(rows)").rows(db, [], { $0.cells(0..<shape.key.count) }) {
                try deleteRow(key)
            }
        }
    }
}
