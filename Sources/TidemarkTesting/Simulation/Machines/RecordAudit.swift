import GRDB
import Tidemark
package import TidemarkCore
import TidemarkWire

/// Holds what devices do to their records against ``RecordMachine``: before and after each transaction of an engine,
/// every record has to stand as the machine lets it, and has to have come there by events that such a transaction may
/// bring. Edits of the app are what lies between two transactions.
///
/// Unchecked because it belongs to one thread, that of its laboratory.
final class RecordAudit: @unchecked Sendable {
    typealias States = [RecordMachines.Name: RecordMachine]

    private let tables: [SyncedTable]
    private let scopes: [Scope]
    private var reader: RecordMachines?
    private var search = RecordPaths()
    /// The world that is being played, for what is told of it.
    var seed: UInt64 = 0
    private(set) var coverage = RecordCoverage()

    init(of app: SimulatedApp) {
        tables = app.tables
        scopes = app.parts
    }

    /// How all records stand; `nil` where the tables cannot be read as things are, such as in mid-migration.
    func states(in writer: any DatabaseWriter) -> States? {
        try? writer.unsafeRead { db in
            try db.consistently { db in
                let version = try Int64.fetchOne(db, sql: "PRAGMA schema_version") ?? 0
                if reader?.schemaVersion != version || reader?.isUndeclared == true {
                    reader = try RecordMachines(db, tables: tables, scopes: scopes)
                }
                return try reader?.all(db)
            }
        }
    }

    /// - Parameters:
    ///   - before, after: what was read around one transaction.
    ///   - point: what it wrote; `nil`: edits of the app.
    func compare(_ before: States?, _ after: States?, at point: WritePoint?, in writer: any DatabaseWriter) {
        guard let before, let after else {
            coverage.unread += 1
            return
        }
        coverage.transactions += 1
        for (name, machine) in after { check(machine, name, point) }
        guard before != after else { return }
        let renamed = (try? writer.unsafeRead { db in try reader?.renamed(db) ?? [:] }) ?? [:]
        let nothing = self.nothing(before, after)
        for name in Set(before.keys).union(after.keys) {
            let new = after[name] ?? nothing(name)
            var old = before[name] ?? nothing(name)
            if before[name] == nil,
                let former = before.first(where: { entry in
                    entry.key.table == name.table && entry.key.scope == name.scope
                        && renamed[entry.key.record] == name.record && after[entry.key] == nil
                })
            {
                old = former.value
            } else if after[name] == nil, renamed[name.record] != nil {
                continue
            }
            follow(from: old, to: new, name, point)
        }
    }

    /// Of a record that a file says nothing about only the scope is known.
    private func nothing(_ before: States, _ after: States) -> (RecordMachines.Name) -> RecordMachine {
        { name in
            var machine = RecordMachine()
            guard let known = before[name] ?? after[name] else { return machine }
            (machine.access, machine.identity) = (known.access, known.identity)
            machine.capture = known.capture == .unseen ? .watched : known.capture
            return machine
        }
    }

    private func check(_ machine: RecordMachine, _ name: RecordMachines.Name, _ point: WritePoint?) {
        guard coverage.states.insert(machine).inserted || !machine.broken.isEmpty else { return }
        for coupling in machine.broken {
            find("\(coupling.number) \(coupling) after \(point?.rawValue ?? "edits"): \(machine.outline)", name)
        }
    }

    private func follow(
        from old: RecordMachine, to new: RecordMachine, _ name: RecordMachines.Name, _ point: WritePoint?
    ) {
        guard old != new, old.broken.isEmpty, new.broken.isEmpty else { return }
        guard let path = search.path(from: old, to: new, at: point) else {
            return find("no way after \(point?.rawValue ?? "edits"): \(old.outline) -> \(new.outline)", name)
        }
        coverage.note(path, from: old)
    }

    private func find(_ what: String, _ name: RecordMachines.Name) {
        coverage.findings[what, default: .init(count: 0, seed: seed, name: "\(name)")].count += 1
    }
}

/// The cells and couplings that worlds came to.
package struct RecordCoverage: Sendable {
    package struct Finding: Sendable {
        package var count: Int
        /// The first world that came to it, and the record there.
        package var seed: UInt64
        package var name: String
    }

    package var transactions = 0
    /// Transactions around which the tables could not be read.
    package var unread = 0
    package var states: Set<RecordMachine> = []
    /// How often each event was found in each state of each region, by ``RecordCell``.
    package var cells: [RecordCell: Int] = [:]
    package var couplings: [RecordMachine.Coupling: Int] = [:]
    package var lengths: [Int: Int] = [:]
    package var findings: [String: Finding] = [:]

    mutating func note(_ path: [RecordMachine.Event], from start: RecordMachine) {
        lengths[path.count, default: 0] += 1
        var machine = start
        for event in path {
            for cell in RecordCell.all(of: machine, event) { cells[cell, default: 0] += 1 }
            _ = machine.handle(event) { couplings[$0, default: 0] += 1 }
        }
    }

    package init() {}

    package mutating func add(_ other: Self) {
        transactions += other.transactions
        unread += other.unread
        states.formUnion(other.states)
        cells.merge(other.cells, uniquingKeysWith: +)
        couplings.merge(other.couplings, uniquingKeysWith: +)
        lengths.merge(other.lengths, uniquingKeysWith: +)
        findings.merge(other.findings) { left, right in
            var both = left.seed <= right.seed ? left : right
            both.count = left.count + right.count
            return both
        }
    }
}
