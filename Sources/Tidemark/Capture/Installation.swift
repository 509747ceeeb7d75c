import GRDB
import TidemarkWire

/// Puts the library's tables, the shadows and the capture triggers into the app's file, or brings them up to date
/// after a migration of the app.
enum Installation {
    /// Runs inside a write transaction.
    ///
    /// - Parameter checked: the version of the schema in which this program was seen to be able to write to the tables.
    static func install(
        _ db: Database, tables: [(name: String, rule: SyncedTable.ScopeRule)], scopes: [Scope],
        attachments: ByName<[SyncedTable.Attachment]> = ByName(), checked: Int64? = nil
    ) throws -> SyncSchema {
        let isChecked = try checked == SyncSchema.version(db)
        try LibrarySchema.install(db)
        let guarded = try TableSchema.tablesWrittenByTriggers(db)
        var shapes: [TableSchema] = []
        for table in tables {
            try TableRules.respell(db, table.name)
            var shape = try TableSchema(db, table: table.name, rule: table.rule, isChecked: isChecked)
            shape.isGuarded = guarded.contains(SQLName(table.name))
            try shape.add(attachments[table.name] ?? [])
            try shape.warnAboutTriggers(db, synced: Set(tables.map(\.name)))
            let isNew = try !ShadowTable(shape).exists(db)
            let names = try ColumnNames(db, shape)
            let view = RecordStateView(shape: shape)
            try view.dropOther(db)
            let wasKept = try FirstCapture.part(db, shape.name) != nil
            try installShadow(db, shape)
            try view.install(db)
            let wasCaptured = try !isNew && isCaptured(db, shape)
            try installTouched(db, shape)
            try AttachmentCapture(shape: shape).install(db)
            try installTriggers(db, shape)
            try installUnnamedIndex(db, shape)
            try TableRules.write(db, table.name, table.rule)
            try reconcileCapture(db, shape, names, isNew: isNew, wasCaptured: wasCaptured, wasKept: wasKept)
            try refreshPlaces(db, shape)
            try Misfits.release(db, shape)
            shapes.append(shape)
        }
        try forgetVanished(db)
        try LibrarySchema.markEnd(db)
        try Meta.set(db, removalKey, "0")
        let clientID: String
        if let known = try Meta.get(db, "clientId") {
            clientID = known
        } else {
            clientID = randomHex(bytes: 16)
            try Meta.set(db, "clientId", clientID)
        }
        for scope in scopes { try ScopeRecord.follow(db, scope) }
        try Meta.set(db, schemaVersionKey, String(SyncSchema.version(db)))
        // A migration may have made room for rows that did not fit before.
        try QuarantinedRow.tryAgain(db, except: Misfits.reason)
        return SyncSchema(shapes: shapes, clientID: clientID, schemaVersion: try SyncSchema.version(db))
    }

    private static func installShadow(_ db: Database, _ shape: TableSchema) throws {
        guard try ShadowTable(shape).exists(db) else {
            try LibrarySchema.createShadows(db, shape)
            return try Backfills.enqueue(db, entity: shape.name, fields: nil, rule: shape.rule)
        }
        try followKey(db, shape)
        try widenShadow(db, shape)
    }

    /// Whether the shadow names its records by the columns that are the table's key now.
    static func hasKey(_ db: Database, _ shape: TableSchema) throws -> Bool {
        try ShadowTable(shape).key(db) == shape.key.map(\.name)
    }

    /// A key's column may get another name; the columns that it is made of never change.
    private static func followKey(_ db: Database, _ shape: TableSchema) throws {
        if let types = try CaptureRecord.read(db, shape.name).keyTypes, types != shape.keyTypes {
            throw SyncError(
                .tableUnsupported,
                "The primary key of '\(shape.name)' is of another type than before: \(shape.keyTypes), not \(types).",
                hint: "Records would have other ids on every device. Make a new table with the new key, and sync that.")
        }
        let known = try ShadowTable(shape).key(db)
        let key = shape.key.map(\.name)
        guard known != key else { return }
        guard let old = known.first, known.count == 1, key.count == 1,
            !shape.columns.contains(where: { $0.name == old })
        else {
            throw SyncError(
                .tableUnsupported, "The primary key of '\(shape.name)' is made of other columns than before.",
                hint: "Records would have other ids on every device. Make a new table with the new key, and sync that.")
        }
        try ShadowTable(shape).renameKey(db, from: old)
    }

    /// Gives a shadow the columns that its table has got since, and notes that their values are to be fetched.
    static func widenShadow(_ db: Database, _ shape: TableSchema) throws {
        let shadows = ShadowTable(shape)
        let known = try shadows.columns(db)
        let reused = try ColumnNames(db, shape).reused
        // A column of the same name that comes later is another one.
        let lost = known.filter { name in
            !name.hasPrefix("tidemark_")
                && (!shape.columns.contains { $0.name.isSameName(as: name) }
                    || reused.contains { $0.isSameName(as: name) })
        }
        let added = shape.columns.filter { column in
            !known.contains { $0.isSameName(as: column.name) && !lost.contains($0) }
        }
        guard !(lost.isEmpty && added.isEmpty) else { return }
        // Rows of the first capture are sent as they stand once the migration is over.
        try FirstCapture.takeApart(db, shape)
        for name in lost { try shadows.dropColumn(db, name) }
        for column in added { try shadows.addColumn(db, column) }
        try SealedRun.unfold(db, shape)
        guard !added.isEmpty else { return }
        // An insert may be on its way without the column, in a scope that has no checkpoint to fetch it from.
        try Marks.announce(db)
        try shadows.markInserts(db)
        try Backfills.enqueue(db, entity: shape.name, fields: added.map(\.name), rule: shape.rule)
    }

    /// Refreshes the routing scopes of edited rows, which writes with capture off may have put into other scopes.
    static func refreshPlaces(_ db: Database, _ shape: TableSchema) throws {
        if shape.isScopedByColumn { try ShadowTable(shape).refreshRoutingScopes(db) }
    }

    /// Takes the triggers and indexes off all tables, and returns how many there were; `install` puts them back.
    static func removeCapture(_ db: Database) throws -> (triggers: Int, indexes: Int) {
        let removed = try LibrarySchema.dropCapture(db)
        if try LibrarySchema.isInstalled(db) { try Meta.set(db, removalKey, "1") }
        return removed
    }

    private static func installTouched(_ db: Database, _ shape: TableSchema) throws {
        if try TouchedTable(shape).clearOrDrop(db) { try LibrarySchema.createTouched(db, shape) }
    }

    /// Rows without a whole key are no records, and are counted by an index that holds nothing else.
    private static func installUnnamedIndex(_ db: Database, _ shape: TableSchema) throws {
        guard let index = shape.unnamedIndex, try !db.indexExists(index, on: shape.name) else { return }
        try db.execute(
            sql: """
                DROP INDEX IF EXISTS \(quoted(index));
                CREATE INDEX \(quoted(index)) ON \(shape.sql)(\(shape.key[0].sql)) WHERE \(shape.isUnnamedSQL)
                """)
    }

    /// Edits of a table that is in the file no more went with it, or with the table that it was renamed to, which is
    /// another entity: nothing of them waits. Its rows on the server stay, and the status names it.
    private static func forgetVanished(_ db: Database) throws {
        for table in try TableRules.all(db).keys.sorted() where try !FileTable.exists(table, db) {
            try ShadowTable.unmark(db, of: table)
            try FirstCapture.forget(db, table)
            for place in LibraryTable.following(.tableLoss) { try place.clear(db, entity: table) }
        }
    }

    // MARK: Capture that was gone

    /// The schema of the last installation: capture is held against each later one.
    private static let schemaVersionKey = "schema_version"

    /// Noted where the app takes the triggers off itself: what its migration writes is meant.
    private static let removalKey = "capture_removed"

    /// Whether the table has had its triggers all the time since it was last looked at. The table of a rebuild is
    /// another one, whatever it is called, and triggers go with the table that they stand on.
    static func isCaptured(_ db: Database, _ shape: TableSchema) throws -> Bool {
        let known = try CaptureRecord.read(db, shape.name)
        if let identity = known.identity, try identity != CaptureRecord.identity(db, shape.name) { return false }
        if try mayBeHidden(db, shape) || ColumnNames(db, shape).areExchanged { return false }
        let installed = try Query(
            db, "SELECT name, sql FROM sqlite_master WHERE type = 'trigger' AND tbl_name = ?1 COLLATE NOCASE"
        ).rows(db, [.text(shape.name)]) { (name: $0.text(0), sql: $0.text(1)) }
        let isStanding = CaptureTriggers.standing.allSatisfy { suffix in
            installed.contains { $0.name == CaptureTriggers.name(suffix, of: shape.name) }
        }
        return try isStanding && CaptureTriggers(shape: shape).watchesUniques(installed.map(\.sql)) && addsUp(db, shape)
    }

    /// Whether a table whose schema has changed holds as many rows as are known of (I13). A unique index that was made
    /// and dropped again has left nothing in the schema to compare, but may have let a REPLACE evict rows unseen.
    private static func addsUp(_ db: Database, _ shape: TableSchema) throws -> Bool {
        guard try Meta.get(db, schemaVersionKey) != String(SyncSchema.version(db)), try hasKey(db, shape),
            try CaptureRecord.read(db, shape.name).columns != nil,
            // Rows that the library has taken away itself, to fetch them anew, are no deletes.
            try !RefetchQueue.isAny(db, shape.name)
        else { return true }
        let counting = RowCounting(db: db, shape: shape)
        return try counting.noted().total == counting.counted()
    }

    /// Whether a trigger of the app's that came after the library's may end a row's other triggers before those run:
    /// SQLite begins with the newest.
    private static func mayBeHidden(_ db: Database, _ shape: TableSchema) throws -> Bool {
        try Query(
            db,
            """
            SELECT 1 FROM sqlite_master WHERE type = 'trigger' AND tbl_name = ?1 COLLATE NOCASE
              AND name NOT LIKE 'tidemark\\_%' ESCAPE '\\' AND sql LIKE '%RAISE%IGNORE%'
              AND rowid > (SELECT min(rowid) FROM sqlite_master WHERE type = 'trigger'
                AND tbl_name = ?1 COLLATE NOCASE AND name LIKE 'tidemark\\_capture\\_%' ESCAPE '\\')
            """
        ).first(db, [.text(shape.name)]) { _ in true } ?? false
    }

    /// Finds what was written while nothing was captured, and brings the manifest in step with the table's columns.
    private static func reconcileCapture(
        _ db: Database, _ shape: TableSchema, _ names: ColumnNames, isNew: Bool, wasCaptured: Bool, wasKept: Bool
    ) throws {
        // The app may have declared attachments or made triggers since, which have a say in each operation.
        if try wasCaptured && !FirstCapture.mayKeep(shape, db) { try FirstCapture.materialize(db, shape) }
        var record = try CaptureRecord.read(db, shape.name)
        record.forget(columns: names.reused)
        let columns = shape.data.map(\.name)
        if !wasCaptured {
            try UncapturedScan(
                db, shape, record, isAnnounced: Meta.get(db, removalKey) == "1", isFirst: isNew, wasKept: wasKept
            ).run()
        } else if record.columns != columns {
            try NewColumns(db: db, shape: shape, known: record.columns ?? columns).writeEdits()
            try Manifest.rebuild(db, shape)
        }
        record.identity = try CaptureRecord.identity(db, shape.name)
        record.columns = columns
        record.types = shape.data.map(\.affinity.standardType)
        record.keyTypes = shape.keyTypes
        try record.write(db, shape.name)
    }

    private static func installTriggers(_ db: Database, _ shape: TableSchema) throws {
        let installed = try Query(
            db,
            """
            SELECT name, sql FROM sqlite_master
            WHERE type = 'trigger' AND tbl_name = ?1 AND name LIKE 'tidemark\\_%' ESCAPE '\\'
            """
        ).rows(db, [.text(shape.name)]) { ($0.text(0), $0.text(1)) }
        let wanted = CaptureTriggers(shape: shape).all()
        let isHidden = try mayBeHidden(db, shape)
        for (name, sql) in installed where isHidden || !wanted.contains(where: { $0.name == name && $0.sql == sql }) {
            try db.execute(sql: "DROP TRIGGER \(quoted(name))")
        }
        for trigger in wanted
        where isHidden || !installed.contains(where: { $0.0 == trigger.name && $0.1 == trigger.sql }) {
            // A trigger that went along with a table under another name still has the old name.
            try db.execute(sql: "DROP TRIGGER IF EXISTS \(quoted(trigger.name)); \(trigger.sql)")
        }
    }
}
