import GRDB
import GRDBSQLite
import TidemarkWire

/// The one transaction that takes in an answer: verdicts, page and checkpoint commit together or not at all.
struct ApplyTransaction: Sendable {
    var answer: Answer
    var scope: Scope
    /// The checkpoint that the request named.
    var since: String?
    /// What the request told the server of applied verdicts.
    var acknowledged: [String: Int64]
    var lane: String
    var layout: Layout
    var declarations: Declarations
    var now: Int64

    /// Runs on the writer, outside any transaction: foreign keys can only be switched there.
    func run(_ db: Database) throws -> Applier.Outcome {
        if let page = answer.page { try check(page) }
        do { return try Self.withoutForeignKeys(db) { try apply(db) } } catch is PatchMismatch {
            // Nothing of the page counts; the verdicts do, and the page is asked for again with its texts whole.
            var verdicts = self
            verdicts.answer.page = nil
            var outcome = try Self.withoutForeignKeys(db) { try verdicts.apply(db) }
            outcome.wantsWhole = true
            return outcome
        }
    }

    private func check(_ page: Answer.Page) throws {
        guard page.scope == scope.name, page.since == since else {
            throw SyncError(
                .answerUnusable, "The answer belongs to another request.", hint: "It is asked for again.", scope: scope)
        }
    }

    private func apply(_ db: Database) throws -> Applier.Outcome {
        try layout.check(db, scope)
        try Flag.raise(db)
        let record = try ScopeRecord.read(db, scope)
        let applier = try Applier(db, layout: layout, record: record, declarations: declarations, now: now)
        try applier.apply(answer, since: since)
        try Flag.lower(db)
        var outcome = applier.outcome
        if outcome.pageTaken, !outcome.hasMore {
            outcome.settled = try Settling(db: db, scope: scope).settle(layout)
            outcome.settled += try SetAside.giveBack(db, layout, scope)
            try ScopeRecord.granted(db, scope)
        }
        try Quarantine(db: db, layout: layout).release()
        try Outbox.acknowledged(db, acknowledged, scope: scope, currentLane: lane)
        return outcome
    }

    /// One transaction in which children may come before their parents: the server knows no keys.
    static func withoutForeignKeys(
        _ db: Database, _ body: () throws -> Applier.Outcome
    ) throws -> Applier.Outcome {
        let wasOn = try Query(db, "PRAGMA foreign_keys").first(db) { $0.integer(0) } == 1
        if wasOn { try db.execute(sql: "PRAGMA foreign_keys = OFF") }
        // GRDB refuses statements of a cancelled task, and the app's keys must be guarded again even then.
        defer { if wasOn { sqlite3_exec(db.sqliteConnection, "PRAGMA foreign_keys = ON", nil, nil, nil) } }
        var outcome = Applier.Outcome()
        try db.inTransaction(.immediate) {
            outcome = try body()
            return .commit
        }
        return outcome
    }
}
