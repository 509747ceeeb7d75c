import GRDB
import TidemarkWire

/// References to a new record are sealed behind it: so the server knows the one before it hears of the other, and a
/// refusal stops what depends on it. Records that have to go first are put on a stack of our own, since rows may refer
/// to one another in long chains.
extension OutboxBatcher {
    /// The records that are sealed in one go.
    enum Unit {
        case record(Unsealed)
        case group(String)

        /// The same, once others have been sealed.
        var readAgain: Unit {
            guard case .record(var record) = self else { return self }
            record.found = nil
            return .record(record)
        }

        /// The record, where it goes into the group that is being sealed.
        var recordAlong: Unsealed? {
            if case .record(let record) = self, record.goesAlong { record } else { nil }
        }
    }

    /// The units that were and are looked at out of turn.
    struct Order {
        /// Records whose sealing has begun and waits for that of a record they refer to.
        private(set) var underWay: Set<RecordName> = []
        private(set) var groupsUnderWay: Set<String> = []
        /// Records that were looked at before their turn.
        var early: Set<RecordName> = []
        private(set) var groupsSeen: Set<String> = []
        /// Groups that lie in several scopes by now, and are none any more.
        var dissolved: Set<String> = []
        /// Whether another group has joined the one that is being sealed, and the record of it that was referred to.
        var hasMerged = false
        var merged: RecordName?

        /// Whether every record so far came up by its own mark.
        var isUntouched: Bool {
            underWay.isEmpty && early.isEmpty && groupsUnderWay.isEmpty && groupsSeen.isEmpty && dissolved.isEmpty
        }

        func isEarly(_ name: RecordName) -> Bool { !early.isEmpty && early.contains(name) }

        mutating func begin(_ unit: Unit) {
            switch unit {
            case .record(let record): underWay.insert(record.name)
            case .group(let group): groupsUnderWay.insert(group)
            }
        }

        mutating func end(_ unit: Unit) {
            switch unit {
            case .record(let record):
                underWay.remove(record.name)
                early.insert(record.name)
            case .group(let group):
                groupsUnderWay.remove(group)
                groupsSeen.insert(group)
            }
        }
    }

    /// The room that is left in a batch.
    struct Budget {
        private let limit: Int
        private(set) var left: Int
        private var room: Int

        init(limit: Int, room: Int) { (self.limit, left, self.room) = (limit, limit, room) }

        var isSpent: Bool { left <= 0 || room <= 0 }
        var isUntouched: Bool { left == limit }

        mutating func spend(count: Int, bytes: Int) { (left, room) = (left - count, room - bytes) }

        /// Lets `body` take no more than `count` operations.
        mutating func withLimit<Result>(
            _ count: Int, _ body: (inout Budget) throws -> Result
        ) rethrows -> Result {
            let rest = max(0, left - count)
            left -= rest
            defer { left += rest }
            return try body(&self)
        }
    }

    /// Seals what a mark stands for, and before it whatever it refers to.
    /// - Returns: whether the batch goes on.
    func sealMarked(
        _ first: Unit, _ batch: inout Batch, _ tables: [RecordTable], _ budget: inout Budget, _ passed: inout Bool
    ) throws -> Bool {
        var stack = [first]
        while let unit = stack.last {
            guard !budget.isSpent else { return false }
            switch try sealUnit(unit, &batch, tables, budget) {
            case .sealed(let count, let bytes): budget.spend(count: count, bytes: bytes)
            case .done: break
            case .skip: passed = true
            case .stop: return false
            case .behind(let units):
                if try units.contains(where: isPutOff) {
                    try putOff(stack, &batch)
                    return true
                }
                batch.order.begin(unit)
                stack[stack.count - 1] = unit.readAgain
                stack += units
                continue
            }
            // A single record that came up by its own mark is not met again in this batch, and need not be remembered.
            if stack.count > 1 || unit.isGroup || !batch.order.underWay.isEmpty { batch.order.end(unit) }
            stack.removeLast()
        }
        return true
    }

    /// Whether the server had no room for it, and its time has not come.
    private func isPutOff(_ unit: Unit) throws -> Bool {
        switch unit {
        case .record(let record): try record.table.shadowHead(db, record.key)?.mark.map { $0 < 0 } ?? false
        case .group(let group): try members(of: group).contains { $0.mark.map { $0 < 0 } ?? false }
        }
    }

    /// Defers units that refer to a record for which the server has no room, until that one goes.
    private func putOff(_ units: [Unit], _ batch: inout Batch) throws {
        for unit in units {
            let records: [(table: RecordTable, key: [Cell])] =
                switch unit {
                case .record(let record): [(record.table, record.key)]
                case .group(let group): try members(of: group).map { ($0.table, $0.key) }
                }
            try Deferral.putOff(db, records)
            batch.order.end(unit)
        }
        try Deferral.noteClock(db, scope.scope)
    }

    private func sealUnit(
        _ unit: Unit, _ batch: inout Batch, _ tables: [RecordTable], _ budget: Budget
    ) throws -> Outcome {
        switch unit {
        case .group(let group):
            return try sealGroup(group, &batch, tables, limit: budget.left, isFirst: budget.isUntouched)
        case .record(let record):
            if batch.order.isEarly(record.name) { return .done }
            if batch.hasOpen, let outcome = try outcome(ofOpen: record) { return outcome }
            return try sealRecord(&batch, record)
        }
    }

    /// Nothing overtakes a record whose last edit is still without a verdict. Returns `nil` where no edit of it waits
    /// for one. A replayed edit after a loss may be put off for long, and only what depends on it stays behind it.
    func outcome(ofOpen record: Unsealed) throws -> Outcome? {
        try Outbox.isLastOpenReplayed(db, record.name, scope.scope).map { $0 ? .skip : .stop }
    }

    /// Notes in `names` the new records that an operation refers to by foreign keys and that are not sealed in this
    /// lane.
    func look(
        behind operation: Operation, _ table: RecordTable, _ key: [Cell], _ id: RecordID, _ row: [Cell],
        _ batch: inout Batch, _ names: inout NamedRecords
    ) throws {
        let own = RecordName(entity: table.shape.name, record: id.text)
        for insert in try batch.dependence.inserts(behind: operation, table.shape, id, key, row) {
            guard schema.shapes(in: scope.scope).contains(where: { $0.name == insert.unit.table.shape.name }),
                insert.place ?? "" == "" || insert.place == scope.scope.name
            else { continue }
            let name = insert.unit.name
            if batch.order.underWay.contains(name) { continue }
            if batch.hasOpen, let outcome = try outcome(ofOpen: insert.unit) {
                // On its way in another lane, where no operation of this one can name it: its verdict comes first.
                names.open = outcome
                return
            }
            if let unit = unit(of: insert, batch) {
                names.behind.append(unit)
            } else if insert.isMarked, !(insert.group.map(batch.order.groupsUnderWay.contains) ?? false),
                insert.group == nil || insert.group != batch.group
            {
                // The insert was looked at, and stays for the time being.
                names.open = .skip
                return
            } else if batch.hasBlocked, names.missing == nil, try BlockedEdits.parentWithoutID(db, of: name) != nil,
                try !isBlocked(name, for: own, batch)
            {
                names.missing = name
            }
        }
    }

    /// Returns the unit that has to be sealed before any reference to a new record; `nil` where it was looked at, or
    /// waits.
    private func unit(of insert: Dependence.Insert, _ batch: Batch) -> Unit? {
        guard !batch.order.isEarly(insert.unit.name) else { return nil }
        var record = insert.unit
        if let group = insert.group {
            // All of a group are looked at, also those that it was blocked with.
            record.goesAlong = group == batch.group
            if record.goesAlong { return .record(record) }
            let isKnown = batch.order.groupsUnderWay.contains(group) || batch.order.groupsSeen.contains(group)
            return insert.isMarked && !isKnown ? .group(group) : nil
        }
        return insert.isMarked ? .record(record) : nil
    }

    /// Whether a record is blocked, directly or not, by what is being sealed: then nothing is won by waiting for it.
    private func isBlocked(_ name: RecordName, for own: RecordName, _ batch: Batch) throws -> Bool {
        var seen: Set<RecordName> = [name]
        var next = name
        while let parent = try BlockedEdits.parentWithoutID(db, of: next), seen.insert(parent).inserted {
            if try parent == own || isUnderWay(parent, batch) { return true }
            next = parent
        }
        return false
    }

    private func isUnderWay(_ name: RecordName, _ batch: Batch) throws -> Bool {
        if batch.order.underWay.contains(name) { return true }
        guard let group = batch.group, let shape = schema[name.entity],
            let key = RecordID(name.record).flatMap(shape.key(of:))
        else { return false }
        return try RecordTable(shape).group(db, key) == group
    }
}

extension OutboxBatcher.Unit {
    var isGroup: Bool {
        switch self {
        case .group: true
        case .record: false
        }
    }
}
