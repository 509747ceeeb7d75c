public import GRDB

extension SyncEngine {
    /// Takes everything of the library's out of a file again: triggers, indexes, and tables with all that they know of
    /// the server. The app's own tables stay as they are, with every row, and are ordinary tables from then on.
    ///
    /// Call it in a transaction: it happens as a whole or not at all. An engine that is at work on the file, in
    /// whatever process, stops with `engine_disconnected` at its next attempt. A file that was never synced is left
    /// alone. Syncing the file again begins anew: its rows are held against the server's.
    ///
    /// - Parameters:
    ///   - db: the file, in a transaction that may write.
    ///   - discardingUnsent: whether edits that no server has taken may be forgotten.
    /// - Throws: ``SyncError`` `unsent_edits` where there are any and they may not; `schema_unsupported` where a newer
    ///   version has written the file; GRDB's `DatabaseError` where it cannot be written.
    @discardableResult
    public static func uninstall(_ db: Database, discardingUnsent: Bool = false) throws -> UninstallReport {
        try Uninstalling(db: db, discardsUnsent: discardingUnsent, deletesRows: false).run()
    }

    /// Takes capture off as ``removeCapture(_:)`` does, and says what it took.
    package static func countedRemovalOfCapture(_ db: Database) throws -> UninstallReport {
        let removed = try Installation.removeCapture(db)
        return UninstallReport(triggers: removed.triggers, indexes: removed.indexes)
    }
}
