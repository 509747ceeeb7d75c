import GRDB
import TidemarkWire

extension Applier {
    /// Collects operations that the server took, unless the history has to look at single ones.
    ///
    /// - Parameter least: how many are worth a block.
    func collectTaken(of results: [Answer.Result], least: Int) throws {
        guard results.count >= least, try OutboxHistory.mayPackAtOnce(db, scope) else { return }
        taken = try TakenOperations(db, results)
    }

    /// Drops runs of the first capture of which the server took all rows as they were sent, and of which no row was
    /// edited since. Each of these operations meets the conditions of `applyPlain`. Where there is more to an answer,
    /// the rows of all runs are looked at one by one.
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
        guard let taken, !hadKnownVersions, try !isReplaying.get() else { return [:] }
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

    /// Notes in the manifest that the server has the row as it is on screen.
    ///
    /// - Parameter hash: the row's, where it is known.
    func noteConfirmed(_ table: ApplyTable, _ id: RecordID, _ key: [Cell], hash: UInt64?) throws {
        // Where nothing is written to the app's tables the row stays as it is now.
        guard !mayWriteRows else { return manifest.look(table.shape.name, id) }
        if let hash { return manifest.note(table.shape.name, PackedID.encode(id), hash: hash) }
        guard let row = try table.records.row(db, key), table.shape.scope(ofKey: key, row) == scope
        else { return manifest.look(table.shape.name, id) }
        table.noteHash(id, row, in: &manifest)
    }
}
