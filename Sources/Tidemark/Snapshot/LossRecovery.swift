import GRDB
import TidemarkCore
import TidemarkWire

/// Replays what the server has lost (I11): operations above the marks that it still has, answered ones too, are
/// sealed again in a new lane in their first order, each with what it was before. Until they are taken again they
/// overlay the records as any edit does, so that a restored server does not take from the screen what was done here.
struct LossRecovery {
    let db: Database
    let schema: SyncSchema
    let declarations: Declarations
    let now: Int64

    private struct Lost {
        var entry: OutboxEntry
        var version: Version?
        var state: Outbox.State
    }

    /// - Parameters:
    ///   - marks: how far the server still knows each lane.
    ///   - epoch: the history that was lost, if its name is known.
    ///   - lane: a new one.
    func replay(
        _ scope: Scope, above marks: [String: Int64], lostEpoch epoch: String?, lane: String
    ) throws {
        var numbers = try LaneNumbers(db, lane: lane)
        var moved: [OperationKey: Int64] = [:]
        for id in try lost(scope, above: marks) {
            guard let lost = try self.lost(id) else { continue }
            var operation = try SealedNames.forResealing(db, lost.entry.sealedOperation(), of: lost.entry.entity)
            if lost.version != nil, operation.kind == .delete, !operation.isMove,
                try isDeletedAgain(lost.entry, in: scope)
            {
                try Outbox.remove(db, id: id)
                continue
            }
            operation.original = original(of: operation, lost, epoch)
            // A row of the first capture that made its record is an insert like any other.
            if lost.state == .applied { operation.isSeed = false }
            // Needed operations that are not replayed are still on the server.
            operation.renumber { moved[OperationKey(lane: lost.entry.key.lane, number: $0)] }
            let key = numbers.nextKey()
            moved[lost.entry.key] = key.number
            try Outbox.reseal(
                db, lost.entry, as: lost.state.isTaken ? .lost : .losing, key: key, members: operation.sealedMembers())
        }
        try numbers.store(db, scope: scope)
        try close(scope, above: marks, except: lane)
        try rebase(scope)
    }

    // MARK: Operations to seal again

    /// Returns the operations that the server does not have.
    private func lost(_ scope: Scope, above marks: [String: Int64]) throws -> [Int64] {
        try Outbox.replayable(db, scope, above: marks).map(\.id)
    }

    /// Whether the record was made elsewhere since and deleted here once more, which is still to be sent: that says
    /// what the lost deletion said, and must not be taken for it.
    private func isDeletedAgain(_ entry: OutboxEntry, in scope: Scope) throws -> Bool {
        guard let shape = schema.shapes(in: scope).first(where: { $0.name == entry.entity }),
            let key = RecordID(entry.record).flatMap({ shape.key(of: $0) })
        else { return false }
        let table = RecordTable(shape)
        guard let shadow = try table.shadow(db, key), shadow.state == .known, shadow.mark != nil else { return false }
        return try table.row(db, key) == nil
    }

    private func lost(_ id: Int64) throws -> Lost? {
        guard let entry = try Outbox.entry(db, id: id) else { return nil }
        let version = try Outbox.version(db, id: id)
        return Lost(entry: entry, version: version, state: try Outbox.state(db, id) ?? .sealed)
    }

    /// Returns the operation's epoch and version in the history that is gone. An operation that was replayed once and
    /// never answered since keeps its first ones.
    private func original(of operation: Operation, _ lost: Lost, _ epoch: String?) -> Operation.Original? {
        // A delete of what was not there took effect at no version.
        if let version = lost.version, version > 0 {
            return epoch.map { Operation.Original(epoch: $0, version: version) } ?? operation.original
        }
        return operation.original ?? (operation.epoch ?? epoch).map { Operation.Original(epoch: $0, version: nil) }
    }

    /// Lanes whose end is lost: what is left of them is replayed, nothing more is numbered there, and nothing that the
    /// server never had is acknowledged.
    private func close(_ scope: Scope, above marks: [String: Int64], except lane: String) throws {
        for (id, last) in try Outbox.lanes(db, scope, besides: lane) where last > marks[id] ?? 0 {
            try Outbox.removeLane(db, id)
        }
    }

    // MARK: On screen

    private func rebase(_ scope: Scope) throws {
        let record = try ScopeRecord.read(db, scope)
        let applier = try Applier(db, schema: schema, record: record, declarations: declarations, now: now)
        while let (entity, record) = try Outbox.nextLosing(db, scope) {
            guard let table = applier.tables[entity], let id = RecordID(record), let key = table.shape.key(of: id),
                try table.records.owner(db, key) ?? scope.name == scope.name,
                // The delete in a scope that a record leaves is no edit of what stands in the table.
                try QuarantinedRow.entry(db, table.shape, id, scope.name).map({ $0.move == .no }) ?? true
            else {
                try Outbox.reopen(db, scope, entity: entity, record: record)
                continue
            }
            let known = try table.records.shadow(db, key)
            let (current, isQuarantined) = try applier.visible(table, id, key, known)
            let shadow = known ?? Shadow(unedited: current, of: table.shape)
            let edits = LocalDelta(
                shape: table.shape, shadow: shadow,
                operation: try Outbox.overlay(db, entity: entity, record: record, scope: scope.name), current: current,
                reserved: table.reserved)
            try withhold(edits, of: (scope, entity, record), table.shape)
            try Outbox.reopen(db, scope, entity: entity, record: record)
            try applier.overlay(
                table, id, key, shadow, try Outbox.overlay(db, entity: entity, record: record, scope: scope.name),
                edits,
                current: current, isQuarantined: isQuarantined)
        }
        try applier.resolveUniqueValues()
    }

    /// Leaves fields that were edited again to a lost operation's values out of that operation, so that they are sent
    /// as edits by themselves: as a part of the replayed operation, another one of the lost history may outdo them.
    private func withhold(
        _ edits: LocalDelta, of place: (scope: Scope, entity: String, record: String), _ shape: TableSchema
    ) throws {
        guard !edits.fields.isEmpty else { return }
        for id in try Outbox.losingUpserts(db, place.scope, entity: place.entity, record: place.record) {
            guard let entry = try Outbox.entry(db, id: id) else { continue }
            var operation = try entry.sealedOperation()
            let same = operation.fields.cells(in: shape).filter { edits.fields[$0.key] == $0.value }
            guard !same.isEmpty else { continue }
            operation.leaveOut(Set(same.keys.map { shape.data[$0].name }))
            try Outbox.reseal(db, entry, as: .lost, key: entry.key, members: operation.sealedMembers())
        }
    }
}
