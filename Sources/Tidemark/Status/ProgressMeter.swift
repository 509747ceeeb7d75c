import GRDB
import TidemarkCore
import TidemarkWire

/// Sums up the progress of all scopes. Unsent edits are counted in the file at most once in a while, and in
/// between by what was answered: counting a million of them behind each page would cost more than the page.
struct ProgressMeter: Hashable, Sendable {
    /// Milliseconds between two counts.
    private static let pause: Int64 = 1000

    private var unsent = 0
    /// The edits that had been answered when the unanswered ones were counted.
    private var answered = 0
    private var countedAt: Instant?
    /// The rows of fillings that came before these counts began.
    private var earlier = 0
    /// The counts when nothing was left the last time: what follows is another stretch of work.
    private var base = SyncReport.Counts()
    private var rest: SyncReport.Counts?

    /// Whether unsent edits have to be counted now: after a while, at the end, and where more were answered than
    /// had been counted, since the rows of a first capture wait only once they are captured.
    func isDue(_ counts: SyncReport.Counts, now: Instant, isBusy: Bool) -> Bool {
        guard isBusy, let countedAt else { return true }
        return now - countedAt >= Self.pause || counts.pushed - answered > unsent
    }

    mutating func counted(_ unsent: Int, answered: Int, now: Instant) {
        (self.unsent, self.answered, countedAt) = (unsent, answered, now)
    }

    mutating func progress(
        _ counts: SyncReport.Counts, _ fillings: [SyncStatus.Bootstrap], isBusy: Bool
    ) -> SyncProgress {
        let left = max(0, unsent - max(0, counts.pushed - answered))
        begin(counts, isBusy: isBusy)
        if !isBusy, left == 0, fillings.isEmpty { rest = counts }
        let (sent, came) = (counts.pushed - base.pushed, counts.received - base.received)
        let isCounted = !fillings.isEmpty && fillings.allSatisfy { $0.total != nil }
        // Rows that came beside the fillings are neither done nor left of a filling.
        let filled = fillings.reduce(0) { $0 + $1.rows }
        earlier = max(earlier, filled - came)
        let received = came + earlier
        let total = isCounted ? fillings.reduce(received - filled) { $0 + max($1.rows, $1.total ?? 0) } : nil
        return SyncProgress(
            sent: .init(done: sent, total: sent + left),
            received: .init(done: received, total: total), entity: fillings.lazy.compactMap(\.entity).first,
            isBusy: isBusy)
    }

    /// Counts from nothing where the counts begin anew, and where work begins after a rest.
    private mutating func begin(_ counts: SyncReport.Counts, isBusy: Bool) {
        if counts.pushed < base.pushed || counts.received < base.received {
            (base, rest, earlier) = (SyncReport.Counts(), nil, 0)
        } else if isBusy, let rest {
            (base, self.rest, earlier) = (rest, nil, 0)
        }
    }

    /// The edits that go by themselves: pending, sent, or inferred and not compared yet.
    static func count(_ db: Database) throws -> Int {
        guard try LibrarySchema.isInstalled(db) else { return 0 }
        return try Pending.marks(db).count + Outbox.countOpen(db) + Inferred.countDue(db)
    }

    /// The scopes that are being filled, and how far that has come.
    static func fillings(_ db: Database, _ scopes: [Scope]) throws -> [SyncStatus.Bootstrap] {
        guard try LibrarySchema.isInstalled(db) else { return [] }
        return try scopes.compactMap { scope in
            try Bootstrap.read(db, scope).map { try SyncStatus.Bootstrap($0, db) }
        }
    }
}
