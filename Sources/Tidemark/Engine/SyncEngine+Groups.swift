public import GRDB
import TidemarkWire

extension SyncEngine {
    /// Edits that belong together: on the server all of them are applied, or none.
    ///
    /// ```swift
    /// try await sync.atomically { db in
    ///     try from.updateChanges(db) { $0.balance -= 100 }
    ///     try to.updateChanges(db) { $0.balance += 100 }
    /// }
    /// ```
    /// The block is a write transaction like any other, on the writer's own queue. Its edits are sent in one request;
    /// where the server refuses one, the rows of all are the server's again and all are kept in
    /// ``rejectedOperations()``, with the same ``RejectedOperation/group``. A record is sent with all that was edited
    /// of it, so unsent edits of the same records go with the group, and two groups that share a record become one.
    ///
    /// - Throws: ``SyncError`` `group_impossible` where the edits lie in more than one scope, or are more than one
    ///   request can carry, and as ``install()`` does; GRDB's `DatabaseError` where the file cannot be written. What
    ///   the block throws passes through. Nothing is written in any of these cases.
    @discardableResult
    public func atomically<Result: Sendable>(
        _ updates: @escaping @Sendable (Database) throws -> Result
    ) async throws -> Result {
        try await install()
        guard let schema = await schemaCache.schema else { return try await file.write(at: .group, updates) }
        let watch = shadowWatch
        return try await file.write(at: .group) { db in
            try Grouping(db: db, schema: schema, watch: watch).run(updates)
        }
    }
}
