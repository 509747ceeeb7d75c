import GRDB

/// Every table and index of the library's own, as text: but for migrations, no other file makes one that stays. The
/// triggers, the views of how records stand and the indexes on the app's tables are made with those (`CaptureTriggers`,
/// `RecordStateView`, `Installation`).
extension LibrarySchema {
    static let tables = """
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

        -- Edits of scopes that this device has no more: replayed as edits when the scope is filled again. kind: what
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

        \(outbox)

        \(history)

        \(firstCapture)
        \(sealedRun)
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

    // MARK: The outbox

    static let outbox = """
        -- The outbox. members: the sealed operation as on the wire, without its key. content: its fields whole, where
        -- it carries patches. lane and number are NULL for one that could not be put on the wire. state: how
        -- it stands (Outbox.State). finished_at: when its verdict came.
        CREATE TABLE tidemark_operation(
            id INTEGER PRIMARY KEY AUTOINCREMENT, scope TEXT NOT NULL, lane TEXT, number INTEGER,
            entity TEXT NOT NULL, record TEXT NOT NULL, kind TEXT NOT NULL, state TEXT NOT NULL, members BLOB NOT NULL,
            content BLOB, is_insert INTEGER NOT NULL DEFAULT 0, edited_at INTEGER, sealed_at INTEGER NOT NULL,
            sent_at INTEGER, finished_at INTEGER, version INTEGER, code TEXT, detail TEXT, hint TEXT,
            -- The same members with ids for temporary ones, to read here; and the group that it is taken with.
            resolved BLOB, in_group TEXT);
        CREATE UNIQUE INDEX tidemark_operation_key ON tidemark_operation(lane, number);
        CREATE INDEX tidemark_operation_record ON tidemark_operation(entity, record);
        \(outboxIndexes)
        """

    /// The outbox's indexes by an operation's state.
    static let outboxIndexes = """
        CREATE INDEX tidemark_operation_open ON tidemark_operation(scope, id) WHERE \(Outbox.isOpen);
        CREATE INDEX tidemark_operation_rejected ON tidemark_operation(id) WHERE \(Outbox.isRejected);
        CREATE INDEX tidemark_operation_replay ON tidemark_operation(scope) WHERE \(Outbox.isReplay);
        CREATE INDEX tidemark_operation_packable ON tidemark_operation(scope, lane, id) WHERE \(Outbox.isPackable);
        CREATE INDEX tidemark_operation_finished ON tidemark_operation(scope, finished_at) WHERE \(Outbox.isFinished);
        """

    static let history = """
        -- Operations that the server took, in blocks of one lane (OutboxHistory). first, last: their numbers. newest:
        -- the highest id that one of them had in the outbox. version: the highest that one was taken at. finished_at:
        -- when the last one had its verdict.
        CREATE TABLE tidemark_history(
            id INTEGER PRIMARY KEY, scope TEXT NOT NULL, lane TEXT NOT NULL, first INTEGER NOT NULL,
            last INTEGER NOT NULL, newest INTEGER NOT NULL, version INTEGER NOT NULL, finished_at INTEGER NOT NULL,
            operations BLOB NOT NULL);
        CREATE INDEX tidemark_history_version ON tidemark_history(scope, version);
        """

    // MARK: The first capture

    static let firstCapture = """
        -- Rows that stood in a table when it was captured for the first time, until they are sealed (FirstCapture).
        -- first, last: the keys between which they lie. records: how many are left. keys: their keys as an array,
        -- without the prefix that all begin with; those before first are sealed. mark: the place among the marks of
        -- those that become edits. captured_at: in milliseconds since 1970.
        CREATE TABLE tidemark_first_capture(
            id INTEGER PRIMARY KEY, scope TEXT NOT NULL, entity TEXT NOT NULL, first NOT NULL, last NOT NULL,
            records INTEGER NOT NULL, prefix TEXT NOT NULL, keys TEXT NOT NULL, mark INTEGER NOT NULL,
            captured_at INTEGER NOT NULL);
        CREATE INDEX tidemark_first_capture_entity ON tidemark_first_capture(entity);

        """

    static let sealedRun = """
        -- Rows of the first capture that are sealed and have no shadows (SealedRun). first, last: the keys between
        -- which they lie. first_operation, last_operation: their operations, in the order of their keys.
        CREATE TABLE tidemark_sealed_run(
            first_operation INTEGER PRIMARY KEY, last_operation INTEGER NOT NULL, scope TEXT NOT NULL,
            entity TEXT NOT NULL, first NOT NULL, last NOT NULL);

        """

    // MARK: Attachments

    static let attachments = [blobChanges, blobs, blobFiles, attachmentView]
        .map { $0 + "\n" }.joined()

    private static let blobChanges = """
        -- References that rows in a scope have begun or ceased to name. own: the app itself has written one. automatic:
        -- the bytes are fetched without being asked for.
        CREATE TABLE tidemark_blob_change(
            reference TEXT NOT NULL, scope TEXT NOT NULL, own INTEGER NOT NULL, automatic INTEGER NOT NULL,
            PRIMARY KEY (reference, scope)) WITHOUT ROWID;
        """

    private static let blobs = """
        -- Bytes that rows of a scope name. here: they are on this device. offers: this device may upload them there,
        -- since the app named them. stored: the server has them, as far as is known. stored_at: when the transfer began
        -- after which it had them. wanted: why they are fetched (Blob.Wanted). task: what is to be done (Blob.Task).
        -- next_attempt: when it is tried again. awaited: nobody has uploaded them yet. moving, moved: a transfer is
        -- under way, and how many bytes are across. failed: nothing is tried any more. reason: the code of the last
        -- failure. All times in milliseconds since 1970.
        CREATE TABLE tidemark_blob(
            id INTEGER PRIMARY KEY, reference TEXT NOT NULL, scope TEXT NOT NULL, size INTEGER NOT NULL,
            here INTEGER NOT NULL, offers INTEGER NOT NULL, stored INTEGER NOT NULL, wanted INTEGER NOT NULL,
            pinned INTEGER NOT NULL, priority INTEGER NOT NULL, task INTEGER, next_attempt INTEGER,
            attempts INTEGER NOT NULL, awaited INTEGER NOT NULL, moving INTEGER NOT NULL, moved INTEGER NOT NULL,
            failed INTEGER NOT NULL, reason TEXT, stored_at INTEGER, UNIQUE (reference, scope));
        CREATE INDEX tidemark_blob_task ON tidemark_blob(task, priority DESC, id)
          WHERE task IS NOT NULL AND next_attempt IS NULL AND moving = 0;
        CREATE INDEX tidemark_blob_next ON tidemark_blob(next_attempt) WHERE next_attempt IS NOT NULL;
        CREATE INDEX tidemark_blob_moving ON tidemark_blob(moving) WHERE moving = 1;
        CREATE INDEX tidemark_blob_offered ON tidemark_blob(scope) WHERE offers = 1 AND stored = 0;
        """

    private static let blobFiles = """
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
    static let attachmentView = """
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

    // MARK: What is known of the server's rows

    static let evidence = """
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

    // MARK: Tables that go with each of the app's

    /// Makes the shadows of a table.
    ///
    /// - Throws: `DatabaseError` where the file refuses it.
    static func createShadows(_ db: Database, _ shape: TableSchema) throws {
        // No table's shadow is called as an index is: 'book' and 'book.mark' may both be synced.
        // Columns without a type have no affinity: what SQL copies in stays as it was, bit for bit.
        let columns = shape.columns.map { "\($0.sql), " }.joined()
        let key = shape.key.map(\.sql).joined(separator: ", ")
        try db.execute(
            sql: """
                CREATE TABLE \(shape.shadowSQL)(
                  tidemark_row INTEGER PRIMARY KEY, \(columns)tidemark_state INTEGER NOT NULL,
                  tidemark_version INTEGER, tidemark_bases TEXT, tidemark_mark INTEGER,
                  tidemark_since INTEGER, tidemark_edited INTEGER, tidemark_scope TEXT, tidemark_routing_scope TEXT,
                  tidemark_group TEXT, tidemark_gone INTEGER, UNIQUE (\(key)));
                CREATE INDEX \(quoted("tidemark_group_\(shape.name)")) ON \(shape.shadowSQL)(tidemark_group)
                  WHERE tidemark_group IS NOT NULL;
                CREATE INDEX \(quoted("tidemark_mark_\(shape.name)"))
                  ON \(shape.shadowSQL)(tidemark_routing_scope, tidemark_mark) WHERE tidemark_mark IS NOT NULL;
                """)
    }

    /// Makes the table that notes the rows of a guarded table (``TouchedTable``).
    static func createTouched(_ db: Database, _ shape: TableSchema) throws {
        let columns = shape.columns.map { "\($0.sql), " }.joined()
        let key = shape.key.map(\.sql).joined(separator: ", ")
        try db.execute(
            sql: "CREATE TABLE \(shape.touchedSQL)(\(columns)tidemark_was INTEGER NOT NULL, UNIQUE (\(key)))")
    }

    /// The last object of the schema is the library's own: what is made anew behind it never stands where it stood,
    /// not even a table that is restored from a dump with its triggers.
    static func markEnd(_ db: Database) throws {
        let last = try Query(db, "SELECT name FROM sqlite_master ORDER BY rowid DESC LIMIT 1").first(db) { $0.text(0) }
        guard last != "tidemark_schema_end" else { return }
        try db.execute(
            sql: """
                DROP VIEW IF EXISTS tidemark_schema_end;
                CREATE VIEW tidemark_schema_end AS SELECT 1 AS n
                """)
    }
}
