import GRDB
import TidemarkCore
import TidemarkWire

/// Moves one record to another id on this device: its row, its edits under way, and all that is noted of it.
struct Renaming {
    let db: Database
    /// Whose page or verdict brought the id.
    let scope: Scope
    let table: RecordTable

    private var shape: TableSchema { table.shape }

    func move(_ old: RecordID, _ oldKey: [Cell], to new: RecordID, _ newKey: [Cell]) throws {
        guard old != new else { return }
        let edits = try edits(of: new, newKey)
        try moveRow(oldKey, to: new, newKey)
        for place in LibraryTable.following(.rename) { try place.rename(db, entity: shape.name, old, to: new) }
        if let edits { try overlay(new, newKey, edits) }
    }

    private func moveRow(_ oldKey: [Cell], to new: RecordID, _ newKey: [Cell]) throws {
        let row = try table.row(db, oldKey)
        let (oldShadow, newShadow) = (try table.shadow(db, oldKey), try table.shadow(db, newKey))
        let standing = try table.row(db, newKey)
        guard standing == nil, newShadow == nil else {
            guard row != nil || oldShadow != nil else { return }
            return try merge(row, oldShadow, oldKey, into: standing, newShadow, new, newKey)
        }
        try ShadowTable(shape).move(db, oldKey, to: newKey)
        guard let row else { return }
        do {
            let sets = shape.key.enumerated().map { "\($1.sql) = ?\($0 + 1)" }.joined(separator: ", ")
            let isOld = shape.key.enumerated().map { "\($1.sql) = ?\($0 + 1 + shape.key.count)" }
            try Query(db, "UPDATE \(shape.orAbort)\(shape.sql) SET \(sets) WHERE \(isOld.joined(separator: " AND "))")
                .execute(newKey + oldKey)
        } catch let error as DatabaseError where error.refusesRow {
            // The app's schema does not take the new key: the row is quarantined like any other that does not fit.
            try table.attemptDelete(db, oldKey)
            try QuarantinedRow.put(
                db, shape, record: new.text, scope: (shape.scope(ofKey: newKey, row) ?? scope).name,
                version: nil, cells: row, reason: error.refusal, contends: error.dependsOnOthers)
        }
    }

    // MARK: What stands there has edits too

    private func edits(of id: RecordID, _ key: [Cell]) throws -> LocalDelta? {
        guard let shadow = try table.shadow(db, key) else { return nil }
        return LocalDelta(
            shape: shape, shadow: shadow, operation: try overlay(id), current: try table.row(db, key), reserved: [])
    }

    /// The operations of both are edits of this row now; what it does not show of them would be taken for an edit.
    private func overlay(_ id: RecordID, _ key: [Cell], _ edits: LocalDelta) throws {
        guard let shadow = try table.shadow(db, key) else { return }
        let row = try table.row(db, key)
        let rebased = shadow.rebased(with: try overlay(id), edits, shape: shape, current: row)
        guard rebased != row else { return }
        try put(rebased, id, key)
    }

    private func overlay(_ id: RecordID) throws -> Operation? {
        try Outbox.overlay(db, entity: shape.name, record: id.text, scope: scope.name)
    }

    /// Merges two rows of one record: the server's, and the one that this device made under its old id. This one's
    /// values become edits of the server's row, or its delete, unless there are edits already.
    private func merge(
        _ row: [Cell]?, _ oldShadow: Shadow?, _ oldKey: [Cell], into standing: [Cell]?, _ newShadow: Shadow?,
        _ new: RecordID, _ newKey: [Cell]
    ) throws {
        if row != nil {
            try table.attemptDelete(db, oldKey)
        }
        guard newShadow == nil, let standing, var shadow = oldShadow else {
            return try table.dropShadow(db, oldKey)
        }
        try ShadowTable(shape).move(db, oldKey, to: newKey)
        shadow.learn(standing)
        try table.writeShadow(db, newKey, shadow)
        try put(row, new, newKey)
    }

    private func put(_ row: [Cell]?, _ id: RecordID, _ key: [Cell]) throws {
        if let row {
            // While a move is not sent the record is found in the scope that it leaves.
            let owner = try table.shadow(db, key)?.scope ?? shape.scope(ofKey: key, row)?.name ?? scope.name
            return try table.writeOrQuarantine(db, key, id, row, scope: owner)
        }
        try table.attemptDelete(db, key)
    }
}

/// The present meaning of sealed operations whose ids have become known. An operation that is sealed again takes it on.
struct SealedNames {
    let db: Database

    /// An operation with the ids that are known by now in the place of temporary ones, its own beside it.
    static func known(_ db: Database, _ operation: Operation, of entity: String) throws -> Operation {
        guard operation.tempID != nil || !operation.references.isEmpty else { return operation }
        var known = try Resolution(operation) { try Alias.find(db, $0, $1) }.operation
        if let temporary = operation.tempID { known.id = try Alias.find(db, entity, temporary) }
        return known
    }

    /// An operation as it is sealed again: a record that has its id by now keeps it, and its references theirs.
    static func forResealing(_ db: Database, _ operation: Operation, of entity: String) throws -> Operation {
        var operation = try known(db, operation, of: entity)
        if operation.id != nil { operation.tempID = nil }
        return operation
    }

    func resolve(_ entity: String, _ old: RecordID, _ new: RecordID) throws {
        let own = try Outbox.all(db, entity: entity, record: new.text)
        let others = try Outbox.operations(db, naming: old, of: entity)
        for id in Set(own + others).sorted() { try resolve(id) }
    }

    private func resolve(_ id: Int64) throws {
        guard let entry = try Outbox.entry(db, id: id), entry.key.number > 0 else { return }
        let sealed = try entry.sealedOperation()
        guard sealed.tempID != nil || !sealed.references.isEmpty else { return }
        let operation = try Self.known(db, sealed, of: entry.entity)
        try Outbox.resolve(db, entry, operation)
    }
}
