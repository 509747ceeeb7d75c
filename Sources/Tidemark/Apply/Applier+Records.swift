import GRDB
import TidemarkWire

// MARK: - Records with edits

extension Applier {
    /// A remote change lands under edits made here: the edits stay on screen, overlaid on the new row.
    func rebase(
        _ table: ApplyTable, _ id: RecordID, _ key: [Cell], _ shadow: Shadow, version: Version, known: Version,
        incoming: [Int: Cell]?
    ) throws {
        let shape = table.shape
        let operation = try Outbox.overlay(db, entity: shape.name, record: id.text, scope: scope.name)
        let (current, isQuarantined) = try visible(table, id, key, shadow)
        let row = operation == nil ? incoming : nil
        let shadow = try giveWay(shadow, table, id, current: current, to: row, version: version)
        let edits = LocalDelta(
            shape: shape, shadow: shadow, operation: operation, current: current, reserved: table.reserved)
        let base = self.base(of: shadow, known: known, in: table)
        var serverRow = shadow
        if let incoming {
            serverRow.noteBases(edits, shape: shape, base: base, except: operation)
            serverRow.noteOriginals(edits, operation, under: incoming, shape: shape)
            serverRow.update(with: incoming, version: version, shape: shape, current: current)
        } else if case .fields = edits {
            serverRow.delete(base: base, at: version)
        } else if operation?.setsFields == true {
            serverRow.delete(base: base, at: version)
        } else {
            (serverRow.state, serverRow.version) = (.absent, version)
        }
        try overlay(table, id, key, serverRow, operation, edits, current: current, isQuarantined: isQuarantined)
        // No verdict is to come that would tell the scopes which wait to be left.
        if hadWaiting, try table.records.shadow(db, key) == nil {
            try QuarantinedRow.endWait(db, shape.name, id.text, as: incoming == nil ? .deleted : .moved)
        }
    }

    func visible(
        _ table: ApplyTable, _ id: RecordID, _ key: [Cell], _ shadow: Shadow?
    ) throws -> (cells: [Cell]?, isQuarantined: Bool) {
        if let row = try table.records.row(db, key), try isOwnRow(table, key) {
            // Made here anew while its namesake was quarantined: what is on screen is what counts.
            try QuarantinedRow.remove(db, table.shape.name, id.text, scope.name)
            return (row, false)
        }
        let quarantined = try QuarantinedRow.cells(db, table.shape, id, scope.name)
        return (shadow?.isGone == true ? nil : quarantined, quarantined != nil)
    }

    /// The version that an edit of the shadow's row was made on; 0: on none.
    func base(of shadow: Shadow, known: Version, in table: ApplyTable) -> Version {
        switch shadow.state {
        case .absent: 0
        case .known, .deleted: shadow.version ?? (known >= 0 ? known : record.base(of: table.shape.name))
        }
    }
}

// MARK: - Verdicts

extension Verdict {
    /// Whether it is put off for want of room, or with another operation that is.
    fileprivate var mayWait: Bool { after != nil || refusal?.code == RejectionCode.quotaExceeded }

    /// Whether no other device had a hand in the row (W36): a later edit was then made on what this operation set.
    var isAlone: Bool { record == nil && !isShort }

    /// Whether a delete found nothing as of the version that is known: a restored server may never have had the record.
    fileprivate func confirms(_ entry: OutboxEntry, at known: Version) -> Bool {
        entry.isDelete && isAlone && version == known
    }
}

extension Applier {
    /// Applies a verdict to the one operation that it names; one that is unknown or finished is left alone.
    func applyVerdict(_ key: OperationKey, _ answered: Verdict) throws {
        let verdict = answered.asksForWhole ? answered.deferred() : answered
        let row = taken?.next(key)
        guard let entry = try row?.entry(lane: key.lane) ?? Outbox.open(db, key: key) else { return }
        outcome.verdicts += 1
        try noteAttachments(verdict, entry)
        if try applyPlain(verdict, entry, row) { return }
        try beforeWritingRows()
        let operation = try entry.operation()
        if try sendsAgain(verdict, entry, operation) { return }
        guard let table = tables[entry.entity], let id = RecordID(entry.record), let recordKey = table.shape.key(of: id)
        else { return try Outbox.finish(db, entry, verdict, now: now) }
        if try applyDeleteOfMove(verdict, entry, table, id, recordKey) { return }
        try overlayReplayed(table, id, recordKey)
        if try applyOrphan(verdict, entry, table, recordKey) { return }
        let judged = try judged(verdict, entry, operation, table, id, recordKey)
        try Outbox.finish(db, entry, verdict, now: now)
        if hadRefusals, verdict.tookEffect { try RejectedOperation.supersede(db, by: entry) }
        try rebase(by: judged, table, id, recordKey)
    }

    /// An operation with its verdict, and the file's knowledge of its record.
    private struct Judged {
        let verdict: Verdict
        let entry: OutboxEntry
        let operation: Operation
        let shadow: Shadow
        /// Whether the shadow stands in the file, with a mark.
        let isMarked: Bool
        /// Replayed operations that stand behind this one.
        let later: Operation?
        /// Edits that were made since the operation was sealed.
        let remaining: LocalDelta
        /// The version up to which the record is known.
        let known: Version
        /// The version that the operation was made on.
        let base: Version
        let current: [Cell]?
        let isQuarantined: Bool
    }

    private func judged(
        _ verdict: Verdict, _ entry: OutboxEntry, _ operation: Operation, _ table: ApplyTable, _ id: RecordID,
        _ key: [Cell]
    ) throws -> Judged {
        let shape = table.shape
        let found = try table.records.shadow(db, key)
        let (current, isQuarantined) = try visible(table, id, key, found)
        let shadow = found ?? Shadow(unedited: current, of: shape)
        let knownVersion = try KnownVersions.version(db, scope, shape.name, id.text) ?? -1
        // A verdict at or below `complete` is old news, even of a record whose tombstone left no version here: it came
        // with a scan that another engine on this file has finished meanwhile.
        let known = max(shadow.version ?? -1, knownVersion, record.complete(of: shape.name) ?? -1)
        let (sealed, later) = try self.sealed(operation, entry)
        // A deferred operation's edits become edits again; of any other, only what was edited since remains.
        let remaining = LocalDelta(
            shape: shape, shadow: shadow, operation: verdict.status == .deferred ? later : sealed, current: current,
            reserved: table.reserved)
        return Judged(
            verdict: verdict, entry: entry, operation: operation, shadow: shadow, isMarked: found?.mark != nil,
            later: later, remaining: remaining, known: known, base: base(of: shadow, known: knownVersion, in: table),
            current: current, isQuarantined: isQuarantined)
    }

    /// Rebases the record by a verdict on it.
    private func rebase(by judged: Judged, _ table: ApplyTable, _ id: RecordID, _ key: [Cell]) throws {
        let (verdict, entry, shape) = (judged.verdict, judged.entry, table.shape)
        var serverRow = verdict.status == .deferred ? judged.shadow : judged.shadow.answered
        if verdict.status == .deferred { noteDeferral(judged, table, key) }
        try judge(judged, &serverRow, table, id)
        // The record is refetched if the outcome is unknown: only the record tells it. It is refetched too if the
        // server had it before this device's state was whole and it is not here, because it was made anew while its
        // namesake was quarantined.
        let isOld =
            serverRow.state == .absent && verdict.record.map { $0.data != nil && $0.version <= judged.known } ?? false
        if isOld || verdict.status == .outcomeUnknown { try queueForRefetch(entry) }
        try noteConflicts(
            verdict,
            Meeting(
                entry: entry, operation: judged.operation, shape: shape, shadow: judged.shadow, current: judged.current)
        )
        try overlay(
            table, id, key, serverRow, judged.later, judged.remaining, current: judged.current,
            isQuarantined: judged.isQuarantined)
        if hadWaiting { try endMoveWait(verdict, table, id, key, wasThere: judged.current != nil) }
        if verdict.status == .deferred { try regroup(table, key, judged.operation.group) }
    }

    private func noteDeferral(_ judged: Judged, _ table: ApplyTable, _ key: [Cell]) {
        // An edit that is asked for whole is not put off: it goes again at once.
        if judged.verdict.refusal?.code != RejectionCode.patchBaseUnknown { outcome.deferred += 1 }
        if judged.verdict.mayWait, !judged.isMarked { putOff.append((table.records, key)) }
    }

    /// Whether an operation is sent once more under another key, whose verdict counts.
    private func sendsAgain(_ verdict: Verdict, _ entry: OutboxEntry, _ operation: Operation) throws -> Bool {
        if verdict.refusal?.code == RejectionCode.operationMismatch,
            try Outbox.sealAfterMismatch(db, entry, scope: scope)
        {
            outcome.sealedAgain += 1
            return true
        }
        // Only a replayed operation that a server once took is sent again as it is; any other one becomes an edit
        // again.
        guard verdict.status == .deferred, operation.original?.version != nil else { return false }
        try replayLater(entry)
        return true
    }

    /// Changes the server's row by what the verdict says of it.
    private func judge(
        _ judged: Judged, _ serverRow: inout Shadow, _ table: ApplyTable, _ id: RecordID
    ) throws {
        let (verdict, operation, remaining) = (judged.verdict, judged.operation, judged.remaining)
        let (shape, known, base) = (table.shape, judged.known, judged.base)
        switch verdict.status {
        case .applied, .merged,
            .outcomeUnknown where verdict.isShort:
            let complete = record.complete(of: judged.entry.entity)
            serverRow.noteDeleted(verdict, operation, shape, base: base, complete: complete)
            if let version = verdict.version, version > known || verdict.confirms(judged.entry, at: known) {
                serverRow.noteBases(remaining, shape: shape, base: verdict.isAlone ? version : base, except: operation)
                serverRow.noteTaken(operation, under: remaining, shape: shape)
                try applyRow(of: verdict, version, operation, &serverRow, under: remaining, table, id, judged.current)
            }
        case .rejected, .conflict:
            if verdict.status == .rejected { outcome.rejected += 1 } else { outcome.conflicts += 1 }
            if verdict.status == .conflict { serverRow.noteBases(remaining, on: operation, shape: shape, base: base) }
            try refuse(
                verdict, operation, &serverRow, under: remaining, known: known, base: base, table, id, judged.current)
        case .deferred: try reopen(operation, &serverRow, shape)
        case .outcomeUnknown: takeOnTrust(operation, &serverRow, under: remaining, shape)
        }
    }

    /// The outcome is unknown, since another copy of this file was told it. Until the server has said how the record
    /// stands, a later edit counts as made on the row that was sent. If this device made the record, that row gets
    /// version 0, older than all that others may have written. If the operation deleted the record, the row that stands
    /// here now was made anew.
    private func takeOnTrust(
        _ operation: Operation, _ serverRow: inout Shadow, under remaining: LocalDelta, _ shape: TableSchema
    ) {
        guard serverRow.state == .absent || serverRow.state == .known && !remaining.isEmpty, operation.original == nil
        else { return }
        guard let cells = serverRow.overlaid(with: operation, shape: shape) else {
            serverRow.state = .absent
            return
        }
        if serverRow.state == .absent { serverRow.version = operation.baseVersion ?? 0 }
        serverRow.learn(cells)
    }

    private func queueForRefetch(_ entry: OutboxEntry) throws {
        try RefetchQueue.note(db, scope, entry.entity, entry.record)
        outcome.refetch += 1
    }

    /// Puts the record back into the group that it was sealed with. If it was edited in another group meanwhile, the
    /// two groups share a record, and become one.
    private func regroup(_ table: ApplyTable, _ key: [Cell], _ group: String?) throws {
        guard let group else { return }
        if let later = try table.records.group(db, key), later != group {
            try schema.rename(db, group: later, to: group)
        }
        try table.records.setGroup(db, key, group)
    }

    /// Defers a replayed operation. It cannot become an edit again, because the server's row under it does not show the
    /// edit: it is sent once more as it is, under another number, until it is taken.
    private func replayLater(_ entry: OutboxEntry) throws {
        outcome.deferred += 1
        var numbers = try later ?? LaneNumbers(db, lane: randomHex(bytes: 16))
        let moved = numbers.nextKey()
        later = numbers
        try numbers.store(db, scope: scope)
        var operation = try SealedNames.forResealing(db, entry.sealedOperation(), of: entry.entity)
        func key(of number: Int64) -> OperationKey { OperationKey(lane: entry.key.lane, number: number) }
        // A needed operation that is neither deferred nor open was taken, or is the app's to decide about: this one
        // does not need it any more. If it is still open, this one names its own number as needed, and so is deferred
        // until the other one has its verdict.
        let open = try Set(operation.needs.filter { try Outbox.open(db, key: key(of: $0)) != nil })
        operation.renumber { movedLater[key(of: $0)] ?? (open.contains($0) ? moved.number : nil) }
        movedLater[entry.key] = moved.number
        try Outbox.reseal(db, entry, as: .replayed, key: moved, members: operation.sealedMembers())
    }

    /// Returns the operations that overlay the record: this one and, while lost ones are replayed, those behind it.
    private func sealed(_ operation: Operation, _ entry: OutboxEntry) throws -> (all: Operation?, others: Operation?) {
        guard try isReplaying.get() else { return (operation, nil) }
        return (
            try Outbox.overlay(db, entity: entry.entity, record: entry.record, scope: scope.name),
            try Outbox.overlay(db, entity: entry.entity, record: entry.record, scope: scope.name, without: entry.id)
        )
    }

    /// The usual verdict: taken as it was sent, on a record without a later edit. What is on screen is what the server
    /// has now, so the shadow just goes. Returns `false` for any other verdict, which changes nothing yet.
    ///
    /// - Parameter row: the operation, where it may go straight into a block.
    private func applyPlain(_ verdict: Verdict, _ entry: OutboxEntry, _ row: OutboxBlock.Operation?) throws -> Bool {
        guard verdict.isPlain, !hadKnownVersions, let version = verdict.version, let table = tables[entry.entity],
            version > record.complete(of: entry.entity) ?? -1, let id = RecordID(entry.record),
            let key = table.shape.key(of: id), try !isReplaying.get()
        else { return false }
        guard try isDropped(entry.key) || table.records.dropClean(db, key, in: scope) else { return false }
        if let row {
            taken?.append(row, at: version, lane: entry.key.lane, now: now)
        } else {
            try Outbox.finish(db, entry, verdict, now: now)
        }
        if hadRefusals { try RejectedOperation.supersede(db, by: entry) }
        if version > rememberVerdictsAbove {
            try KnownVersions.note(db, scope, entry.entity, entry.record, version, deleted: entry.isDelete)
        }
        try noteConfirmed(table, id, key, hash: seeds[entry.key]?.hash)
        if hadWaiting { try QuarantinedRow.endWait(db, entry.entity, entry.record, as: .moved) }
        return true
    }

    /// Applies the row that a verdict leaves on the server. A short verdict tells only a part of that row, so it counts
    /// as one version older than it is, and the whole row of the same version takes its place.
    private func applyRow(
        of verdict: Verdict, _ newest: Version, _ operation: Operation, _ serverRow: inout Shadow,
        under remaining: LocalDelta,
        _ table: ApplyTable, _ id: RecordID, _ current: [Cell]?
    ) throws {
        if verdict.isShort { toldShortly.insert(RecordName(entity: table.shape.name, record: id.text)) }
        let version = verdict.isShort ? newest - 1 : newest
        var isDeleted = false
        if let record = verdict.record {
            if let data = record.data {
                let cells = table.shape.whole(data.cells(in: table.shape), in: scope)
                serverRow.noteOriginals(remaining, nil, under: cells, shape: table.shape)
                serverRow.update(with: cells, version: version, shape: table.shape, current: current)
            } else {
                isDeleted = true
            }
        } else if let cells = serverRow.overlaid(with: operation, shape: table.shape) {
            serverRow.learn(cells)
            serverRow.version = version
        } else {
            isDeleted = !operation.setsFields
        }
        if isDeleted, !operation.setsFields { (serverRow.state, serverRow.version) = (.absent, version) }
        if version > rememberVerdictsAbove {
            try KnownVersions.note(db, scope, table.shape.name, id.text, version, deleted: isDeleted)
        }
    }

    /// The row is the server's again at once; the edit is kept with the reason.
    private func refuse(
        _ verdict: Verdict, _ operation: Operation, _ serverRow: inout Shadow, under remaining: LocalDelta,
        known: Version,
        base: Version, _ table: ApplyTable, _ id: RecordID, _ current: [Cell]?
    ) throws {
        if let record = verdict.record, record.version > known {
            if let data = record.data {
                let cells = table.shape.whole(data.cells(in: table.shape), in: scope)
                serverRow.noteOriginals(remaining, nil, under: cells, shape: table.shape)
                serverRow.update(with: cells, version: record.version, shape: table.shape, current: current)
            } else {
                try keepDeleted(table, id)
                serverRow.delete(base: base, at: record.version)
            }
            if record.version > rememberVerdictsAbove {
                try KnownVersions.note(
                    db, scope, table.shape.name, id.text, record.version, deleted: record.data == nil)
            }
        } else if verdict.record == nil, verdict.refusal?.code == RejectionCode.recordDeleted,
            serverRow.version ?? 0 <= operation.baseVersion ?? 0
        {
            try keepDeleted(table, id)
            serverRow.delete(base: base, at: .max)
        }
    }

    /// Makes a deferred operation an edit again: it is sealed under a new number, with the base that it was made on.
    private func reopen(_ operation: Operation, _ serverRow: inout Shadow, _ shape: TableSchema) throws {
        serverRow.mark = try Marks.next(db)
        serverRow.since = serverRow.since ?? now
        guard let base = operation.baseVersion else { return }
        for index in operation.fields.cells(in: shape).keys {
            let column = shape.data[index]
            serverRow.bases[column.name] = operation.base(ofField: column.canonicalName) ?? base
        }
        if operation.kind == .delete { serverRow.bases[Shadow.deletionBase] = base }
    }
}
