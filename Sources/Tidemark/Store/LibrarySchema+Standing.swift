import GRDB

extension LibrarySchema {
    /// How the library's tables stand in a file.
    enum Standing: Hashable, Sendable {
        case absent
        /// As a copy of a schema without rows has them: nothing says what was synced, nor with whom.
        case empty
        case whole
    }

    /// - Throws: `schema_unsupported` where another program's table stands in the way, and `database_failed` where the
    ///   file has lost what identifies it, but not the edits that it has to send.
    static func standing(_ db: Database) throws -> Standing {
        let kind = try Query(db, "SELECT type FROM main.sqlite_master WHERE name = 'tidemark_meta' COLLATE NOCASE")
            .first(db) { $0.text(0) }
        guard let kind else { return .absent }
        let columns = try Query(db, "PRAGMA main.table_info(tidemark_meta)").rows(db) { $0.text(1) }
        guard kind == "table", columns == ["key", "value"] else { throw foreign }
        if try Meta.get(db, "schema") != nil { return .whole }
        let hasRows = try Query(db, "SELECT 1 FROM main.tidemark_meta LIMIT 1").first(db) { _ in true } ?? false
        let isOurs = try FileTable.named("tidemark_meta", db).contains { !$0.isTemporary && !$0.hasRowIDs }
        guard !hasRows, isOurs else { throw foreign }
        for table in ["tidemark_scope", Outbox.table] where try FileTable.exists(table, db) {
            guard try Query(db, "SELECT 1 FROM main.\(table) LIMIT 1").first(db, [], { _ in true }) == nil else {
                throw SyncError(
                    .databaseFailed, "The file's tidemark_meta is empty, and other tables of this library are not.",
                    hint: "Put a backup in its place, or take the rows into a new file and sync that.")
            }
        }
        return .empty
    }

    private static var foreign: SyncError {
        SyncError(
            .schemaUnsupported,
            "The file's 'tidemark_meta' is another program's; this library keeps its facts in a table of that name.",
            hint: "Rename it, for example with ALTER TABLE tidemark_meta RENAME TO my_meta.")
    }

    // MARK: Taking it out

    /// Takes the triggers and the indexes off the app's tables, and returns how many there were.
    static func dropCapture(_ db: Database) throws -> (triggers: Int, indexes: Int) {
        (
            try drop(db, "TRIGGER", "name LIKE 'tidemark\\_capture\\_%' ESCAPE '\\'"),
            try drop(
                db, "INDEX",
                "(name LIKE 'tidemark\\_unnamed\\_%' ESCAPE '\\' OR name LIKE 'tidemark\\_attached\\_%' ESCAPE '\\')")
        )
    }

    /// Drops the library's tables with all that they know, and returns how many there were.
    static func dropTables(_ db: Database) throws -> Int {
        // The app may have tables of its own whose names begin so: only those that the library makes are dropped.
        let names = tableNames.map(literal).joined(separator: ", ")
        try dropViews(db)
        try db.execute(sql: "DROP VIEW IF EXISTS main.tidemark_attachment")
        let count = try drop(
            db, "TABLE",
            "(name IN (\(names)) OR name LIKE 'tidemark\\_shadow\\_%' ESCAPE '\\'"
                + " OR name LIKE 'tidemark\\_touched\\_%' ESCAPE '\\')")
        try db.execute(sql: "DROP VIEW IF EXISTS main.tidemark_schema_end")
        return count
    }

    /// Drops the views of how records stand, which name tables that are about to change; `install` makes them anew.
    static func dropViews(_ db: Database) throws {
        _ = try drop(
            db, "VIEW", "name LIKE 'tidemark\\_state\\_%' ESCAPE '\\' AND sql LIKE '%tidemark\\_shadow\\_%' ESCAPE '\\'"
        )
    }

    private static func drop(_ db: Database, _ kind: String, _ condition: String) throws -> Int {
        let names = try Query(
            db,
            "SELECT name FROM main.sqlite_master WHERE type = '\(kind.lowercased())' AND \(condition) ORDER BY name"
        ).rows(db) { $0.text(0) }
        for name in names { try db.execute(sql: "DROP \(kind) main.\(quoted(name))") }
        return names.count
    }
}
