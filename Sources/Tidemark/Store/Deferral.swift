import GRDB
import TidemarkCore
import TidemarkWire

/// Edits that the server has no room for (`quota_exceeded`): they stay in their rows and wait, for longer each time,
/// and everything else goes on (I14). The marks of records that wait are negative.
struct Deferral: Hashable, Sendable {
    /// When they are sent again, in milliseconds since 1970.
    var until: Int64
    /// How often in a row they were put off.
    var attempts: Int
    /// The clock of edits as of then: a record that was edited since is sent at once.
    var clock: Int64
    /// The server's explanation, and the remedy.
    var detail, hint: String

    /// Waits of 30 s, doubled each time, and up to as much again at random; none is longer than 15 minutes.
    private static let backoff: Backoff = {
        var backoff = Backoff()
        (backoff.baseMilliseconds, backoff.jitterMilliseconds) = (30_000, 10_000)
        return backoff
    }()

    func error(in scope: Scope) -> SyncError {
        SyncError(
            .quotaExceeded, "The server has no room for what was added: \(detail)",
            hint: hint, scope: scope)
    }

    static func read(_ db: Database, _ scope: Scope) throws -> Deferral? {
        try Query(
            db,
            """
            SELECT deferred_until, deferred_attempts, deferred_clock, deferred_detail, deferred_hint
            FROM tidemark_scope WHERE name = ?1 AND deferred_until IS NOT NULL
            """
        ).first(db, [.text(scope.name)]) { row in
            Deferral(
                until: row.integer(0), attempts: Int(row.integer(1)), clock: row.integer(2), detail: row.text(3),
                hint: row.text(4))
        }
    }

    /// Puts records off.
    ///
    /// - Parameters:
    ///   - refusal: what the server says.
    ///   - records: those without an edit since they were sent.
    static func begin(
        _ db: Database, _ scope: Scope, _ refusal: Verdict.Refusal, _ records: [(table: RecordTable, key: [Cell])],
        now: Int64
    ) throws {
        try putOff(db, records)
        let known = try read(db, scope)
        var (attempts, until) = (known?.attempts ?? 0, known?.until ?? 0)
        // Several requests of one attempt count as one, and none makes the others wait for longer.
        if until <= now {
            attempts += 1
            until =
                now + backoff.delay(failures: attempts, class: .transient, jitter: Dependencies.current.random())
        }
        try Query(
            db,
            """
            UPDATE tidemark_scope SET deferred_until = ?2, deferred_attempts = ?3, deferred_detail = ?4,
              deferred_hint = ?5,
              deferred_clock = \(Marks.clockSQL) WHERE name = ?1
            """
        ).execute([
            .text(scope.name), .integer(until), .integer(Int64(attempts)), .text(refusal.detail), .text(refusal.hint),
        ])
    }

    /// Puts records off until those go that wait already.
    static func putOff(_ db: Database, _ records: [(table: RecordTable, key: [Cell])]) throws {
        for (table, key) in records { try ShadowTable(table.shape).putOff(db, key) }
    }

    /// Notes the clock: later edits go at once, and earlier ones wait.
    static func noteClock(_ db: Database, _ scope: Scope) throws {
        try Query(
            db,
            """
            UPDATE tidemark_scope SET deferred_clock = \(Marks.clockSQL)
            WHERE name = ?1 AND deferred_until IS NOT NULL
            """
        ).execute([.text(scope.name)])
    }

    /// Lets those go again whose time has come, or that were edited since; all of them where the app asks.
    static func resume(_ db: Database, _ schema: SyncSchema, _ scope: Scope, now: Int64, asked: Bool) throws {
        let known = try read(db, scope)
        // A clock that was put back holds nothing for longer than twice the longest wait. Where nothing is to be waited
        // for, a record may have come from another scope, or its table was not named meanwhile.
        let longest = backoff.maximumMilliseconds * 2
        let isDue = known.map { asked || $0.until <= now || $0.until.saturatingSubtracting(now) > longest } ?? true
        for shape in schema.shapes(in: scope) {
            for place in shape.placesSQL(scope) {
                try ShadowTable(shape).resume(db, place, editedAfter: isDue ? nil : known?.clock)
            }
        }
        guard isDue, let known, known.until > now else { return }
        try Query(db, "UPDATE tidemark_scope SET deferred_until = ?2 WHERE name = ?1")
            .execute([.text(scope.name), .integer(now)])
    }

    /// Forgets how often edits were put off, once none is.
    static func end(_ db: Database, _ schema: SyncSchema, _ scope: Scope) throws {
        for shape in schema.shapes(in: scope) {
            for place in shape.placesSQL(scope) {
                guard try !ShadowTable(shape).isAnyPutOff(db, place) else { return }
            }
        }
        try Query(db, "UPDATE tidemark_scope SET deferred_until = NULL WHERE name = ?1").execute([.text(scope.name)])
    }
}
