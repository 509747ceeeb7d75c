import GRDB
import GRDBSQLite

/// A statement has undone the transaction that it ran in: a trigger of the app's says `RAISE(ROLLBACK)`. Code that
/// passes over rows which the schema refuses must not pass over this, because each later statement would be committed
/// by itself.
///
/// `Database.committed` is the only one that catches it. A disk that is full undoes a transaction too; its error is
/// never passed over.
struct TransactionUndone: Error {
    var cause: DatabaseError
    /// With its values; `nil` where SQLite has no memory for it.
    var statement: String?
}

/// Plays a transaction again that a trigger has undone: what it undid is refused before it is tried, as if the trigger
/// had said `RAISE(ABORT)`, so that the row is quarantined and the others are applied.
final class UndoneStatements: Sendable {
    /// Statements that one transaction may run into; each begins it anew.
    static let limit = 1000

    @TaskLocal static var current: UndoneStatements?

    private struct Refusal {
        /// How often the statement has undone the transaction, and how often it has come up in this run of it.
        var times = 0
        var seen = 0
        var error: DatabaseError
    }

    private let refusals = Locked<[String: Refusal]>([:])

    /// `false` where that has happened too often.
    func add(_ statement: String, _ error: DatabaseError) -> Bool {
        refusals.withLock { refusals in
            refusals[statement, default: Refusal(error: error)].times += 1
            for key in refusals.keys { refusals[key]?.seen = 0 }
            return refusals.values.reduce(0) { $0 + $1.times } <= Self.limit
        }
    }

    /// Refuses a statement as often as it has undone the transaction. Later in it the same one may well pass.
    func check(_ handle: OpaquePointer) throws {
        guard let statement = Self.text(of: handle) else { return }
        let error: DatabaseError? = refusals.withLock { refusals in
            refusals[statement]?.seen += 1
            return refusals[statement].flatMap { $0.seen <= $0.times ? $0.error : nil }
        }
        if let error { throw error }
    }

    static func text(of handle: OpaquePointer) -> String? {
        guard let text = sqlite3_expanded_sql(handle) else { return nil }
        defer { sqlite3_free(text) }
        return String(cString: text)
    }
}

extension UndoneStatements {
    /// Runs a whole transaction, and again without what has undone it.
    static func replaying<Result>(_ transaction: () throws -> Result) throws -> Result {
        do { return try transaction() } catch let undone as TransactionUndone {
            let statements = UndoneStatements()
            var undone = undone
            while true {
                guard let statement = undone.statement, statements.add(statement, undone.cause) else {
                    throw undone.cause
                }
                do { return try $current.withValue(statements) { try transaction() } } catch let again
                    as TransactionUndone
                { undone = again }
            }
        }
    }
}
