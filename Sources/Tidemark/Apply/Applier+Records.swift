import GRDB
import TidemarkWire

// MARK: - Records with edits

extension Applier {
    /// A remote change lands under edits made here: the edits stay on screen, drawn over the new row.
    func rebase(
        _ table: ApplyTable, _ id: RecordID, _ key: [Cell], _ shadow: Shadow, version: Version, ahead: Version,
        incoming: [Int: Cell]?
    ) throws {
        let shape = table.shape
        let operation = try Outbox.overlay(db, entity: shape.name, record: id.text, scope: scope.name)
        let (current, isParked) = try visible(table, id, key, shadow)
        let row = operation == nil ? incoming : nil
        let shadow = try giveWay(shadow, table, id, current: current, to: row, version: version)
        let edits = Edits(
            shape: shape, shadow: shadow, operation: operation, current: current, reserved: table.reserved)
        let base = self.base(of: shadow, ahead: ahead, in: table)
        var truth = shadow
        if let incoming {
            truth.noteBases(edits, shape: shape, base: base, except: operation)
            truth.noteOriginals(edits, operation, under: incoming, shape: shape)
            truth.take(incoming, version: version, shape: shape, current: current)
        } else if case .fields = edits {
            truth.delete(base: base, at: version)
        } else if operation?.setsFields == true {
            truth.delete(base: base, at: version)
        } else {
            (truth.state, truth.version) = (.absent, version)
        }
        try redraw(table, id, key, truth, operation, edits, current: current, isParked: isParked)
        // No verdict is to come that would tell the scopes which wait to be left.
        if hadWaiting, try table.records.shadow(db, key) == nil {
            try Parked.settle(db, shape.name, id.text, as: incoming == nil ? .deleted : .moved)
        }
    }

    func visible(
        _ table: ApplyTable, _ id: RecordID, _ key: [Cell], _ shadow: Shadow?
    ) throws -> (cells: [Cell]?, isParked: Bool) {
        if let row = try table.records.row(db, key), try isHeldHere(table, key) {
            // Made here anew while its namesake was parked: what is on screen is what counts.
            try Parked.remove(db, table.shape.name, id.text, scope.name)
            return (row, false)
        }
        let parked = try Parked.cells(db, table.shape, id, scope.name)
        return (shadow?.isGone == true ? nil : parked, parked != nil)
    }

    /// The version that an edit of the shadow's row was made on; 0: on none.
    func base(of shadow: Shadow, ahead: Version, in table: ApplyTable) -> Version {
        switch shadow.state {
        case .absent: 0
        case .known, .deleted: shadow.version ?? (ahead >= 0 ? ahead : record.base(of: table.shape.name))
        }
    }

    /// Puts row and shadow to rights after either changed. The shadow stays exactly while something is pending.
    func redraw(
        _ table: ApplyTable, _ id: RecordID, _ key: [Cell], _ truth: Shadow, _ operation: Operation?, _ edits: Edits,
        current: [Cell]?, isParked: Bool
    ) throws {
        manifest.look(table.shape.name, id)
        let new = truth.drawn(with: operation, edits, shape: table.shape, current: current)
        let isPending =
            switch edits {
            case .none: operation != nil || truth.seed != nil
            case .deleted: operation != nil || truth.state == .known
            case .fields: true
            }
        try put(
            table, id, key, from: current, isParked: isParked, to: new, version: truth.version, isPending: isPending)
        if isPending {
            var truth = truth
            truth.isGone = truth.isGone && new == nil
            try table.records.write(db, key, placed(truth, table.shape, key, new, isSent: operation != nil))
        } else {
            if try hasNotes.get() {
                try table.records.forget(db, key, id)
            } else {
                try table.records.dropShadow(db, key)
            }
            try Outbox.forgetLocalRefusals(db, entity: table.shape.name, record: id.text)
        }
    }
}

extension Shadow {
    /// The server deleted the row under an edit: what the edit was made on stays, with its version. A later edit of it
    /// is still one of the deleted row, never an insert that would bring it back, and older than all that is known.
    fileprivate mutating func delete(base: Version, at version: Version) {
        guard state == .known else { return }
        (state, self.version) = (.deleted, max(0, min(base, version - 1)))
    }

    /// Edits keep the base they were made on, whatever row comes under them.
    fileprivate mutating func noteBases(
        _ edits: Edits, shape: TableShape, base: Version, except operation: Operation?
    ) {
        switch edits {
        case .none: return
        case .deleted: bases[Self.deletionBase] = bases[Self.deletionBase] ?? base
        case .fields(let fields):
            let sent = operation.map { Set($0.fields.cells(in: shape).keys) } ?? []
            for index in fields.keys where !sent.contains(index) {
                let name = shape.data[index].name
                bases[name] = bases[name] ?? base
            }
        }
    }
}

extension Shadow {
    /// Another row comes under an edit: what the edited fields were is kept for the list of conflicts.
    fileprivate mutating func noteOriginals(
        _ edits: Edits, _ operation: Operation?, under incoming: [Int: Cell], shape: TableShape
    ) {
        guard state == .known else { return }
        var edited = operation.map { Set($0.fields.cells(in: shape).keys) } ?? []
        if case .fields(let fields) = edits { edited.formUnion(fields.keys) }
        for index in edited {
            guard let cell = incoming[index], cell != cells[index] else { continue }
            let name = shape.data[index].name
            originals[name] = originals[name] ?? cells[index]
        }
    }

    /// The app has to decide about an operation: what was edited on top of it was made on the same rows, and is not
    /// an edit of the row that came with the verdict.
    fileprivate mutating func noteBases(_ remaining: Edits, on operation: Operation, shape: TableShape, base: Version) {
        guard case .fields(let fields) = remaining else { return }
        let sent = Set(operation.fields.cells(in: shape).keys)
        for index in fields.keys {
            let column = shape.data[index]
            let own = operation.base(ofField: column.canonicalName) ?? 0
            bases[column.name] = bases[column.name] ?? (sent.contains(index) ? own : base)
        }
    }
}

extension Shadow {
    /// A record that was edited here was deleted elsewhere meanwhile: an answer says so, or, of one that was made here,
    /// a state that is whole as of later, and lacks it. What was edited since is an edit of it, and never an insert
    /// that would bring it back.
    ///
    /// - Parameter base: the version that the operation's edit was made on.
    fileprivate mutating func noteDeleted(
        _ verdict: Verdict, _ operation: Operation, _ shape: TableShape, base: Version, complete: Version?
    ) {
        guard operation.setsFields, let cells = overlaid(with: operation, shape: shape) else { return }
        if let record = verdict.record {
            guard record.data == nil else { return }
            (state, self.cells, version) = (.deleted, cells, base)
        } else if state == .absent, verdict.isAlone, let version = verdict.version, version <= complete ?? -1,
            !shape.isScopedByColumn
        {
            (state, self.cells, self.version) = (.deleted, cells, version)
        }
    }
}

extension Shadow {
    /// What was edited since was made on what this operation set.
    fileprivate mutating func noteTaken(_ operation: Operation, under remaining: Edits, shape: TableShape) {
        for (index, cell) in operation.fields.cells(in: shape) {
            bases[shape.data[index].name] = nil
            originals[shape.data[index].name] = remaining.fields[index].map { _ in cell }
        }
    }
}

// MARK: - Verdicts

extension Verdict {
    /// Whether it is put off for want of room, or with another operation that is.
    fileprivate var mayWait: Bool { after != nil || refusal?.code == RejectionCode.quotaExceeded }

    /// Whether nobody else had a hand in the row (W36): what was edited since was made on what this one set.
    fileprivate var isAlone: Bool { record == nil && !isShort }

    /// Whether a delete found nothing as of the version that is known: a restored server may never have had the record.
    fileprivate func confirms(_ entry: OutboxEntry, at known: Version) -> Bool {
        entry.isDelete && isAlone && version == known
    }
}

extension Applier {
    /// Applies a verdict to the one operation that it names; one that is unknown or finished is left alone.
    func apply(_ key: OperationKey, _ answered: Verdict) throws {
        let verdict = answered.asksForWhole ? answered.deferred() : answered
        guard let entry = try Outbox.open(db, key: key) else { return }
        outcome.verdicts += 1
        if try applyPlain(verdict, entry) { return }
        try beforeWritingRows()
        if verdict.refusal?.code == RejectionCode.operationMismatch,
            try Outbox.sealAfterMismatch(db, entry, scope: scope)
        {
            outcome.sealedAgain += 1
            return
        }
        let operation = try entry.operation()
        // What no server ever took is an edit like any that is put off.
        if verdict.status == .deferred, operation.original?.version != nil { return try bringBackLater(entry) }
        guard let table = tables[entry.entity], let id = RecordID(entry.record), let recordKey = table.shape.key(of: id)
        else { return try Outbox.finish(db, entry, verdict, now: now) }
        let shape = table.shape
        if try applyAside(verdict, entry, table, id, recordKey) { return }
        try layOver(table, id, recordKey)
        if try applyOrphan(verdict, entry, table, recordKey) { return }
        let found = try table.records.shadow(db, recordKey)
        let (current, isParked) = try visible(table, id, recordKey, found)
        let shadow =
            found
            ?? Shadow(state: current == nil ? .absent : .known, cells: current ?? shape.data.map(\.defaultCell))
        let ahead = try Ahead.version(db, scope, shape.name, id.text) ?? -1
        let base = self.base(of: shadow, ahead: ahead, in: table)
        // A verdict at or below `complete` is old news, even of a record whose tombstone left no version here: it came
        // with a walk that another engine on this file has finished meanwhile.
        let known = max(shadow.version ?? -1, ahead, record.complete(of: shape.name) ?? -1)
        let (sealed, later) = try self.sealed(operation, entry)
        // A deferred operation's edits become edits again; of any other, only what was edited since remains.
        let remaining = Edits(
            shape: shape, shadow: shadow, operation: verdict.status == .deferred ? later : sealed, current: current,
            reserved: table.reserved)
        try Outbox.finish(db, entry, verdict, now: now)
        if hadRefusals, verdict.tookEffect { try Quarantine.accepted(db, entry) }
        var truth = verdict.status == .deferred ? shadow : shadow.answered
        switch verdict.status {
        case .applied, .merged,
            .settled where verdict.isShort:
            truth.noteDeleted(verdict, operation, shape, base: base, complete: record.complete(of: entry.entity))
            if let version = verdict.version, version > known || verdict.confirms(entry, at: known) {
                truth.noteBases(remaining, shape: shape, base: verdict.isAlone ? version : base, except: operation)
                truth.noteTaken(operation, under: remaining, shape: shape)
                try take(verdict, version, operation, &truth, under: remaining, table, id, current)
            }
        case .rejected, .conflict:
            if verdict.status == .rejected { outcome.rejected += 1 } else { outcome.conflicts += 1 }
            if verdict.status == .conflict { truth.noteBases(remaining, on: operation, shape: shape, base: base) }
            try refuse(
                verdict, operation, &truth, under: remaining, known: known, base: base, table, id, current)
        case .deferred:
            if !answered.asksForWhole { outcome.deferred += 1 }
            try reopen(operation, &truth, shape)
            if verdict.mayWait, found?.mark == nil { putOff.append((table.records, recordKey)) }
        case .settled: takeOnTrust(operation, &truth, under: remaining, shape)
        }
        // What became of one that is settled, the record itself tells. So it does where the server knew it from before
        // this device's state was whole, and it is not here: made anew while its namesake was parked.
        let isOld = truth.state == .absent && verdict.record.map { $0.data != nil && $0.version <= known } ?? false
        if isOld || verdict.status == .settled { try want(entry) }
        try noteConflicts(
            verdict, Meeting(entry: entry, operation: operation, shape: shape, shadow: shadow, current: current))
        try redraw(table, id, recordKey, truth, later, remaining, current: current, isParked: isParked)
        if hadWaiting { try settleMove(verdict, table, id, recordKey, wasThere: current != nil) }
        if verdict.status == .deferred { try regroup(table, recordKey, operation.group) }
    }

    /// What became of an edit nobody remembers: another copy of this file was told. Until the server has said how the
    /// record stands, what was edited since was made on what was sent. Of a record that was made here, which stays,
    /// that is older than all that others may have done; one that was deleted here was made anew.
    private func takeOnTrust(
        _ operation: Operation, _ truth: inout Shadow, under remaining: Edits, _ shape: TableShape
    ) {
        guard truth.state == .absent || truth.state == .known && !remaining.isEmpty, operation.original == nil
        else { return }
        guard let cells = truth.overlaid(with: operation, shape: shape) else {
            truth.state = .absent
            return
        }
        if truth.state == .absent { truth.version = operation.baseVersion ?? 0 }
        (truth.state, truth.cells) = (.known, cells)
    }

    private func want(_ entry: OutboxEntry) throws {
        try Wanted.note(db, scope, entry.entity, entry.record)
        outcome.wanted += 1
    }

    /// Back into the group that it was sealed with. Where it was edited in another one meanwhile, the two share a
    /// record now, and are one.
    private func regroup(_ table: ApplyTable, _ key: [Cell], _ group: String?) throws {
        guard let group else { return }
        if let later = try table.records.group(db, key), later != group {
            try layout.rename(db, group: later, to: group)
        }
        try table.records.setGroup(db, key, group)
    }

    /// What is brought back after a loss lies over a row that says nothing of it, and so cannot become an edit again:
    /// it goes once more as it is, under another number, until it is taken.
    private func bringBackLater(_ entry: OutboxEntry) throws {
        outcome.deferred += 1
        var numbers = try later ?? LaneNumbers(db, lane: randomHex(bytes: 16))
        let moved = numbers.take()
        later = numbers
        try numbers.store(db, scope: scope)
        var operation = try SealedNames.settled(db, entry.sealedOperation(), of: entry.entity)
        func key(of number: Int64) -> OperationKey { OperationKey(lane: entry.key.lane, number: number) }
        // One that is neither put off nor open was taken, or is the app's to decide about: this one goes without it
        // then. What waits for itself is put off until the other has its verdict.
        let open = try Set(operation.needs.filter { try Outbox.open(db, key: key(of: $0)) != nil })
        operation.renumber { movedLater[key(of: $0)] ?? (open.contains($0) ? moved.number : nil) }
        movedLater[entry.key] = moved.number
        try Outbox.seal(db, entry, again: .lost, key: moved, members: operation.sealedMembers())
    }

    /// What lies over the record: this operation and, where lost ones are being brought back, those behind it.
    private func sealed(_ operation: Operation, _ entry: OutboxEntry) throws -> (all: Operation?, others: Operation?) {
        guard try isBringingBack.get() else { return (operation, nil) }
        return (
            try Outbox.overlay(db, entity: entry.entity, record: entry.record, scope: scope.name),
            try Outbox.overlay(db, entity: entry.entity, record: entry.record, scope: scope.name, without: entry.id)
        )
    }

    /// The usual verdict: taken as it was sent, on a record that nobody has touched since. What is on screen is what
    /// the server has now, so the shadow just goes. `false` where there is more to it.
    private func applyPlain(_ verdict: Verdict, _ entry: OutboxEntry) throws -> Bool {
        guard verdict.isPlain, !hadAhead, let version = verdict.version, let table = tables[entry.entity],
            version > record.complete(of: entry.entity) ?? -1, let id = RecordID(entry.record),
            let key = table.shape.key(of: id), try table.records.isSettled(db, key, in: scope),
            try !isBringingBack.get()
        else { return false }
        try Outbox.finish(db, entry, verdict, now: now)
        if hadRefusals { try Quarantine.accepted(db, entry) }
        if version > rememberVerdictsAbove {
            try Ahead.note(db, scope, entry.entity, entry.record, version, deleted: entry.isDelete)
        }
        try table.records.dropShadow(db, key)
        manifest.look(entry.entity, id)
        if hadWaiting { try Parked.settle(db, entry.entity, entry.record, as: .moved) }
        return true
    }

    /// Of a short one the row is known in part: what is of that version takes its place.
    private func take(
        _ verdict: Verdict, _ newest: Version, _ operation: Operation, _ truth: inout Shadow, under remaining: Edits,
        _ table: ApplyTable, _ id: RecordID, _ current: [Cell]?
    ) throws {
        if verdict.isShort { toldShortly.insert(RecordName(entity: table.shape.name, record: id.text)) }
        let version = verdict.isShort ? newest - 1 : newest
        var isDeleted = false
        if let record = verdict.record {
            if let data = record.data {
                let cells = table.shape.whole(data.cells(in: table.shape), in: scope)
                truth.noteOriginals(remaining, nil, under: cells, shape: table.shape)
                truth.take(cells, version: version, shape: table.shape, current: current)
            } else {
                isDeleted = true
            }
        } else if let cells = truth.overlaid(with: operation, shape: table.shape) {
            (truth.state, truth.cells, truth.version) = (.known, cells, version)
        } else {
            isDeleted = true
        }
        if isDeleted, !operation.setsFields { (truth.state, truth.version) = (.absent, version) }
        if version > rememberVerdictsAbove {
            try Ahead.note(db, scope, table.shape.name, id.text, version, deleted: isDeleted)
        }
    }

    /// The row is the server's again at once; the edit is kept aside with the reason.
    private func refuse(
        _ verdict: Verdict, _ operation: Operation, _ truth: inout Shadow, under remaining: Edits, known: Version,
        base: Version, _ table: ApplyTable, _ id: RecordID, _ current: [Cell]?
    ) throws {
        if let record = verdict.record, record.version > known {
            if let data = record.data {
                let cells = table.shape.whole(data.cells(in: table.shape), in: scope)
                truth.noteOriginals(remaining, nil, under: cells, shape: table.shape)
                truth.take(cells, version: record.version, shape: table.shape, current: current)
            } else {
                try keepDeleted(table, id)
                truth.delete(base: base, at: record.version)
            }
            if record.version > rememberVerdictsAbove {
                try Ahead.note(db, scope, table.shape.name, id.text, record.version, deleted: record.data == nil)
            }
        } else if verdict.record == nil, verdict.refusal?.code == RejectionCode.recordDeleted,
            truth.version ?? 0 <= operation.baseVersion ?? 0
        {
            try keepDeleted(table, id)
            truth.delete(base: base, at: .max)
        }
    }

    /// The edit waits for another one: it is sealed again under a new number, with the base it was made on.
    private func reopen(_ operation: Operation, _ truth: inout Shadow, _ shape: TableShape) throws {
        truth.mark = try Pending.nextMark(db)
        truth.since = truth.since ?? now
        guard let base = operation.baseVersion else { return }
        for index in operation.fields.cells(in: shape).keys {
            let column = shape.data[index]
            truth.bases[column.name] = operation.base(ofField: column.canonicalName) ?? base
        }
        if operation.kind == .delete { truth.bases[Shadow.deletionBase] = base }
    }
}
