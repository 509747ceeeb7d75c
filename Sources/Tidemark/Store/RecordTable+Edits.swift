import GRDB
import TidemarkWire

/// The shadow of one record: what the server has beneath the edits made here.
extension RecordTable {
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
        var shadow = Shadow(
            state: Shadow.State(rawValue: row.integer(0)) ?? .absent, cells: [], version: row.optionalInteger(1),
            bases: bases, originals: originals, mark: row.optionalInteger(3), since: row.optionalInteger(4),
            edited: row.optionalInteger(5), scope: row.optionalText(6).flatMap { $0.isEmpty ? nil : $0 },
            routingScope: row.optionalText(7), isGone: row.optionalInteger(8) == 1)
        // Made anew, the row is no edit of one that nobody knows.
        if shadow.isRowUnknown, !shadow.isGone { shadow.state = .absent }
        return shadow
    }

    func writeShadow(_ db: Database, _ key: [Cell], _ shadow: Shadow) throws {
        let extra: [Cell] = [
            .integer(shadow.state.rawValue), .optional(shadow.version),
            Self.basesCell(shadow), .optional(shadow.mark), .optional(shadow.since), .optional(shadow.edited),
            .optional(shadow.scope), .optional(shadow.routingScope), shadow.isGone ? .integer(1) : .null,
        ]
        try Query(db, sql.shadowUpsert).execute(key + extra + shadow.cells)
    }

    /// The record's row is quarantined with all that was done to it.
    func quarantineEdits(_ db: Database, _ key: [Cell]) throws { try Query(db, sql.shadowQuarantined).execute(key) }

    /// Notes whether the app itself took the row away, as far as can be seen afterwards.
    func setGone(_ db: Database, _ key: [Cell], _ isGone: Bool) throws {
        try Query(db, sql.shadowGone).execute(key + [isGone ? .integer(1) : .null])
    }

    /// The marked edit is sealed, blocked or refused.
    func unmark(_ db: Database, _ key: [Cell]) throws { try Query(db, sql.shadowUnmark).execute(key) }

    /// Takes the mark off a record whose edit was refused, where what was undone beside it has changed its row: that is
    /// no edit to be sent. A row that is as the server has it needs no shadow.
    func stayRefused(_ db: Database, _ key: [Cell]) throws {
        guard let shadow = try shadow(db, key), shadow.mark != nil else { return }
        let row = try row(db, key)
        let isAsBefore = shadow.state == .absent ? row == nil : shadow.state == .known && row == shadow.cells
        if isAsBefore { try dropShadow(db, key) } else { try unmark(db, key) }
    }

    /// Marks the record, so that the next batch looks at it. A record that has a mark keeps its place in the order.
    func mark(_ db: Database, _ key: [Cell]) throws {
        try Marks.announce(db)
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

    func group(_ db: Database, _ key: [Cell]) throws -> String? {
        try Query(db, "SELECT tidemark_group FROM \(shape.shadowSQL) WHERE \(shape.isKeySQL)")
            .first(db, key) { $0.optionalText(0) } ?? nil
    }

    /// Puts the record back into the group that it was taken out of, if there was one.
    func setGroup(_ db: Database, _ key: [Cell], _ group: String?) throws {
        guard let group else { return }
        let isKey = shape.key.enumerated().map { "\($1.sql) = ?\($0 + 2)" }.joined(separator: " AND ")
        try Query(db, "UPDATE \(shape.shadowSQL) SET tidemark_group = ?1 WHERE \(isKey)").execute([.text(group)] + key)
    }

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

    /// The shadow of a record whose row nobody knows, and which is to be deleted.
    init(unknownRowOf shape: TableSchema) {
        self.init(state: .known, cells: shape.data.map { _ in .null }, bases: [Self.unknownBase: 0])
    }
}
