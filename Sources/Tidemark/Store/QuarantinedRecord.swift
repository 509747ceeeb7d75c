public import TidemarkWire

/// A row of the server's that is kept outside its table, since this device's schema does not take it as things stand or
/// another row has its place. It is tried again by itself.
public struct QuarantinedRecord: Hashable, Sendable {
    /// The scope that has it, by name; empty where it was never sent and belongs to none.
    public var scope: String
    /// The table's name.
    public var entity: String
    /// The record's id on the wire.
    public var record: String
    /// Why the table does not take it, without row data.
    public var reason: String
    /// The row's fields, but for its key.
    public var fields: [String: Value]

    /// Makes a value, for previews and tests.
    public init(scope: String, entity: String, record: String, reason: String, fields: [String: Value] = [:]) {
        self.scope = scope
        self.entity = entity
        self.record = record
        self.reason = reason
        self.fields = fields
    }
}
