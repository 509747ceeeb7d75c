import GRDB
import TidemarkWire

/// Operations of one answer that the server took as they were sent. They are read at once, and go straight into blocks
/// of the history: a row of the outbox that is first finished and then moved is written three times.
struct TakenOperations {
    /// Those that have no verdict yet.
    private var open: [OperationKey: OutboxBlock.Operation] = [:]
    /// Those to be moved, by lane, oldest first.
    private(set) var blocks: [String: [OutboxBlock.Operation]] = [:]

    init(_ db: Database, _ results: [Answer.Result]) throws {
        for (lane, results) in Dictionary(grouping: results, by: \.key.lane) {
            let numbers = results.map(\.key.number)
            // One by one where the answer leaves out more than it names.
            guard let first = numbers.min(), let last = numbers.max(), last - first < 2 * numbers.count else {
                continue
            }
            for operation in try Outbox.packable(db, lane: lane, numbers: first...last) {
                open[OperationKey(lane: lane, number: operation.number)] = operation
            }
        }
    }

    /// Takes an operation out, once; `nil` where it has a verdict, or cannot go into a block.
    mutating func next(_ key: OperationKey) -> OutboxBlock.Operation? { open.removeValue(forKey: key) }

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

    func finishTaken() throws {
        guard let taken else { return }
        self.taken = nil
        for (lane, operations) in taken.blocks { try OutboxHistory.pack(db, scope, lane, operations) }
    }

    /// What is on screen is what the server has now.
    func noteConfirmed(_ table: ApplyTable, _ id: RecordID, _ key: [Cell]) throws {
        // Where nothing is written to the app's tables the row stays as it is now.
        guard !mayWriteRows, let row = try table.records.row(db, key), table.shape.scope(ofKey: key, row) == scope
        else { return manifest.look(table.shape.name, id) }
        table.note(id, row, in: &manifest)
    }
}
