import GRDB
import TidemarkWire

/// How far one scope has come.
struct ScopeRecord: Hashable, Sendable {
    var scope: Scope
    var checkpoint: String?
    /// The last version at which the rows here were whole.
    var complete: Version?
    /// The first horizon of a scan from the beginning: the base of the rows that came in it.
    var origin: Version?
    /// Whether a scan has begun and not ended.
    var isScanning = false
    var epoch: String?
    var head: Version?
    var lastSync: Int64?
    /// The server's time as of the last answer, in milliseconds since 1970.
    var syncedAt: Int64?
    /// The filling under way, which `write` leaves alone.
    var bootstrap: Bootstrap?

    /// The version that clean rows are known to be at, where nothing else is remembered of them.
    var base: Version { complete ?? origin ?? 0 }

    /// Whether deltas can bring the scope up to date.
    var isFilled: Bool { checkpoint != nil && bootstrap == nil }

    /// Whether this device has had nothing but verdicts of the scope.
    var isNew: Bool { checkpoint == nil && complete == nil && origin == nil && head == nil && bootstrap?.asking == nil }

    /// The last version at which the rows of one entity were whole.
    func complete(of entity: String) -> Version? {
        guard let bootstrap, bootstrap.covers(entity) else { return complete }
        return bootstrap.version
    }

    /// The version that clean rows of one entity are known to be at.
    func base(of entity: String) -> Version { complete(of: entity) ?? origin ?? 0 }

    /// Forgets how far the scope has come, and notes when the server took the access away, if it did.
    static func reset(_ db: Database, _ scope: Scope, lostAt: Int64?) throws {
        try remove(db, scope)
        try Query(db, "INSERT INTO tidemark_scope(name, lost_at) VALUES (?1, ?2)")
            .execute([.text(scope.name), .optional(lostAt)])
    }

    /// Removes the scope's row: this file knows nothing of it any more.
    static func remove(_ db: Database, _ scope: Scope) throws {
        try Query(db, "DELETE FROM tidemark_scope WHERE name = ?1").execute([.text(scope.name)])
    }

    static func read(_ db: Database, _ scope: Scope) throws -> ScopeRecord {
        var record = try row(db, scope) ?? ScopeRecord(scope: scope)
        record.bootstrap = try Bootstrap.read(db, scope)
        return record
    }

    private static func row(_ db: Database, _ scope: Scope) throws -> ScopeRecord? {
        try Query(
            db,
            """
            SELECT checkpoint, complete, origin, scanning, epoch, head, last_sync, synced_at
            FROM tidemark_scope WHERE name = ?1
            """
        ).first(db, [.text(scope.name)]) { row in
            ScopeRecord(
                scope: scope, checkpoint: row.optionalText(0), complete: row.optionalInteger(1),
                origin: row.optionalInteger(2), isScanning: row.integer(3) != 0, epoch: row.optionalText(4),
                head: row.optionalInteger(5), lastSync: row.optionalInteger(6),
                syncedAt: row.optionalInteger(7))
        }
    }

    /// When the server took the access away; `nil` while it is granted.
    static func lostAt(_ db: Database, _ scope: Scope) throws -> Int64? {
        try Query(db, "SELECT lost_at FROM tidemark_scope WHERE name = ?1")
            .first(db, [.text(scope.name)]) { $0.optionalInteger(0) } ?? nil
    }

    /// Whether an engine on this file syncs the scope, as far as it may.
    static func isFollowed(_ db: Database, _ scope: Scope) throws -> Bool {
        try Query(db, "SELECT 1 FROM tidemark_scope WHERE name = ?1 AND lost_at IS NULL")
            .first(db, [.text(scope.name)]) { _ in true } ?? false
    }

    /// Whether an engine on this file has ever synced the scope: from any other, nothing of a server's can have come.
    static func isKnown(_ db: Database, _ name: String) throws -> Bool {
        try Query(db, "SELECT 1 FROM tidemark_scope WHERE name = ?1").first(db, [.text(name)]) { _ in true } ?? false
    }

    /// The scopes that this file knows, by their names.
    static func all(_ db: Database) throws -> [Scope] {
        try Query(db, "SELECT name FROM tidemark_scope ORDER BY name").rows(db) { Scope($0.text(0)) }
            .compactMap { $0 }
    }

    /// A scope, and those of its sub-scopes that this file knows.
    static func parts(_ db: Database, of scope: Scope) throws -> [Scope] {
        try [scope] + all(db).filter { $0 != scope && $0.parent == scope }
    }

    /// The scopes that have taken in anything, be it a verdict; any other gets everything anyway.
    static func begun(_ db: Database) throws -> [Scope] {
        try Query(
            db,
            """
            SELECT name FROM tidemark_scope WHERE checkpoint IS NOT NULL
              OR name IN (SELECT scope FROM tidemark_bootstrap WHERE token IS NOT NULL)
              OR name IN (SELECT scope FROM tidemark_manifested WHERE records > 0)
            """
        ).rows(db) { Scope($0.text(0)) }.compactMap { $0 }
    }

    /// The other scopes that have never synced here, and that no orphaned edit belongs to.
    static func unsynced(_ db: Database, beside scope: Scope) throws -> [Scope] {
        try Query(
            db,
            """
            SELECT name FROM tidemark_scope AS s
            WHERE name <> ?1 AND checkpoint IS NULL AND complete IS NULL AND lost_at IS NULL
              AND NOT EXISTS (SELECT 1 FROM tidemark_bootstrap WHERE scope = s.name AND token IS NOT NULL)
              AND NOT EXISTS (SELECT 1 FROM tidemark_orphan WHERE scope = s.name)
            """
        ).rows(db, [.text(scope.name)]) { Scope($0.text(0)) }.compactMap { $0 }
    }

    /// From here on an engine on this file syncs the scope.
    static func follow(_ db: Database, _ scope: Scope) throws {
        try Query(db, "INSERT INTO tidemark_scope(name) VALUES (?1) ON CONFLICT(name) DO NOTHING")
            .execute([.text(scope.name)])
    }

    static func granted(_ db: Database, _ scope: Scope) throws {
        try Query(db, "UPDATE tidemark_scope SET lost_at = NULL WHERE name = ?1 AND lost_at IS NOT NULL")
            .execute([.text(scope.name)])
    }

    func write(_ db: Database) throws {
        try Query(
            db,
            """
            INSERT INTO tidemark_scope(name, checkpoint, complete, origin, scanning, epoch, head, last_sync, synced_at)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
            ON CONFLICT(name) DO UPDATE SET checkpoint = excluded.checkpoint, complete = excluded.complete,
              origin = excluded.origin, scanning = excluded.scanning, epoch = excluded.epoch, head = excluded.head,
              last_sync = excluded.last_sync, synced_at = excluded.synced_at
            """
        ).execute([
            .text(scope.name), .optional(checkpoint), .optional(complete), .optional(origin),
            .integer(isScanning ? 1 : 0), .optional(epoch), .optional(head), .optional(lastSync),
            .optional(syncedAt),
        ])
    }

    /// Forgets a scope that has left the device, but for the note that the server took the access away.
    static func unfollow(_ db: Database, _ scope: Scope) throws {
        try Query(db, "DELETE FROM tidemark_scope WHERE name = ?1 AND lost_at IS NULL").execute([.text(scope.name)])
    }
}
