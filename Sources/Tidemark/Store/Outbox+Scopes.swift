import GRDB
import TidemarkWire

// MARK: - Of a scope

extension Outbox {
    /// Whether anything of a scope has ever had a verdict.
    static func hasFinished(_ db: Database, _ scope: Scope) throws -> Bool {
        for table in ["tidemark_operation", "tidemark_finished_run"] {
            let sql = "SELECT 1 FROM \(table) WHERE scope = ?1 AND finished_at IS NOT NULL LIMIT 1"
            if try Query(db, sql).first(db, [.text(scope.name)], { _ in true }) != nil { return true }
        }
        return false
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
    /// Numbers up to which all of a lane was answered, by the server and not by this device itself; of newest lanes.
    static func answered(_ db: Database, _ scope: Scope) throws -> [(id: String, number: Int64)] {
        try Query(
            db,
            """
            WITH operation AS (
              SELECT lane, id, number, finished_at, status FROM tidemark_operation
              WHERE scope = ?1 AND lane IS NOT NULL
              UNION ALL \(FinishedInserts.newest)),
            lane AS (
              SELECT lane AS name, max(id) AS last, min(CASE WHEN finished_at IS NULL THEN number END) AS open,
                max(CASE WHEN status IN ('applied', 'merged') THEN number END) AS answered
              FROM operation GROUP BY lane)
            SELECT name, min(answered, coalesce(open - 1, answered)) AS number FROM lane
            WHERE number > 0 ORDER BY last DESC LIMIT 1000
            """
        ).rows(db, [.text(scope.name)]) { ($0.text(0), $0.integer(1)) }
    }

    /// What is sent again where a server has lost it: all that it took, or has not answered.
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

    /// A record whose lost operations have a second key, and that is not drawn again yet.
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

// MARK: - Finished inserts

extension Outbox {
    /// An insert that the server took, as ``FinishedInserts`` packs and fills it.
    struct FinishedInsert {
        var id: Int64
        var key: OperationKey
        var entity: String
        var record: String
        var members: [UInt8]
        var version: Version
        /// In milliseconds since 1970.
        var finishedAt: Int64
    }

    /// Whether so many inserts were finished behind an operation.
    static func hasFinishedInserts(_ db: Database, _ scope: Scope, after id: Int64, _ count: Int) throws -> Bool {
        try Query(
            db,
            """
            SELECT 1 FROM tidemark_operation WHERE id > ?1 AND scope = ?2 AND status = 'applied' AND is_insert
            LIMIT 1 OFFSET \(max(0, count - 1))
            """
        ).first(db, [.integer(id), .text(scope.name)]) { _ in true } ?? false
    }

    /// The inserts behind an operation that were taken up to a version, and of which nothing but their row is kept.
    static func finishedInserts(
        _ db: Database, _ scope: Scope, upTo version: Version, after id: Int64, limit: Int
    ) throws -> [FinishedInsert] {
        try Query(
            db,
            """
            SELECT id, lane, number, entity, record, members, version, finished_at FROM tidemark_operation
            WHERE id > ?1 AND scope = ?2 AND status = 'applied' AND kind = 'upsert' AND is_insert AND version <= ?3
              AND lane IS NOT NULL AND content IS NULL AND resolved IS NULL AND in_group IS NULL AND again IS NULL
            ORDER BY id LIMIT \(limit)
            """
        ).rows(db, [.integer(id), .text(scope.name), .integer(version)]) { row in
            FinishedInsert(
                id: row.integer(0), key: OperationKey(lane: row.text(1), number: row.integer(2)), entity: row.text(3),
                record: row.text(4), members: row.blob(5), version: row.integer(6), finishedAt: row.integer(7))
        }
    }

    /// Puts such an insert back, under its own id.
    static func restore(_ db: Database, _ insert: FinishedInsert, _ scope: Scope) throws {
        try Query(
            db,
            """
            INSERT INTO tidemark_operation(
              id, scope, lane, number, entity, record, kind, members, is_insert, sealed_at, finished_at, status,
              version)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, 'upsert', ?7, 1, ?8, ?8, 'applied', ?9)
            """
        ).execute([
            .integer(insert.id), .text(scope.name), .text(insert.key.lane), .integer(insert.key.number),
            .text(insert.entity), .text(insert.record), .blob(insert.members), .integer(insert.finishedAt),
            .integer(insert.version),
        ])
    }
}
