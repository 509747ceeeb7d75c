import GRDB

/// Brings the library's tables of an older file to today's form. Each step adds what the version before lacks.
enum LibraryMigration {
    /// - Parameters:
    ///   - found: the version that the file says.
    ///   - evidence: the tables that came with version 2, as they are now.
    ///   - attachments: those that came with version 9.
    static func run(_ db: Database, from found: Int64, evidence: String, attachments: String) throws {
        guard found < LibrarySchema.version else { return }
        // SQLite refuses to rename what a view names once another part of that view is gone.
        try LibrarySchema.dropViews(db)
        // The later steps use today's names.
        if found < 6 { try rename(db) }
        if found < 2 {
            try db.execute(sql: "ALTER TABLE tidemark_table ADD COLUMN identity TEXT")
            try db.execute(sql: "ALTER TABLE tidemark_table ADD COLUMN columns TEXT")
            try db.execute(sql: evidence)
        }
        if found < 3 {
            for column in ["until INTEGER", "attempts INTEGER", "clock INTEGER", "detail TEXT", "hint TEXT"] {
                try db.execute(sql: "ALTER TABLE tidemark_scope ADD COLUMN deferred_\(column)")
            }
            try db.execute(sql: "ALTER TABLE tidemark_table ADD COLUMN key_types TEXT")
        }
        if found < 4 { try db.execute(sql: "ALTER TABLE tidemark_table ADD COLUMN types TEXT") }
        if found < 5 {
            try db.execute(sql: "ALTER TABLE tidemark_scope ADD COLUMN attempts INTEGER NOT NULL DEFAULT 0")
            try db.execute(sql: "ALTER TABLE tidemark_scope ADD COLUMN next_attempt INTEGER")
            try db.execute(sql: "ALTER TABLE tidemark_cascade ADD COLUMN version INTEGER")
        }
        if found < 7 {
            try joinStates(db)
            try db.execute(sql: "ALTER TABLE tidemark_bootstrap ADD COLUMN total INTEGER")
        }
        if found < 8 {
            try db.execute(
                sql: """
                    CREATE INDEX IF NOT EXISTS tidemark_quarantine_kept ON tidemark_quarantine(scope) WHERE move = 0
                    """)
        }
        if found < 9 {
            try db.execute(sql: attachments)
        } else if found < 10 {
            try db.execute(sql: "ALTER TABLE tidemark_blob ADD COLUMN stored_at INTEGER")
        }
        if found < 15 {
            try db.execute(sql: "UPDATE tidemark_blocked SET reason = 'awaiting_id' WHERE reason = 'unnamed'")
        }
        try keepFirstCapture(db, from: found)
        // Before version 7 the indexes are made anew with their table.
        if (7..<11).contains(found) { try renewIndexes(db) }
    }

    private static func keepFirstCapture(_ db: Database, from found: Int64) throws {
        if found < 12 { try db.execute(sql: "ALTER TABLE tidemark_table ADD COLUMN uncompared TEXT") }
        // In version 12 each row that waited had a shadow. It is sent, and gives way to a row that the server has.
        let waitsNoMore = "UPDATE tidemark_table SET uncompared = NULL WHERE uncompared IS NOT NULL"
        if found < 13 { try db.execute(sql: LibrarySchema.firstCapture + waitsNoMore) }
        if found < 14 { try db.execute(sql: LibrarySchema.sealedRun) }
    }

    /// Before version 7 an operation's state was in three columns: a verdict's, one for a second key, and a time. The
    /// table is made anew: taking a column away, SQLite would refuse every file whose app has a view of a table that is
    /// gone.
    private static func joinStates(_ db: Database) throws {
        let columns = """
            id, scope, lane, number, entity, record, kind, members, content, is_insert, edited_at, sealed_at, sent_at,
            finished_at, version, code, detail, hint, resolved, in_group
            """
        let last = try Query(db, "SELECT seq FROM sqlite_sequence WHERE name = 'tidemark_operation'")
            .first(db) { $0.integer(0) }
        try db.execute(
            sql: """
                CREATE TEMP TABLE tidemark_former AS SELECT * FROM main.tidemark_operation;
                DROP TABLE main.tidemark_operation;
                \(LibrarySchema.outbox)
                \(LibrarySchema.history)
                INSERT INTO main.tidemark_operation(\(columns), state) SELECT \(columns), CASE
                  WHEN finished_at IS NOT NULL THEN CASE status WHEN 'settled' THEN 'outcome_unknown' ELSE status END
                  WHEN again = 3 THEN 'resealed' WHEN again IS NOT NULL THEN 'replayed' ELSE 'sealed' END
                  FROM temp.tidemark_former;
                DROP TABLE temp.tidemark_former;
                """)
        guard let last else { return }
        // Ids that were given out once are not given out again.
        try Query(db, "DELETE FROM sqlite_sequence WHERE name = 'tidemark_operation'").execute()
        try Query(db, "INSERT INTO sqlite_sequence(name, seq) VALUES ('tidemark_operation', ?1)")
            .execute([.integer(last)])
    }

    /// Before version 11 the indexes' conditions were spelled in another way, and no query would use them.
    private static func renewIndexes(_ db: Database) throws {
        for name in ["open", "rejected", "replay", "packable", "finished"] {
            try db.execute(sql: "DROP INDEX IF EXISTS tidemark_operation_\(name)")
        }
        try db.execute(sql: LibrarySchema.outboxIndexes)
    }

    /// Names of before version 6, and the table for edits that await an id, which is one with the blocked ones now.
    private static func rename(_ db: Database) throws {
        let tables = [
            ("held", "blocked"), ("ahead", "known_version"), ("wanted", "refetch"), ("parked", "quarantine"),
            ("kept", "deleted_row"), ("settle", "cascade"), ("aside", "orphan"),
        ]
        for (old, new) in tables { try db.execute(sql: "ALTER TABLE tidemark_\(old) RENAME TO tidemark_\(new)") }
        let columns = [
            ("blocked", "culprit_entity", "blocker_entity"), ("blocked", "culprit_record", "blocker_record"),
            ("quarantine", "leaving", "move"), ("scope", "walking", "scanning"),
        ]
        for (table, old, new) in columns {
            try db.execute(sql: "ALTER TABLE tidemark_\(table) RENAME COLUMN \(old) TO \(new)")
        }
        try db.execute(
            sql: """
                ALTER TABLE tidemark_blocked ADD COLUMN reason TEXT NOT NULL DEFAULT 'refused';
                INSERT INTO tidemark_blocked(entity, record, blocker_entity, blocker_record, reason)
                  SELECT entity, record, parent_entity, parent, 'unnamed' FROM tidemark_waiting;
                DROP TABLE tidemark_waiting;
                DROP INDEX tidemark_held_culprit;
                CREATE INDEX tidemark_blocked_blocker ON tidemark_blocked(blocker_entity, blocker_record);
                DROP INDEX tidemark_parked_leaving;
                CREATE INDEX tidemark_quarantine_move ON tidemark_quarantine(scope, move) WHERE move <> 0;
                DROP INDEX tidemark_kept_record;
                CREATE INDEX tidemark_deleted_row_record ON tidemark_deleted_row(entity, record);
                """)
        let shadows = try Query(db, "SELECT name FROM sqlite_schema WHERE type = 'table' AND name LIKE ?1 ESCAPE '\\'")
            .rows(db, [.text("tidemark\\_shadow\\_%")]) { $0.text(0) }
        for shadow in shadows {
            try db.execute(
                sql: "ALTER TABLE \(quoted(shadow)) RENAME COLUMN tidemark_place TO tidemark_routing_scope")
        }
    }
}
