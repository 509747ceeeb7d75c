import GRDB

/// The library's own tables in the app's file. One file, one transaction: data and checkpoint cannot part.
enum LibrarySchema {
    /// Raised when the texts of the tables change; an older file is migrated in `install`.
    static let version: Int64 = 15

    /// Whether the file is synced.
    ///
    /// - Throws: as ``standing(_:)`` does.
    static func isInstalled(_ db: Database) throws -> Bool { try standing(db) == .whole }

    static func install(_ db: Database) throws {
        let standing = try standing(db)
        if standing == .whole {
            let found = try Meta.get(db, "schema").flatMap(Int64.init) ?? 0
            guard found <= version else {
                throw SyncError(
                    .schemaUnsupported, "The file was written by a newer version of this library (schema \(found)).",
                    hint: "Update the app before it opens this file.")
            }
            try LibraryMigration.run(db, from: found, evidence: evidence, attachments: attachments)
        } else {
            if standing == .empty {
                _ = try dropCapture(db)
                _ = try dropTables(db)
            }
            try db.execute(sql: tables + attachments + evidence)
        }
        try Meta.set(db, "schema", String(version))
    }

    /// The tables of this version, but for those that go with each of the app's.
    static var tableNames: [String] {
        (tables + attachments + evidence).matches(of: /CREATE TABLE (tidemark_\w+)/).map { String($0.1) }
    }
}

/// Small facts about this file, by name.
enum Meta {
    static func get(_ db: Database, _ key: String) throws -> String? {
        try Query(db, "SELECT value FROM tidemark_meta WHERE key = ?1").first(db, [.text(key)]) { $0.text(0) }
    }

    static func set(_ db: Database, _ key: String, _ value: String) throws {
        try Query(
            db,
            """
            INSERT INTO tidemark_meta(key, value) VALUES (?1, ?2)
            ON CONFLICT(key) DO UPDATE SET value = excluded.value
            """
        ).execute([.text(key), .text(value)])
    }

    static func remove(_ db: Database, _ key: String) throws {
        try Query(db, "DELETE FROM tidemark_meta WHERE key = ?1").execute([.text(key)])
    }
}
