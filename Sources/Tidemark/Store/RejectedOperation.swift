public import Foundation
public import GRDB
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

        /// Makes a value, for previews and tests.
        public init(entity: String, record: String) {
            self.entity = entity
            self.record = record
        }
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
    public var isInsert: Bool
    /// Whether the edit was a delete.
    public var isDelete: Bool
    /// The fields as they were edited.
    public var fields: [String: Value]
    /// The group that it was made in: what has the same one was refused together.
    public var group: String?
    /// Why, for programs: one of `RejectionCode`, or a code of the operator's own rules.
    public var code: String
    /// Why, for people.
    public var detail: String
    /// The remedy.
    public var hint: String
    /// When the verdict came, by this device's clock.
    public var rejectedAt: Date
    /// The edits that are not sent while this one is refused.
    public var dependants: [Dependant]

    /// Makes a refused edit, for previews and tests; the engine's own are those of
    /// ``SyncEngine/rejectedOperations()``.
    public init(
        id: Int64, scope: Scope, entity: String, record: String, isInsert: Bool = false, isDelete: Bool = false,
        fields: [String: Value] = [:], group: String? = nil, code: String, detail: String, hint: String = "",
        rejectedAt: Date, dependants: [Dependant] = []
    ) {
        self.id = id
        self.scope = scope
        self.entity = entity
        self.record = record
        self.isInsert = isInsert
        self.isDelete = isDelete
        self.fields = fields
        self.group = group
        self.code = code
        self.detail = detail
        self.hint = hint
        self.rejectedAt = rejectedAt
        self.dependants = dependants
    }
}

extension RejectedOperation {
    private static let columns = """
        id, scope, entity, record, kind, \(Outbox.contentSQL), code, detail, hint, finished_at, is_insert,
        in_group
        """

    /// The edits that were refused, as ``SyncEngine/rejectedOperations()`` lists them, for a `ValueObservation` or
    /// together with the app's own rows.
    ///
    /// - Throws: GRDB's `DatabaseError` where the file cannot be read.
    public static func fetchAll(_ db: Database) throws -> [RejectedOperation] {
        for table in ["operation", "blocked"] {
            try db.registerAccess(to: Table("tidemark_\(table)"))
        }
        return try all(db)
    }

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
            isDelete: row.text(4) == TidemarkWire.Operation.Kind.delete.rawValue, fields: fields(row.blob(5)),
            group: row.optionalText(11), code: row.text(6), detail: row.text(7), hint: row.text(8),
            rejectedAt: Date(milliseconds: row.integer(9)))
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
    func stored(_ db: Database) throws -> (isLocal: Bool, record: String)? {
        try Outbox.rejected(db, id: id)
    }

    func remove(_ db: Database) throws { try Outbox.remove(db, id: id) }
}

extension RejectedOperation {
    /// An edit was taken: refused edits of the record that it supersedes leave the list.
    static func supersede(_ db: Database, by entry: OutboxEntry) throws {
        let refused = try Outbox.refusals(db, before: entry)
        guard !refused.isEmpty else { return }
        let fields = Set(try entry.operation().fields.values.keys)
        for refusal in refused {
            let isCovered =
                entry.isDelete || refusal.isInsert
                || fields.isSuperset(of: Self.fields(refusal.members).keys)
            guard isCovered else { continue }
            try Outbox.remove(db, id: refusal.id)
        }
    }
}
