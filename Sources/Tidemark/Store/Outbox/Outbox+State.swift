import GRDB
import TidemarkWire

extension Outbox {
    /// How an operation stands: the column `state` of the outbox.
    enum State: String, CaseIterable {
        // Without a verdict.
        case sealed
        /// Sealed under a second key, since another copy of this file had used the first for something else.
        case resealed
        /// The server lost it, and it is replayed under a second key.
        case replayed

        // Lost by the server, with its record not rebased yet.
        /// It had no verdict.
        case losing
        /// It had one.
        case lost

        // With a verdict.
        case applied, merged, conflict, rejected
        /// Its edits are edits again, and are sealed anew.
        case deferred
        case outcomeUnknown = "outcome_unknown"

        /// SQL: the column and this state, for a condition or for SET.
        var sql: String { "state = '\(rawValue)'" }

        /// Whether the server took it.
        var isTaken: Bool { self == .applied || self == .merged }

        init(_ status: Verdict.Status) {
            switch status {
            case .applied: self = .applied
            case .merged: self = .merged
            case .conflict: self = .conflict
            case .rejected: self = .rejected
            case .deferred: self = .deferred
            case .outcomeUnknown: self = .outcomeUnknown
            }
        }
    }

    /// - Returns: `nil` where there is no such operation.
    static func state(_ db: Database, _ id: Int64) throws -> State? {
        try Query(db, "SELECT state FROM tidemark_operation WHERE id = ?1")
            .first(db, [.integer(id)]) { State(rawValue: $0.text(0)) } ?? nil
    }

    /// Compared one by one: each statement that writes an operation holds it against the conditions of all partial
    /// indexes, and for IN SQLite would make a table of the names each time.
    private static func sql(_ states: [State]) -> String {
        "(" + states.map(\.sql).joined(separator: " OR ") + ")"
    }

    // The partial indexes are made of these same conditions: SQLite uses an index where its condition is in a query.

    /// No verdict has come, as SQL.
    static let isOpen = sql([.sealed, .resealed, .replayed, .losing])
    /// The server has lost it, and its record is not rebased yet, as SQL.
    static let isLost = sql([.losing, .lost])
    /// It is replayed, or about to be, as SQL.
    static let isReplay = sql([.replayed, .losing, .lost])
    /// Nothing is left to do about it, as SQL: it is kept in case the server loses it.
    static let isFinished = sql([.applied, .merged, .deferred, .outcomeUnknown])
    /// The server took it, as SQL.
    static let isTaken = sql([.applied, .merged])
    /// It may go into a block of ``OutboxHistory``: it has a key, and names nothing by a temporary id, as SQL.
    static let isPackable = isTaken + " AND lane IS NOT NULL AND code IS NULL AND resolved IS NULL"
    /// The app has to decide about it, as SQL.
    static let isUndecided = sql([.rejected, .conflict])
    /// The server, or this device, refused it, as SQL.
    static let isRejected = State.rejected.sql
    /// Its edits are edits again, as SQL.
    static let isDeferred = State.deferred.sql
    /// The server answered without saying what became of it, as SQL.
    static let isUntold = State.outcomeUnknown.sql
}
