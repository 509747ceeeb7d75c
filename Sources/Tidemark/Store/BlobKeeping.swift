import GRDB
import TidemarkWire

// The files of attachments together with what names them: which come, which stay, and which may go.
extension BlobFiles {
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

    /// The scope leaves the device, and with it what the server has. Bytes that it lacks stay for a while, and those
    /// that orphaned edits name, which may come back when the server has collected them.
    static func leave(_ db: Database, _ scope: Scope) throws {
        try Query(
            db,
            """
            UPDATE tidemark_blob_file SET unnamed_since = 0 WHERE reference IN (
              SELECT reference FROM tidemark_blob WHERE scope = ?1 AND (stored = 1 OR offers = 0) AND NOT EXISTS (
                SELECT 1 FROM tidemark_orphan WHERE instr(fields, substr(tidemark_blob.reference, 8, 64)) > 0))
            AND NOT EXISTS (SELECT 1 FROM tidemark_blob AS other
              WHERE other.reference = tidemark_blob_file.reference AND other.scope <> ?1)
            """
        ).execute([.text(scope.name)])
    }

    /// Whether the bytes are named by an edit that did not travel, was refused or waits for a decision, or by a row
    /// that is quarantined or kept for undo.
    ///
    /// - Parameter isBacked: whether the server had them. It may have collected them since, as long as no record of its
    ///   own names them.
    private static func isKept(_ db: Database, _ reference: BlobReference, isBacked: Bool) throws -> Bool {
        let undecided = Outbox.isUndecided
        let places = [
            (Outbox.table, isBacked ? Outbox.isOpen : "1", "members"), (Outbox.table, undecided, "members"),
            (Outbox.table, undecided, "content"),
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
