import GRDB
import TidemarkWire

// MARK: - Of a scope

extension Outbox {
    /// Whether anything of a scope has ever had a verdict.
    static func hasFinished(_ db: Database, _ scope: Scope) throws -> Bool {
        let sql = "SELECT 1 FROM tidemark_operation WHERE scope = ?1 AND finished_at IS NOT NULL LIMIT 1"
        return try Query(db, sql).first(db, [.text(scope.name)], { _ in true }) ?? false
    }

    /// Removes what a scope that leaves the device has: all but what the app has to decide about.
    static func clear(_ db: Database, _ scope: Scope) throws {
        for condition in ["finished_at IS NULL", "status NOT IN ('rejected', 'conflict')"] {
            try Query(db, "DELETE FROM tidemark_operation WHERE scope = ?1 AND \(condition)")
                .execute([.text(scope.name)])
        }
    }

    static func clearAll(_ db: Database, _ scope: Scope) throws {
        try Query(db, "DELETE FROM tidemark_operation WHERE scope = ?1").execute([.text(scope.name)])
    }

    static func clearOpen(_ db: Database, _ scope: Scope, entity: String) throws {
        try Query(db, "DELETE FROM tidemark_operation WHERE scope = ?1 AND entity = ?2 AND finished_at IS NULL")
            .execute([.text(scope.name), .text(entity)])
    }

    /// Drops the notes of whom an operation names, of operations that have gone.
    static func dropReferences(_ db: Database) throws {
        try Query(db, "DELETE FROM tidemark_ref WHERE operation NOT IN (SELECT id FROM tidemark_operation)").execute()
    }
}

// MARK: - After a loss

extension Outbox {
    /// Lanes that a server is asked about: as many as one request may name.
    private static let laneLimit = 1000

    /// Numbers up to which all of a lane was answered, by the server and not by this device itself; of newest lanes.
    static func answered(_ db: Database, _ scope: Scope) throws -> [(id: String, number: Int64)] {
        try Query(
            db,
            """
            WITH lane AS (
              SELECT lane AS name, max(id) AS last, min(CASE WHEN finished_at IS NULL THEN number END) AS open,
                max(CASE WHEN status IN ('applied', 'merged') THEN number END) AS answered
              FROM tidemark_operation WHERE scope = ?1 AND lane IS NOT NULL GROUP BY lane)
            SELECT name, min(answered, coalesce(open - 1, answered)) AS number FROM lane
            WHERE number > 0 ORDER BY last DESC LIMIT \(laneLimit)
            """
        ).rows(db, [.text(scope.name)]) { ($0.text(0), $0.integer(1)) }
    }

    /// Returns the operations that are replayed if a server has lost them: all that it took, or has not answered.
    static func replayable(_ db: Database, _ scope: Scope) throws -> [(id: Int64, key: OperationKey)] {
        try Query(
            db,
            """
            SELECT id, lane, number FROM tidemark_operation
            WHERE scope = ?1 AND lane IS NOT NULL AND (finished_at IS NULL OR status IN ('applied', 'merged'))
            ORDER BY id
            """
        ).rows(db, [.text(scope.name)]) { ($0.integer(0), OperationKey(lane: $0.text(1), number: $0.integer(2))) }
    }

    /// A record whose lost operations have a second key, and that is not rebased yet.
    static func nextLosing(_ db: Database, _ scope: Scope) throws -> (entity: String, record: String)? {
        try Query(db, "SELECT entity, record FROM tidemark_operation WHERE scope = ?1 AND again = 2 LIMIT 1")
            .first(db, [.text(scope.name)]) { ($0.text(0), $0.text(1)) }
    }

    /// The lost operations of such a record that set fields and had been answered.
    static func losingUpserts(_ db: Database, _ scope: Scope, entity: String, record: String) throws -> [Int64] {
        try Query(
            db,
            """
            SELECT id FROM tidemark_operation WHERE scope = ?1 AND again = 2 AND entity = ?2 AND record = ?3
              AND finished_at IS NOT NULL AND kind = 'upsert'
            """
        ).rows(db, [.text(scope.name), .text(entity), .text(record)]) { $0.integer(0) }
    }

    /// The lost operations of a record have no verdict again.
    static func reopen(_ db: Database, _ scope: Scope, entity: String, record: String) throws {
        try Query(
            db,
            """
            UPDATE tidemark_operation SET again = 1, finished_at = NULL, status = NULL, version = NULL, code = NULL,
              detail = NULL, hint = NULL
            WHERE scope = ?1 AND again = 2 AND entity = ?2 AND record = ?3
            """
        ).execute([.text(scope.name), .text(entity), .text(record)])
    }
}
