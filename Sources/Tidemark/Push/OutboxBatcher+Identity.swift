import GRDB
import TidemarkCore
import TidemarkWire

// MARK: - OutboxBatcher under temporary ids

extension OutboxBatcher {
    /// Names the operation and what it refers to for the wire. What it refers to is sealed first, so that the server
    /// knows it by then.
    func nameRecords(
        _ operation: inout Operation, _ table: RecordTable, _ key: [Cell], _ id: RecordID, _ batch: inout Batch,
        _ names: inout NamedRecords
    ) throws {
        guard let identity = batch.identity else { return }
        let own = Unsealed(table: table, key: key, id: id)
        if identity.isTemporary(table.shape.name, id.text) {
            (operation.tempID, operation.id) = (id, nil)
        }
        var leftOut: Set<String> = []
        for reference in identity.references(in: table.shape) {
            let named = try Self.temporaryNames(in: operation, at: reference)
            for name in named {
                switch try standing(of: name, in: own, &batch) {
                case .sealed: continue
                case .behind(let unit): names.behind.append(unit)
                case .joined: names.hasJoined = true
                case .underWay(let field): leftOut.insert(field)
                case .unknown:
                    names.missing = names.missing ?? RecordName(entity: name.entity, record: name.temporary.text)
                }
            }
            guard !named.isEmpty else { continue }
            operation.references.append(reference)
            names.temporary += named
        }
        if !leftOut.isEmpty { leaveOut(leftOut, &operation, &names) }
    }

    private static func temporaryNames(
        in operation: Operation, at reference: Reference
    ) throws -> [TemporaryName] {
        var probe = operation
        probe.references = [reference]
        var found: [TemporaryName] = []
        _ = try Resolution(probe) { entity, temporary in
            found.append(TemporaryName(entity: entity, temporary: temporary, place: reference.place))
            return nil
        }
        return found
    }

    private enum Standing {
        /// The server knows it when it comes to this operation, or will say what to wait for.
        case sealed
        /// The record can be sealed, and then goes first.
        case behind(Unit)
        /// The record is in a group that waits for the one being sealed, which goes with the group now.
        case joined
        /// The record waits for this very operation; the field must come later.
        case underWay(field: String)
        /// The record is refused, gone, blocked, or another scope's and without an id yet.
        case unknown
    }

    private func standing(of name: TemporaryName, in own: Unsealed, _ batch: inout Batch) throws -> Standing {
        if try Alias.find(db, name.entity, name.temporary) != nil {
            // Used again after it had gone: the next answer puts the id in its place.
            try Alias.noteUse(db, name.entity, name.temporary)
            return .unknown
        }
        let record = RecordName(entity: name.entity, record: name.temporary.text)
        if record == own.name || batch.order.underWay.contains(record) {
            switch name.place {
            case .field(let field), .document(let field, _): return .underWay(field: field)
            case .key: return .unknown
            }
        }
        if try isSealed(record) { return .sealed }
        guard !batch.order.isEarly(record), let shape = schema[name.entity], let key = shape.key(of: name.temporary)
        else { return .unknown }
        let table = RecordTable(shape)
        // Another scope's turn comes first: that scope looks at it again.
        guard let shadow = try table.shadow(db, key),
            let row = try table.row(db, key) ?? QuarantinedRow.cells(db, shape, name.temporary, scope.scope.name),
            shape.scope(ofKey: key, row) == scope.scope
        else { return .unknown }
        var unsealed = Unsealed(table: table, key: key, id: name.temporary)
        let group = try table.group(db, key)
        unsealed.goesAlong = group != nil && group == batch.group
        let unit = Unit.record(unsealed)
        // All of a group are looked at, also those that it was blocked with.
        if unsealed.goesAlong { return .behind(unit) }
        guard try shadow.mark != nil || BlockedEdits.parentWithoutID(db, of: record) != nil else { return .unknown }
        guard let group else { return .behind(unit) }
        return try standing(of: unit, record, group, in: own, &batch)
    }

    /// A record in a group is not sealed without the group, which goes first. Where the group waits for this very
    /// record, both go together.
    private func standing(
        of unit: Unit, _ record: RecordName, _ group: String, in own: Unsealed, _ batch: inout Batch
    ) throws -> Standing {
        guard batch.order.groupsUnderWay.contains(group) else {
            return batch.order.groupsSeen.contains(group) ? .unknown : .behind(.group(group))
        }
        guard let mine = batch.group, case .record(var unsealed) = unit else {
            try own.table.setGroup(db, own.key, group)
            return .joined
        }
        try schema.rename(db, group: group, to: mine)
        (batch.order.hasMerged, batch.order.merged) = (true, record)
        unsealed.goesAlong = true
        return .behind(.record(unsealed))
    }

    /// Whether the record's insert is on its way in this scope, before whatever is sealed now.
    private func isSealed(_ record: RecordName) throws -> Bool {
        try Outbox.hasOpen(db, entity: record.entity, record: record.record, scope: scope.scope.name)
    }

    /// Two new records that name each other: the first goes without the name, which follows as an edit.
    private func leaveOut(_ fields: Set<String>, _ operation: inout Operation, _ names: inout NamedRecords) {
        operation.leaveOut(fields)
        names.temporary.removeAll { $0.place.field.map(fields.contains) ?? false }
        names.isPartial = true
    }
}

extension Outbox {
    /// Remembers whom an operation names, the one sealed last if none is given, so that its meaning can be told when
    /// they have their ids.
    static func noteNames(_ db: Database, _ names: [TemporaryName], in operation: Int64? = nil) throws {
        let operation = try operation ?? lastID(db)
        for name in Set(names) {
            try noteReference(db, to: name.temporary, of: name.entity, in: operation)
        }
    }
}
