public import GRDB
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

    /// All quarantined rows of the file, by table and record, for a list or a `ValueObservation`. Rows that leave for
    /// another scope are not among them.
    ///
    /// - Throws: GRDB's `DatabaseError` where the file cannot be read.
    public static func fetchAll(_ db: Database) throws -> [QuarantinedRecord] {
        try db.registerAccess(to: Table("tidemark_quarantine"))
        guard try LibrarySchema.isInstalled(db) else { return [] }
        return try Query(
            db,
            """
            SELECT scope, entity, record, reason, data FROM tidemark_quarantine
            WHERE move = \(QuarantinedRow.Move.no.rawValue) ORDER BY entity, record, scope
            """
        ).rows(db) { row in
            QuarantinedRecord(
                scope: row.text(0), entity: row.text(1), record: row.text(2), reason: row.text(3),
                fields: try DataObject(stored: row.blob(4)).values)
        }
    }
}
