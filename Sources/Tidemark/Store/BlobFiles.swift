import GRDB
import TidemarkWire

/// The files of attachments that are on this device, whichever scopes name them.
enum BlobFiles {
    static func isHere(_ db: Database, _ reference: BlobReference) throws -> Bool {
        try Query(db, "SELECT 1 FROM tidemark_blob_file WHERE reference = ?1")
            .first(db, [.text(reference.description)]) { _ in true } ?? false
    }

    static func touch(_ db: Database, _ reference: BlobReference, at time: Int64) throws {
        try Query(db, "UPDATE tidemark_blob_file SET used_at = ?2 WHERE reference = ?1 AND used_at < ?2")
            .execute([.text(reference.description), .integer(time)])
    }

    /// Notes whether rows name the file, and whether it may make room for others.
    static func refresh(_ db: Database, _ reference: BlobReference, now: Int64) throws {
        try refresh(db, where: "reference = ?1", .text(reference.description), now: now)
    }

    /// Notes it for all files that are on offer to the server of a scope.
    static func refresh(_ db: Database, offeredIn scope: Scope, now: Int64) throws {
        let offered = "SELECT reference FROM tidemark_blob WHERE scope = ?1 AND offers = 1 AND stored = 0"
        try refresh(db, where: "reference IN (\(offered))", .text(scope.name), now: now)
    }

    private static func refresh(_ db: Database, where condition: String, _ value: Cell, now: Int64) throws {
        let named = "EXISTS (SELECT 1 FROM tidemark_blob AS b WHERE b.reference = tidemark_blob_file.reference"
        try Query(
            db,
            """
            UPDATE tidemark_blob_file SET
              unnamed_since = CASE WHEN \(named)) THEN NULL ELSE coalesce(unnamed_since, ?2) END,
              backed = CASE WHEN \(named)) THEN \(named) AND stored = 1) ELSE backed END,
              evictable = CASE WHEN \(named))
                THEN \(named) AND stored = 1) AND NOT \(named) AND (pinned = 1 OR offers = 1 AND stored = 0))
                ELSE backed END
            WHERE \(condition)
            """
        ).execute([value, .integer(now)])
    }

    /// The files behind one, in the order in which they came.
    static func all(_ db: Database, after id: Int64, limit: Int) throws -> [(id: Int64, reference: BlobReference)] {
        try Query(db, "SELECT id, reference FROM tidemark_blob_file WHERE id > ?1 ORDER BY id LIMIT ?2")
            .rows(db, [.integer(id), .integer(Int64(limit))]) { row in
                BlobReference(row.text(1)).map { (row.integer(0), $0) }
            }.compactMap { $0 }
    }

    // MARK: Room

    static func total(_ db: Database) throws -> Int64 {
        try Query(db, "SELECT coalesce(sum(size), 0) FROM tidemark_blob_file").first(db) { $0.integer(0) } ?? 0
    }

    /// A file that may make room for others, as far as its bytes are concerned.
    struct Candidate: Sendable {
        var id: Int64
        var reference: BlobReference
        var usedAt: Int64
    }

    /// Such files, the one first that was not used for longest, behind one of them.
    static func candidates(_ db: Database, after last: Candidate?, limit: Int) throws -> [Candidate] {
        try Query(
            db,
            """
            SELECT id, reference, used_at FROM tidemark_blob_file
            WHERE evictable = 1 AND (used_at, id) > (?1, ?2) ORDER BY used_at, id LIMIT ?3
            """
        ).rows(
            db, [.integer(last?.usedAt ?? .min), .integer(last?.id ?? .min), .integer(Int64(limit))]
        ) { row in
            BlobReference(row.text(1)).map { Candidate(id: row.integer(0), reference: $0, usedAt: row.integer(2)) }
        }.compactMap { $0 }
    }

    // MARK: By hash

    /// Whether a file of this hash is known, whatever its size.
    static func contains(_ db: Database, hash: String) throws -> Bool {
        let name = "sha256:\(hash)"
        return try Query(db, "SELECT 1 FROM tidemark_blob_file WHERE reference >= ?1 AND reference < ?2 LIMIT 1")
            .first(db, [.text(name + ":"), .text(name + ";")]) { _ in true } ?? false
    }
}
