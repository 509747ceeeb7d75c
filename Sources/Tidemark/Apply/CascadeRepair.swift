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
            listed += try repairChildren(shape.children, values, sparing: (schema, packed, entry.version ?? .max))
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

    /// Applies `ON DELETE` to the references to a record that will never exist, as if it had been deleted.
    func repairChildren(of shape: TableSchema, _ key: [Cell], _ fields: [String: Value]) throws {
        var values = ByName<Cell>()
        for (name, value) in fields { values[name] = Cell(value) }
        for (column, cell) in zip(shape.key, key) { values[column.name] = cell }
        try repairChildren(shape.children, values, sparing: nil)
    }

    /// Follows a cascade from each deleted row to its own children, because foreign keys are off here.
    ///
    /// - Parameter spared: the tables whose rows are not taken away without a word, and the version of the parent's
    ///   deletion: what cannot travel is on this device alone and stays, and an edit that came to the server after the
    ///   deletion, or has not yet, is listed as a conflict. `nil` where the user has discarded the parent.
    /// - Returns: how many conflicts were listed.
    @discardableResult
    private func repairChildren(
        _ children: [TableSchema.Child], _ parent: ByName<Cell>,
        sparing spared: (schema: SyncSchema, packed: PackedEdits, version: Version)?
    ) throws -> Int {
        var waiting = children.map { ($0, parent) }
        var listed = 0
        while let (child, values) = waiting.popLast() {
            let referred = child.parentColumns.compactMap { values[$0] }
            guard referred.count == child.columns.count, !referred.contains(.null) else { continue }
            let condition = child.columns.enumerated().map { "\(quoted($1)) = ?\($0 + 1)" }.joined(separator: " AND ")
            let table = quoted(child.table)
            let own = try spared.flatMap { spared in
                try spared.schema[child.table].map {
                    try OwnRows(
                        db, $0, spared.packed, scope, now, after: spared.version, where: condition, referred)
                }
            }
            switch child.onDelete.uppercased() {
            case "CASCADE":
                let grandchildren = try TableSchema.references(db, to: child.table)
                let (gone, count) = try cascade(
                    child.table, condition, referred, own, readsRows: !grandchildren.isEmpty)
                for row in gone { waiting += grandchildren.map { ($0, row) } }
                listed += count
            case "SET NULL":
                let sets = child.columns.map { "\(quoted($0)) = NULL" }.joined(separator: ", ")
                try attempt("UPDATE \(table) SET \(sets) WHERE \(condition)", referred)
                for row in own?.rows ?? [] { listed += try own?.list(row) ?? 0 }
            case "SET DEFAULT":
                let sets = try child.columns.map { "\(quoted($0)) = \(try fallback(child.table, $0))" }
                try attempt("UPDATE \(table) SET \(sets.joined(separator: ", ")) WHERE \(condition)", referred)
                for row in own?.rows ?? [] { listed += try own?.list(row) ?? 0 }
            default: continue
            }
        }
        return listed
    }

    /// Deletes the children, and returns what stood in those that are gone, with the number of conflicts listed.
    private func cascade(
        _ table: String, _ condition: String, _ referred: [Cell], _ own: OwnRows?, readsRows: Bool
    ) throws -> (gone: [ByName<Cell>], listed: Int) {
        guard let own else {
            let gone = readsRows ? try rows(table, condition, referred) : []
            try attempt("DELETE FROM \(quoted(table)) WHERE \(condition)", referred)
            // A row that the schema keeps has its own children stay with it.
            return try gone.isEmpty || rows(table, condition, referred).isEmpty ? (gone, 0) : ([], 0)
        }
        var (gone, listed): ([ByName<Cell>], Int) = ([], 0)
        for row in own.rows {
            try attempt { try own.delete(row) }
            listed += try own.list(row)
            if try own.isGone(row) { gone.append(own.values(row)) }
        }
        return (gone, listed)
    }

    /// Runs the action. If the app's schema forbids it, the reference stays dangling, as it does under RESTRICT.
    private func attempt(_ action: () throws -> Void) throws {
        do { try action() } catch let error as DatabaseError where error.refusesRow {}
    }

    private func attempt(_ sql: String, _ cells: [Cell]) throws { try attempt { try Query(db, sql).execute(cells) } }

    private func rows(_ table: String, _ condition: String, _ cells: [Cell]) throws -> [ByName<Cell>] {
        let names = try Query(db, "PRAGMA table_info(\(quoted(table)))").rows(db) { $0.text(1) }
        let list = names.map(quoted).joined(separator: ", ")
        return try Query(db, "SELECT \(list) FROM \(quoted(table)) WHERE \(condition)").rows(db, cells) { row in
            var values = ByName<Cell>()
            for (name, cell) in zip(names, row.cells(0..<names.count)) { values[name] = cell }
            return values
        }
    }

    private func fallback(_ table: String, _ column: String) throws -> String {
        let columns = try Query(db, "PRAGMA table_info(\(quoted(table)))").rows(db) { ($0.text(1), $0.optionalText(4)) }
        return columns.first { $0.0 == column }?.1.map { "(\($0))" } ?? "NULL"
    }
}
