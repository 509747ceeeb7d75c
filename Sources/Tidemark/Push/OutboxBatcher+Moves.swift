import GRDB
import TidemarkWire

/// Records whose column says another scope than the one that has them: sealed as an insert where they go, and, once
/// that has its verdict, as a delete where they were (Protocol.md).
extension OutboxBatcher {
    /// A record that arrives in this scope.
    struct Move {
        var departure: Shadow
        /// This scope's row of the record as far as it is known, with the record's marks.
        var arrival: Shadow
        var current: [Cell]
        var isQuarantined: Bool
    }

    /// Whether this scope's batch looks at a mark.
    enum Ownership {
        case stays
        case moves(Move)
        /// Another scope's, or it waits for that one's verdict.
        case passes
        case isNowhere(column: String)
    }

    /// Returns the row on screen, or the one that would be there if the schema took it.
    func shown(_ row: [Cell]?, _ shape: TableSchema, _ id: RecordID, _ shadow: Shadow) throws -> [Cell]? {
        try row ?? QuarantinedRow.edited(db, shape, id, shadow, shadow.place(in: scope.scope))
    }

    func ownership(
        _ table: RecordTable, _ key: [Cell], _ id: RecordID, _ shadow: Shadow, _ current: [Cell]?
    ) throws -> Ownership {
        let shape = table.shape
        guard case .column(let column, _) = shape.rule.kind else { return .stays }
        let place: String
        if let current {
            guard let named = shape.scope(ofKey: key, current) else {
                return try isOnItsWay(shape, id, shadow) ? .passes : .isNowhere(column: column)
            }
            place = named.name
        } else {
            place = shadow.scope ?? ""
        }
        let here = scope.scope.name
        if shadow.seed != nil, let owner = shadow.scope, owner != place {
            // The row was moved since: first it is sent where it stood, and then it leaves.
            return owner == here ? .stays : try pass(table, key, shadow, to: owner)
        }
        guard place == here || place.isEmpty else {
            return try pass(table, key, shadow, to: place)
        }
        guard let owner = shadow.scope else {
            return try current.map { .moves(try arrive(table, key, id, shadow, $0)) } ?? .stays
        }
        return owner == here ? .stays : try arrival(table, key, id, shadow, current, from: owner)
    }

    /// Decides what becomes here of a record that another scope has.
    private func arrival(
        _ table: RecordTable, _ key: [Cell], _ id: RecordID, _ shadow: Shadow, _ current: [Cell]?, from owner: String
    ) throws -> Ownership {
        let shape = table.shape
        // The verdict on its last edit in the scope that it leaves decides whether that scope has the record.
        if try Outbox.hasOpen(db, entity: shape.name, record: id.text, scope: owner) { return .passes }
        guard let current else { return .stays }
        var departure = shadow
        if let scope = Scope(owner), let unseen = try Inferred.entry(db, scope, shape.name, id.text) {
            // The server's row there, which is not known yet, decides whether the record is new here.
            if try ScopeRecord.isFollowed(db, scope) { return .passes }
            // The server is not asked about a scope that this device does not follow: the record counts as new here.
            try Inferred.compared(db, unseen, waits: false)
            if unseen.kind.isNew { (departure.state, departure.scope) = (.absent, nil) }
        }
        return .moves(try arrive(table, key, id, departure, current))
    }

    /// Whether the scope that has a record has still to answer its last edit. Without its mark, a row that was edited
    /// since would pass for what is on its way there.
    func isOnItsWay(_ shape: TableSchema, _ id: RecordID, _ shadow: Shadow) throws -> Bool {
        guard let owner = shadow.scope else { return false }
        return try Outbox.hasOpen(db, entity: shape.name, record: id.text, scope: owner)
    }

    /// Another scope has to look at the mark.
    private func pass(_ table: RecordTable, _ key: [Cell], _ shadow: Shadow, to place: String) throws -> Ownership {
        guard shadow.routingScope != place else { return .passes }
        try table.setRoutingScope(db, key, place)
        try Marks.announce(db)
        return .passes
    }

    private func arrive(
        _ table: RecordTable, _ key: [Cell], _ id: RecordID, _ shadow: Shadow, _ current: [Cell]
    ) throws -> Move {
        let here = scope.scope.name
        let isQuarantined = try table.row(db, key) == nil
        // The record was here before and has not left yet, or another device put it here too.
        let known = isQuarantined && shadow.scope == nil ? nil : try QuarantinedRow.entry(db, table.shape, id, here)
        var arrival = shadow
        arrival.state = known == nil ? .absent : .known
        arrival.cells = known?.cells ?? table.shape.data.map(\.defaultCell)
        (arrival.version, arrival.bases) = (known?.version, [:])
        (arrival.scope, arrival.routingScope) = (here, here)
        return Move(departure: shadow, arrival: arrival, current: current, isQuarantined: isQuarantined)
    }

    /// Runs in the transaction that seals the insert.
    func carryOut(_ move: Move, _ table: RecordTable, _ id: RecordID, _ key: [Cell]) throws {
        let shape = table.shape
        let here = scope.scope.name
        let before = move.departure
        try QuarantinedRow.remove(db, shape.name, id.text, here)
        if before.scope == nil { try QuarantinedRow.forgetOwn(db, shape.name, id.text, before) }
        if let owner = before.scope, owner != here, let from = Scope(owner) {
            try BlobChanges.noteMove(db, shape, move.current, from: from, to: scope.scope)
            // The insert here holds all that was written there, in sight or not.
            try Inferred.supersede(db, RecordName(entity: shape.name, record: id.text), from)
            if move.isQuarantined { try QuarantinedRow.remove(db, shape.name, id.text, owner) }
            if before.state == .known || before.isRowUnknown {
                let known = try KnownVersions.version(db, from, shape.name, id.text)
                let base = try before.version ?? known ?? ScopeRecord.read(db, from).base(of: shape.name)
                try QuarantinedRow.leave(
                    db, shape, id, from: owner, cells: before.cells, version: before.version ?? known, base: base)
            }
        }
        if move.isQuarantined {
            try QuarantinedRow.put(
                db, shape, record: id.text, scope: here, version: nil, cells: move.current,
                reason: "Waiting for its place.", contends: true)
        }
        try table.writeShadow(db, key, move.arrival)
    }

    /// The deletes in this scope of what has arrived in others.
    func sealDepartures(_ batch: inout Batch, _ tables: [RecordTable], limit: Int) throws {
        guard limit > 0, tables.contains(where: { $0.shape.isScopedByColumn }) else { return }
        for departure in try QuarantinedRow.departures(db, scope.scope, limit: limit) {
            let (entity, record) = (departure.entity, departure.record)
            guard tables.contains(where: { $0.shape.name == entity }),
                try !Outbox.hasOpen(db, entity: entity, record: record, scope: scope.scope.name)
            else { continue }
            var operation = Operation(.delete, entity: entity, id: RecordID(record))
            operation.baseVersion = departure.base
            operation.epoch = scope.epoch
            operation.isMove = departure.isMove
            batch.made = nil
            let key = batch.numbers.nextKey()
            try Outbox.seal(db, [.init(operation, key: key, scope: scope.scope, editedAt: nil, now: now)])
            try QuarantinedRow.set(db, entity, record, scope.scope.name, .sealed)
        }
    }
}
