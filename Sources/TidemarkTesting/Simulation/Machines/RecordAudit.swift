package import GRDB
import Synchronization
package import Tidemark
import TidemarkCore

/// Holds what devices do to their records against ``RecordMachine``: before and after each transaction of an engine,
/// every record has to stand as the machine lets it, and has to have come there by events that such a transaction may
/// bring. Edits of the app are what lies between two transactions.
@available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
package final class RecordAudit: Sendable {
    fileprivate struct State {
        var search = RecordPaths()
        var coverage = RecordCoverage()
        var world = ""
    }

    /// The readings before and after one transaction.
    struct Change {
        var before, after: RecordMachines.Reading
        /// The kind of write that the transaction was; `nil`: edits of the app.
        var point: WritePoint?
        /// Temporary ids that the server's have taken the place of.
        var renamed: [String: String]
        /// The verdicts that each record's operations may have had that are open no more.
        var verdicts: [RecordMachines.Name: Set<RecordMachine.Verdict>]
    }

    private let state = Mutex(State())
    /// Faults that it is tried with.
    let trial: RecordFaultTrial?

    package init(trial: RecordFaultTrial? = nil) { self.trial = trial }

    package var coverage: RecordCoverage { state.withLock { $0.coverage } }

    /// From here on findings are those of this world.
    package func begin(_ world: String) { state.withLock { $0.world = world } }

    func noteUnread() { state.withLock { $0.coverage.unread += 1 } }

    /// Whether something is found in a change.
    func finds(_ change: Change) -> Bool {
        func found() -> Int { state.withLock { $0.coverage.findings.values.reduce(0) { $0 + $1.count } } }
        let before = found()
        compare(change)
        return found() > before
    }

    func compare(_ change: Change) {
        state.withLock { state in
            state.coverage.transactions += 1
            for (name, machine) in change.after.machines { state.check(machine, name, change.point) }
            for (name, old, new) in change.moves where old != new {
                state.follow(from: old, to: new, name, change.point, change.verdicts[name] ?? [])
            }
        }
    }
}

@available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
extension RecordAudit.State {
    mutating func check(_ machine: RecordMachine, _ name: RecordMachines.Name, _ point: WritePoint?) {
        guard coverage.states.insert(machine).inserted || !machine.broken.isEmpty else { return }
        for coupling in machine.broken {
            find("\(coupling.text) after \(point?.rawValue ?? "edits"): \(machine.outline)", name)
        }
    }

    mutating func follow(
        from old: RecordMachine, to new: RecordMachine, _ name: RecordMachines.Name, _ point: WritePoint?,
        _ verdicts: Set<RecordMachine.Verdict>
    ) {
        guard old.broken.isEmpty, new.broken.isEmpty else { return }
        guard let paths = search.paths(.init(from: old, to: new, point: point, verdicts: verdicts)) else {
            let said = verdicts.map { "\($0)" }.sorted().joined(separator: "/")
            return find(
                "no path after \(point?.rawValue ?? "edits") \(said): \(old.outline) -> \(new.outline)", name)
        }
        coverage.note(paths, in: world)
    }

    private mutating func find(_ what: String, _ name: RecordMachines.Name) {
        coverage.findings[what, default: .init(count: 0, world: world, name: "\(name)")].count += 1
    }
}

@available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
extension RecordAudit.Change {
    /// How each record stood, and stands.
    fileprivate var moves: [(name: RecordMachines.Name, old: RecordMachine, new: RecordMachine)] {
        let (before, after) = (self.before.machines, self.after.machines)
        guard before != after else { return [] }
        return Set(before.keys).union(after.keys).compactMap { name in
            guard self.before.tables.contains(name.table), self.after.tables.contains(name.table) else { return nil }
            if before[name] == nil || after[name] == nil, holdsRenamed(name.record) { return nil }
            if after[name] == nil, self.after.uncaptured.contains(name.table) { return nil }
            let new = after[name] ?? nothing(name)
            if let old = before[name] {
                let isRenamed = after[name] == nil && renamed[name.record] != nil
                return isRenamed ? nil : (name, old, new)
            }
            let former = before.first { entry in
                entry.key.table == name.table && entry.key.scope == name.scope
                    && renamed[entry.key.record] == name.record && after[entry.key] == nil
            }
            return (name, former?.value ?? nothing(name), new)
        }
    }

    /// Whether an id that another one has taken the place of is a part of the record's own.
    private func holdsRenamed(_ record: String) -> Bool {
        renamed.contains { temporary, given in
            record != temporary && record != given && (record.contains(temporary) || record.contains(given))
        }
    }

    /// A record that the file does not name has only its scope's state.
    private func nothing(_ name: RecordMachines.Name) -> RecordMachine {
        var machine = RecordMachine()
        guard let known = before.machines[name] ?? after.machines[name] else { return machine }
        (machine.access, machine.identity) = (known.access, known.identity)
        machine.capture = known.capture == .unseen ? .watched : known.capture
        return machine
    }
}

/// Reads the records of one file around each transaction, for an audit.
///
/// Unchecked because whoever writes to the file does so in turn, and no one else uses it.
@available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
package final class RecordWatch: @unchecked Sendable {
    private let audit: RecordAudit
    /// All rows are read twice for each transaction: a file with more of them is left alone.
    private static let rowLimit = 200
    private var reader: RecordMachines?
    /// How records stood after the last transaction.
    private var last: RecordMachines.Reading?

    package init(_ audit: RecordAudit) { self.audit = audit }

    /// Does `body`, in which one transaction of an engine is made.
    package func around<Result>(
        _ db: Database, at point: WritePoint, _ body: (Database) throws -> Result
    ) throws -> Result {
        let before = read(db)
        // All that is written between two transactions is the app's edits.
        if let last { compare(db, last, before, at: nil) }
        last = nil
        let result = try body(db)
        last = read(db)
        compare(db, before, last, at: point)
        if let trial = audit.trial, let last { try plant(trial, db, over: last) }
        return result
    }

    private func plant(_ trial: RecordFaultTrial, _ db: Database, over whole: RecordMachines.Reading) throws {
        for fault in RecordFault.all where trial.isOpen(fault) {
            try db.inTransaction {
                if try fault.plant(db), let planted = try reader?.all(db, rowLimit: Self.rowLimit) {
                    trial.note(fault, change(db, whole, planted, at: nil))
                }
                return .rollback
            }
        }
    }

    /// `nil` where the file cannot be read as things are.
    private func read(_ db: Database) -> RecordMachines.Reading? {
        try? db.consistently { db in
            if try reader?.isCurrent(db) != true { reader = try RecordMachines(db) }
            return try reader?.all(db, rowLimit: Self.rowLimit)
        }
    }

    private func compare(
        _ db: Database, _ before: RecordMachines.Reading?, _ after: RecordMachines.Reading?, at point: WritePoint?
    ) {
        guard let before, let after, !before.tables.isEmpty, !after.tables.isEmpty, reader != nil else {
            return audit.noteUnread()
        }
        audit.compare(change(db, before, after, at: point))
    }

    private func change(
        _ db: Database, _ before: RecordMachines.Reading, _ after: RecordMachines.Reading, at point: WritePoint?
    ) -> RecordAudit.Change {
        var change = RecordAudit.Change(before: before, after: after, point: point, renamed: [:], verdicts: [:])
        guard before.machines != after.machines, let reader else { return change }
        change.renamed = (try? reader.renamed(db)) ?? [:]
        for (operation, name) in before.operations where after.operations[operation] == nil {
            var name = name
            name.record = change.renamed[name.record] ?? name.record
            let verdicts = try? reader.verdicts(db, on: operation)
            change.verdicts[name, default: []].formUnion(verdicts ?? Set(RecordMachine.Verdict.allCases))
        }
        return change
    }
}
