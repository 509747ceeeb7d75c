import GRDB
public import TidemarkWire

extension SyncEngine {
    /// The edits that were not sent when access to their scope was lost, the scope was left or their table went to
    /// other scopes, oldest first; they are replayed by themselves when the scope is filled again. Rows that came back
    /// with a restored table although their records were deleted elsewhere are listed too, and wait for ``replay(_:)``.
    ///
    /// - Throws: ``SyncError`` `database_failed` where the file cannot be read.
    public func orphanedEdits() async throws -> [OrphanedEdit] {
        try await file.asked(to: .read) { db in try LibrarySchema.isInstalled(db) ? try OrphanedEdits.all(db) : [] }
    }

    /// Makes an edit anew that was orphaned, as the app would: it is sent like any other. Edits of a lost scope come
    /// back by themselves; a row whose record was deleted elsewhere, and that came back here with a backup of its
    /// table, only so.
    ///
    /// - Throws: ``SyncError`` `record_gone` where it cannot be made as things stand, and as ``install()`` does; the
    ///   edit stays in the list.
    public func replay(_ edit: OrphanedEdit) async throws {
        try await install()
        guard let schema = await schemaCache.schema else { return }
        try await file.asked(to: .write) { db in
            guard let entry = try OrphanedEdits.entries(db, "WHERE id = ?1", [.integer(edit.id)]).first else { return }
            var orphanReplay = OrphanReplay(db: db, schema: schema, scope: edit.scope)
            guard try orphanReplay.make([entry]) == 0 else { return }
            throw SyncError(
                .recordGone, "The edit of \(edit.entity) \(edit.record) cannot be made as things stand.",
                hint: "`orphanedEdits()` gives the reason.", scope: edit.scope)
        }
        await publishStatus()
    }

    /// Lets go of an edit that was orphaned.
    ///
    /// - Throws: ``SyncError`` `database_failed` where the file cannot be written.
    public func discard(_ edit: OrphanedEdit) async throws {
        try await file.asked(to: .write) { db in try OrphanedEdits.remove(db, edit.id) }
        await publishStatus()
    }

    /// Takes a scope with its sub-scopes off this device: its rows go, edits that were not sent are orphaned. Nothing
    /// changes on the server. Following the scope again fills it anew and replays the edits.
    ///
    /// Make the engine without the scope first; one that it follows would be filled again at once.
    /// - Throws: ``SyncError`` `configuration_invalid` where this engine follows the scope, and as ``install()`` does.
    public func leave(_ scope: Scope) async throws {
        guard !followed.contains(where: { $0 == scope || $0.parent == scope }) else {
            throw SyncError(
                .configurationInvalid, "The engine follows the scope.",
                hint: "Make the engine without it, or release what holds it, then leave the scope.", scope: scope)
        }
        try await install()
        guard let schema = await schemaCache.schema else { return }
        let now = wallClockMilliseconds()
        do {
            try await file.writeWithoutTransaction(at: .leave) { db in
                for part in try ScopeRecord.parts(db, of: scope) {
                    try ScopeRemoval(
                        scope: part, schema: schema, declarations: Declarations(), isLoss: false, now: now
                    ).run(db)
                    try db.inTransaction {
                        try HeldScopes.forget(db, part)
                        return .commit
                    }
                }
            }
        } catch let error as DatabaseError { throw Failure.database(error, scope: scope).error }
        await publishStatus()
    }
}
