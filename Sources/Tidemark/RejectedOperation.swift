import GRDB
public import TidemarkWire

/// An edit that was refused, with the reason. It is kept until the app edits the record again so that it is taken, or
/// decides: ``SyncEngine/retry(_:changing:)``, ``SyncEngine/discard(_:)-(RejectedOperation)``.
public struct RejectedOperation: Hashable, Sendable, Identifiable {
    /// An edit that waits, because it refers to a record whose insert was refused.
    public struct Dependant: Hashable, Sendable {
        /// The table's name.
        public var entity: String
        /// The record's id on the wire.
        public var record: String
    }

    /// The place in the outbox.
    public var id: Int64
    /// Where the record belongs.
    public var scope: Scope
    /// The table's name.
    public var entity: String
    /// The record's id on the wire; of a key that cannot be one, the JSON array of its values.
    public var record: String
    /// Whether the edit made the record. Its row is gone from the table then, unless it never left this device.
    public var isInsert = false
    /// Whether the edit was a delete.
    public var isDelete: Bool
    /// The fields as they were edited.
    public var fields: [String: Value]
    /// The group that it was made in: what has the same one was refused together.
    public var group: String?
    /// Why, for programs: a code of the protocol or of the operator's own rules.
    public var code: String
    /// Why, for people.
    public var detail: String
    /// What can be done about it.
    public var hint: String
    /// When the verdict came, in milliseconds since 1970.
    public var rejectedAt: Int64
    /// The edits that are not sent while this one is refused.
    public var dependants: [Dependant] = []
}

extension RejectedOperation {
    private static let columns = """
        id, scope, entity, record, kind, \(contentSQL), code, detail, hint, finished_at, is_insert,
        in_group
        """

    /// The sealed members, or, of one that travels as a patch, the fields that it stands for.
    static let contentSQL = "coalesce('\"fields\":' || CAST(content AS TEXT), resolved, members)"

    static func all(_ db: Database) throws -> [RejectedOperation] {
        guard try LibrarySchema.isInstalled(db) else { return [] }
        let all = try Outbox.rejected(db, columns, operation).compactMap { $0 }
        return try all.map { refused in
            var refused = refused
            let name = RecordName(entity: refused.entity, record: refused.record)
            refused.record = KeyText.shown(refused.record)
            guard refused.isInsert else { return refused }
            refused.dependants = try BlockedEdits.dependants(db, of: name)
                .map { Dependant(entity: $0.entity, record: $0.record) }
            return refused
        }
    }

    private static func operation(_ row: Query) -> RejectedOperation? {
        guard let scope = Scope(row.text(1)) else { return nil }
        return RejectedOperation(
            id: row.integer(0), scope: scope, entity: row.text(2), record: row.text(3), isInsert: row.integer(10) != 0,
            isDelete: row.text(4) == Operation.Kind.delete.rawValue, fields: fields(row.blob(5)),
            group: row.optionalText(11), code: row.text(6), detail: row.text(7), hint: row.text(8),
            rejectedAt: row.integer(9))
    }

    /// The fields out of the sealed members, which may lack what an operation on the wire must have.
    static func fields(_ members: [UInt8]) -> [String: Value] {
        let object = Array("{".utf8) + members + Array("}".utf8)
        let data = try? object.reading { (reader: inout JSONReader) throws(JSONError) -> DataObject in
            var data = DataObject.empty
            try reader.enterObject()
            while let name = try reader.nextMember() {
                if reader.matches(name, "fields") || reader.matches(name, "data") {
                    data = try DataObject(from: &reader)
                } else {
                    try reader.skip()
                }
            }
            return data
        }
        return data?.values ?? [:]
    }

    /// Whether the edit never left this device, and its record as the file keeps it; `nil` where it is not in the list
    /// any more.
    private func stored(_ db: Database) throws -> (isLocal: Bool, record: String)? {
        try Outbox.rejected(db, id: id)
    }

    private func remove(_ db: Database) throws { try Outbox.remove(db, id: id) }
}

// MARK: - Deciding

extension RejectedOperation {
    /// Writes the edit again as the app would: it is captured and sent like any other.
    func retry(_ db: Database, _ layout: SyncSchema, changing changes: [String: Value]) throws {
        guard let stored = try stored(db), let rewriting = Rewriting(db, layout[entity], record: stored.record) else {
            return
        }
        if stored.isLocal, try RecordTable(rewriting.shape).shadow(db, rewriting.key) != nil {
            // The edit is on screen; sealing looks at it again, and forgets the refusal.
            if !changes.isEmpty { try rewriting.put(changes, whole: nil) }
            try RecordTable(rewriting.shape).mark(db, rewriting.key)
        } else if let conflict = try Conflicts.of(db, operation: id) {
            try conflict.settle(
                changes.isEmpty ? .keepMine : .merge(fields.merging(changes) { $1 }), db, layout)
        } else if isDelete {
            try rewriting.delete()
            try remove(db)
        } else {
            let edited = fields.merging(changes) { $1 }
            try rewriting.put(edited, whole: isInsert ? edited : nil)
            try remove(db)
        }
        try BlockedEdits(db: db, layout: layout).release()
    }

    /// Edits of one group that never left this device go together.
    func discard(_ db: Database, _ layout: SyncSchema) throws {
        try discardAlone(db, layout)
        if group != nil {
            for other in try Self.all(db) where try other.group == group && other.stored(db)?.isLocal == true {
                try other.discardAlone(db, layout)
            }
        }
        try BlockedEdits(db: db, layout: layout).release()
    }

    private func discardAlone(_ db: Database, _ layout: SyncSchema) throws {
        guard let stored = try stored(db) else { return }
        try remove(db)
        try undo(db, layout, isLocal: stored.isLocal, record: stored.record)
    }

    private func undo(_ db: Database, _ layout: SyncSchema, isLocal: Bool, record: String) throws {
        guard let rewriting = Rewriting(db, layout[entity], record: record) else { return }
        let table = RecordTable(rewriting.shape)
        guard isLocal else {
            guard isInsert, try table.row(db, rewriting.key) == nil else { return }
            // What refers to the record goes the way of a deleted parent's children.
            let cascadeRepair = CascadeRepair(db: db, scope: scope, now: wallClockMilliseconds())
            return try cascadeRepair.settleChildren(of: rewriting.shape, rewriting.key, fields)
        }
        guard let shadow = try table.shadow(db, rewriting.key), shadow.mark == nil else { return }
        if shadow.state == .known {
            try CaptureSuppression.whileApplying(db, layout) { try table.write(db, rewriting.key, shadow.cells) }
        } else {
            // Captured: rows that go with this one by the schema's own ON DELETE are edits like any other.
            try table.deleteRow(db, rewriting.key)
        }
        try table.dropShadow(db, rewriting.key)
    }
}
