import GRDB

extension SyncEngine {
    /// Signs out: ends ``run()``, lets go of the transport and with it of the app's credentials, and returns when
    /// nothing works on the file any more. From then on this engine sends nothing.
    ///
    /// The file stays as it is, with its rows and its unsent edits, and the triggers go on capturing: an engine that is
    /// made for the same user later goes on from there. Requests of a ``syncNow()`` that is under way are finished
    /// first; cancel its task where that would take too long. What only reads the file, such as ``status()`` and
    /// ``state(of:id:)-(String,String)``, works still, of an engine that was installed; what asks the server, or
    /// decides about an edit, throws `engine_disconnected`.
    public func disconnect() async {
        schemaCache.transport.disconnect()
        endRunning()
        await attachmentRunner?.stop()
        for driver in drivers {
            await driver.mutex.lock()
            await driver.retire()
            driver.mutex.unlock()
        }
        await releaseLease()
        await publishStatus()
    }

    /// Signs out and takes the user's data off the device: as ``disconnect()``, and then, in one transaction, every row
    /// of the synced tables goes, with everything of the library's, and then the files of attachments. The app's tables
    /// stay, empty; nothing changes on the server.
    ///
    /// Rows of the app's other tables that refer to synced ones follow the schema's ON DELETE.
    /// - Parameter discardingUnsent: whether edits that no server has taken may be lost. Where not, and there are any,
    ///   nothing happens, and the engine goes on as before.
    /// - Returns: what was in the file.
    /// - Throws: ``SyncError``: unless unsent edits may be lost, `unsent_edits` where there are any, and as
    ///   ``install()`` does, such as `engine_disconnected` after ``disconnect()``. With the file as it was, and the
    ///   engine disconnected: `unsent_edits` where one was made meanwhile, `database_failed` where the file cannot be
    ///   written, and GRDB's `DatabaseError` where the app's schema keeps a row. With the rows gone: `folder_failed`
    ///   where the files stay.
    @discardableResult
    public func disconnectAndRemove(discardingUnsent: Bool = false) async throws -> UninstallReport {
        if !discardingUnsent {
            try await install()
            // Files that rows have begun to name count too, although the runner has not looked at them yet.
            do { try await attachmentRunner?.digest() } catch let error as DatabaseError { throw SyncError(error) }
            try await file.asked(to: .read) { db in try UnsentEdits(db).refuse() }
        }
        await disconnect()
        let (schema, now) = (await schemaCache.schema, wallClockMilliseconds())
        let report = try await file.asked(to: .write) { db in
            if !discardingUnsent, let schema, try LibrarySchema.isInstalled(db) {
                while try BlobChanges.areAny(db) { try BlobChanges.digest(db, schema, now: now) }
            }
            // A child may stand in a table that is emptied before its parent's, or behind it.
            try db.execute(sql: "PRAGMA defer_foreign_keys = ON")
            return try Uninstalling(db: db, discardsUnsent: discardingUnsent, deletesRows: true).run()
        }
        try attachmentRunner?.folder.clear()
        return report
    }
}
