import Foundation
import GRDB

/// A newer version of Tidemark has written the file, so that this one would not keep it in order.
package struct NewerStore: Error, CustomStringConvertible {
    package let description = "a newer version of Tidemark has written it"
}

/// The log's tables. `change` is a plain rowid table, because its appends take a third of the time of those to a
/// WITHOUT ROWID one.
enum Schema {
    /// Brings the file to the present schema and returns its token key: the new one where the file is new.
    ///
    /// - Throws: ``NewerStore``; `DatabaseError` where the file cannot be written, or is no store.
    static func prepare(_ pool: DatabasePool, newKey: [UInt8]) throws -> [UInt8] {
        var migrator = DatabaseMigrator()
        migrator.registerMigration("1") { db in
            for statement in first { try db.execute(sql: statement) }
            try db.execute(sql: "INSERT INTO meta VALUES ('token_key', ?)", arguments: [Data(newKey)])
        }
        migrator.registerMigration("2") { db in
            try db.execute(sql: "CREATE INDEX rejection_place ON rejection (scope, id)")
        }
        migrator.registerMigration("3") { db in
            for column in ["live_rows", "live_bytes"] {
                try db.execute(sql: "ALTER TABLE scope ADD COLUMN \(column) INTEGER NOT NULL DEFAULT 0")
            }
            try db.execute(
                sql: """
                    UPDATE scope SET (live_rows, live_bytes) =
                        (SELECT \(SQLiteScope.size) FROM change WHERE scope = scope.id AND superseded_by IS NULL)
                    """)
        }
        // Ids are not counted any more.
        migrator.registerMigration("4") { db in try db.execute(sql: "DROP TABLE assigned") }
        migrator.registerMigration("5") { db in
            for column in ["superseded_rows", "superseded_bytes"] {
                try db.execute(sql: "ALTER TABLE scope ADD COLUMN \(column) INTEGER NOT NULL DEFAULT 0")
            }
            // The order in which a window that holds too much is ended.
            try db.execute(
                sql: """
                    CREATE INDEX change_window ON change (scope, superseded_by, version)
                    WHERE superseded_by IS NOT NULL
                    """)
            try db.execute(
                sql: """
                    UPDATE scope SET (superseded_rows, superseded_bytes) =
                        (SELECT \(SQLiteScope.size) FROM change WHERE scope = scope.id AND superseded_by IS NOT NULL)
                    """)
        }
        // The moment marks a scope as erased, so that it is refused; the index finds the ids of a scope.
        migrator.registerMigration("6") { db in
            try db.execute(sql: "ALTER TABLE scope ADD COLUMN erased_at INTEGER")
            try db.execute(sql: "CREATE INDEX alias_scope ON alias (scope, principal)")
        }
        // What hooks were told, and who may call them.
        migrator.registerMigration("7") { db in for statement in hooks { try db.execute(sql: statement) } }
        // A device's own word, for the operator's list.
        migrator.registerMigration("8") { db in
            for column in DeviceReports.columns { try db.execute(sql: "ALTER TABLE device ADD COLUMN \(column)") }
        }
        // Which blobs and parts there are; their bytes are files beside this one.
        migrator.registerMigration("9") { db in for statement in BlobRows.schema { try db.execute(sql: statement) } }
        // What the operator asked of a device last.
        migrator.registerMigration("10") { db in try db.execute(sql: "ALTER TABLE device ADD COLUMN remedy BLOB") }
        // The migrator by itself passes over migrations that it does not know, and this version would write past a
        // newer one's counts.
        guard try !pool.read(migrator.hasBeenSuperseded) else { throw NewerStore() }
        try migrator.migrate(pool)
        return try pool.read { db in
            let key = try Data.fetchOne(db, sql: "SELECT value FROM meta WHERE key = 'token_key'")
            guard let key, key.count == 32 else {
                throw DatabaseError(resultCode: .SQLITE_CORRUPT, message: "The store has lost its token key.")
            }
            return [UInt8](key)
        }
    }

    private static let hooks = [
        """
        CREATE TABLE hook (
            name TEXT PRIMARY KEY, holder TEXT NOT NULL, held_until INTEGER NOT NULL, place TEXT NOT NULL DEFAULT '',
            is_begun INTEGER NOT NULL DEFAULT 0) WITHOUT ROWID
        """,
        """
        CREATE TABLE hook_told (
            hook TEXT NOT NULL, scope INTEGER NOT NULL, told INTEGER NOT NULL, PRIMARY KEY (hook, scope)
        ) WITHOUT ROWID
        """,
    ]

    private static let first = [
        "CREATE TABLE meta (key TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID",
        """
        CREATE TABLE scope (
            id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, head INTEGER NOT NULL, last_time INTEGER NOT NULL,
            sweep_floor INTEGER NOT NULL DEFAULT 0, retention_floor INTEGER NOT NULL DEFAULT 0,
            entities TEXT NOT NULL DEFAULT '')
        """,
        """
        CREATE TABLE incarnation (
            scope INTEGER NOT NULL, start INTEGER NOT NULL, id INTEGER NOT NULL, PRIMARY KEY (scope, start, id)
        ) WITHOUT ROWID
        """,
        """
        CREATE TABLE change (
            scope INTEGER NOT NULL, version INTEGER NOT NULL, entity TEXT NOT NULL, record TEXT NOT NULL,
            kind INTEGER NOT NULL, time INTEGER NOT NULL, superseded_by INTEGER, superseded_at INTEGER,
            payload BLOB, field_versions BLOB, originals BLOB)
        """,
        "CREATE UNIQUE INDEX change_version ON change (scope, version)",
        "CREATE UNIQUE INDEX change_record ON change (scope, entity, record, version)",
        "CREATE INDEX change_superseded ON change (superseded_at) WHERE superseded_at IS NOT NULL",
        // The sums over the live records of an entity, kept in step with the log.
        """
        CREATE TABLE digest (
            scope INTEGER NOT NULL, entity TEXT NOT NULL, sums BLOB NOT NULL, PRIMARY KEY (scope, entity)
        ) WITHOUT ROWID
        """,
        """
        CREATE TABLE lane (
            id INTEGER PRIMARY KEY, scope INTEGER NOT NULL, principal TEXT NOT NULL, client TEXT NOT NULL,
            lane TEXT NOT NULL, number INTEGER NOT NULL, seen_at INTEGER NOT NULL,
            UNIQUE (scope, principal, client, lane))
        """,
        """
        CREATE TABLE verdict (
            lane INTEGER NOT NULL, number INTEGER NOT NULL, digest BLOB NOT NULL, members BLOB NOT NULL,
            version INTEGER, base_number INTEGER, took_effect INTEGER NOT NULL, PRIMARY KEY (lane, number)
        ) WITHOUT ROWID
        """,
        // The ids that devices' temporary ids stand for.
        """
        CREATE TABLE alias (
            principal TEXT NOT NULL, client TEXT NOT NULL, entity TEXT NOT NULL, temporary TEXT NOT NULL,
            record TEXT NOT NULL, scope INTEGER NOT NULL, made_at INTEGER NOT NULL,
            PRIMARY KEY (principal, client, entity, temporary)
        ) WITHOUT ROWID
        """,
        "CREATE INDEX alias_record ON alias (entity, record)",
        "CREATE INDEX alias_age ON alias (made_at)",
        // The last integer id assigned per entity, in all scopes: a row may move from one to another. Migration 4
        // drops the table.
        "CREATE TABLE assigned (entity TEXT PRIMARY KEY, number INTEGER NOT NULL) WITHOUT ROWID",
        // The known devices: from which version on deletions are kept for each, and from which on verdicts gave it
        // rows.
        """
        CREATE TABLE device (
            scope INTEGER NOT NULL, principal TEXT NOT NULL, client TEXT NOT NULL, version INTEGER,
            seen_at INTEGER NOT NULL, oldest INTEGER, PRIMARY KEY (scope, principal, client)) WITHOUT ROWID
        """,
        "CREATE INDEX device_version ON device (scope, version)",
        "CREATE INDEX device_seen ON device (scope, seen_at)",
        // Notes on what a user has lately deleted of an entity that has a brake, and, under an empty name, on what he
        // has added to the scope.
        """
        CREATE TABLE deletes (
            scope INTEGER NOT NULL, principal TEXT NOT NULL, entity TEXT NOT NULL, note BLOB NOT NULL,
            made_at INTEGER NOT NULL, PRIMARY KEY (scope, principal, entity)) WITHOUT ROWID
        """,
        // Refused edits, for the operator; a bounded list. No number comes twice.
        """
        CREATE TABLE rejection (
            id INTEGER PRIMARY KEY AUTOINCREMENT, scope TEXT NOT NULL, entity TEXT NOT NULL, record TEXT NOT NULL,
            is_delete INTEGER NOT NULL, fields BLOB, principal TEXT NOT NULL, client TEXT NOT NULL, lane TEXT NOT NULL,
            number INTEGER NOT NULL, code TEXT NOT NULL, detail TEXT NOT NULL, time INTEGER NOT NULL)
        """,
    ]
}
