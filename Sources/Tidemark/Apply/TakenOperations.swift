import GRDB
import TidemarkWire

/// Operations of one answer that the server took as they were sent. They are read at once, and go straight into blocks
/// of the history: a row of the outbox that is first finished and then moved is written three times.
struct TakenOperations {
    /// Operations of one lane that have no verdict yet, by their numbers from the first on.
    private struct Lane {
        let first: Int64
        var operations: [OutboxBlock.Operation?]

        /// The difference cannot overflow, because numbers begin at 1.
        private func place(_ number: Int64) -> Int? {
            let place = Int(number - first)
            return operations.indices.contains(place) ? place : nil
        }

        func operation(_ number: Int64) -> OutboxBlock.Operation? { place(number).flatMap { operations[$0] } }

        mutating func remove(_ number: Int64) -> OutboxBlock.Operation? {
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
    mutating func next(_ key: OperationKey) -> OutboxBlock.Operation? { open[key.lane]?.remove(key.number) }

    /// The record of one that `next` would take out.
    func name(_ key: OperationKey) -> RecordName? { open[key.lane]?.operation(key.number)?.name }

    mutating func append(_ operation: OutboxBlock.Operation, at version: Version, lane: String, now: Int64) {
        blocks[lane, default: []].append(operation.taken(at: version, now: now))
    }
}
