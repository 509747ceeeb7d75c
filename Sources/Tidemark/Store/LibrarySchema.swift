import GRDB

/// The library's own tables in the app's file. One file, one transaction: data and checkpoint cannot part.
enum LibrarySchema {
    /// Raised when the tables below change; an older file is migrated in `install`.
    static let version: Int64 = 14

    /// Whether the file is synced.
    ///
    /// - Throws: `schema_unsupported` where another program's table stands in the way.
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

    private static let tables = """
        CREATE TABLE tidemark_meta(key TEXT NOT NULL PRIMARY KEY, value) WITHOUT ROWID;

        -- One row per scope. complete: the last version at which the rows here were whole. origin: the first horizon
        -- of a scan from the beginning. head: the server's, as last heard. synced_at: the server's time then.
        -- lost_at: when the server took the access away. deferred_*: edits that its server has no room for (Deferral).
        -- attempts: failures in a row; next_attempt: when the next one is made, in milliseconds since 1970 (Attempts).
        CREATE TABLE tidemark_scope(
            name TEXT NOT NULL PRIMARY KEY, checkpoint TEXT, complete INTEGER, origin INTEGER,
            scanning INTEGER NOT NULL DEFAULT 0, epoch TEXT, head INTEGER, last_sync INTEGER,
            synced_at INTEGER, lost_at INTEGER, deferred_until INTEGER, deferred_attempts INTEGER,
            deferred_clock INTEGER, deferred_detail TEXT, deferred_hint TEXT, attempts INTEGER NOT NULL DEFAULT 0,
            next_attempt INTEGER) WITHOUT ROWID;

        -- Which scopes each table's rows were last spread over, by SyncedTable.ScopeRule, and what tells whether its
        -- capture was gone since (CaptureRecord). key_types: of what its record ids are made. types: what the columns
        -- held that the manifest's hashes are made of. uncompared: the scope in which the rows of its first capture
        -- wait to be held against the server's (FirstCapture).
        CREATE TABLE tidemark_table(
            name TEXT NOT NULL PRIMARY KEY, rule TEXT NOT NULL, identity TEXT, columns TEXT, key_types TEXT,
            types TEXT, uncompared TEXT) WITHOUT ROWID;

        -- Edits of scopes that this device has no more: given back as edits when the scope is filled again. kind: what
        -- was done (OrphanedEdits.Stored). in_group: those that go together.
        CREATE TABLE tidemark_orphan(
            id INTEGER PRIMARY KEY, scope TEXT NOT NULL, entity TEXT NOT NULL, record TEXT NOT NULL,
            kind TEXT NOT NULL, fields BLOB NOT NULL, reason TEXT, noted_at INTEGER NOT NULL, in_group TEXT);

        -- A scope that is being filled from a snapshot: what is in progress, beside the durable checkpoint above.
        -- token, cursor: the snapshot and its next page, once it has begun. version: what it is fixed at. direct: there
        -- were no rows here, so pages go straight into the tables. swapped: entities that stand as of version. entity:
        -- the one whose pages are staged. total: how many records it brings, where that is known. asking: the server is
        -- asked first whether it still has this device's operations; the name of the history that they were answered
        -- in. lost: the server has lost history.
        CREATE TABLE tidemark_bootstrap(
            scope TEXT NOT NULL PRIMARY KEY, token TEXT, cursor TEXT, version INTEGER NOT NULL,
            direct INTEGER NOT NULL, swapped TEXT NOT NULL, entity TEXT, rows INTEGER NOT NULL,
            total INTEGER, asking TEXT, lost INTEGER NOT NULL) WITHOUT ROWID;

        -- Pages of the snapshot whose entity is not whole yet: the arrays of changes, as they came.
        CREATE TABLE tidemark_staged(id INTEGER PRIMARY KEY, scope TEXT NOT NULL, changes BLOB NOT NULL);

        -- A lane is one opening of this file and one scope. told: how far the server knows that verdicts are applied.
        CREATE TABLE tidemark_lane(
            id TEXT NOT NULL PRIMARY KEY, scope TEXT NOT NULL, next_number INTEGER NOT NULL,
            told INTEGER NOT NULL DEFAULT 0) WITHOUT ROWID;

        -- Numbers the marks, so that edits leave in the order in which they were first made. clock: the last stamp
        -- that was given out, or heard of.
        CREATE TABLE tidemark_counter(n INTEGER NOT NULL, clock INTEGER NOT NULL);
        INSERT INTO tidemark_counter(n, clock) VALUES (0, 0);

        -- Holds a row only inside a transaction that applies the server's changes: capture looks away then.
        CREATE TABLE tidemark_applying(flag INTEGER NOT NULL);

        \(Outbox.schema)

        \(OutboxHistory.schema)

        \(FirstCapture.schema)
        \(SealedRun.schema)
        -- Edits that another record blocks, and why (Blocker): they are not sent until it is out of their way.
        CREATE TABLE tidemark_blocked(
            id INTEGER PRIMARY KEY, entity TEXT NOT NULL, record TEXT NOT NULL, blocker_entity TEXT NOT NULL,
            blocker_record TEXT NOT NULL, reason TEXT NOT NULL, UNIQUE (entity, record) ON CONFLICT REPLACE);
        CREATE INDEX tidemark_blocked_blocker ON tidemark_blocked(blocker_entity, blocker_record);

        -- Versions above complete that are known one by one: own verdicts, and rows of an unfinished scan.
        CREATE TABLE tidemark_known_version(
            scope TEXT NOT NULL, entity TEXT NOT NULL, record TEXT NOT NULL, version INTEGER NOT NULL,
            deleted INTEGER NOT NULL, PRIMARY KEY (scope, entity, record)) WITHOUT ROWID;

        -- Records that the server is asked for by name, apart from the scan.
        CREATE TABLE tidemark_refetch(
            scope TEXT NOT NULL, entity TEXT NOT NULL, record TEXT NOT NULL,
            PRIMARY KEY (scope, entity, record)) WITHOUT ROWID;

        -- Rows that a scope holds and the table does not, since the app's schema does not take them as things stand,
        -- another scope's row has their place, or they leave for another scope. contends: other rows decide, so it is
        -- tried after each page. fresh: not tried since it, or the app's schema, last changed. move: how far its scope
        -- move has come (QuarantinedRow.Move). base: the version that it left at.
        CREATE TABLE tidemark_quarantine(
            entity TEXT NOT NULL, record TEXT NOT NULL, scope TEXT NOT NULL, version INTEGER, reason TEXT NOT NULL,
            contends INTEGER NOT NULL, fresh INTEGER NOT NULL, data BLOB NOT NULL,
            move INTEGER NOT NULL DEFAULT 0, base INTEGER, PRIMARY KEY (entity, record, scope)) WITHOUT ROWID;
        CREATE INDEX tidemark_quarantine_move ON tidemark_quarantine(scope, move) WHERE move <> 0;
        CREATE INDEX tidemark_quarantine_kept ON tidemark_quarantine(scope) WHERE move = 0;

        -- Rows that were deleted elsewhere, as they last came from the server, for as long as their table asks for.
        CREATE TABLE tidemark_deleted_row(
            id INTEGER PRIMARY KEY AUTOINCREMENT, scope TEXT NOT NULL, entity TEXT NOT NULL, record TEXT NOT NULL,
            data BLOB NOT NULL, deleted_at INTEGER NOT NULL);
        CREATE INDEX tidemark_deleted_row_record ON tidemark_deleted_row(entity, record);

        -- Parents deleted in the scan under way, whose children are looked at when it ends. version: of the deletion.
        CREATE TABLE tidemark_cascade(
            scope TEXT NOT NULL, entity TEXT NOT NULL, record TEXT NOT NULL, columns BLOB NOT NULL,
            version INTEGER, PRIMARY KEY (scope, entity, record)) WITHOUT ROWID;

        -- What this device had no place for when it came: columns, or whole rows where fields is NULL, with the scan
        -- that fetches them and the place where the scope stood when it began.
        CREATE TABLE tidemark_backfill(
            scope TEXT NOT NULL, entity TEXT NOT NULL, fields TEXT, token TEXT, cursor TEXT, since TEXT,
            PRIMARY KEY (scope, entity)) WITHOUT ROWID;
        CREATE TABLE tidemark_backfill_seen(
            scope TEXT NOT NULL, entity TEXT NOT NULL, record TEXT NOT NULL,
            PRIMARY KEY (scope, entity, record)) WITHOUT ROWID;

        -- What temporary ids stand for. again: one was used here after it had gone.
        CREATE TABLE tidemark_alias(
            entity TEXT NOT NULL, temporary TEXT NOT NULL, record TEXT NOT NULL, made_at INTEGER NOT NULL,
            again INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (entity, temporary)) WITHOUT ROWID;
        CREATE INDEX tidemark_alias_again ON tidemark_alias(again) WHERE again;
        CREATE INDEX tidemark_alias_age ON tidemark_alias(made_at);

        -- Sealed operations that name another record by its temporary id.
        CREATE TABLE tidemark_ref(
            entity TEXT NOT NULL, temporary TEXT NOT NULL, operation INTEGER NOT NULL,
            PRIMARY KEY (entity, temporary, operation)) WITHOUT ROWID;

        -- Holds rows only inside a transaction that puts ids in the place of others.
        CREATE TABLE tidemark_renaming(old PRIMARY KEY, new) WITHOUT ROWID;

        -- Edits that met somebody else's. fields: base, mine, theirs and result of each, as JSON. whole: the row as it
        -- was meant here, where it may have to be made anew. operation: kept with it until it is decided.
        CREATE TABLE tidemark_conflict(
            id INTEGER PRIMARY KEY AUTOINCREMENT, scope TEXT NOT NULL, entity TEXT NOT NULL, record TEXT NOT NULL,
            rule TEXT NOT NULL, fields BLOB NOT NULL, is_delete INTEGER NOT NULL,
            is_deleted_elsewhere INTEGER NOT NULL, is_open INTEGER NOT NULL, version INTEGER, edited_at INTEGER,
            theirs_at INTEGER, noticed_at INTEGER NOT NULL, whole BLOB, operation INTEGER);
        CREATE INDEX tidemark_conflict_open ON tidemark_conflict(scope, id) WHERE is_open;

        """

    private static let attachments = [BlobChanges.schema, Blob.schema, BlobFiles.schema, BlobFiles.view]
        .map { $0 + "\n" }.joined()

    private static let evidence = """
        -- The records that the server has, as far as this device knows, in ranges of their keys: each with a hash of
        -- its row (ManifestRange). And how many there are.
        CREATE TABLE tidemark_manifest(
            id INTEGER PRIMARY KEY, scope TEXT NOT NULL, entity TEXT NOT NULL, first BLOB NOT NULL,
            entries BLOB NOT NULL);
        CREATE UNIQUE INDEX tidemark_manifest_first ON tidemark_manifest(entity, scope, first);
        CREATE TABLE tidemark_manifested(
            scope TEXT NOT NULL, entity TEXT NOT NULL, records INTEGER NOT NULL,
            PRIMARY KEY (entity, scope)) WITHOUT ROWID;

        -- Writes that no trigger saw (Inferred). compared: held against the server's row. held: waits for the app.
        CREATE TABLE tidemark_inferred(
            entity TEXT NOT NULL, record TEXT NOT NULL, scope TEXT NOT NULL, kind INTEGER NOT NULL, hash INTEGER,
            held INTEGER NOT NULL, compared INTEGER NOT NULL DEFAULT 0,
            PRIMARY KEY (entity, record, scope)) WITHOUT ROWID;
        -- Deletes that the server's brake refused and that were confirmed since: the next ones of these records say so.
        CREATE TABLE tidemark_confirmed(
            entity TEXT NOT NULL, record TEXT NOT NULL, PRIMARY KEY (entity, record)) WITHOUT ROWID;
        CREATE INDEX tidemark_inferred_open ON tidemark_inferred(scope, entity, record) WHERE compared = 0;

        """
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
}
