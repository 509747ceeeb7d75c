import GRDB
import TidemarkWire

/// The files of attachments that are on this device, whichever scopes name them.
enum BlobFiles {
    static let schema = """
        -- Files of attachments. used_at: when the app last asked for one. unnamed_since: when rows ceased to name it,
        -- or when it came where none does yet; at 0 it goes at once. backed: the server had it when last heard.
        -- evictable: it may make room for others. All times in milliseconds since 1970.
        CREATE TABLE tidemark_blob_file(
            id INTEGER PRIMARY KEY, reference TEXT NOT NULL UNIQUE, size INTEGER NOT NULL, used_at INTEGER NOT NULL,
            unnamed_since INTEGER, backed INTEGER NOT NULL DEFAULT 0, evictable INTEGER NOT NULL DEFAULT 0);
        CREATE INDEX tidemark_blob_file_used ON tidemark_blob_file(used_at) WHERE evictable = 1;
        CREATE INDEX tidemark_blob_file_unnamed ON tidemark_blob_file(unnamed_since) WHERE unnamed_since IS NOT NULL;
        """

    /// How an attachment stands, for the app's own queries (Documentation/Attachments.md). It has one table, because
    /// SQLite works out a view of several by itself before it joins it to the app's rows.
    static let view = """
        CREATE VIEW tidemark_attachment(reference, scope, state, bytes, size, reason) AS
        SELECT reference, scope, CASE
          WHEN failed THEN 'failed'
          WHEN NOT here THEN CASE WHEN moving THEN 'downloading' WHEN awaited THEN 'awaited' ELSE 'remote' END
          WHEN stored AND offers THEN 'uploaded'
          WHEN stored OR NOT offers THEN 'here'
          WHEN moving THEN 'uploading' ELSE 'local' END,
          moved, size, reason
        FROM tidemark_blob;
        """

    static func isHere(_ db: Database, _ reference: BlobReference) throws -> Bool {
        try Query(db, "SELECT 1 FROM tidemark_blob_file WHERE reference = ?1")
            .first(db, [.text(reference.description)]) { _ in true } ?? false
    }

    /// The file has come, or is used again. Whatever named it before is looked at anew.
    static func add(_ db: Database, _ reference: BlobReference, now: Int64) throws {
        try Query(
            db,
            """
            INSERT INTO tidemark_blob_file(reference, size, used_at, unnamed_since) VALUES (?1, ?2, ?3, ?3)
            ON CONFLICT(reference) DO UPDATE SET used_at = ?3,
              unnamed_since = CASE WHEN unnamed_since IS NULL THEN NULL ELSE ?3 END
            """
        ).execute([.text(reference.description), .integer(reference.size), .integer(now)])
        if try !Blob.change(db, reference, now: now, { _ in }) { try refresh(db, reference, now: now) }
    }

    /// The file is gone; what rows name it is remote again.
    static func remove(_ db: Database, _ reference: BlobReference, now: Int64) throws {
        try Query(db, "DELETE FROM tidemark_blob_file WHERE reference = ?1").execute([.text(reference.description)])
        try Blob.change(db, reference, now: now) { _ in }
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

    /// Whether the file may make room for others: the server has its bytes, and, where rows name them, has a record
    /// that does, too. It would collect them otherwise.
    static func isEvictable(_ db: Database, _ schema: SyncSchema, _ reference: BlobReference) throws -> Bool {
        let mayGo =
            try Query(db, "SELECT evictable FROM tidemark_blob_file WHERE reference = ?1")
            .first(db, [.text(reference.description)]) { $0.integer(0) != 0 } ?? false
        guard mayGo else { return false }
        let blobs = try Blob.all(db, reference)
        guard !blobs.isEmpty else {
            return try !isKept(db, reference, isBacked: true) && !BlobChanges.isNamed(db, schema, reference)
        }
        return try blobs.contains { blob in
            try blob.isStored && BlobChanges.isNamedByServer(db, schema, reference, blob.scope)
        }
    }

    /// A file that nothing names.
    struct Orphan: Sendable {
        var id: Int64
        var reference: BlobReference?
        var isBacked: Bool
        var since: Int64

        /// Whether it stays, since an edit names it that is kept for the app, or a row does that is in no scope.
        func isKept(_ db: Database, _ schema: SyncSchema) throws -> Bool {
            guard let reference, since != 0 else { return false }
            return try BlobFiles.isKept(db, reference, isBacked: isBacked) || BlobChanges.isNamed(db, schema, reference)
        }
    }

    /// Files that nothing has named since a time, the longest first, behind one of them.
    static func orphans(_ db: Database, upTo time: Int64, after last: Orphan? = nil, limit: Int) throws -> [Orphan] {
        try Query(
            db,
            """
            SELECT id, reference, backed, unnamed_since FROM tidemark_blob_file
            WHERE unnamed_since <= ?1 AND (unnamed_since, id) > (?2, ?3) ORDER BY unnamed_since, id LIMIT ?4
            """
        ).rows(
            db,
            [
                .integer(time), .integer(last?.since ?? .min), .integer(last?.id ?? .min), .integer(Int64(limit)),
            ]
        ) { row in
            Orphan(
                id: row.integer(0), reference: BlobReference(row.text(1)), isBacked: row.integer(2) != 0,
                since: row.integer(3))
        }
    }

    /// Whether an edit names the bytes that did not travel, was refused, or waits for a decision.
    ///
    /// - Parameter isBacked: whether the server had them. It may have collected them since, as long as no record of its
    ///   own names them.
    private static func isKept(_ db: Database, _ reference: BlobReference, isBacked: Bool) throws -> Bool {
        let undecided = Outbox.isUndecided
        let places = [
            ("tidemark_operation", isBacked ? Outbox.isOpen : "1", "members"),
            ("tidemark_operation", undecided, "members"), ("tidemark_operation", undecided, "content"),
            ("tidemark_orphan", "1", "fields"), ("tidemark_conflict", isBacked ? "is_open" : "1", "fields"),
            ("tidemark_conflict", isBacked ? "is_open" : "1", "whole"), ("tidemark_quarantine", "1", "data"),
            ("tidemark_deleted_row", isBacked ? "0" : "1", "data"),
        ]
        return try places.contains { table, condition, column in
            try Query(db, "SELECT 1 FROM \(table) WHERE \(condition) AND instr(\(column), ?1) > 0 LIMIT 1")
                .first(db, [.text(reference.hash)]) { _ in true } ?? false
        }
    }
}
