import GRDB
import TidemarkCore
import TidemarkWire

// MARK: - An exchange's answer

extension ScopeDriver {
    /// The least time between two looks for old history, in milliseconds. A look goes through all of it, which a push
    /// of thousands of requests should not do for each of them.
    private static let pruneInterval: Int64 = 60_000

    func applyAnswer(_ transaction: ApplyTransaction) async throws -> Applied {
        let prune = transaction.now.saturatingSubtracting(configuration.finishedRetention.milliseconds)
        let packsAll = !hasPacked
        let mayPrune = lastPrune.map { !($0..<$0 + Self.pruneInterval).contains(transaction.now) } ?? true
        let (outcome, hasPacked, isPending, remedy) = try await keepingMeasures { measured, committed in
            try await self.file.writeWithoutTransaction(at: .apply) { db in
                var transaction = transaction
                transaction.measured = measured
                let outcome = try transaction.run(db)
                committed()
                // The verdicts are committed: a failed packing can wait for the next one.
                let pack: ()? =
                    outcome.verdicts > 0
                    ? try? db.committed { try transaction.pack($0, all: packsAll) } : nil
                if outcome.pageTaken, !outcome.hasMore {
                    if mayPrune { try Outbox.prune(db, transaction.scope, before: prune) }
                    try DeletedRowCache.prune(db, transaction.schema, now: transaction.now)
                    try Alias.prune(db, now: transaction.now)
                }
                let isPending = try Pending.exists(db, transaction.schema, transaction.scope)
                let heard = transaction.answer.remedy == nil ? nil : try RemedyMachine.read(db, transaction.scope)
                return (outcome, pack != nil, isPending, heard)
            }
        }
        measuring.stage = .finalize
        if hasPacked { self.hasPacked = true }
        if mayPrune, outcome.pageTaken, !outcome.hasMore { lastPrune = transaction.now }
        let decided = try await database { try await self.decider.decide(transaction.schema) }
        takesDifferences = !outcome.wantsWhole && (takesDifferences || !outcome.hasMore && outcome.pageTaken)
        count(outcome)
        let isAsked = isNew(remedy)
        // Pending edits go on at once if this round got something done; else they wait for the tick.
        let goesOn =
            isAsked || hasMoreToFetch || outcome.refetch + decided > 0
            || isPending && (outcome.verdicts > outcome.deferred || outcome.editsMade > 0)
        return Applied(
            hasMore: outcome.hasMore, isTaken: outcome.pageTaken, goesOn: goesOn,
            isOwed: isAsked || outcome.refetch + decided + outcome.editsMade > 0, deferral: outcome.deferral)
    }
}
