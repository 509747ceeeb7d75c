import GRDB
import TidemarkWire

/// Operations of one answer that the server took as they were sent. They are read at once, and go straight into blocks
/// of the history: a row of the outbox that is first finished and then moved is written three times.
struct TakenOperations {
    /// Operations of one lane that have no verdict yet, by their numbers from the first on.
    private struct Lane {
        let first: Int64
        var operations: [OutboxBlock.Operation?]

        /// Numbers begin at 1.
        private func place(_ number: Int64) -> Int? {
            let place = Int(number - first)
            return operations.indices.contains(place) ? place : nil
        }

        func operation(_ number: Int64) -> OutboxBlock.Operation? { place(number).flatMap { operations[$0] } }

        mutating func take(_ number: Int64) -> OutboxBlock.Operation? {
            guard let place = place(number) else { return nil }
            defer { operations[place] = nil }
            return operations[place]
        }
    }

    private var open: [String: Lane] = [:]
    /// Those to be moved, by lane, oldest first.
    private(set) var blocks: [String: [OutboxBlock.Operation]] = [:]
    /// The runs of the first capture that were dropped before their verdicts are looked at one by one.
    var droppedRuns: Set<Int64> = []

    init(_ db: Database, _ results: [Answer.Result]) throws {
        var named: [String: (numbers: ClosedRange<Int64>, count: Int64)] = [:]
        for key in results.lazy.map(\.key) {
            let known = named[key.lane] ?? (key.number...key.number, 0)
            let first = min(known.numbers.lowerBound, key.number)
            named[key.lane] = (first...max(known.numbers.upperBound, key.number), known.count + 1)
        }
        for (lane, (numbers, count)) in named {
            let (first, last) = (numbers.lowerBound, numbers.upperBound)
            // One by one where the answer leaves out more than it names.
            guard last - first < 2 * count else { continue }
            var operations = [OutboxBlock.Operation?](repeating: nil, count: Int(last - first) + 1)
            for operation in try Outbox.packable(db, lane: lane, numbers: numbers) {
                operations[Int(operation.number - first)] = operation
            }
            open[lane] = Lane(first: first, operations: operations)
        }
    }

    /// Takes an operation out, once; `nil` where it has a verdict, or cannot go into a block.
    mutating func next(_ key: OperationKey) -> OutboxBlock.Operation? { open[key.lane]?.take(key.number) }

    /// The record of one that `next` would take out.
    func name(_ key: OperationKey) -> RecordName? { open[key.lane]?.operation(key.number)?.name }

    mutating func append(_ operation: OutboxBlock.Operation, at version: Version, lane: String, now: Int64) {
        blocks[lane, default: []].append(operation.taken(at: version, now: now))
    }
}

extension Applier {
    /// Collects operations that the server took, unless the history has to look at single ones.
    ///
    /// - Parameter least: how many are worth a block.
    func collectTaken(of results: [Answer.Result], least: Int) throws {
        guard results.count >= least, try OutboxHistory.mayPackAtOnce(db, scope) else { return }
        taken = try TakenOperations(db, results)
    }

    /// Drops runs of the first capture of which the server took all rows as they were sent, and that nobody has touched
    /// since. Each of these operations meets the conditions of `applyPlain`. Where there is more to an answer, the rows
    /// of all runs are looked at one by one.
    func dropRuns(_ results: [Answer.Result]) throws {
        guard !results.isEmpty, try SealedRun.isAny(db) else { return }
        for (run, (entity, count)) in try takenRuns(results) {
            guard let table = tables[entity], try SealedRun.drop(db, table.shape, run, taken: count) else { continue }
            taken?.droppedRuns.insert(run)
        }
        guard results.allSatisfy({ isDropped($0.key) }) else { return try SealedRun.unfold(db, schema) }
    }

    /// Whether an operation's run was dropped.
    func isDropped(_ key: OperationKey) -> Bool {
        seeds[key].flatMap { taken?.droppedRuns.contains($0.run) } ?? false
    }

    /// How many rows of each run the server took as they were sent.
    private func takenRuns(_ results: [Answer.Result]) throws -> [Int64: (entity: String, count: Int)] {
        guard let taken, !hadKnownVersions, try !isBringingBack.get() else { return [:] }
        var runs: [Int64: (entity: String, count: Int)] = [:]
        var counted: Set<OperationKey> = []
        for result in results where result.verdict.isPlain && counted.insert(result.key).inserted {
            guard let seed = seeds[result.key], let name = taken.name(result.key),
                result.verdict.version ?? -1 > record.complete(of: name.entity) ?? -1
            else { continue }
            runs[seed.run, default: (name.entity, 0)].count += 1
        }
        return runs
    }

    func finishTaken() throws {
        guard let taken else { return }
        self.taken = nil
        for (lane, operations) in taken.blocks { try OutboxHistory.pack(db, scope, lane, operations) }
    }

    /// What is on screen is what the server has now.
    ///
    /// - Parameter hash: the row's, where it is known.
    func noteConfirmed(_ table: ApplyTable, _ id: RecordID, _ key: [Cell], hash: UInt64?) throws {
        // Where nothing is written to the app's tables the row stays as it is now.
        guard !mayWriteRows else { return manifest.look(table.shape.name, id) }
        if let hash { return manifest.note(table.shape.name, PackedID.encode(id), hash: hash) }
        guard let row = try table.records.row(db, key), table.shape.scope(ofKey: key, row) == scope
        else { return manifest.look(table.shape.name, id) }
        table.note(id, row, in: &manifest)
    }
}
