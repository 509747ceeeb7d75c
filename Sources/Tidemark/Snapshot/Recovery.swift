import GRDB
import TidemarkCore
import TidemarkWire

/// Recovers when the server cannot go on from this device's checkpoint. The scope is filled anew and the outbox stays
/// in any case; where the server has lost history, all that is remembered of that history is forgotten, and what was
/// done here in it is replayed.
struct Recovery: Sendable {
    var scope: Scope
    var schema: SyncSchema
    var declarations: Declarations
    /// A new one, for replayed edits.
    var lane: String
    var now: Int64

    /// Takes in a refusal. Runs on the writer, outside any transaction.
    func begin(_ db: Database, after problem: Problem?) throws {
        try inTransaction(db) {
            switch problem?.code {
            case .checkpointExpired where problem?.reason == .epoch || problem?.reason == .ahead:
                try lose(db, after: problem?.survived ?? 0, epoch: problem?.epoch, lanes: problem?.lanes)
            case .invalidCheckpoint:
                // Which history the server has cannot be told from this, so nothing that is remembered counts.
                try lose(db, after: 0, epoch: nil, lanes: nil)
            default: try Bootstrap.begin(db, scope, asking: nil)
            }
        }
    }

    /// Begins to fill the scope anew since the operator wants it. A filling that is under way is as good.
    func refill(_ db: Database) throws {
        try inTransaction(db) {
            if try Bootstrap.read(db, scope) == nil { try Bootstrap.begin(db, scope, asking: nil) }
            try RemedyMachine.handle(.refillBegan, db, scope, now: now)
            // The operator may have seen that bytes of attachments are lost.
            try Blob.doubt(db, scope, now: now)
        }
    }

    /// Takes in the answer to a ``LossProbe``.
    func answered(_ db: Database, _ outcome: LossProbe.Outcome) throws {
        try inTransaction(db) {
            guard var bootstrap = try Bootstrap.read(db, scope), let asked = bootstrap.asking else { return }
            var record = try ScopeRecord.read(db, scope)
            let lossRecovery = lossRecovery(db)
            // Versions are forgotten even if no lane's end is missing: operations that a restored server had not yet
            // taken may have come to it a second time.
            switch outcome {
            case .kept(let epoch):
                // A snapshot that names another history than this one is asked about again.
                let complete = record.complete ?? 0
                let isKnown = epoch.map { Epoch.contains(complete, of: asked, in: $0) } ?? true
                record.epoch = epoch
                try HistoryReset(db: db, schema: schema).forget(&record, after: isKnown ? complete : 0)
                try record.write(db)
            case .lost(let problem):
                record.epoch = problem.epoch
                try HistoryReset(db: db, schema: schema).forget(&record, after: problem.survived ?? 0)
                try record.write(db)
                try lossRecovery.replay(
                    scope, above: problem.lanes ?? [:], lostEpoch: asked.nonEmpty,
                    lane: lane)
                bootstrap.hasLost = true
            }
            bootstrap.asking = nil
            try bootstrap.write(db)
        }
    }

    private func lose(_ db: Database, after survived: Version, epoch: String?, lanes: [String: Int64]?) throws {
        var record = try ScopeRecord.read(db, scope)
        let lost = record.bootstrap?.asking ?? record.epoch ?? ""
        // Where all that is known here survived, a record that a snapshot lacks was deleted: it is not on its way back.
        let newest = try max(record.complete ?? .max, KnownVersions.newest(db, scope) ?? 0)
        let hasLost = record.bootstrap != nil || newest > survived
        let lossRecovery = lossRecovery(db)
        try HistoryReset(db: db, schema: schema).forget(&record, after: survived)
        record.epoch = epoch
        try record.write(db)
        if let lanes {
            try lossRecovery.replay(scope, above: lanes, lostEpoch: lost.nonEmpty, lane: lane)
        }
        let hasToAsk = try lanes == nil && LossProbe.hasSomethingToLose(db, scope)
        try Bootstrap.begin(db, scope, asking: hasToAsk ? lost : nil, hasLost: hasLost)
    }

    private func lossRecovery(_ db: Database) -> LossRecovery {
        LossRecovery(db: db, schema: schema, declarations: declarations, now: now)
    }

    private func inTransaction(_ db: Database, _ body: () throws -> Void) throws {
        _ = try ApplyTransaction.withoutForeignKeys(db) {
            try schema.check(db, scope)
            try Inferred.checkCompared(db, scope)
            try CaptureSuppression.whileApplying(db, schema, body)
            return Applier.Outcome()
        }
    }
}

extension String {
    fileprivate var nonEmpty: String? { isEmpty ? nil : self }
}
