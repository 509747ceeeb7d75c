import Foundation
import GRDB
import TidemarkServer
import TidemarkWire

/// The rows of blobs and parts, and how much there is of them in each scope.
enum BlobRows {
    static let schema = [
        """
        CREATE TABLE blob (
            scope TEXT NOT NULL, hash TEXT NOT NULL, size INTEGER NOT NULL, seen_at INTEGER NOT NULL,
            PRIMARY KEY (scope, hash)) WITHOUT ROWID
        """,
        // No number comes twice: the files bear them.
        """
        CREATE TABLE blob_part (
            id INTEGER PRIMARY KEY AUTOINCREMENT, scope TEXT NOT NULL, principal TEXT NOT NULL, hash TEXT NOT NULL,
            size INTEGER NOT NULL, written_at INTEGER NOT NULL, UNIQUE (scope, principal, hash))
        """,
        // In step with both.
        """
        CREATE TABLE blob_scope (
            scope TEXT PRIMARY KEY, blobs INTEGER NOT NULL, parts INTEGER NOT NULL, bytes INTEGER NOT NULL,
            scanned_at INTEGER NOT NULL DEFAULT 0) WITHOUT ROWID
        """,
    ]

    static func isErased(_ db: Database, _ scope: Scope) throws -> Bool {
        let statement = try db.cachedStatement(sql: "SELECT erased_at IS NOT NULL FROM scope WHERE name = ?")
        return try Bool.fetchOne(statement, arguments: [scope.name]) ?? false
    }

    static func blob(_ db: Database, _ hash: String, in scope: Scope) throws -> StoredBlob? {
        let statement = try db.cachedStatement(sql: "SELECT size, seen_at FROM blob WHERE scope = ? AND hash = ?")
        return try Row.fetchOne(statement, arguments: [scope.name, hash]).map {
            StoredBlob(hash: hash, size: $0[0], seen: Date(milliseconds: $0[1]))
        }
    }

    // MARK: Parts

    static func part(_ db: Database, _ name: BlobPartName) throws -> BlobPart? {
        let statement = try db.cachedStatement(
            sql: "SELECT id, size, written_at FROM blob_part WHERE scope = ? AND principal = ? AND hash = ?")
        return try Row.fetchOne(statement, arguments: [name.scope.name, name.principal.whole, name.hash]).map {
            BlobPart(name: name, size: $0[1], kept: 0, written: $0[2], place: $0[0])
        }
    }

    static func isPart(_ db: Database, _ place: Int64) throws -> Bool {
        try Bool.fetchOne(db, sql: "SELECT count(*) > 0 FROM blob_part WHERE id = ?", arguments: [place]) ?? false
    }

    static func parts(
        _ db: Database, in scope: Scope?, of principal: String?, writtenBefore moment: Int64, limit: Int
    ) throws -> [BlobPart] {
        try Row.fetchAll(
            db,
            sql: """
                SELECT scope, principal, hash, id, size, written_at FROM blob_part
                WHERE (?1 IS NULL OR scope = ?1) AND (?2 IS NULL OR principal = ?2) AND written_at < ?3
                ORDER BY id LIMIT ?4
                """, arguments: [scope?.name, principal?.whole, moment, limit]
        ).compactMap { row in
            guard let scope = Scope(row[0] as String) else { return nil }
            let name = BlobPartName(scope: scope, principal: row[1], hash: row[2])
            return BlobPart(name: name, size: row[4], kept: 0, written: row[5], place: row[3])
        }
    }

    /// Begins a part, and answers the one whose place it takes.
    static func begin(
        _ db: Database, _ name: BlobPartName, size: Int64, within room: BlobRoom, at moment: Int64
    ) throws -> (BlobPart, former: BlobPart?) {
        guard try !isErased(db, name.scope) else { throw BlobRefusal.erased }
        let former = try part(db, name)
        if let former { _ = try drop(db, former) }
        let own = try tally(db, of: name.scope, by: name.principal)
        let added = BlobTally(parts: 1, bytes: size).weight
        guard own.parts < room.parts, own.weight + added <= room.caller else { throw BlobRefusal.callerFull }
        guard try tally(db, of: name.scope, by: nil).weight + added <= room.scope else { throw BlobRefusal.scopeFull }
        try db.cachedStatement(
            sql: "INSERT INTO blob_part (scope, principal, hash, size, written_at) VALUES (?, ?, ?, ?, ?)"
        ).execute(
            arguments: [name.scope.name, name.principal.whole, name.hash, size, moment])
        let place = db.lastInsertedRowID
        try count(db, name.scope, BlobTally(parts: 1, bytes: size))
        return (BlobPart(name: name, size: size, kept: 0, written: moment, place: place), former)
    }

    static func note(_ db: Database, _ part: BlobPart, writtenAt moment: Int64) throws -> Bool {
        try db.execute(
            sql: "UPDATE blob_part SET written_at = max(written_at, ?) WHERE id = ?", arguments: [moment, part.place])
        return db.changesCount > 0
    }

    static func drop(_ db: Database, _ part: BlobPart) throws -> Bool {
        try db.cachedStatement(sql: "DELETE FROM blob_part WHERE id = ?").execute(arguments: [part.place])
        guard db.changesCount > 0 else { return false }
        try count(db, part.name.scope, BlobTally(parts: -1, bytes: -part.size))
        return true
    }

    /// - Parameter isCounted: whether the blob has a row.
    static func finish(_ db: Database, _ part: BlobPart, isCounted: Bool, at moment: Int64) throws {
        _ = try drop(db, part)
        try db.cachedStatement(
            sql: """
                INSERT INTO blob (scope, hash, size, seen_at) VALUES (?, ?, ?, ?)
                ON CONFLICT (scope, hash) DO UPDATE SET seen_at = max(seen_at, excluded.seen_at)
                """
        ).execute(arguments: [part.name.scope.name, part.name.hash, part.size, moment])
        if !isCounted { try count(db, part.name.scope, BlobTally(blobs: 1, bytes: part.size)) }
    }

    // MARK: Keeping and removing

    static func remove(_ db: Database, _ hash: String, in scope: Scope, seenBefore moment: Int64) throws -> Bool {
        let size = try Int64.fetchOne(
            db, sql: "DELETE FROM blob WHERE scope = ? AND hash = ? AND seen_at < ? RETURNING size",
            arguments: [scope.name, hash, moment])
        guard let size else { return false }
        try count(db, scope, BlobTally(blobs: -1, bytes: -size))
        return true
    }

    /// Whether no row needs the file of a hash: neither the blob's, nor one of a part that was renamed to it and whose
    /// process ended then.
    static func mayRemoveFile(_ db: Database, _ hash: String, in scope: Scope) throws -> Bool {
        try Bool.fetchOne(
            db,
            sql: """
                SELECT NOT EXISTS (SELECT 1 FROM blob WHERE scope = ?1 AND hash = ?2)
                    AND NOT EXISTS (SELECT 1 FROM blob_part WHERE scope = ?1 AND hash = ?2)
                """, arguments: [scope.name, hash]) ?? false
    }

    static func tally(_ db: Database, of scope: Scope, by principal: String?) throws -> BlobTally {
        guard let principal else {
            let whole = try db.cachedStatement(sql: "SELECT blobs, parts, bytes FROM blob_scope WHERE scope = ?")
            let row = try Row.fetchOne(whole, arguments: [scope.name])
            return row.map { BlobTally(blobs: $0[0], parts: $0[1], bytes: $0[2]) } ?? BlobTally()
        }
        let own = try db.cachedStatement(
            sql: "SELECT count(*), coalesce(sum(size), 0) FROM blob_part WHERE scope = ? AND principal = ?")
        let row = try Row.fetchOne(
            own, arguments: [scope.name, principal.whole])
        return row.map { BlobTally(parts: $0[0], bytes: $0[1]) } ?? BlobTally()
    }

    private static func count(_ db: Database, _ scope: Scope, _ added: BlobTally) throws {
        try db.cachedStatement(
            sql: """
                INSERT INTO blob_scope (scope, blobs, parts, bytes) VALUES (?, ?, ?, ?)
                ON CONFLICT (scope) DO UPDATE SET blobs = blobs + excluded.blobs, parts = parts + excluded.parts,
                    bytes = bytes + excluded.bytes
                """
        ).execute(arguments: [scope.name, added.blobs, added.parts, added.bytes])
    }
}
