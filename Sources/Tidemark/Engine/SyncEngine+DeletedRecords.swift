import Foundation
import GRDB
import TidemarkWire

extension SyncEngine {
    /// Records that were deleted elsewhere and are kept for undo, the last deleted first.
    ///
    /// - Parameter table: one table's only; `nil`: all.
    /// - Throws: ``SyncError`` as ``install()`` does, and `database_failed` where the file cannot be read.
    public func deletedRecords(in table: String? = nil) async throws -> [DeletedRecord] {
        try await installToRead()
        guard let schema = await schemaCache.schema else { return [] }
        return try await file.asked(to: .read) { db in try DeletedRowCache.all(db, schema, table: table) }
    }

    /// Revives a deleted record, on this device and, as an insert of the user's, everywhere. One that is there
    /// again already stays as it is.
    ///
    /// - Throws: GRDB's `DatabaseError` where the table does not take the row now, for example because its parent is
    ///   gone too; ``SyncError`` as ``install()`` does. The record stays in the list then.
    public func restore(_ record: DeletedRecord) async throws {
        try await install()
        guard let schema = await schemaCache.schema else { return }
        try await file.asked(to: .write) { db in try DeletedRowCache.restore(db, schema, record) }
    }
}
