import GRDB
import TidemarkWire

/// References left dangling by a deleted parent are repaired by the schema's own ON DELETE action, as edits of this
/// device, once the scan that brought the tombstone has ended. Of a parent that is merely absent nothing is repaired:
/// it may be quarantined, refused, in another scope, or still to come.
struct CascadeRepair {
    let db: Database
    let scope: Scope
    let now: Int64

    private var deletedParents: DeletedParents { DeletedParents(db: db, scope: scope) }

    /// Remembers what a deleted parent's children referred to.
    func noteDeletedParent(_ table: RecordTable, _ id: RecordID, _ key: [Cell], version: Version) throws {
        let shape = table.shape
        let row = try table.row(db, key)
        var columns = DataObject.Builder()
        for (column, cell) in zip(shape.key, key) { columns.append(name: column.wireName) { $0.cell(cell) } }
        let referred = Set(shape.children.flatMap(\.parentColumns).map { SQLName($0) })
        for (column, cell) in zip(shape.data, row ?? [])
        where referred.contains(SQLName(column.name)) && cell.isSendable {
            columns.append(name: column.wireName) { $0.cell(cell) }
        }
        try deletedParents.note(shape.name, id, columns: columns.finish().bytes, version: version)
    }

    /// Whether any parents are to be looked after.
    func isDue() throws -> Bool { try deletedParents.areAny() }

    /// Runs while capture is not suppressed, so that its edits are captured and travel like any other. Returns how many
    /// parents it looked after, and how many conflicts it has listed.
    func repair(_ schema: SyncSchema) throws -> (parents: Int, listed: Int) {
        var (parents, listed) = (0, 0)
        let packed = PackedEdits(db, scope)
        for entry in try deletedParents.all() {
            if try isUndecided(entry.entity, entry.record, schema) { continue }
            parents += 1
            try deletedParents.remove(entry)
            guard let shape = schema[entry.entity], let id = RecordID(entry.record), let key = shape.key(of: id),
                try RecordTable(shape).row(db, key) == nil, try !QuarantinedRow.exists(db, entry.entity, entry.record)
            else { continue }
            var values = ByName<Cell>()
            for (name, value) in try columns(entry.columns) { values[name] = value }
            listed += try DeleteActions(db: db, schema: schema, scope: scope, now: now, sent: SentInserts(db))
                .apply(
                    to: shape.children, of: shape.name, values,
                    because: .deleted(packed: packed, version: entry.version ?? .max))
        }
        return (parents, listed)
    }

    /// Whether an edit keeps the deleted row on screen, until the server has said what becomes of it.
    private func isUndecided(_ entity: String, _ record: String, _ schema: SyncSchema) throws -> Bool {
        guard let shape = schema[entity], let id = RecordID(record), let key = shape.key(of: id),
            let shadow = try RecordTable(shape).shadow(db, key)
        else { return false }
        return shadow.state == .deleted && !shadow.isGone
    }

    private func columns(_ bytes: [UInt8]) throws -> [(String, Cell)] {
        try bytes.reading { (reader: inout JSONReader) throws(JSONError) -> [(String, Cell)] in
            var columns: [(String, Cell)] = []
            try reader.enterObject()
            while let name = try reader.nextMember() { columns.append((reader.string(name), try reader.readCell())) }
            return columns
        }
    }
}
