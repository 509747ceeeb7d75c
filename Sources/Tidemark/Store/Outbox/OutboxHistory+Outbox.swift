import GRDB
import TidemarkWire

// Questions that the outbox answers together with the history of what it held before.
extension Outbox {
    /// Whether anything of a scope has ever had a verdict.
    static func hasFinished(_ db: Database, _ scope: Scope) throws -> Bool {
        try Query(db, "SELECT 1 FROM tidemark_operation WHERE scope = ?1 AND NOT (\(isOpen)) LIMIT 1")
            .first(db, [.text(scope.name)]) { _ in true } ?? OutboxHistory.isAny(db, scope)
    }

    static func clearAll(_ db: Database, _ scope: Scope) throws {
        try Query(db, "DELETE FROM tidemark_operation WHERE scope = ?1").execute([.text(scope.name)])
        try OutboxHistory.clear(db, scope)
    }

    /// Returns the operations that are replayed if a server has lost them, those above its marks of their lanes: all
    /// that it took, or has not answered.
    static func replayable(
        _ db: Database, _ scope: Scope, above marks: [String: Int64]
    ) throws -> [(id: Int64, key: OperationKey)] {
        try OutboxHistory.restore(db, scope, above: marks)
        return try Query(
            db,
            """
            SELECT id, lane, number FROM tidemark_operation
            WHERE scope = ?1 AND lane IS NOT NULL AND (\(isOpen) OR \(isTaken))
            ORDER BY id
            """
        ).rows(db, [.text(scope.name)]) { ($0.integer(0), OperationKey(lane: $0.text(1), number: $0.integer(2))) }
            .filter { $0.key.number > marks[$0.key.lane] ?? 0 }
    }

    /// Whether the server took an operation, as far as it is still kept.
    static func isTaken(_ db: Database, _ key: OperationKey) throws -> Bool {
        try Query(db, "SELECT \(isTaken) FROM tidemark_operation WHERE lane = ?1 AND number = ?2")
            .first(db, [.text(key.lane), .integer(key.number)]) { $0.integer(0) != 0 }
            ?? OutboxHistory.contains(db, key)
    }

    /// Operations of a lane without a verdict that name nothing by a temporary id, as a block takes them.
    static func packable(_ db: Database, lane: String, numbers: ClosedRange<Int64>) throws -> [OutboxBlock.Operation] {
        try Query(
            db,
            """
            SELECT \(OutboxBlock.columns) FROM tidemark_operation
            WHERE lane = ?1 AND number BETWEEN ?2 AND ?3 AND \(isOpen) AND resolved IS NULL
            """
        ).rows(
            db, [.text(lane), .integer(numbers.lowerBound), .integer(numbers.upperBound)], OutboxBlock.operation)
    }

    /// Drops the operations that were finished in a scope a while ago. Refused operations stay until the app decides.
    /// Callers do so only for a scope that has just heard from the server: where the server has lost its history,
    /// finished operations have to come back.
    static func prune(_ db: Database, _ scope: Scope, before: Int64) throws {
        try Query(
            db,
            """
            DELETE FROM tidemark_operation
            WHERE scope = ?2 AND finished_at < ?1 AND \(isFinished)
            """
        ).execute([.integer(before), .text(scope.name)])
        if db.changesCount > 0 { try dropReferences(db) }
        try OutboxHistory.prune(db, scope, before: before)
    }
}
