import GRDB
import TidemarkWire

/// Writes values into the app's own table as the app would: captured, so that they travel as a new edit of the record
/// as it stands now.
struct Rewriting {
    let db: Database
    let shape: TableSchema
    let record: String
    let key: [Cell]
    let scope: Scope

    /// `nil` where the record is not one of the table's.
    ///
    /// - Parameter record: its id, or the text of a key that cannot be one.
    init?(_ db: Database, _ shape: TableSchema?, record: String, in scope: Scope) {
        guard let shape, let key = KeyText.key(of: record, in: shape) else { return nil }
        self.db = db
        self.shape = shape
        self.record = record
        self.key = key
        self.scope = scope
    }

    /// Refuses values for columns that the table does not have, or that say which record it is.
    func check(_ fields: [String: Value]) throws {
        guard let name = fields.keys.sorted().first(where: { shape.dataIndex($0) == nil }) else { return }
        let isKey = shape.key.contains { $0.name.isSameName(as: name) }
        throw SyncError(
            .configurationInvalid,
            isKey
                ? "Column '\(name)' is of the key of '\(shape.name)': another value would make another record."
                : "Table '\(shape.name)' has no column '\(name)'.",
            hint: "Its columns outside the key: \(shape.data.map(\.name).joined(separator: ", ")).")
    }

    /// - Parameter whole: the row to make, under the fields, where there is none.
    /// - Throws: ``SyncError`` where there is no row and none can be made, or a trigger of the app's skips the write;
    ///   `DatabaseError` where the schema forbids it.
    func put(_ fields: [String: Value], whole: [String: Value]?) throws {
        let known = fields.filter { shape.dataIndex($0.key) != nil }
        if try RecordTable(shape).row(db, key) != nil {
            guard !known.isEmpty else { return }
            let columns = known.sorted { $0.key < $1.key }
            let sets = columns.enumerated().map { "\(quoted($1.key)) = ?\(shape.key.count + $0 + 1)" }
            return try write(
                "UPDATE \(shape.sql) SET \(sets.joined(separator: ", ")) WHERE \(shape.isKeySQL)",
                key + columns.map { Cell($0.value) }, of: columns)
        }
        if let error = try quarantine() {
            guard !known.isEmpty else { return }
            throw error
        }
        guard let whole else {
            throw SyncError(
                .recordGone,
                "Record \(KeyText.shown(record)) of '\(shape.name)' is deleted, and what it was is not known here.",
                hint: "Insert the record again.")
        }
        let row = whole.merging(known) { $1 }.filter { shape.dataIndex($0.key) != nil }.sorted { $0.key < $1.key }
        let names = shape.key.map(\.sql) + row.map { quoted($0.key) }
        let places = (1...names.count).map { "?\($0)" }.joined(separator: ", ")
        try write(
            "INSERT \(shape.orAbort)INTO \(shape.sql)(\(names.joined(separator: ", "))) VALUES (\(places))",
            key + row.map { Cell($0.value) }, of: row)
    }

    /// Runs a statement that makes the row hold these values. A trigger may skip what the row holds already.
    private func write(_ sql: String, _ cells: [Cell], of fields: [(key: String, value: Value)]) throws {
        try Query(db, sql).execute(cells)
        guard db.changesCount == 0 else { return }
        let row = try RecordTable(shape).row(db, key)
        let stands = fields.allSatisfy { name, value in
            shape.dataIndex(name).map { row?[$0] == Cell(value) } ?? true
        }
        guard row != nil, stands else { throw skipped() }
    }

    private func skipped() -> SyncError {
        SyncError(
            .writeSkipped,
            "A trigger of the app's skips the write to record \(KeyText.shown(record)) of '\(shape.name)'.",
            hint: "Change what the trigger looks for, and decide again.")
    }

    /// The edits made here that the server has not taken, by column; `nil` where the record was deleted here.
    func edits() throws -> [String: Value]? {
        let table = RecordTable(shape)
        guard let shadow = try table.shadow(db, key), shadow.state != .absent else { return [:] }
        let quarantined = try shape.recordID(key).flatMap { id in
            try QuarantinedRow.edited(db, shape, id, shadow, shadow.place(in: scope))
        }
        guard let row = try table.row(db, key) ?? quarantined else { return nil }
        // The shadow of an edited record that was deleted elsewhere meanwhile still holds the row that was edited.
        let edited = shape.data.indices.filter { row[$0] != shadow.cells[$0] }
        return Dictionary(uniqueKeysWithValues: edited.map { (shape.data[$0].name, row[$0].value) })
    }

    /// - Throws: ``SyncError`` where the row is quarantined, or a trigger of the app's skips the delete;
    ///   `DatabaseError` where the schema forbids it.
    func delete() throws {
        let table = RecordTable(shape)
        if try table.row(db, key) == nil, let error = try quarantine() { throw error }
        guard try table.deleteCaptured(db, key) else { throw skipped() }
    }

    /// Notes the delete of a record that this device has no row of: nobody knew its row when the server refused the
    /// delete, so that none could be put back.
    ///
    /// - Returns: `false` where there is something to delete, or to decide about first.
    func noteDelete() throws -> Bool {
        let table = RecordTable(shape)
        guard try table.row(db, key) == nil, try table.shadow(db, key) == nil, try quarantine() == nil else {
            return false
        }
        var shadow = Shadow(unknownRowOf: shape)
        (shadow.mark, shadow.since, shadow.isGone) = (try Marks.next(db), wallClockMilliseconds(), true)
        if shape.isScopedByColumn { (shadow.scope, shadow.routingScope) = (scope.name, scope.name) }
        try table.writeShadow(db, key, shadow)
        return true
    }

    /// Why nothing can be decided about the record now; `nil` where no row of it is quarantined.
    private func quarantine() throws -> SyncError? {
        try QuarantinedRow.reason(db, of: RecordName(entity: shape.name, record: record)).map { reason in
            SyncError(
                .recordGone, "Record \(KeyText.shown(record)) of '\(shape.name)' is quarantined: \(reason)",
                hint: "Make room for its row, and decide once it is in its table again.")
        }
    }
}

extension Conflict {
    /// Carries out a decision, as a new edit where one is needed, and notes it in the list.
    func resolve(with resolution: Resolution, _ db: Database, _ schema: SyncSchema) throws {
        guard var conflict = try Conflicts.one(db, id) else { return }
        let rewriting = Rewriting(db, schema[conflict.entity], record: conflict.record, in: conflict.scope)
        // While it is open the row is theirs: what differs was edited here after the edit that met theirs.
        let later = try rewriting.map { try $0.edits() } ?? [:]
        switch resolution {
        case .keepMine where conflict.isDelete: try rewriting?.delete()
        case .keepMine:
            guard let later else { break }
            try rewriting?.put(conflict.values(\.mine).filter { later[$0.key] == nil }, whole: conflict.whole)
        // While it is open the row is theirs already, perhaps a newer one.
        case .takeTheirs where conflict.isOpen: break
        case .takeTheirs where conflict.isDeletedElsewhere: try rewriting?.delete()
        case .takeTheirs: try rewriting?.put(conflict.values(\.theirs), whole: nil)
        case .merge(let fields): try rewriting?.put(fields, whole: conflict.whole)
        }
        conflict.setResults(of: resolution, over: later)
        try Conflicts.close(db, conflict)
    }

    private func values(_ path: KeyPath<Field, Value?>) -> [String: Value] {
        Dictionary(
            fields.compactMap { field in field[keyPath: path].map { (field.name, $0) } }, uniquingKeysWith: { $1 })
    }

    private mutating func setResults(of resolution: Resolution, over later: [String: Value]?) {
        for index in fields.indices {
            let field = fields[index]
            switch resolution {
            case .keepMine: fields[index].result = later.flatMap { $0[field.name] ?? field.mine }
            case .takeTheirs: fields[index].result = field.theirs
            case .merge(let values): fields[index].result = values[field.name] ?? field.result ?? field.theirs
            }
        }
        guard case .merge(let values) = resolution else { return }
        for (name, value) in values.sorted(by: { $0.key < $1.key }) where self[name] == nil {
            fields.append(Field(name: name, mine: nil, theirs: nil, result: value))
        }
    }
}
