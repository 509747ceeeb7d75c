import GRDB
import TidemarkWire

/// The records that one batch refers to by the schema's own foreign keys and that are not taken yet: an edit names the
/// inserts of its own lane that it needs, and waits on this device while one of them is refused.
struct Dependence {
    /// A foreign key to a synced table's own key: the columns here, in the order of the columns there.
    private struct Reference {
        var parent: TableSchema
        var columns: [String]
    }

    private let db: Database
    private let schema: SyncSchema
    private let references: [String: [Reference]]
    private let parents: Set<String>
    private var hasBlockers: Bool
    /// Inserts of the lane that have no verdict yet.
    private var fresh: [RecordName: Int64] = [:]
    /// Records that edits refer to and that turned out not to be new.
    private var clear: Set<RecordName> = []
    /// Whether a table has records with edits at all.
    private var hasEdits: [String: Bool] = [:]

    init(_ db: Database, _ schema: SyncSchema, lane: String, hasOpen: Bool) throws {
        self.db = db
        self.schema = schema
        var references: [String: [Reference]] = [:]
        for parent in schema.shapes {
            for child in parent.children {
                let columns = parent.key.compactMap { column in
                    zip(child.parentColumns, child.columns).first { $0.0.isSameName(as: column.name) }?.1
                }
                guard columns.count == parent.key.count, columns.count == child.columns.count else { continue }
                references[child.table, default: []].append(Reference(parent: parent, columns: columns))
            }
        }
        self.references = references
        parents = Set(references.values.flatMap { $0.map(\.parent.name) })
        guard !references.isEmpty else {
            hasBlockers = false
            return
        }
        hasBlockers = try Outbox.hasRefusedInserts(db)
        guard hasOpen else { return }
        for (name, number) in try Outbox.openInserts(db, lane: lane) where parents.contains(name.entity) {
            fresh[name] = number
        }
    }

    /// The record whose refused insert stands in the way of an edit.
    func blocker(
        behind operation: Operation, _ shape: TableSchema, _ id: RecordID, _ key: [Cell], _ row: [Cell]
    ) throws -> RecordName? {
        guard hasBlockers else { return nil }
        for (_, name) in names(in: operation, shape, id, key, row) {
            if let blocker = try BlockedEdits(db: db, schema: schema).blocker(behind: name) { return blocker }
        }
        return nil
    }

    /// New records that the operation refers to and that are not sealed in this lane: each costs one look at most, and
    /// one that turned out to be known costs none in the same batch.
    mutating func inserts(
        behind operation: Operation, _ shape: TableSchema, _ id: RecordID, _ key: [Cell], _ row: [Cell]
    ) throws -> [Insert] {
        var found: [Insert] = []
        for (parent, name) in names(in: operation, shape, id, key, row) {
            guard fresh[name] == nil, !clear.contains(name) else { continue }
            let isEdited = try hasEdits[parent.name] ?? RecordTable(parent).hasShadows(db)
            hasEdits[parent.name] = isEdited
            guard isEdited else { continue }
            if let insert = try Insert(db, parent, name) { found.append(insert) } else { clear.insert(name) }
        }
        return found
    }

    /// The numbers of the lane after which an edit goes.
    func needs(
        of operation: Operation, _ shape: TableSchema, _ id: RecordID, _ key: [Cell], _ row: [Cell]
    ) -> [Int64] {
        guard !fresh.isEmpty else { return [] }
        var needs: [Int64] = []
        for (_, name) in names(in: operation, shape, id, key, row) {
            guard let number = fresh[name], needs.count < Operation.needLimit, !needs.contains(number) else { continue }
            needs.append(number)
        }
        return needs
    }

    /// The other records that the operation refers to.
    private func names(
        in operation: Operation, _ shape: TableSchema, _ id: RecordID, _ key: [Cell], _ row: [Cell]
    ) -> [(TableSchema, RecordName)] {
        guard operation.setsFields, let references = references[shape.name] else { return [] }
        let own = RecordName(entity: shape.name, record: id.text)
        return references.compactMap { reference in
            name(reference, shape, key, row, operation).flatMap { $0 == own ? nil : (reference.parent, $0) }
        }
    }

    /// The record that a foreign key refers to, where the operation sets it.
    private func name(
        _ reference: Reference, _ shape: TableSchema, _ key: [Cell], _ row: [Cell], _ operation: Operation
    ) -> RecordName? {
        var cells: [Cell] = []
        var isSet = operation.baseVersion == nil
        for column in reference.columns {
            if let index = shape.data.firstIndex(where: { $0.name.isSameName(as: column) }) {
                cells.append(row[index])
                isSet = isSet || operation.fields.value(named: shape.data[index].canonicalName) != nil
            } else if let index = shape.key.firstIndex(where: { $0.name.isSameName(as: column) }) {
                cells.append(key[index])
            }
        }
        guard isSet, cells.count == reference.columns.count, !cells.contains(.null) else { return nil }
        return reference.parent.recordID(cells).map { RecordName(entity: reference.parent.name, record: $0.text) }
    }

    /// A new record that the server does not know, as far as this device does.
    struct Insert {
        let unit: Unsealed
        let isMarked: Bool
        let group: String?
        /// The scope that has to look at its mark; `nil` where its table has only one, empty where any may.
        let place: String?

        fileprivate init?(_ db: Database, _ shape: TableSchema, _ name: RecordName) throws {
            guard let id = RecordID(name.record), let key = shape.key(of: id) else { return nil }
            guard let found = try ShadowTable(shape).insert(db, key) else { return nil }
            (isMarked, group, place) = (found.isMarked, found.group, found.place)
            unit = Unsealed(table: RecordTable(shape), key: key, id: id)
        }
    }

    /// An insert was sealed.
    mutating func noteInsert(_ operation: Operation, _ shape: TableSchema, _ id: RecordID, number: Int64) {
        guard operation.setsFields, operation.baseVersion == nil, parents.contains(shape.name) else { return }
        fresh[RecordName(entity: shape.name, record: id.text)] = number
    }

    /// Whether rows of a table refer to other records.
    func hasReferences(in shape: TableSchema) -> Bool { references[shape.name] != nil }

    /// An edit was refused on this device.
    mutating func noteRefusal() { hasBlockers = !references.isEmpty }
}
