import GRDB
import TidemarkWire

/// A synced table and its shadow.
struct RecordTable {
    let shape: TableSchema
    private let kept: RowStatements?
    private var sql: RecordStatements { shape.statements }

    init(_ shape: TableSchema) { (self.shape, kept) = (shape, nil) }

    /// - Parameter kept: for many rows, which the app's schema may refuse.
    init(_ shape: TableSchema, keeping kept: RowStatements) { (self.shape, self.kept) = (shape, kept) }

    /// For what runs once for each row of an answer.
    private func query(_ db: Database, _ sql: String) throws -> Query { try kept?.query(db, sql) ?? Query(db, sql) }

    // MARK: Scopes

    /// By name, the scope that has the record on this device, with its row or with edits of it; the empty text where
    /// the row was never sent and belongs to none, `nil` where there is neither row nor edit.
    func owner(_ db: Database, _ key: [Cell]) throws -> String? {
        try Query(db, sql.ownerSelect).first(db, key) { $0.optionalText(0) } ?? nil
    }

    /// The scope that a row is or was sent in, or is to be sent in; the empty text where it belongs to none.
    func scopeName(_ db: Database, _ key: [Cell]) throws -> String {
        if case .constant(let scope) = shape.rule.kind { return scope.name }
        return try owner(db, key) ?? ""
    }

    /// Corrects the scope that has to look at the record's mark.
    func setRoutingScope(_ db: Database, _ key: [Cell], _ scope: String) throws {
        try Query(db, sql.shadowRoutingScope).execute(key + [.text(scope)])
    }

    // MARK: The app's table

    /// The row as it is to stand: while changes are applied, one that a trigger of the app's has changed counts as it
    /// was before (``TriggerGuard``).
    func row(_ db: Database, _ key: [Cell]) throws -> [Cell]? {
        guard shape.isGuarded else { return try rowAsItIs(db, key) }
        let noted = try Query(db, sql.touchedSelect).first(db, key) { row in
            row.integer(0) == 0 ? nil : row.cells(1..<(shape.data.count + 1))
        }
        return try noted ?? rowAsItIs(db, key)
    }

    func rowAsItIs(_ db: Database, _ key: [Cell]) throws -> [Cell]? {
        try query(db, sql.rowSelect).first(db, key) { $0.cells(1..<(shape.data.count + 1)) }
    }

    /// A trigger of the app's may forbid a delete, skip it, or fail in it (a row for an archive that has one of that
    /// key); what others have deleted goes all the same.
    func deleteRow(_ db: Database, _ key: [Cell]) throws {
        var isGone = false
        do {
            try Query(db, sql.rowDelete).execute(key)
            isGone = db.changesCount > 0
        } catch let error as DatabaseError where error.refusesRow {}
        if try !isGone && rowAsItIs(db, key) != nil {
            try ConnectionTriggers.off(db) { try Query(db, sql.rowDelete).execute(key) }
        }
        try noteWanted(db, key, nil)
    }

    /// Deletes the row, unless a foreign key of the app's schema keeps it: then it stays on this device.
    func attemptDelete(_ db: Database, _ key: [Cell]) throws {
        do { try deleteRow(db, key) } catch let error as DatabaseError where error.refusesRow {}
    }

    /// A trigger of the app's may skip the row, and the server's stands all the same.
    func write(_ db: Database, _ key: [Cell], _ cells: [Cell]) throws {
        let upsert = try query(db, sql.rowUpsert)
        defer { upsert.reset() }
        try upsert.execute(key + cells)
        if db.changesCount == 0, try rowAsItIs(db, key) != cells {
            try ConnectionTriggers.off(db) { try Query(db, sql.rowUpsert).execute(key + cells) }
        }
        try noteWanted(db, key, cells)
    }

    // MARK: The shadow

    func hasShadows(_ db: Database) throws -> Bool {
        try Query(db, sql.shadowsExist).first(db, [], { _ in true }) ?? false
    }

    func shadow(_ db: Database, _ key: [Cell]) throws -> Shadow? {
        try Query(db, sql.shadowSelect).first(db, key) { row in
            var shadow = head(row)
            shadow.cells = row.cells(9..<(9 + shape.data.count))
            return shadow
        }
    }

    /// A record with a mark, as it stands when its edits are sealed.
    struct Marked {
        let key: [Cell]
        let shadow: Shadow
        /// The row as it is to stand.
        let row: [Cell]?
    }

    /// - Parameter number: the shadow's.
    func marked(_ db: Database, number: Int64) throws -> Marked? {
        let (keyStart, rowStart) = (9 + shape.data.count, 10 + shape.data.count + shape.key.count)
        let found = try Query(db, sql.markedSelect).first(db, [.integer(number)]) { found in
            var shadow = head(found)
            shadow.cells = found.cells(9..<keyStart)
            let isHere = shape.fitsBesideShadow && found.integer(rowStart - 1) == 1
            return Marked(
                key: found.cells(keyStart..<(rowStart - 1)), shadow: shadow,
                row: isHere ? found.cells(rowStart..<(rowStart + shape.data.count)) : nil)
        }
        guard shape.isGuarded || !shape.fitsBesideShadow, let found else { return found }
        return Marked(key: found.key, shadow: found.shadow, row: try row(db, found.key))
    }

    /// The shadow without its cells: a migration may have given the table columns that the shadow gets only with the
    /// next installation.
    func shadowHead(_ db: Database, _ key: [Cell]) throws -> Shadow? {
        try Query(db, sql.shadowHead).first(db, key, head)
    }

    private func head(_ row: Query) -> Shadow {
        let (bases, originals) = readBases(row.blob(2))
        return Shadow(
            state: Shadow.State(rawValue: row.integer(0)) ?? .absent, cells: [], version: row.optionalInteger(1),
            bases: bases, originals: originals, mark: row.optionalInteger(3), since: row.optionalInteger(4),
            edited: row.optionalInteger(5), scope: row.optionalText(6).flatMap { $0.isEmpty ? nil : $0 },
            routingScope: row.optionalText(7), isGone: row.optionalInteger(8) == 1)
    }

    func write(_ db: Database, _ key: [Cell], _ shadow: Shadow) throws {
        let extra: [Cell] = [
            .integer(shadow.state.rawValue), .optional(shadow.version),
            Self.basesCell(shadow), .optional(shadow.mark), .optional(shadow.since), .optional(shadow.edited),
            .optional(shadow.scope), .optional(shadow.routingScope), shadow.isGone ? .integer(1) : .null,
        ]
        try Query(db, sql.shadowUpsert).execute(key + extra + shadow.cells)
    }

    /// The record's row is quarantined with all that was done to it.
    func quarantineEdits(_ db: Database, _ key: [Cell]) throws { try Query(db, sql.shadowQuarantined).execute(key) }

    /// Whether the app itself took the row away, as far as can be seen afterwards.
    func note(_ db: Database, _ key: [Cell], isGone: Bool) throws {
        try Query(db, sql.shadowGone).execute(key + [isGone ? .integer(1) : .null])
    }

    /// The marked edit is sealed, blocked or refused.
    func unmark(_ db: Database, _ key: [Cell]) throws { try Query(db, sql.shadowUnmark).execute(key) }

    /// A blocked edit is looked at again when the next batch is sealed.
    func mark(_ db: Database, _ key: [Cell]) throws {
        try Query(db, "UPDATE tidemark_counter SET n = n + 1").execute()
        try Query(db, sql.shadowMark).execute(key)
    }

    /// Drops a record's shadow if nothing was edited since the last sealing, and no row of the server's came under the
    /// edit. Returns whether it did.
    func dropClean(_ db: Database, _ key: [Cell], in scope: Scope) throws -> Bool {
        let owner: Cell = shape.isScopedByColumn ? .text(scope.name) : .null
        try query(db, sql.cleanShadowDelete).execute(key + [owner])
        return db.changesCount > 0
    }

    func dropShadow(_ db: Database, _ key: [Cell]) throws { try Query(db, sql.shadowDelete).execute(key) }

    private func spelling(of column: String) -> String {
        shape.dataIndex(column).map { shape.data[$0].name } ?? column
    }

    /// Versions under the columns' names, values under the names behind a `$`, with which no column's name begins.
    /// A migration may have spelled a column in another case since.
    private func readBases(_ bytes: [UInt8]) -> ([String: Version], [String: Cell]) {
        var (bases, originals): ([String: Version], [String: Cell]) = ([:], [:])
        guard !bytes.isEmpty else { return (bases, originals) }
        _ = try? bytes.reading { (reader: inout JSONReader) throws(JSONError) in
            try reader.enterObject()
            while let name = try reader.nextMember() {
                let name = reader.string(name)
                if name.hasPrefix("$") {
                    originals[spelling(of: String(name.dropFirst()))] = try reader.readCell()
                } else {
                    bases[spelling(of: name)] = try reader.readInteger()
                }
            }
        }
        return (bases, originals)
    }

    private static func basesCell(_ shadow: Shadow) -> Cell {
        guard !shadow.bases.isEmpty || !shadow.originals.isEmpty else { return .null }
        var writer = JSONWriter(capacity: 32)
        var isFirst = true
        func member(_ name: String, _ write: (inout JSONWriter) -> Void) {
            writer.raw(isFirst ? "{" : ",")
            isFirst = false
            writer.string(name)
            writer.raw(":")
            write(&writer)
        }
        for base in shadow.bases.sorted(by: { $0.key < $1.key }) { member(base.key) { $0.integer(base.value) } }
        for original in shadow.originals.sorted(by: { $0.key < $1.key }) where original.value.isSendable {
            member("$" + original.key) { $0.cell(original.value) }
        }
        if isFirst { return .null }
        writer.raw("}")
        return .text(writer.bytes)
    }
}

extension Shadow {
    /// The shadow of a record that has none: the row here is the server's. Where there is no row it holds NULLs, as
    /// one that a trigger makes.
    init(unedited row: [Cell]?, of shape: TableSchema) {
        self.init(state: row == nil ? .absent : .known, cells: row ?? shape.data.map { _ in .null })
    }
}
