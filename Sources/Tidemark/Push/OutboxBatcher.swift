import GRDB
import TidemarkCore
import TidemarkWire

/// Turns marks into operations: durably, before anything is sent.
struct OutboxBatcher {
    /// Bytes of an operation beside its fields, about.
    static let operationBytes = 120

    let db: Database
    let schema: SyncSchema
    let scope: ScopeRecord
    let declarations: Declarations
    let lane: String
    let now: Int64
    /// The limits of one request.
    var operationLimit = 1000
    var byteLimit = 4 << 20
    var recordByteLimit = Limits().recordBytes
    /// The last operation of a request that is under way, behind which this batch goes.
    var behind: Int64?

    /// State that holds for all records of a batch, looked up once instead of for each.
    struct Batch {
        var numbers: LaneNumbers
        let hasOpen: Bool
        let hasRefusals: Bool
        let hasKnownVersions: Bool
        var dependence: Dependence
        /// `nil` where the server assigns no ids.
        let identity: Identity?
        var hasBlocked: Bool
        let hasInferred: Bool
        let sent: SentInserts
        /// The group that is being sealed.
        var group: String?
        var order = Order()
        /// The operations as they were sealed; `nil` where they have to be read from the outbox.
        var made: [OutboxEntry]? = []
    }

    /// The outcome of one mark.
    enum Outcome {
        case sealed(count: Int, bytes: Int)
        /// The record has nothing to send, or it cannot travel, or another record blocks it.
        case done
        /// The mark stays: it is another scope's, or waits for that one's verdict.
        case skip
        /// The batch ends here: a verdict has to come first, or the request is full.
        case stop
        /// The record refers to others that have to be sealed before it.
        case behind([Unit])
    }

    /// The operations to send: those without a verdict first, under their own keys, then what is newly sealed.
    func batch() throws -> [OutboxEntry] {
        var entries = try open()
        let hasOpen = behind != nil || !entries.isEmpty
        let budget = operationLimit - entries.count
        let sealedBytes = entries.reduce(0) { $0 + $1.members.count }
        if budget > 0, sealedBytes < byteLimit {
            let identity = try Identity(db, schema, declarations)
            var batch = Batch(
                numbers: try LaneNumbers(db, lane: lane), hasOpen: hasOpen,
                hasRefusals: try Outbox.hasLocalRefusals(db),
                hasKnownVersions: try !KnownVersions.isEmpty(db, scope.scope),
                dependence: try Dependence(db, schema, lane: lane, hasOpen: hasOpen),
                identity: identity,
                hasBlocked: try BlockedEdits.isAny(db),
                hasInferred: try Inferred.isAny(db), sent: SentInserts(db))
            try ConnectionSwitch.foreignKeys.restoring(db) {
                try sealBatch(&batch, limit: budget, bytes: byteLimit - sealedBytes)
            }
            try batch.numbers.store(db, scope: scope.scope)
            entries = try batch.made.map { entries + $0 } ?? open()
        }
        return try cut(entries)
    }

    private func open() throws -> [OutboxEntry] {
        try Outbox.open(db, scope: scope.scope, behind: behind ?? 0, limit: operationLimit)
    }

    private func sealBatch(_ batch: inout Batch, limit: Int, bytes: Int) throws {
        let tables = schema.shapes(in: scope.scope).map(RecordTable.init)
        var budget = Budget(limit: limit, room: bytes)
        var last: Marked?
        guard try sealFirstCaptures(&batch, tables, &budget) else { return }
        // Marks that another scope holds up stay, and must not hide the ones behind them.
        var passed = true
        while passed {
            passed = false
            let found = try self.marked(tables, after: last, limit: budget.left)
            // An edit may be of a row that is under way without a shadow, or refer to one.
            if !found.isEmpty { try SealedRun.unfold(db, schema) }
            for marked in found {
                guard !budget.isSpent else { return }
                last = marked
                let table = tables[marked.table]
                if let group = marked.group, !batch.order.groupsSeen.contains(group) {
                    guard try sealMarked(.group(group), &batch, tables, &budget, &passed) else { return }
                }
                if let group = marked.group, !batch.order.dissolved.contains(group) { continue }
                guard let found = try table.marked(db, number: marked.row) else { continue }
                guard let id = table.shape.recordID(found.key) else {
                    try refuseKey(&batch, table, found.key)
                    continue
                }
                let unit = Unit.record(Unsealed(table: table, key: found.key, id: id, found: found))
                guard try sealMarked(unit, &batch, tables, &budget, &passed) else { return }
            }
        }
        try sealDepartures(&batch, tables, limit: budget.left)
    }

    /// Seals one record's edits.
    func sealRecord(_ batch: inout Batch, _ record: Unsealed) throws -> Outcome {
        let (table, key, id) = (record.table, record.key, record.id)
        let shape = table.shape
        if batch.order.isEarly(record.name) { return .done }
        if batch.hasBlocked { try lookAgain(table, key, record.name) }
        let found = batch.hasBlocked ? nil : record.found
        guard let known = try found?.shadow ?? table.shadow(db, key) else { return .done }
        if known.isGone { try QuarantinedRow.forgetOwn(db, shape.name, id.text, known) }
        let row = if let found { found.row } else { try table.row(db, key) }
        var edited = Edited(
            table: table, key: key, id: id, known: known, shadow: known, shown: try shown(row, shape, id, known))
        switch try ownership(table, key, id, known, edited.shown) {
        case .stays: break
        case .moves(let found): (edited.move, edited.shadow) = (found, found.arrival)
        case .passes: return .skip
        case .isNowhere(let column):
            try refuse(
                &batch, table, key, id: id, why: "Its column '\(column)' makes no scope's name.",
                hint: "Set '\(column)' to the value of a scope that the app follows; it is sent then.")
            return .done
        }
        return try sealEdits(&batch, edited)
    }

    /// A record with edits that this scope sends.
    private struct Edited {
        let table: RecordTable
        let key: [Cell]
        let id: RecordID
        /// Its shadow in the file.
        let known: Shadow
        /// The shadow that its edits are made on: of a record that arrives from another scope, an empty one.
        var shadow: Shadow
        /// The row on screen.
        let shown: [Cell]?
        var move: Move?

        var name: RecordName { RecordName(entity: table.shape.name, record: id.text) }
    }

    /// Makes the operation of a record's edits, if there is something to send.
    private func sealEdits(_ batch: inout Batch, _ edited: Edited) throws -> Outcome {
        let (table, key, id, shadow, shown) = (edited.table, edited.key, edited.id, edited.shadow, edited.shown)
        let shape = table.shape
        let declared = declarations.entity(shape.name)
        let reserved = Set(shape.data.map(\.name).filter(declared.isServerField))
        if let shown { try restoreReserved(reserved, table, key, id, shown, shadow, isMove: edited.move != nil) }
        // A row of the first capture is sent as it stood then; later edits of it follow once it has its verdict.
        let current = shadow.seed ?? shown
        if batch.hasRefusals { try Outbox.forgetLocalRefusals(db, entity: shape.name, record: id.text) }
        if try keepHere(batch, declared, table, key, id, edited.known, current) {
            try supersede(edited.name, batch)
            return .done
        }
        let known = batch.hasKnownVersions ? try KnownVersions.version(db, scope.scope, shape.name, id.text) : nil
        guard
            var operation = edit(
                shape, id, shadow, current, reserved, base: shadow.version ?? known ?? scope.base(of: shape.name))
        else {
            try drop(table, key, id, edited.move, batch)
            return .done
        }
        try complete(&operation, declared, shadow, batch, edited.name)
        if let why = unsendable(operation, shape, current, reserved) {
            if current != shown { return try sealAgain(&batch, table, key, id, shadow.answered) }
            try refuse(&batch, table, key, id: id, why: why, hint: Self.unsendableHint)
            return .done
        }
        return try sealOperation(&batch, edited, operation, declared, current)
    }

    /// Seals an operation, unless a record that it names comes first.
    private func sealOperation(
        _ batch: inout Batch, _ edited: Edited, _ made: Operation, _ declared: EntityDeclaration, _ current: [Cell]?
    ) throws -> Outcome {
        var operation = made
        let (table, key, id) = (edited.table, edited.key, edited.id)
        let shape = table.shape
        var names = NamedRecords()
        // Records that it refers to are sealed first, and may keep it from being sealed.
        try nameRecords(&operation, table, key, id, &batch, &names)
        try look(behind: operation, table, key, id, current ?? [], &batch, &names)
        if let open = names.open { return open }
        guard names.behind.isEmpty else { return .behind(names.behind) }
        if names.hasJoined { return .done }
        if try isBlocked(operation, table, key, id, current, &batch, names.missing) { return .done }
        if let move = edited.move { try carryOut(move, table, id, key) }
        operation.needs = batch.dependence.needs(of: operation, shape, id, key, current ?? [])
        // An id takes the place of a temporary one in whole fields only, never in a patch.
        let patched = names.temporary.isEmpty ? try patched(operation, shape, declared, edited.shadow) : nil
        let number = batch.numbers.nextKey()
        let sealed = Outbox.Sealed(
            operation, patched: patched, key: number, scope: scope.scope, editedAt: edited.shadow.since, now: now)
        try Outbox.seal(db, [sealed])
        // A group may be taken apart again, and ids come into what names records by temporary ones.
        if batch.group != nil || batch.identity != nil || edited.move != nil { batch.made = nil }
        batch.made?.append(sealed.entry(id: db.lastInsertedRowID))
        batch.dependence.noteInsert(operation, shape, id, number: number.number)
        try release(edited.name, batch)
        if !names.temporary.isEmpty { try Outbox.noteNames(db, names.temporary) }
        if !names.isPartial, current == edited.shown { try table.unmark(db, key) }
        return .sealed(count: 1, bytes: operation.fields.bytes.count + Self.operationBytes)
    }

    /// There is nothing to send: the row is as the server has it.
    private func drop(_ table: RecordTable, _ key: [Cell], _ id: RecordID, _ move: Move?, _ batch: Batch) throws {
        if let move { try carryOut(move, table, id, key) }
        try table.dropShadow(db, key)
        if move != nil { try QuarantinedRow.endWait(db, table.shape.name, id.text, as: .moved) }
        try release(RecordName(entity: table.shape.name, record: id.text), batch)
    }

    /// Unblocks what is behind the record, and ends the wait for a confirmation of a write that this edit supersedes.
    private func release(_ name: RecordName, _ batch: Batch) throws {
        try supersede(name, batch)
        if batch.hasBlocked { try BlockedEdits.release(db, schema, behind: name) }
    }

    /// Ends the wait for a confirmation of a write that this edit was made on top of: it goes, or stays, with the edit.
    func supersede(_ name: RecordName, _ batch: Batch) throws {
        if batch.hasInferred { try Inferred.supersede(db, name, scope.scope) }
    }

    /// Sets an operation's members beside its fields.
    func complete(
        _ operation: inout Operation, _ declared: EntityDeclaration, _ shadow: Shadow, _ batch: Batch,
        _ name: RecordName
    ) throws {
        operation.epoch = scope.epoch
        operation.group = batch.group
        if declared.kind == .events { operation.kind = .event }
        if declared.conflict == .lastEditWins { stamp(&operation, shadow) }
        if operation.kind == .delete { operation.isConfirmed = try Confirmed.remove(db, name) }
    }

    /// Seals the present row, after no server would take the row as it stood at the first capture.
    private func sealAgain(
        _ batch: inout Batch, _ table: RecordTable, _ key: [Cell], _ id: RecordID, _ shadow: Shadow
    ) throws -> Outcome {
        try table.writeShadow(db, key, shadow)
        return try sealRecord(&batch, Unsealed(table: table, key: key, id: id))
    }

    private static let unsendableHint =
        "Change that column, or make it shorter; the row is tried again then. Large bytes travel as an attachment."

    /// Why no server would take it; `nil` where one may.
    func unsendable(
        _ operation: Operation, _ shape: TableSchema, _ current: [Cell]?, _ reserved: Set<String>
    ) -> String? {
        if let current, operation.setsFields,
            let column = zip(shape.data, current).first(where: { !$0.1.isSendable && !reserved.contains($0.0.name) })
        {
            return "Field '\(column.0.name)' holds text that is not UTF-8."
        }
        guard operation.fields.bytes.count <= recordByteLimit else {
            return tooLarge(operation, shape, current)
        }
        return nil
    }

    /// The sentence for a record that is too large, with its largest column: what travels is the text of it, in which
    /// three bytes of a BLOB take four characters.
    private func tooLarge(_ operation: Operation, _ shape: TableSchema, _ current: [Cell]?) -> String {
        let sizes = zip(shape.data, current ?? []).map { column, cell in (column.name, cell.byteCount, cell.isBlob) }
        let size = operation.fields.bytes.count
        let limit = "The record takes \(size) bytes on the wire; up to \(recordByteLimit) are sent."
        guard let largest = sizes.max(by: { $0.1 < $1.1 }) else { return limit }
        let growth = largest.2 ? ", which grow by a third on the way" : ""
        return limit + " Its largest column is '\(largest.0)' with \(largest.1) bytes\(growth)."
    }

    /// Unblocks a blocked edit, which is looked at in its turn.
    private func lookAgain(_ table: RecordTable, _ key: [Cell], _ name: RecordName) throws {
        guard try BlockedEdits.blocker(db, of: name) != nil else { return }
        try BlockedEdits.forget(db, name)
        try table.mark(db, key)
    }

    /// Whether the edit waits on this device for another record: one whose insert was refused, or that has no id yet.
    private func isBlocked(
        _ operation: Operation, _ table: RecordTable, _ key: [Cell], _ id: RecordID, _ current: [Cell]?,
        _ batch: inout Batch, _ missing: RecordName?
    ) throws -> Bool {
        let name = RecordName(entity: table.shape.name, record: id.text)
        if let blocker = try batch.dependence.blocker(behind: operation, table.shape, id, key, current ?? []) {
            try BlockedEdits.block(db, name, by: Blocker(name: blocker, reason: .refused))
        } else if let missing {
            try BlockedEdits.block(db, name, by: Blocker(name: missing, reason: .awaitingID))
        } else {
            return false
        }
        batch.hasBlocked = true
        try table.unmark(db, key)
        try supersede(name, batch)
        return true
    }

    /// When the edit was made. A stamp that is not later than the last sync belongs to an edit that is older than it:
    /// that sync then bounds nothing.
    private func stamp(_ operation: inout Operation, _ shadow: Shadow) {
        let stamp = shadow.edited.map(EditStamp.init(packed:)) ?? EditStamp(milliseconds: now)
        operation.editedAt = stamp.text
        operation.syncedAt = scope.syncedAt.flatMap { stamp > EditStamp(milliseconds: $0) ? $0 : nil }
    }

    /// Returns the record's edit as an operation; `nil` where the record is as it was.
    func edit(
        _ shape: TableSchema, _ id: RecordID, _ shadow: Shadow, _ current: [Cell]?, _ reserved: Set<String>,
        base: Version
    ) -> Operation? {
        guard let current else {
            guard shadow.state == .known else { return nil }
            var operation = Operation(.delete, entity: shape.name, id: id)
            operation.baseVersion = shadow.bases[Shadow.deletionBase] ?? base
            return operation
        }
        var operation = Operation(.upsert, entity: shape.name, id: id)
        var fields = DataObject.Builder(capacity: 256)
        for (index, column) in shape.data.enumerated() where !reserved.contains(column.name) {
            // LocalDelta decides by the same rule what counts as an edit.
            if shadow.state != .absent, shadow.cells[index] == current[index] { continue }
            guard current[index].isSendable else { return operation }
            fields.append(name: column.wireName) { $0.cell(current[index]) }
            if shadow.state != .absent, let older = shadow.bases[column.name], older < base {
                operation.fieldBases[column.canonicalName] = older
            }
        }
        // Of a record that was deleted under the edit, even an edit taken back is sent: the refusal takes the row away.
        guard shadow.state != .known || !fields.isEmpty else { return nil }
        operation.fields = fields.finish()
        operation.isSeed = shadow.seed != nil
        if shadow.state != .absent { operation.baseVersion = base }
        return operation
    }

    /// Refuses an edit that cannot travel. The row stays as it is on this device, and the batch goes on; edits that
    /// refer to a refused insert are blocked.
    func refuse(
        _ batch: inout Batch, _ table: RecordTable, _ key: [Cell], id: RecordID?, why: String,
        hint: String = "Change the row so that it can be sent; it is tried again then."
    ) throws {
        try table.unmark(db, key)
        if let id { try supersede(RecordName(entity: table.shape.name, record: id.text), batch) }
        let shadow = try table.shadow(db, key)
        let current =
            if let id, let shadow { try shown(table.row(db, key), table.shape, id, shadow) } else {
                try table.row(db, key)
            }
        let isInsert = shadow?.state == .absent
        if current == nil, isInsert {
            // Never sent and gone again: nothing is left to tell.
            try table.dropShadow(db, key)
            return try Outbox.forgetLocalRefusals(db, entity: table.shape.name, record: name(key, id))
        }
        var operation = Operation(current == nil ? .delete : .upsert, entity: table.shape.name, id: id)
        var fields = DataObject.Builder(capacity: 64)
        var bytes = 0
        // A field that was not edited here may have another value on the server by the time of a retry.
        let serverRow = shadow?.state == .known ? shadow?.cells : nil
        for (index, (column, cell)) in zip(table.shape.data, current ?? []).enumerated()
        where cell.isSendable && serverRow?[index] != cell {
            var writer = JSONWriter()
            writer.cell(cell)
            bytes += writer.bytes.count
            guard bytes <= recordByteLimit else { continue }
            fields.append(name: column.wireName) { $0.raw(writer.bytes) }
        }
        operation.fields = fields.finish()
        try Outbox.refuse(
            db, operation, record: name(key, id), scope: scope.scope, isInsert: isInsert, detail: why,
            hint: hint, now: now)
        batch.dependence.noteRefusal()
    }

    func refuseKey(_ batch: inout Batch, _ table: RecordTable, _ key: [Cell]) throws {
        let flaw = KeyFlaw(key, of: table.shape)
        try refuse(&batch, table, key, id: nil, why: flaw.detail, hint: flaw.hint)
    }
}

private func name(_ key: [Cell], _ id: RecordID?) -> String { id?.text ?? KeyText(key).text }
