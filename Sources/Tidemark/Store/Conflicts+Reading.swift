public import GRDB

extension Conflict {
    /// The conflicts of the file, as ``SyncEngine/conflicts()`` lists them, for a `ValueObservation` or together with
    /// the app's own rows.
    ///
    /// - Throws: GRDB's `DatabaseError` where the file cannot be read.
    public static func fetchAll(_ db: Database) throws -> [Conflict] {
        try db.registerAccess(to: Table("tidemark_conflict"))
        return try LibrarySchema.isInstalled(db) ? Conflicts.all(db) : []
    }
}
