public import GRDB
import TidemarkWire

extension QuarantinedRecord {
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
