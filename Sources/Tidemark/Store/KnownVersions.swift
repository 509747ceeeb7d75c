import GRDB
import TidemarkCore
import TidemarkWire

/// Versions above `complete` that are known one by one.
enum KnownVersions {
    static func version(_ db: Database, _ scope: Scope, _ entity: String, _ record: String) throws -> Version? {
        try Query(db, "SELECT version FROM tidemark_known_version WHERE scope = ?1 AND entity = ?2 AND record = ?3")
            .first(db, [.text(scope.name), .text(entity), .text(record)]) { $0.integer(0) }
    }

    static func note(
        _ db: Database, _ scope: Scope, _ entity: String, _ record: String, _ version: Version, deleted: Bool
    ) throws {
        try Query(
            db,
            """
            INSERT INTO tidemark_known_version(scope, entity, record, version, deleted) VALUES (?1, ?2, ?3, ?4, ?5)
            ON CONFLICT(scope, entity, record) DO UPDATE SET version = excluded.version, deleted = excluded.deleted
            WHERE excluded.version > version
            """
        ).execute([
            .text(scope.name), .text(entity), .text(record), .integer(version), .integer(deleted ? 1 : 0),
        ])
    }

    static func newest(_ db: Database, _ scope: Scope) throws -> Version? {
        try Query(db, "SELECT max(version) FROM tidemark_known_version WHERE scope = ?1")
            .first(db, [.text(scope.name)]) { $0.optionalInteger(0) } ?? nil
    }

    static func isEmpty(_ db: Database, _ scope: Scope) throws -> Bool {
        try Query(db, "SELECT 1 FROM tidemark_known_version WHERE scope = ?1 LIMIT 1")
            .first(db, [.text(scope.name)]) { _ in true } == nil
    }

    /// A finished scan covers everything up to `complete`.
    static func drop(_ db: Database, _ scope: Scope, upTo complete: Version) throws {
        try Query(db, "DELETE FROM tidemark_known_version WHERE scope = ?1 AND version <= ?2")
            .execute([.text(scope.name), .integer(complete)])
    }

    /// Whether a scope that this device has knows a version of the record.
    static func contains(_ db: Database, _ name: RecordName) throws -> Bool {
        try Query(
            db,
            """
            SELECT 1 FROM tidemark_scope JOIN tidemark_known_version ON scope = name
            WHERE entity = ?1 AND record = ?2 LIMIT 1
            """
        ).first(db, [.text(name.entity), .text(name.record)]) { _ in true } ?? false
    }

    /// Returns the records of a table that such a version is known of, with the scope of each.
    static func places(_ db: Database, _ entity: String) throws -> [(record: String, scope: String)] {
        try Query(db, "SELECT record, scope FROM tidemark_known_version WHERE entity = ?1")
            .rows(db, [.text(entity)]) { ($0.text(0), $0.text(1)) }
    }

    /// The server has lost all that came after `survived`.
    static func drop(_ db: Database, _ scope: Scope, after survived: Version) throws {
        try Query(db, "DELETE FROM tidemark_known_version WHERE scope = ?1 AND version > ?2")
            .execute([.text(scope.name), .integer(survived)])
    }
}
