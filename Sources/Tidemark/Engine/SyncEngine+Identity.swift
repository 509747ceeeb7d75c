public import GRDB
import TidemarkWire

extension SyncEngine {
    /// Returns the present id of a record: the one that the server assigned, where `id` is a temporary one that has
    /// been replaced; else `id` itself. A screen that holds a temporary id finds its row by it.
    ///
    /// Called inside an observation's closure, it makes the observation look again when the id comes:
    ///
    /// ```swift
    /// ValueObservation.tracking { db in
    ///     try Order.fetchOne(db, key: SyncEngine.canonicalID(db, of: draftID, in: "order"))
    /// }
    /// ```
    /// Temporary ids are remembered for a year.
    ///
    /// - Throws: GRDB's `DatabaseError` where the file cannot be read.
    public static func canonicalID(_ db: Database, of id: Int64, in table: String) throws -> Int64 {
        Int64(try canonicalID(db, of: String(id), in: table)) ?? id
    }

    /// The same for a text key, or for the id as it stands on the wire.
    ///
    /// - Throws: GRDB's `DatabaseError` where the file cannot be read.
    public static func canonicalID(_ db: Database, of id: String, in table: String) throws -> String {
        guard try LibrarySchema.isInstalled(db) else { return id }
        return try Alias.replacement(db, of: id, in: table) ?? id
    }

    /// The same, read by itself.
    ///
    /// - Throws: ``SyncError`` `database_failed` where the file cannot be read.
    public func canonicalID(of id: String, in table: String) async throws -> String {
        try await file.asked(to: .read) { db in try Self.canonicalID(db, of: id, in: table) }
    }
}
