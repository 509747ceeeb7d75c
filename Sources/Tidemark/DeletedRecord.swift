public import Foundation
import GRDB
public import TidemarkWire

/// A record that was deleted elsewhere and is kept on this device, so that it can be brought back.
///
/// Tables say how long: `.table(Todo.self, keepsDeleted: .seconds(30 * 24 * 3600))`. A row that was deleted on this
/// device itself is not among them, nor one that moved to another scope.
public struct DeletedRecord: Hashable, Sendable, Identifiable {
    /// The place in the list.
    public var id: Int64
    /// Where the record belonged.
    public var scope: Scope
    /// The table's name.
    public var entity: String
    /// The record's id on the wire.
    public var record: String
    /// The columns as they last came from the server; the key is in ``record``.
    public var fields: [String: Value]
    /// When the deletion was heard of here.
    public var deletedAt: Date
}

extension SyncEngine {
    /// Records that were deleted elsewhere and are kept for undo, the last deleted first.
    ///
    /// - Parameter table: one table's only; `nil`: all.
    public func deletedRecords(in table: String? = nil) async throws -> [DeletedRecord] {
        try await install()
        guard let layout = await schemaCache.layout else { return [] }
        return try await file.asked(to: .read) { db in try DeletedRowCache.all(db, layout, table: table) }
    }

    /// Brings a deleted record back, on this device and, as an insert of the user's, everywhere. One that is there
    /// again already stays as it is.
    ///
    /// - Throws: GRDB's `DatabaseError` where the table does not take the row now, for example because its parent is
    ///   gone too; the record stays in the list.
    public func restore(_ record: DeletedRecord) async throws {
        try await install()
        guard let layout = await schemaCache.layout else { return }
        try await file.asked(to: .write) { db in try DeletedRowCache.restore(db, layout, record) }
    }
}
