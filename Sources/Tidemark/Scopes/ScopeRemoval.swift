import GRDB
import TidemarkWire

/// Takes a scope off the device: what was not sent is orphaned, then exactly the scope's rows go, and with them all
/// that was known of its history. Other scopes are left alone (T25).
struct ScopeRemoval: Sendable {
    var scope: Scope
    var schema: SyncSchema
    var declarations: Declarations
    /// Whether the server took the access away, which the status tells.
    var isLoss: Bool
    var now: Int64

    /// How much a removal took off the device.
    struct Removed: Hashable, Sendable {
        /// Rows that are in no table of the app's any more.
        var rows = 0
        /// Edits that were orphaned.
        var orphaned = 0

        /// The sentence by which an error tells of the loss.
        var sentence: String {
            let gone = "\(rows) \(rows == 1 ? "row" : "rows") of the scope left this device"
            guard orphaned > 0 else { return gone + "; no edit was unsent." }
            let edits =
                orphaned == 1
                ? "1 unsent edit is orphaned, and comes" : "\(orphaned) unsent edits are orphaned, and come"
            return gone + "; \(edits) back with the access."
        }
    }

    /// Runs on the writer, outside any transaction. Does nothing where the device never held the scope: what was made
    /// for it here waits to be sent. Returns what went with an access that was taken away; `nil` else.
    @discardableResult
    func run(_ db: Database) throws -> Removed? {
        var removed: Removed?
        _ = try ApplyTransaction.withoutForeignKeys(db) {
            try schema.check(db, scope)
            guard try isOnDevice(db) else { return Applier.Outcome() }
            let before = isLoss ? try count(db) : nil
            try CaptureSuppression.whileApplying(db, schema) { try remove(db) }
            if let before {
                let after = try count(db)
                removed = Removed(rows: before.rows - after.rows, orphaned: after.orphaned - before.orphaned)
            }
            try Marks.announce(db)
            return Applier.Outcome()
        }
        return removed
    }

    /// All rows of the tables that may hold some of the scope, and the edits that are orphaned.
    private func count(_ db: Database) throws -> Removed {
        let shapes = try TableRules.shapes(db, in: scope, beside: schema)
        return Removed(
            rows: try shapes.reduce(0) { $0 + (try Query.count(db, "SELECT count(*) FROM \($1.sql)")) },
            orphaned: try OrphanedEdits.count(db))
    }

    private func isOnDevice(_ db: Database) throws -> Bool {
        let record = try ScopeRecord.read(db, scope)
        if record.checkpoint != nil || record.complete != nil || record.bootstrap?.token != nil { return true }
        // Records that came by name, or by a verdict, before anything else did.
        return try !KnownVersions.isEmpty(db, scope)
    }

    private func remove(_ db: Database) throws {
        // Tables that only another version of the app, or another engine on this file, names hold rows of it too.
        let shapes = try TableRules.shapes(db, in: scope, beside: schema)
        for shape in shapes {
            try TableRemoval(
                db: db, scope: scope, table: RecordTable(shape),
                reserved: declarations.reserved(in: shape), now: now
            ).run()
            // An edit in another table is orphaned as it was made, not as triggers make it when these rows go.
            try TriggerGuard(db: db, schema: schema).restore()
        }
        try BlobFiles.leave(db, scope)
        for place in LibraryTable.following(.scopeRemoval) { try place.clear(db, scope: scope) }
        // Refused operations and open conflicts stay, because they are the app's to let go of.
        try Conflicts.removeResolved(db, scope)
        try Outbox.clear(db, scope)
        try ScopeRecord.reset(db, scope, lostAt: isLoss ? now : nil)
        for shape in shapes {
            _ = try UniqueResolver(db: db, table: RecordTable(shape)).resolve()
        }
    }
}

extension Declarations {
    /// The columns that only the server may write.
    fileprivate func reserved(in shape: TableSchema) -> Set<Int> {
        Set(entity(shape.name).serverFields.compactMap(shape.dataIndex))
    }
}
