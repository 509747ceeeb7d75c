import GRDB
import TidemarkWire

/// What is done in the file when a scope is up to date: what was kept for long enough goes, and finished inserts are
/// packed.
struct Upkeep: Sendable {
    private let transaction: ApplyTransaction
    /// Operations that were finished before this moment go, in milliseconds since 1970.
    private let prune: Int64
    /// How many inserts are packed together at least.
    private let minimum: Int
    /// The last operation that was looked at.
    private let start: Int64

    init(_ transaction: ApplyTransaction, _ configuration: SyncConfiguration, from start: Int64) {
        self.transaction = transaction
        self.start = start
        prune = transaction.now - configuration.finishedRetention.milliseconds
        minimum = configuration.packedTogether
    }

    /// Runs on the writer, outside any transaction. Returns the last operation that was looked at.
    func run(_ db: Database, after outcome: Applier.Outcome) throws -> Int64 {
        guard outcome.pageTaken, !outcome.hasMore else { return start }
        let (scope, layout) = (transaction.scope, transaction.layout)
        try Outbox.prune(db, scope, before: prune)
        try FinishedInserts.prune(db, scope, before: prune)
        try KeptRecords.prune(db, layout, now: transaction.now)
        try Alias.prune(db, now: transaction.now)
        guard try Outbox.hasFinishedInserts(db, scope, after: start, minimum) else { return start }
        return try db.committed { db in
            // A schema that has changed since is looked at before the next exchange.
            guard (try? layout.check(db, scope)) != nil else { return start }
            let record = try ScopeRecord.read(db, scope)
            guard record.isFilled, let complete = record.complete else { return start }
            return try FinishedInserts(db: db)
                .pack(layout, transaction.declarations, scope, complete: complete, after: start, minimum: minimum)
        }
    }
}
