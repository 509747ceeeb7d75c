import GRDB
import TidemarkWire

/// The actions that the app's schema names by `ON DELETE`, as edits of this device, by statements of the library's:
/// foreign keys are off, and capture is on. `RESTRICT` and `NO ACTION` leave a reference dangling.
struct DeleteActions {
    let db: Database
    let schema: SyncSchema
    let scope: Scope
    let now: Int64

    /// Deletes a row that the server does not have and that was refused. SQLite takes its children along where it can.
    /// Where a foreign key would keep the row, or a deferred one fail the commit, and where a row that would go, or its
    /// parent, may be quarantined, they are treated as after a delete from elsewhere.
    func delete(_ table: RecordTable, _ key: [Cell], _ row: [Cell]) throws {
        let shape = table.shape
        let values = values(of: shape, key, row)
        if try table.row(db, key) != nil, try !isAnyQuarantined(below: shape), try deleteNatively(table, key) {
            return
        }
        try ConnectionSwitch.foreignKeys.off(db) {
            try table.deleteRow(db, key)
            _ = try apply(to: shape.children, of: shape.name, values, sparing: nil)
        }
    }

    private func values(of shape: TableSchema, _ key: [Cell], _ row: [Cell]) -> ByName<Cell> {
        var values = ByName<Cell>()
        for (column, cell) in zip(shape.columns, key + row) { values[column.name] = cell }
        return values
    }

    /// Returns the rows of synced tables that refer to this one, by their keys.
    func rows(
        referringTo shape: TableSchema, _ key: [Cell], _ row: [Cell]
    ) throws -> [(table: RecordTable, key: [Cell])] {
        let values = values(of: shape, key, row)
        return try shape.children.flatMap { child -> [(table: RecordTable, key: [Cell])] in
            guard let table = schema[child.table], let referred = child.referred(in: values) else { return [] }
            let columns = table.key.map(\.sql).joined(separator: ", ")
            return try Query(
                db, "SELECT \(columns) FROM \(table.sql) WHERE \(child.condition(on: child.columns))"
            ).rows(db, referred) { (RecordTable(table), $0.cells(0..<table.key.count)) }
        }
    }

    /// Returns whether foreign keys are on, and let the row go.
    private func deleteNatively(_ table: RecordTable, _ key: [Cell]) throws -> Bool {
        guard try ConnectionSwitch.foreignKeys.isOn(db) else { return false }
        var isGone = false
        try db.inSavepoint {
            do { isGone = try table.deleteCaptured(db, key) && !db.hasUnresolvedForeignKeys } catch let error
                as DatabaseError where error.refusesRow
            {}
            return isGone ? .commit : .rollback
        }
        return isGone
    }

    /// Whether a table has quarantined rows that a delete of this table's rows can reach. SQLite knows nothing of them,
    /// and takes children that are theirs.
    private func isAnyQuarantined(below shape: TableSchema) throws -> Bool {
        guard !shape.children.isEmpty else { return false }
        let quarantined = Set(
            try schema.shapes.filter { try !QuarantinedRow.isEmpty(db, $0.name) }.map { SQLName($0.name) })
        guard !quarantined.isEmpty else { return false }
        var (reached, waiting) = (Set([SQLName(shape.name)]), [shape.name])
        while let table = waiting.popLast() {
            for child in try TableSchema.references(db, to: table) where reached.insert(SQLName(child.table)).inserted {
                waiting.append(child.table)
            }
        }
        return !reached.isDisjoint(with: quarantined)
    }

    /// Applies them to the references to a record that will never exist, as if it had been deleted.
    func apply(of shape: TableSchema, _ key: [Cell], _ fields: [String: Value]) throws {
        var values = ByName<Cell>()
        for (name, value) in fields { values[name] = Cell(value) }
        for (column, cell) in zip(shape.key, key) { values[column.name] = cell }
        _ = try ConnectionSwitch.foreignKeys.off(db) {
            try apply(to: shape.children, of: shape.name, values, sparing: nil)
        }
    }

    /// Follows a cascade from each deleted row to its own children. References to what another row holds by now stay.
    ///
    /// - Parameters:
    ///   - parent: the table of the deleted row.
    ///   - values: that row, by column.
    ///   - spared: where no row is taken away without a word, the version of the parent's deletion: what cannot travel
    ///   is on this device alone and stays, and an edit that came to the server after the deletion, or has not yet, is
    ///   listed as a conflict. `nil` where the user has discarded the parent.
    /// - Returns: how many conflicts were listed.
    func apply(
        to children: [TableSchema.Child], of parent: String, _ values: ByName<Cell>,
        sparing spared: (packed: PackedEdits, version: Version)?
    ) throws -> Int {
        var waiting = children.map { (child: $0, parent: parent, values: values) }
        var listed = 0
        while let (child, parent, values) = waiting.popLast() {
            guard let referred = child.referred(in: values) else { continue }
            let isHeld = "SELECT 1 FROM \(quoted(parent)) WHERE \(child.condition(on: child.parentColumns)) LIMIT 1"
            if try Query(db, isHeld).first(db, referred, { _ in true }) == true { continue }
            if try isQuarantined(parent, child, referred) { continue }
            let condition = child.condition(on: child.columns)
            let table = quoted(child.table)
            let own = try spared.flatMap { spared in
                try schema[child.table].map {
                    try OwnRows(
                        db, $0, spared.packed, scope, now, after: spared.version, where: condition, referred)
                }
            }
            switch child.onDelete.uppercased() {
            case "CASCADE":
                let grandchildren = try TableSchema.references(db, to: child.table)
                let (gone, count) = try cascade(
                    child.table, condition, referred, own, readsRows: !grandchildren.isEmpty)
                for row in gone { waiting += grandchildren.map { ($0, child.table, row) } }
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

    /// Whether a quarantined row of the parent's table holds what the children refer to: they are its own once it has
    /// its place. Where they refer to the whole key, it is another scope's row of the same record, and not asked for
    /// here.
    private func isQuarantined(_ parent: String, _ child: TableSchema.Child, _ referred: [Cell]) throws -> Bool {
        guard let shape = schema[parent] else { return false }
        let columns = shape.columns
        let indices = child.parentColumns.compactMap { name in columns.firstIndex { $0.name.isSameName(as: name) } }
        let key = Set(shape.key.indices)
        guard indices.count == referred.count, Set(indices) != key, try !QuarantinedRow.isEmpty(db, shape.name)
        else { return false }
        let isEqual = child.collations.indices.map { index in
            "?\(index + 1) = ?\(index + 1 + indices.count) COLLATE \(quoted(child.collations[index]))"
        }
        let query = try Query(db, "SELECT \(isEqual.joined(separator: " AND "))")
        return try QuarantinedRow.rows(db, shape).contains { row in
            guard let key = KeyText.key(of: row.record, in: shape) else { return false }
            let cells = key + row.cells
            return try query.first(db, indices.map { cells[$0] } + referred) { $0.integer(0) == 1 } ?? false
        }
    }

    /// Deletes the children, and returns what stood in those that are gone, with the number of conflicts listed.
    private func cascade(
        _ table: String, _ condition: String, _ referred: [Cell], _ own: OwnRows?, readsRows: Bool
    ) throws -> (gone: [ByName<Cell>], listed: Int) {
        guard let own else {
            let gone = readsRows ? try rows(table, condition, referred) : []
            try attempt("DELETE FROM \(quoted(table)) WHERE \(condition)", referred)
            // A row that the schema keeps holds what its own children refer to, so that they stay with it.
            return (gone, 0)
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

extension TableSchema.Child {
    /// The values of a parent that children refer to; `nil` where they cannot.
    fileprivate func referred(in parent: ByName<Cell>) -> [Cell]? {
        let referred = parentColumns.compactMap { parent[$0] }
        return referred.count == columns.count && !referred.contains(.null) ? referred : nil
    }

    /// SQL for rows that hold what is referred to, its values as parameters.
    fileprivate func condition(on columns: [String]) -> String {
        zip(columns, collations).enumerated()
            .map { "\(quoted($1.0)) = ?\($0 + 1) COLLATE \(quoted($1.1))" }.joined(separator: " AND ")
    }
}

extension RecordTable {
    /// Deletes the row of a refused edit that the server does not have, also where it is quarantined. Of a record that
    /// was deleted elsewhere the children are looked after when the scan has ended (``CascadeRepair``). Of one that
    /// another scope holds they stay.
    func undoInsert(
        _ db: Database, _ key: [Cell], _ shadow: Shadow, in scope: Scope, now: Int64, _ schema: SyncSchema
    ) throws {
        let (id, place) = (shape.recordID(key), shadow.place(in: scope))
        let quarantined = try id.flatMap { try QuarantinedRow.edited(db, shape, $0, shadow, place) }
        if let id, quarantined != nil { try QuarantinedRow.remove(db, shape.name, id.text, place) }
        let isElsewhere = try id.map { try QuarantinedRow.exists(db, shape.name, $0.text) } ?? false
        if shadow.state == .deleted || isElsewhere {
            try CaptureSuppression.whileApplying(db, schema) { try deleteRow(db, key) }
        } else if let row = try row(db, key) ?? quarantined {
            try DeleteActions(db: db, schema: schema, scope: scope, now: now).delete(self, key, row)
        }
    }
}
