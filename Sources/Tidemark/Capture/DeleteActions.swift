import GRDB
import TidemarkWire

/// The actions that the app's schema names by `ON DELETE`, as edits of this device, by statements of the library's:
/// foreign keys are off, and capture is on. `RESTRICT` and `NO ACTION` leave a reference dangling.
struct DeleteActions {
    let db: Database
    let schema: SyncSchema
    let scope: Scope
    let now: Int64
    let sent: SentInserts
    /// Whether the rows of a table that the server has are put back in their own turn, whatever they refer to.
    var putsBack: (TableSchema) -> Bool = { _ in false }

    /// Why the parent is gone.
    enum Cause {
        /// It was deleted elsewhere. No row is taken away without a word: what cannot travel is on this device alone
        /// and stays, and an edit that came to the server after the version of the deletion, or has not yet, is listed
        /// as a conflict.
        case deleted(packed: PackedEdits, version: Version)
        /// The server never had it. A row that was made on this device follows; one of somebody else's is not deleted,
        /// and refers to what it refers to on the server.
        case undone
    }

    /// Deletes a row that the server does not have and that was refused.
    func delete(_ table: RecordTable, _ key: [Cell], _ row: [Cell]) throws {
        var values = ByName<Cell>()
        for (column, cell) in zip(table.shape.columns, key + row) { values[column.name] = cell }
        try ConnectionSwitch.foreignKeys.off(db) {
            try table.deleteRow(db, key)
            _ = try apply(to: table.shape.children, of: table.shape.name, values, because: .undone)
        }
    }

    /// Applies them to the references to a record that will never exist.
    func apply(of shape: TableSchema, _ key: [Cell], _ fields: [String: Value]) throws {
        var values = ByName<Cell>()
        for (name, value) in fields { values[name] = Cell(value) }
        for (column, cell) in zip(shape.key, key) { values[column.name] = cell }
        _ = try ConnectionSwitch.foreignKeys.off(db) {
            try apply(to: shape.children, of: shape.name, values, because: .undone)
        }
    }

    /// Follows a cascade from each deleted row to its own children. References to what another row holds by now stay.
    ///
    /// - Parameters:
    ///   - parent: the table of the deleted row.
    ///   - values: that row, by column.
    /// - Returns: how many conflicts were listed.
    func apply(
        to children: [TableSchema.Child], of parent: String, _ values: ByName<Cell>, because cause: Cause
    ) throws -> Int {
        var waiting = children.map { (child: $0, parent: parent, values: values) }
        var listed = 0
        while let (child, parent, values) = waiting.popLast() {
            guard let referred = child.referred(in: values) else { continue }
            let isHeld = "SELECT 1 FROM \(quoted(parent)) WHERE \(child.condition(on: child.parentColumns)) LIMIT 1"
            if try Query(db, isHeld).first(db, referred, { _ in true }) == true { continue }
            if try isQuarantined(parent, child, referred) { continue }
            let (gone, count) = try act(on: Rows(child, child.condition(on: child.columns), referred), because: cause)
            listed += count
            guard !gone.isEmpty else { continue }
            let grandchildren = try TableSchema.references(db, to: child.table)
            for row in gone { waiting += grandchildren.map { ($0, child.table, row) } }
        }
        return listed
    }

    /// Rows of a child's table, by a condition and its parameters.
    private struct Rows {
        let child: TableSchema.Child
        let condition: String
        let cells: [Cell]

        init(_ child: TableSchema.Child, _ condition: String, _ cells: [Cell]) {
            (self.child, self.condition, self.cells) = (child, condition, cells)
        }
    }

    /// Returns what stood in the rows that are gone, and how many conflicts were listed.
    private func act(on rows: Rows, because cause: Cause) throws -> (gone: [ByName<Cell>], listed: Int) {
        guard let shape = schema[rows.child.table] else { return (try act(on: rows, nil).gone, 0) }
        switch cause {
        case .deleted(let packed, let version):
            let own = try OwnRows(db, shape, packed, scope, now, after: version, where: rows.condition, rows.cells)
            return try act(on: rows, own)
        case .undone:
            var gone: [ByName<Cell>] = []
            for key in try keys(shape, rows) {
                let table = RecordTable(shape)
                guard let row = try table.row(db, key) else { continue }
                // A row whose key is no record's id never leaves this device.
                let reference = shape.recordID(key).map {
                    Reference(shape: shape, key: key, id: $0, row: row, child: rows.child)
                }
                let staysRefused = try reference.map { try isRefused($0.name, table, key) } ?? false
                if try reference.map(isMadeHere) ?? true {
                    gone += try act(on: Rows(rows.child, shape.isKeySQL, key), nil).gone
                } else if let reference, !putsBack(shape) {
                    try putBack(reference)
                }
                if staysRefused { try table.stayRefused(db, key) }
            }
            return (gone, 0)
        }
    }

    private func keys(_ shape: TableSchema, _ rows: Rows) throws -> [[Cell]] {
        let columns = shape.key.map(\.sql).joined(separator: ", ")
        return try Query(db, "SELECT \(columns) FROM \(shape.sql) WHERE \(rows.condition)")
            .rows(db, rows.cells) { $0.cells(0..<shape.key.count) }
    }

    /// A row of a synced table that refers to a record which the server never had.
    private struct Reference {
        let shape: TableSchema
        let key: [Cell]
        let id: RecordID
        let row: [Cell]
        let child: TableSchema.Child

        var name: RecordName { RecordName(entity: shape.name, record: id.text) }

        /// The columns of the reference that are others in the row of the server's.
        func changed(from cells: [Cell]) -> [Int] {
            child.columns.compactMap { name in shape.data.firstIndex { $0.name.isSameName(as: name) } }
                .filter { row[$0] != cells[$0] }
        }
    }

    /// Whether the row was made on this device: the server has none, or has it as this device has sent it.
    private func isMadeHere(_ reference: Reference) throws -> Bool {
        let (shape, key) = (reference.shape, reference.key)
        let found = try RecordTable(shape).shadow(db, key)
        let shadow = try FirstCapture.shadow(db, shape, key, row: reference.row, found)
        if shadow?.state == .absent {
            // A record that moves here from another scope is new in this one only.
            return try !shape.isScopedByColumn || !QuarantinedRow.exists(db, shape.name, reference.id.text)
        }
        if let shadow, !reference.changed(from: shadow.cells).isEmpty { return false }
        // An insert into a scope may be the arrival of somebody else's record that was moved here.
        guard !shape.isScopedByColumn, let place = shape.scope(ofKey: key, reference.row),
            let insert = try sent.insert(of: reference.name, in: place)
        else { return false }
        var cells = shape.data.map(\.defaultCell)
        for (index, cell) in insert.fields.cells(in: shape) { cells[index] = cell }
        return reference.changed(from: cells).isEmpty
    }

    /// Whether an edit of the record waits on this device for a decision.
    private func isRefused(_ name: RecordName, _ table: RecordTable, _ key: [Cell]) throws -> Bool {
        guard let shadow = try table.shadowHead(db, key), shadow.mark == nil else { return false }
        return try Outbox.hasLocalRefusal(db, entity: name.entity, record: name.record, after: 0)
    }

    /// Has a row refer to what it refers to on the server, or will once it has taken what is under way. Where that is
    /// the same, the reference dangles here as it does there.
    private func putBack(_ reference: Reference) throws {
        let (shape, key) = (reference.shape, reference.key)
        guard let shadow = try RecordTable(shape).shadow(db, key), shadow.state != .absent else { return }
        let underWay = try Outbox.overlay(
            db, entity: shape.name, record: reference.id.text, scope: shadow.place(in: scope))
        let cells = underWay.flatMap { shadow.overlaid(with: $0, shape: shape) } ?? shadow.cells
        let changed = reference.changed(from: cells)
        guard !changed.isEmpty else { return }
        let sets = changed.enumerated().map { "\(shape.data[$1].sql) = ?\(key.count + $0 + 1)" }
        try attempt(
            "UPDATE \(shape.sql) SET \(sets.joined(separator: ", ")) WHERE \(shape.isKeySQL)",
            key + changed.map { cells[$0] })
    }

    /// - Parameter own: the rows, where some stay or are listed; `nil` where all go alike.
    private func act(on rows: Rows, _ own: OwnRows?) throws -> (gone: [ByName<Cell>], listed: Int) {
        let child = rows.child
        var listed = 0
        switch child.onDelete.uppercased() {
        case "CASCADE": return try cascade(rows, own)
        case "SET NULL":
            let sets = child.columns.map { "\(quoted($0)) = NULL" }
            try set(sets, in: rows)
        case "SET DEFAULT":
            let sets = try child.columns.map { "\(quoted($0)) = \(try fallback(child.table, $0))" }
            try set(sets, in: rows)
        default: return ([], 0)
        }
        for row in own?.rows ?? [] { listed += try own?.list(row) ?? 0 }
        return ([], listed)
    }

    private func set(_ sets: [String], in rows: Rows) throws {
        let sql = "UPDATE \(quoted(rows.child.table)) SET \(sets.joined(separator: ", ")) WHERE \(rows.condition)"
        try attempt(sql, rows.cells)
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

    /// Deletes the children. A row that the schema keeps holds what its own children refer to, so that they stay with
    /// it.
    private func cascade(_ rows: Rows, _ own: OwnRows?) throws -> (gone: [ByName<Cell>], listed: Int) {
        guard let own else {
            let gone = try values(rows)
            try attempt("DELETE FROM \(quoted(rows.child.table)) WHERE \(rows.condition)", rows.cells)
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

    private func values(_ rows: Rows) throws -> [ByName<Cell>] {
        let table = rows.child.table
        let names = try Query(db, "PRAGMA table_info(\(quoted(table)))").rows(db) { $0.text(1) }
        let list = names.map(quoted).joined(separator: ", ")
        let query = try Query(db, "SELECT \(list) FROM \(quoted(table)) WHERE \(rows.condition)")
        return try query.rows(db, rows.cells) { row in
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
