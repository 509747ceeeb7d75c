import GRDB
import TidemarkWire

// MARK: - Of a scope

extension Outbox {
    /// Removes what a scope that leaves the device has: all but what the app has to decide about.
    static func clear(_ db: Database, _ scope: Scope) throws {
        try Query(db, "DELETE FROM tidemark_operation WHERE scope = ?1 AND NOT (\(isUndecided))")
            .execute([.text(scope.name)])
    }

    static func clearOpen(_ db: Database, _ scope: Scope, entity: String) throws {
        try Query(db, "DELETE FROM tidemark_operation WHERE scope = ?1 AND entity = ?2 AND \(isOpen)")
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
            WITH numbered AS (
              SELECT lane, id AS place, CASE WHEN \(isOpen) THEN number END AS open,
                CASE WHEN \(isTaken) THEN number END AS answered
              FROM tidemark_operation WHERE scope = ?1 AND lane IS NOT NULL
              UNION ALL SELECT lane, newest, NULL, last FROM tidemark_history WHERE scope = ?1),
            lane AS (
              SELECT lane AS name, max(place) AS last, min(open) AS open, max(answered) AS answered
              FROM numbered GROUP BY lane)
            SELECT name, min(answered, coalesce(open - 1, answered)) AS number FROM lane
            WHERE number > 0 ORDER BY last DESC LIMIT \(laneLimit)
            """
        ).rows(db, [.text(scope.name)]) { ($0.text(0), $0.integer(1)) }
    }

    /// The lanes of a scope besides one, each with the last number that was given out in it.
    static func lanes(
        _ db: Database, _ scope: Scope, besides lane: String
    ) throws -> [(id: String, last: Int64)] {
        try Query(db, "SELECT id, next_number - 1 FROM tidemark_lane WHERE scope = ?1 AND id <> ?2")
            .rows(db, [.text(scope.name), .text(lane)]) { ($0.text(0), $0.integer(1)) }
    }

    /// Removes a lane: nothing more is numbered in it, and nothing of it is acknowledged.
    static func removeLane(_ db: Database, _ lane: String) throws {
        try Query(db, "DELETE FROM tidemark_lane WHERE id = ?1").execute([.text(lane)])
    }

    /// A record whose lost operations have a second key, and that is not rebased yet.
    static func nextLosing(_ db: Database, _ scope: Scope) throws -> (entity: String, record: String)? {
        try Query(
            db, "SELECT entity, record FROM tidemark_operation WHERE scope = ?1 AND \(isReplay) AND \(isLost) LIMIT 1"
        )
        .first(db, [.text(scope.name)]) { ($0.text(0), $0.text(1)) }
    }

    /// The lost operations of such a record that set fields and had been answered.
    static func losingUpserts(_ db: Database, _ scope: Scope, entity: String, record: String) throws -> [Int64] {
        try Query(
            db,
            """
            SELECT id FROM tidemark_operation WHERE scope = ?1 AND \(isReplay) AND \(State.lost.sql) AND entity = ?2
              AND record = ?3 AND kind = 'upsert'
            """
        ).rows(db, [.text(scope.name), .text(entity), .text(record)]) { $0.integer(0) }
    }

    /// A record's lost operations are replayed: none of them has a verdict any more.
    static func reopen(_ db: Database, _ scope: Scope, entity: String, record: String) throws {
        try Query(
            db,
            """
            UPDATE tidemark_operation SET \(State.replayed.sql), finished_at = NULL, version = NULL, code = NULL,
              detail = NULL, hint = NULL
            WHERE scope = ?1 AND \(isReplay) AND \(isLost) AND entity = ?2 AND record = ?3
            """
        ).execute([.text(scope.name), .text(entity), .text(record)])
    }
}
