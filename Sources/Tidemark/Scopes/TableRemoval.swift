import GRDB
import TidemarkWire

/// Takes one table's rows of a scope off the device, and orphans what was not sent.
struct TableRemoval {
    let db: Database
    let scope: Scope
    let table: RecordTable
    let reserved: Set<Int>
    let now: Int64
    /// Rows that are in the scope by this one too stay.
    var staying: TableSchema?
    /// Where edits that are orphaned are replayed; `nil`: in the scope itself.
    var destination: Scope?

    private var shape: TableSchema { table.shape }

    func run() throws {
        try FirstCapture.materialize(db, shape)
        try orphanDepartures()
        for entry in try Inferred.all(db, scope, shape.name) { try orphan(entry) }
        for key in try ShadowTable(shape).keys(db, concerning: scope) { try orphan(key) }
        try deleteRows()
    }

    /// Orphans a write that no trigger saw and that is no edit yet. It is not known which of its fields were edited, so
    /// the whole row is kept. A write to a record with captured edits is orphaned together with those.
    private func orphan(_ entry: Inferred.Entry) throws {
        guard !entry.isCompared, let id = RecordID(entry.record), let key = shape.key(of: id),
            try table.shadow(db, key) == nil
        else { return }
        guard let current = try table.row(db, key) else {
            guard entry.kind == .delete else { return }
            return try OrphanedEdits.add(db, destination ?? scope, shape, id, .delete, now: now)
        }
        let kind: OrphanedEdits.Stored =
            switch entry.kind {
            case .seed: .seed
            case .insert: .insert
            case .update, .delete: .update
            }
        try OrphanedEdits.add(db, destination ?? scope, shape, id, kind, fields: unreserved(current), now: now)
    }

    /// Returns the values of a row that this device may write.
    private func unreserved(_ row: [Cell]) -> [Int: Cell] {
        Dictionary(uniqueKeysWithValues: row.enumerated().map { ($0, $1) }.filter { !reserved.contains($0.0) })
    }

    /// Takes what is left of a group whose other edits are orphaned: none of it travels alone. Returns the records.
    func run(group: String) throws -> [RecordID] {
        try FirstCapture.materialize(db, shape)
        let members = try ShadowTable(shape).keys(db, of: group)
        for key in members { try orphan(key) }
        return members.compactMap(shape.recordID)
    }

    /// Rows that were leaving: the delete is an edit like any other, but a move's only while the row is elsewhere.
    private func orphanDepartures() throws {
        guard shape.isScopedByColumn else { return }
        for row in try QuarantinedRow.moves(db, shape.name, scope) {
            guard let id = RecordID(row.record) else { continue }
            let isMove =
                switch row.move {
                case .deleted: false
                case .sealed: try sent(id).last?.operation().isMove ?? true
                case .no, .waiting, .moved: true
                }
            try OrphanedEdits.add(db, destination ?? scope, shape, id, isMove ? .departure : .delete, now: now)
        }
    }

    /// Returns the operations on the record that were sealed for this scope and have no verdict.
    private func sent(_ id: RecordID) throws -> [OutboxEntry] {
        try Outbox.open(db, entity: shape.name, record: id.text, scope: scope.name)
    }

    private func orphan(_ key: [Cell]) throws {
        guard let shadow = try table.shadow(db, key), let id = shape.recordID(key) else { return }
        let owner = shape.isScopedByColumn ? shadow.scope : scope.name
        let quarantined = owner ?? shadow.routingScope ?? scope.name
        let current = try table.row(db, key) ?? QuarantinedRow.edited(db, shape, id, shadow, quarantined)
        if isStaying(key, current ?? shadow.cells) { return }
        let place = current.flatMap { shape.scope(ofKey: key, $0) }
        if owner == scope.name {
            if let place, place != scope { return try detach(key, id, shadow, place) }
        } else {
            if shadow.routingScope == "", place != scope { return }
            if let owner { return try turnBack(key, id, shadow, owner, current) }
        }
        // An insert that cannot travel is on this device only and stays, as the rows do that have no key (I13).
        if let current, try isOnlyHere(id, shadow, current) { return }
        try orphanEdits(key, id, shadow, current)
        try drop(key, id)
        try QuarantinedRow.remove(db, shape.name, id.text, quarantined)
        // The row that the app had made of it before, in a scope that nobody follows, would come back without a mark.
        if owner == nil { try QuarantinedRow.forgetOwn(db, shape.name, id.text, shadow) }
        // A scope that the record was leaving for this one has it back.
        try QuarantinedRow.endWait(db, shape.name, id.text, as: current == nil ? .deleted : .no)
    }

    /// Whether the scope has the row by the other rule too.
    private func isStaying(_ key: [Cell], _ row: [Cell]) -> Bool {
        guard let staying, row.count == staying.data.count else { return false }
        return staying.scope(ofKey: key, row) == scope
    }

    private func isOnlyHere(_ id: RecordID, _ shadow: Shadow, _ row: [Cell]) throws -> Bool {
        try shadow.state == .absent && !mayTravel(row) && sent(id).isEmpty
    }

    /// Whether a row could be sent as the insert that it is.
    private func mayTravel(_ row: [Cell]) -> Bool {
        let fields = unreserved(row)
        guard fields.values.allSatisfy(\.isSendable) else { return false }
        var data = DataObject.Builder(capacity: 256)
        for (index, cell) in fields { data.append(name: shape.data[index].wireName) { $0.cell(cell) } }
        return data.finish().bytes.count <= Limits().recordBytes
    }

    /// Orphans edits that are not known to have reached the server: those not sealed, and sealed ones without a
    /// verdict.
    private func orphanEdits(_ key: [Cell], _ id: RecordID, _ shadow: Shadow, _ current: [Cell]?) throws {
        let sent = try sent(id)
        let edits = LocalDelta(shape: shape, shadow: shadow, operation: nil, current: current, reserved: reserved)
        let group = try table.group(db, key) ?? sent.last?.group
        guard let current else {
            // An insert may have arrived there; a row that was replayed is gone here.
            guard edits == .deleted || !sent.isEmpty else { return }
            return try OrphanedEdits.add(db, destination ?? scope, shape, id, .delete, group: group, now: now)
        }
        let unseen = try Inferred.entry(db, scope, shape.name, id.text)?.kind
        if let seed = shadow.seed ?? (unseen == .seed && shadow.state == .known ? shadow.cells : nil) {
            try OrphanedEdits.add(db, destination ?? scope, shape, id, .seed, fields: unreserved(seed), now: now)
            let (fields, isNew) = try edited(edits.fields, isNew: false, by: sent, current)
            return try orphanFields(id, isNew ? unreserved(current) : fields, isNew: isNew, group)
        }
        let isUnsent = shadow.state == .absent || unseen?.isNew == true
        let (fields, isNew) = try edited(edits.fields, isNew: isUnsent, by: sent, current)
        if isNew, try edits.isEmpty && wereTaken(sent) && !isMoving(id) {
            return try OrphanedEdits.add(
                db, destination ?? scope, shape, id, .seed, fields: unreserved(current), now: now)
        }
        // An edit that was captured on top of an unseen write tells only its own part.
        try orphanFields(id, isNew || unseen != nil ? unreserved(current) : fields, isNew: isNew, group)
    }

    /// Whether a server has taken all of these before it lost them: the record that they make gives way to what came
    /// meanwhile, as rows of the first capture do.
    private func wereTaken(_ sent: [OutboxEntry]) throws -> Bool {
        try !sent.isEmpty && sent.allSatisfy { try $0.sealedOperation().original?.version != nil }
    }

    /// Orphans these fields of an edit, or the whole record.
    private func orphanFields(_ id: RecordID, _ edited: [Int: Cell], isNew: Bool, _ group: String?) throws {
        let fields = edited.filter { !reserved.contains($0.key) }
        guard isNew || !fields.isEmpty else { return }
        var kind = OrphanedEdits.Stored.update
        if isNew { kind = try isMoving(id) ? .arrival : .insert }
        try OrphanedEdits.add(db, destination ?? scope, shape, id, kind, fields: fields, group: group, now: now)
    }

    /// The fields of an edit with those of operations that have no verdict, and whether they make the record.
    private func edited(
        _ edited: [Int: Cell], isNew: Bool, by sent: [OutboxEntry], _ current: [Cell]
    ) throws -> (fields: [Int: Cell], isNew: Bool) {
        var (fields, isNew) = (edited, isNew)
        for operation in try sent.map({ try $0.operation() }) where !operation.isSeed {
            isNew = isNew || operation.isInsert || !operation.setsFields
            // The shadow of replayed edits holds it already (LossRecovery).
            for index in operation.fields.cells(in: shape).keys { fields[index] = current[index] }
        }
        return (fields, isNew)
    }

    /// Whether the record came from another scope, which has not let go of it.
    private func isMoving(_ id: RecordID) throws -> Bool {
        try QuarantinedRow.isLeaving(db, shape.name, id.text)
            || OrphanedEdits.contains(db, .departure, shape.name, id.text)
    }

    /// The record was moved on from here, and that was not sent: it is new where it goes, and a delete here.
    private func detach(_ key: [Cell], _ id: RecordID, _ shadow: Shadow, _ place: Scope) throws {
        if try shadow.state != .absent || !sent(id).isEmpty {
            try OrphanedEdits.add(db, destination ?? scope, shape, id, .departure, now: now)
        }
        var detached = shadow
        detached.state = .absent
        detached.cells = shape.data.map(\.defaultCell)
        (detached.version, detached.bases, detached.originals) = (nil, [:], [:])
        (detached.scope, detached.routingScope) = (nil, place.name)
        try table.writeShadow(db, key, detached)
        try ShadowTable(shape).markLast(db, key)
    }

    /// The record was moved here, and that was not sent: it is again where it was.
    private func turnBack(_ key: [Cell], _ id: RecordID, _ shadow: Shadow, _ owner: String, _ current: [Cell]?) throws {
        guard let current else { return }
        let fields = Dictionary(uniqueKeysWithValues: current.enumerated().map { ($0, $1) })
        try OrphanedEdits.add(
            db, destination ?? scope, shape, id, .arrival, fields: fields, group: table.group(db, key), now: now)
        try forgetHindrances(id)
        let operation = try Outbox.overlay(db, entity: shape.name, record: id.text, scope: owner)
        let before = shadow.overlaid(with: operation, shape: shape)
        try table.attemptDelete(db, key)
        try QuarantinedRow.remove(db, shape.name, id.text, owner)
        if let before {
            try QuarantinedRow.put(
                db, shape, record: id.text, scope: owner, version: shadow.version, cells: before,
                reason: "Waiting for its place.", contends: true)
        }
        // A row of the first capture that was not sent yet goes from where it stood.
        guard operation != nil || shadow.seed != nil else { return try table.dropShadow(db, key) }
        var sent = shadow
        if operation != nil { (sent.mark, sent.since) = (nil, nil) }
        sent.routingScope = owner
        try table.writeShadow(db, key, sent)
    }

    private func drop(_ key: [Cell], _ id: RecordID) throws {
        try table.attemptDelete(db, key)
        try table.dropShadow(db, key)
        try forgetHindrances(id)
    }

    /// Forgets the blockers of edits that are orphaned, which are not sent anyway.
    private func forgetHindrances(_ id: RecordID) throws {
        let name = RecordName(entity: shape.name, record: id.text)
        try BlockedEdits.forget(db, name)
    }

    /// Deletes the clean rows that are left. Rows that cannot travel are on this device only, and stay.
    private func deleteRows() throws {
        let isStaying = staying.map { " AND NOT (\($0.isInSQL(scope, "t")))" } ?? ""
        let isUnsent = shape.key.map { "s.\($0.sql) = t.\($0.sql)" }.joined(separator: " AND ")
        let rows = """
            \(shape.sql) AS t WHERE \(shape.isInSQL(scope, "t")) AND \(shape.isNamedSQL("t"))
            AND \(ShadowTable(shape).noneSQL(where: isUnsent))
            """ + isStaying
        if !shape.isGuarded {
            do {
                return try db.execute(sql: "DELETE FROM \(rows)")
            }  // A trigger of the app's own keeps one of them: the others go all the same.
            catch let error as DatabaseError where error.refusesRow {}
        }
        let keys = shape.key.map(\.sql).joined(separator: ", ")
        for key in try Query(db, "SELECT \(keys) FROM \(rows)").rows(db, [], { $0.cells(0..<shape.key.count) }) {
            try table.attemptDelete(db, key)
        }
    }
}
