import GRDB
import TidemarkWire

/// Operations that are sealed a second time, under another key.
extension Outbox {
    /// Returns all operations on a record that have no verdict, as a single one: there are several only while lost ones
    /// are replayed.
    static func overlay(
        _ db: Database, entity: String, record: String, scope: String, without id: Int64? = nil
    ) throws -> Operation? {
        var result: Operation?
        for entry in try open(db, entity: entity, record: record, scope: scope) where entry.id != id {
            let operation = try entry.operation()
            result = result?.followed(by: operation) ?? operation
        }
        return result
    }

    /// Whether lost operations wait to be taken again: only then a record may have more than one.
    static func isReplaying(_ db: Database, _ scope: Scope) throws -> Bool {
        try Query(db, "SELECT 1 FROM tidemark_operation WHERE scope = ?1 AND \(isReplay) AND \(isOpen) LIMIT 1")
            .first(db, [.text(scope.name)]) { _ in true } ?? false
    }

    /// Gives an operation a second key, and the state that says why. `members` say what it means by now, with ids that
    /// are known in place. A patch stays one only where they are left out: its base may be lost.
    static func reseal(
        _ db: Database, _ entry: OutboxEntry, as state: State, key: OperationKey, members: [UInt8]? = nil
    ) throws {
        try Query(
            db,
            """
            UPDATE tidemark_operation SET lane = ?2, number = ?3, state = ?4, members = coalesce(?5, members),
              content = CASE WHEN ?5 IS NULL THEN content END, resolved = CASE WHEN ?5 IS NULL THEN resolved END
            WHERE id = ?1
            """
        ).execute([
            .integer(entry.id), .text(key.lane), .integer(key.number), .text(state.rawValue),
            members.map(Cell.blob) ?? .null,
        ])
    }

    /// The version by which an operation that was taken is replayed; `nil` where nothing of it stands. Values that gave
    /// way when it was replayed before are replaced by those that stood by then, so that a server which lost that
    /// version gets what was there.
    static func place(_ db: Database, _ entry: OutboxEntry, _ verdict: Verdict, at newest: Version) throws -> Version? {
        var operation = try entry.sealedOperation()
        guard operation.isSeed || operation.original != nil else { return newest }
        if let record = verdict.record, operation.setsFields != (record.data != nil) { return nil }
        // Where it was merged the version is somebody else's, whose write goes before this one where both are replayed.
        if operation.isSeed { return verdict.status == .applied ? newest : max(1, newest - 1) }
        guard let standing = verdict.record?.data else { return newest }
        operation = operation.spelled(as: standing, or: [])
        // The server sets its own fields again by itself: they are no values that gave way.
        let told = verdict.losses.compactMap(\.field) + operation.references.compactMap(\.place.field)
        let (known, sent) = (standing.lookup, operation.fields)
        let others = sent.fields.filter { field in
            known[sent.name(field)] != sent.value(field)
                && !told.contains { Identifier.isSameName($0, sent.nameString(field)) }
        }
        guard !others.isEmpty else { return newest }
        let names = Set(others.map(sent.name))
        operation.leaveOut(Set(others.map(sent.nameString)))
        operation.fields = operation.fields.overlaid(with: standing.filter { names.contains(standing.name($0)) })
        try Query(db, "UPDATE tidemark_operation SET members = ?2, content = NULL, resolved = NULL WHERE id = ?1")
            .execute([.integer(entry.id), .blob(operation.sealedMembers())])
        return operation.fields.fields.isEmpty ? nil : newest
    }

    /// Another copy of this file, such as a device's clone, has used the key for something else: what this one wanted
    /// to say is said under a new one. `false` where that has happened before, which no copy explains.
    static func sealAfterMismatch(_ db: Database, _ entry: OutboxEntry, scope: Scope) throws -> Bool {
        guard try state(db, entry.id) != .resealed else { return false }
        // A lane that two copies number in is not used any more.
        try removeLane(db, entry.key.lane)
        var numbers = try LaneNumbers(db, lane: randomHex(bytes: 16))
        // A group stays together.
        var moved: [Int64: Int64] = [:]
        for entry in try entry.group.map({ try rest(db, of: $0, after: 0) }) ?? [entry] {
            let key = numbers.nextKey()
            moved[entry.key.number] = key.number
            try reseal(db, entry, as: .resealed, key: key)
            try renumber(db, entry, moved, own: key.number)
        }
        try numbers.store(db, scope: scope)
        return true
    }
}

extension Outbox {
    /// Renumbers the needs of an operation that was moved to another lane. A needed operation that was not moved, and
    /// has not taken effect, has no number there: the operation names its own number instead, so that it is deferred,
    /// and sealed again with its needs of that time.
    static func renumber(_ db: Database, _ entry: OutboxEntry, _ moved: [Int64: Int64], own: Int64) throws {
        var bare = entry
        bare.content = nil
        var operation = try bare.sealedOperation()
        guard operation.baseNumber != nil || !operation.needs.isEmpty else { return }
        var taken: Set<Int64> = []
        for number in operation.needs where moved[number] == nil {
            if try isTaken(db, OperationKey(lane: entry.key.lane, number: number)) { taken.insert(number) }
        }
        operation.renumber { moved[$0] ?? (taken.contains($0) ? nil : own) }
        try Query(db, "UPDATE tidemark_operation SET members = ?2 WHERE id = ?1")
            .execute([.integer(entry.id), .blob(operation.sealedMembers())])
    }
}

extension Operation {
    /// Names operations of its lane by their numbers in another one; those that have none there it names no more.
    mutating func renumber(_ number: (Int64) -> Int64?) {
        baseNumber = baseNumber.flatMap(number)
        var found: [Int64] = []
        for need in needs.compactMap(number) where !found.contains(need) { found.append(need) }
        needs = found
    }

    /// Removes fields.
    mutating func leaveOut(_ names: Set<String>) {
        let canonical = Set(names.map { DataObject.canonical($0)[...] })
        let all = fields
        fields = all.filter { !canonical.contains(all.name($0)) }
        references.removeAll { $0.place.field.map(names.contains) ?? false }
    }

    /// This operation and a later one of the same record as one, as far as what is on screen goes.
    fileprivate func followed(by later: Operation) -> Operation {
        guard setsFields, later.setsFields else { return later }
        var both = later
        both.fields = fields.overlaid(with: later.fields)
        if isInsert { both.baseVersion = nil }
        return both
    }
}
