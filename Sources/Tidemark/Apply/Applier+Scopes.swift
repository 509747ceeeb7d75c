import GRDB
import TidemarkWire

/// Rows of one table that lie in several scopes. The server's logs know nothing of each other, and a device pulls them
/// in any order, so what each scope holds is kept apart: one row has the record's place in the table, the others are
/// quarantined, and a tombstone takes away its own scope's row, never another's.
extension Applier {
    /// Keeps a row of this scope, or lets go of it, while another scope has the record's place, or while the record is
    /// leaving this scope. `false` where this scope has the place, or may have it.
    func quarantineForOtherScope(
        _ table: ApplyTable, _ id: RecordID, _ key: [Cell], version: Version, incoming: [Int: Cell]?
    ) throws -> Bool {
        guard table.shape.isScopedByColumn else { return false }
        let shape = table.shape
        let quarantined = try QuarantinedRow.entry(db, shape, id, scope.name)
        let isLeaving = quarantined.map { $0.move != .no } ?? false
        guard try isLeaving || table.records.owner(db, key).map({ $0 != scope.name }) ?? false else { return false }
        guard version > quarantined?.version ?? -1 else { return true }
        guard let incoming else {
            try QuarantinedRow.remove(db, shape.name, id.text, scope.name)
            return true
        }
        var cells = quarantined?.cells ?? shape.data.map(\.defaultCell)
        for (index, cell) in incoming { cells[index] = cell }
        let contends = !isLeaving && shape.scope(ofKey: key, cells) == scope
        try QuarantinedRow.put(
            db, shape, record: id.text, scope: scope.name, version: version, cells: cells,
            reason: isLeaving ? "It leaves for another scope." : "Another scope holds the record here.",
            contends: contends)
        table.mayContend = true
        if quarantined == nil { outcome.quarantined += 1 }
        return true
    }

    /// Whether the row in the table, if there is one, is this scope's.
    func isOwnRow(_ table: ApplyTable, _ key: [Cell]) throws -> Bool {
        try !table.shape.isScopedByColumn || table.records.owner(db, key) == scope.name
    }

    /// The shadow of a record, where it is this scope's.
    func ownShadow(_ table: ApplyTable, _ key: [Cell]) throws -> Shadow? {
        guard let shadow = try table.records.shadow(db, key) else { return nil }
        return shadow.scope == nil || shadow.scope == scope.name ? shadow : nil
    }

    /// A row whose column says another scope than the one that it came in has no place in the table.
    func quarantineForItsColumn(
        _ table: ApplyTable, _ id: RecordID, _ key: [Cell], _ cells: [Cell], isOnScreen: Bool, version: Version?
    ) throws {
        if isOnScreen { try table.records.attemptDelete(db, key) }
        outcome.quarantined += 1
        try QuarantinedRow.put(
            db, table.shape, record: id.text, scope: scope.name, version: version, cells: cells,
            reason: "Its column names another scope than the one that it came in.", contends: false)
    }

    /// Overlays the record with its replayed operations once the record's place is free. They have no row to overlay
    /// while another scope has that place.
    func overlayReplayed(_ table: ApplyTable, _ id: RecordID, _ key: [Cell]) throws {
        let shape = table.shape
        guard shape.isScopedByColumn, try isReplaying.get(), try table.records.owner(db, key) == nil,
            let operation = try Outbox.overlay(db, entity: shape.name, record: id.text, scope: scope.name)
        else { return }
        var serverRow = Shadow(state: .absent, cells: shape.data.map(\.defaultCell))
        if let quarantined = try QuarantinedRow.entry(db, shape, id, scope.name) {
            guard quarantined.move == .no else { return }
            serverRow = Shadow(state: .known, cells: quarantined.cells, version: quarantined.version)
            try QuarantinedRow.remove(db, shape.name, id.text, scope.name)
        }
        try overlay(table, id, key, serverRow, operation, .none, current: nil, isQuarantined: false)
    }

    /// A shadow with what its marks need to be found by the scope that has to send them.
    func placed(_ shadow: Shadow, _ shape: TableSchema, _ key: [Cell], _ row: [Cell]?, isSent: Bool) throws -> Shadow {
        guard shape.isScopedByColumn else { return shadow }
        var placed = shadow
        placed.scope = shadow.state == .absent && !isSent && shadow.seed == nil ? nil : scope.name
        placed.routingScope = row.map { shape.scope(ofKey: key, $0)?.name ?? "" } ?? placed.scope ?? ""
        if placed.mark != nil, placed.routingScope != scope.name { try Marks.announce(db) }
        return placed
    }
}

// MARK: - Verdicts on moves

extension Applier {
    /// The verdict on a delete in the scope that a record left. `false` for any other operation.
    func applyDeleteOfMove(
        _ verdict: Verdict, _ entry: OutboxEntry, _ table: ApplyTable, _ id: RecordID, _ key: [Cell]
    ) throws -> Bool {
        guard table.shape.isScopedByColumn else { return false }
        let shape = table.shape
        manifest.look(shape.name, id)
        guard entry.isDelete, let quarantined = try QuarantinedRow.entry(db, shape, id, scope.name),
            quarantined.move == .sealed
        else {
            guard let owner = try table.records.owner(db, key), owner != scope.name else { return false }
            try Outbox.finish(db, entry, verdict, now: now)
            return true
        }
        try Outbox.finish(db, entry, verdict, now: now)
        let knownVersion = try KnownVersions.version(db, scope, shape.name, id.text) ?? -1
        let known = max(quarantined.version ?? -1, knownVersion, record.complete(of: shape.name) ?? -1)
        table.mayContend = true
        switch verdict.status {
        case .applied, .merged:
            guard let version = verdict.version, version > known else { break }
            if version > rememberVerdictsAbove {
                try KnownVersions.note(db, scope, shape.name, id.text, version, deleted: verdict.record?.data == nil)
            }
            guard let data = verdict.record?.data else {
                try QuarantinedRow.remove(db, shape.name, id.text, scope.name)
                return true
            }
            // An edit made elsewhere wins over deletes there: the record stays in this scope too.
            try keep(shape, id, data, version)
        case .rejected, .conflict:
            outcome.rejected += 1
            if let data = verdict.record?.data, let version = verdict.record?.version, version > known {
                try keep(shape, id, data, version)
            }
        case .deferred:
            outcome.deferred += 1
            return try again(shape, id)
        case .outcomeUnknown:
            try RefetchQueue.note(db, scope, entry.entity, entry.record)
            outcome.refetch += 1
        }
        try QuarantinedRow.set(db, shape.name, id.text, scope.name, .no)
        return true
    }

    private func keep(_ shape: TableSchema, _ id: RecordID, _ data: DataObject, _ version: Version) throws {
        var cells = shape.data.map(\.defaultCell)
        for (index, cell) in shape.whole(data.cells(in: shape), in: scope) { cells[index] = cell }
        try QuarantinedRow.put(
            db, shape, record: id.text, scope: scope.name, version: version, cells: cells,
            reason: "Another scope holds the record here.", contends: true)
    }

    private func again(_ shape: TableSchema, _ id: RecordID) throws -> Bool {
        try QuarantinedRow.set(db, shape.name, id.text, scope.name, .moved)
        return true
    }

    /// Says what becomes of the scope that a record left, by the record's verdict in its new scope.
    func endMoveWait(
        _ verdict: Verdict, _ table: ApplyTable, _ id: RecordID, _ key: [Cell], wasThere: Bool
    ) throws {
        let entity = table.shape.name
        switch verdict.status {
        case .applied, .merged: try QuarantinedRow.endWait(db, entity, id.text, as: .moved)
        case .outcomeUnknown where verdict.isShort: try QuarantinedRow.endWait(db, entity, id.text, as: .moved)
        case .rejected, .conflict, .outcomeUnknown, .deferred:
            // With edits under way it is sent once more, or on to a third scope: that verdict decides.
            guard try table.records.shadow(db, key) == nil else { return }
            table.mayContend = true
            try QuarantinedRow.endWait(db, entity, id.text, as: wasThere ? .no : .deleted)
        }
    }
}
