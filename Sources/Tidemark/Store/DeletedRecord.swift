public import Foundation
import GRDB
public import TidemarkWire

/// A record that was deleted elsewhere and is kept on this device, so that it can be revived.
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

    /// Makes a deleted record, for previews and tests; the engine's own are those of
    /// `SyncEngine.deletedRecords(in:)`.
    public init(
        id: Int64, scope: Scope, entity: String, record: String, fields: [String: Value] = [:], deletedAt: Date
    ) {
        self.id = id
        self.scope = scope
        self.entity = entity
        self.record = record
        self.fields = fields
        self.deletedAt = deletedAt
    }
}
