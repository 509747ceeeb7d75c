import GRDB
import TidemarkWire

extension Applier {
    /// Applies a page of a backfill. No page of changes is applied between the pages of a backfill, so no row here is
    /// newer than its row there, except by a verdict that came meanwhile.
    func applyBackfillPage(_ page: SnapshotAnswer, of backfill: Backfill, declared: EntityDeclaration) throws {
        guard let table = tables[backfill.entity] else { return }
        try table.begin(db, mayBePlain: false)
        let refetch = backfill.fields.map { fields in fields.compactMap(table.shape.dataIndex) }
        // In a table whose edits cannot travel, the values that a migration has written are no edits.
        let isServers = declared.kind == .events || declared.direction == .pull
        let reserved = isServers ? Set(table.shape.data.indices) : table.reserved
        try page.body.withUnsafeBytes { buffer in
            var reader = JSONReader(UnsafeRawBufferPointer(rebasing: buffer[page.changes]))
            try reader.enterArray()
            while try reader.nextElement() {
                outcome.received += 1
                let start = reader.index
                let change = try IncomingChange.read(from: &reader)
                if let change { outcome.bytes.add(change, in: reader, bytes: reader.index - start) }
                guard let change, change.kind == .upsert,
                    reader.string(change.entity).isSameName(as: backfill.entity)
                else {
                    outcome.skipped += 1
                    continue
                }
                guard let id = RecordID(reader.string(change.id)), let key = table.shape.key(of: id) else {
                    try takeMisfit(change, table, reader)
                    continue
                }
                let incoming = try table.cells(change, reader)
                try Backfills.see(db, backfill, id)
                if let refetch {
                    try fill(table, id, key, columns: refetch, with: incoming, reserved)
                } else {
                    try applyBackfilledRow(table, id, key, row: incoming, version: change.version)
                }
            }
            table.end()
        }
        if !page.hasMore { try visitUnseen(table, refetch, backfill, declared, reserved) }
        try resolveUniqueValues()
        try finish()
    }

    /// Treats rows that the scan did not name. Their absence means nothing for events, which leave the server with age
    /// and stay here, nor for the rows of a table that is only pushed, which the server never sends.
    private func visitUnseen(
        _ table: ApplyTable, _ refetch: [Int]?, _ backfill: Backfill, _ declared: EntityDeclaration,
        _ reserved: Set<Int>
    ) throws {
        guard declared.kind == .state else { return }
        if let refetch { return try fillUnseen(table, refetch, backfill, reserved) }
        if declared.direction != .push { try removeUnseen(table, backfill) }
    }

    /// Fills new columns of a row that is here. A value that the migration wrote gives way to the server's value. Where
    /// the server has none, the migration's value is an edit of this device, and so is each later edit.
    private func fill(
        _ table: ApplyTable, _ id: RecordID, _ key: [Cell], columns: [Int], with incoming: [Int: Cell],
        _ reserved: Set<Int>
    ) throws {
        manifest.look(table.shape.name, id)
        let shadow = try ownShadow(table, key)
        let (current, isQuarantined) = try visible(table, id, key, shadow)
        // A row that is here again since its delete was sealed is the app's own: nothing of the server's was in it.
        if let shadow, try current == nil || isBeingDeleted(table, id) {
            return try fillDeleted(table, key, shadow, columns: columns, with: incoming)
        }
        guard let current, try shadow != nil || table.records.shadow(db, key) == nil, shadow?.state ?? .known == .known
        else { return }
        let sent = try shadow == nil ? [:] : onItsWay(table, id)
        var filled = FilledRow(current, shadow)
        for index in columns {
            filled.fill(
                table.shape.data[index], at: index, with: incoming[index], sent: sent[index],
                isReserved: reserved.contains(index))
        }
        if filled.new != current { outcome.applied += 1 }
        try list(filled.givenWay, of: current, under: filled.new, table.shape, id)
        try put(
            table, id, key, from: current, isQuarantined: isQuarantined, to: filled.new, version: shadow?.version,
            isPending: shadow != nil)
        guard filled.isEdited || shadow != nil else { return }
        var serverRow = filled.serverRow
        // An inferred edit that waits for a confirmation gets no mark, because its operation would carry all that was
        // written unseen. Its new columns are sent with it.
        if try filled.isEdited
            && (serverRow.mark != nil || !Inferred.isUnconfirmed(db, scope.name, table.shape.name, id.text))
        {
            serverRow.mark = try serverRow.mark ?? Marks.next(db)
            serverRow.since = serverRow.since ?? now
        }
        try table.records.writeShadow(db, key, placed(serverRow, table.shape, key, filled.new, isSent: true))
    }

    /// Lists the values that were written into a new column before its capture and give way, as a conflict: they may be
    /// the app's edit, or values that the migration worked out.
    private func list(
        _ columns: [Int], of mine: [Cell], under theirs: [Cell], _ shape: TableSchema, _ id: RecordID
    ) throws {
        guard !columns.isEmpty else { return }
        var standing = mine
        for index in columns { standing[index] = theirs[index] }
        try Conflicts.add(db, Conflict(seed: mine, of: shape, id, in: scope, under: standing, at: now))
        outcome.conflicts += 1
    }

    private func onItsWay(_ table: ApplyTable, _ id: RecordID) throws -> [Int: Cell] {
        let name = table.shape.name
        return try Outbox.overlay(db, entity: name, record: id.text, scope: scope.name)?
            .fields.cells(in: table.shape) ?? [:]
    }

    private func isBeingDeleted(_ table: ApplyTable, _ id: RecordID) throws -> Bool {
        try Outbox.open(db, entity: table.shape.name, record: id.text, scope: scope.name).contains { $0.isDelete }
    }

    /// A record that was deleted here: if the delete is refused, the row is the server's again, in its new columns too.
    private func fillDeleted(
        _ table: ApplyTable, _ key: [Cell], _ shadow: Shadow, columns: [Int], with incoming: [Int: Cell]
    ) throws {
        guard shadow.state == .known else { return }
        var serverRow = shadow
        for index in columns { serverRow.cells[index] = incoming[index] ?? table.shape.data[index].unwrittenCell }
        if serverRow != shadow { try table.records.writeShadow(db, key, serverRow) }
    }

    /// Records that the server has without these columns: what the migration put there is an edit of this device.
    private func fillUnseen(
        _ table: ApplyTable, _ columns: [Int], _ backfill: Backfill, _ reserved: Set<Int>
    ) throws {
        let shape = table.shape
        // The columns may have gone from the table again before their scan ended.
        guard !columns.isEmpty else { return }
        let isFilled = columns.map { "t.\(shape.data[$0].sql) IS NOT ?\(shape.key.count + 1 + $0)" }
        try visit(table, where: anySQL(isFilled), shape.data.map(\.unwrittenCell)) { id, key in
            guard try !Backfills.hasSeen(db, backfill, id) else { return }
            try fill(table, id, key, columns: columns, with: [:], reserved)
        }
        let deleted = try ShadowTable(table.shape).deletedKeys(db).compactMap(shape.recordID)
        for id in try quarantined(table) + deleted where try !Backfills.hasSeen(db, backfill, id) {
            guard let key = shape.key(of: id) else { continue }
            try fill(table, id, key, columns: columns, with: [:], reserved)
        }
    }

    /// Applies a row of a table that this engine names for the first time, or again after a while.
    private func applyBackfilledRow(
        _ table: ApplyTable, _ id: RecordID, _ key: [Cell], row: [Int: Cell], version: Version
    ) throws {
        let known = try KnownVersions.version(db, scope, table.shape.name, id.text) ?? -1
        guard version > known else { return }
        if version > record.base {
            try KnownVersions.note(db, scope, table.shape.name, id.text, version, deleted: false)
        }
        try receive(table, id, key, version: version, known: known, incoming: row, isMove: false)
    }

    /// Removes rows without edits that the server did not name: they were deleted while no engine here synced the
    /// table.
    private func removeUnseen(_ table: ApplyTable, _ backfill: Backfill) throws {
        let isSame = table.shape.key.map { "s.\($0.sql) = t.\($0.sql)" }.joined(separator: " AND ")
        try visit(table, where: ShadowTable(table.shape).noneSQL(where: isSame), []) { id, key in
            if try isGone(table, id, backfill) { try remove(table, id, key) }
        }
        for id in try quarantined(table) where try isGone(table, id, backfill) {
            guard let key = table.shape.key(of: id), try table.records.shadow(db, key) == nil else { continue }
            try remove(table, id, key)
        }
    }

    private func isGone(_ table: ApplyTable, _ id: RecordID, _ backfill: Backfill) throws -> Bool {
        try !Backfills.hasSeen(db, backfill, id) && KnownVersions.version(db, scope, table.shape.name, id.text) == nil
    }

    private func remove(_ table: ApplyTable, _ id: RecordID, _ key: [Cell]) throws {
        try receive(table, id, key, version: record.base, known: -1, incoming: nil, isMove: false)
    }

    private func quarantined(_ table: ApplyTable) throws -> [RecordID] {
        try QuarantinedRow.records(db, table.shape.name, scope).compactMap { RecordID($0) }
    }

    /// Rows that are read at once; each may be written while they are visited.
    private static let visitStep = 1000

    /// Visits the scope's rows for which a condition on `t` holds, in the order of their keys. The condition's
    /// parameters are numbered behind those of the key.
    private func visit(
        _ table: ApplyTable, where condition: String, _ parameters: [Cell], _ body: (RecordID, [Cell]) throws -> Void
    ) throws {
        let shape = table.shape
        let keys = shape.key.map { "t.\($0.sql)" }.joined(separator: ", ")
        let marks = shape.key.indices.map { "?\($0 + 1)" }.joined(separator: ", ")
        let isIn = "(\(condition)) AND \(shape.isInSQL(scope, "t"))"
        var last: [Cell]?
        repeat {
            let sql = """
                SELECT \(keys) FROM \(shape.sql) AS t WHERE \(isIn) \(last == nil ? "" : "AND (\(keys)) > (\(marks))")
                ORDER BY \(keys) LIMIT \(Self.visitStep)
                """
            let rows = try Query(db, sql).rows(db, (last ?? shape.key.map { _ in .null }) + parameters) {
                $0.cells(0..<shape.key.count)
            }
            for key in rows {
                if let id = shape.recordID(key) { try body(id, key) }
            }
            last = rows.last
        } while last != nil
    }
}

/// A row that gets the server's values of new columns.
private struct FilledRow {
    private let current: [Cell]
    private let shadow: Shadow?
    /// The row as it is to stand.
    private(set) var new: [Cell]
    private(set) var serverRow: Shadow
    /// Whether a value of this device stands over the server's.
    private(set) var isEdited = false
    /// Columns in which a value of this device gave way to the server's.
    private(set) var givenWay: [Int] = []

    init(_ current: [Cell], _ shadow: Shadow?) {
        (self.current, self.shadow, new) = (current, shadow, current)
        serverRow = shadow ?? Shadow(state: .known, cells: current)
    }

    /// - Parameters:
    ///   - served: the server's value; `nil` where it has none.
    ///   - sent: the value of an operation without a verdict, which already stands over the server's.
    mutating func fill(
        _ column: TableSchema.Column, at index: Int, with served: Cell?, sent: Cell?, isReserved: Bool
    ) {
        let isOwn = shadow.map { $0.cells[index] != current[index] } ?? false
        if isReserved || (!isOwn && served != nil) { new[index] = sent ?? served ?? column.defaultCell }
        let hasGivenWay = !isOwn && !isReserved && served != nil && new[index] != current[index]
        if hasGivenWay, current[index] != column.unwrittenCell { givenWay.append(index) }
        serverRow.cells[index] = served ?? column.unwrittenCell
        guard new[index] != serverRow.cells[index] else { return }
        isEdited = true
        // The edit was made without a look at the server's value.
        if served != nil { serverRow.bases[column.name] = 0 }
    }
}
