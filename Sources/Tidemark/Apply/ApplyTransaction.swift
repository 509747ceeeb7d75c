import GRDB
import TidemarkCore
import TidemarkWire

/// The one transaction that takes in an answer: verdicts, page and checkpoint commit together or not at all.
struct ApplyTransaction: Sendable {
    var answer: Answer
    var scope: Scope
    /// The checkpoint that the request named.
    var since: String?
    /// The applied verdicts that the request acknowledged.
    var acknowledged: [String: Int64]
    var lane: String
    var schema: SyncSchema
    var declarations: Declarations
    var now: Int64
    /// The operations that this process has sealed in runs of the first capture.
    var seeds: [OperationKey: SealedSeed] = [:]
    /// What was measured until now, to be kept with this answer's own part.
    var measured = SyncMeasures()
    /// How many finished operations are worth a block of the history.
    var leastBlock = Int.max

    /// Runs on the writer, outside any transaction.
    func run(_ db: Database) throws -> Applier.Outcome {
        if let page = answer.page { try check(page) }
        do { return try commit(db) } catch is DifferenceMismatch {
            // Nothing of the page counts; the verdicts do, and the page is asked for again with whole rows.
            var verdicts = self
            verdicts.answer.page = nil
            var outcome = try verdicts.commit(db)
            outcome.wantsWhole = true
            return outcome
        }
    }

    /// Moves what the answer has finished into blocks.
    ///
    /// - Parameter all: whether lanes of earlier openings of the file are looked at too.
    func pack(_ db: Database, all: Bool) throws {
        let lanes = Set(answer.results.map(\.key.lane))
        try OutboxHistory.pack(db, scope, lanes: lanes, least: leastBlock)
        if all { try OutboxHistory.packOthers(db, scope, than: lanes, least: leastBlock) }
    }

    /// An answer that leaves the app's tables alone goes without the turn of a switch (``ConnectionSwitch``).
    private func commit(_ db: Database) throws -> Applier.Outcome {
        if answer.isQuiet {
            do { return try db.committed { try applyAnswer($0, mayWriteRows: false) } } catch is RowsToWrite {}
        }
        return try Self.withoutForeignKeys(db) { try applyAnswer(db, mayWriteRows: true) }
    }

    private func check(_ page: Answer.Page) throws {
        guard page.scope == scope.name, page.since == since else {
            throw SyncError(
                .answerUnusable, "The answer belongs to another request.", hint: "It is asked for again.", scope: scope)
        }
    }

    private func applyAnswer(_ db: Database, mayWriteRows: Bool) throws -> Applier.Outcome {
        try schema.check(db, scope)
        try CaptureSuppression.raise(db)
        let record = try ScopeRecord.read(db, scope)
        let applier = try Applier(
            db, schema: schema, record: record, declarations: declarations, now: now, keepsFirstCapture: !mayWriteRows)
        (applier.mayWriteRows, applier.seeds) = (mayWriteRows, seeds)
        if !mayWriteRows { try applier.collectTaken(of: answer.results, least: leastBlock) }
        try applier.apply(answer, since: since)
        if let remedy = answer.remedy { try RemedyMachine.handle(remedy, db, scope, now: now) }
        try CaptureSuppression.lower(db)
        var outcome = applier.outcome
        if outcome.pageTaken, !outcome.hasMore {
            let cascadeRepair = CascadeRepair(db: db, scope: scope, now: now)
            if try !mayWriteRows && (cascadeRepair.isDue() || OrphanedEdits.isAny(db, scope)) { throw RowsToWrite() }
            let listed: Int
            (outcome.editsMade, listed) = try cascadeRepair.repair(schema)
            outcome.conflicts += listed
            outcome.editsMade += try OrphanedEdits.replay(db, schema, scope, applier.identity)
            try ScopeRecord.granted(db, scope)
        }
        try BlockedEdits(db: db, schema: schema).release()
        // Each request names the verdicts that the checkpoint does not cover yet. A server that was restored to a time
        // before one of them notices by that.
        if try KnownVersions.isEmpty(db, scope) {
            try Outbox.acknowledged(db, acknowledged, scope: scope, currentLane: lane)
        }
        try measured.adding(outcome).store(db, now: now)
        return outcome
    }

    /// Runs a transaction in which children may come before their parents, because the server knows no foreign keys.
    static func withoutForeignKeys(
        _ db: Database, _ body: () throws -> Applier.Outcome
    ) throws -> Applier.Outcome {
        try ConnectionSwitch.foreignKeys.off(db) { try db.committed { _ in try body() } }
    }
}

extension Answer {
    /// Whether it only confirms what was sent, and brings nothing.
    fileprivate var isQuiet: Bool {
        let brings = page.map { body[$0.changes].contains(UInt8(ascii: "{")) } ?? false
        return !brings && results.allSatisfy { $0.verdict.isPlain && $0.verdict.id == nil }
    }
}
