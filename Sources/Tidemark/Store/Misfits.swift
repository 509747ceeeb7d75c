import GRDB
import TidemarkWire

/// Records whose id the table's key cannot hold: a text where this version of the app has an INTEGER key. They stand
/// outside the table, counted (I13), until a migration makes the key fit.
enum Misfits {
    /// It is compared with what stands in files: in other words it would leave rows of older versions where they are.
    static let reason = "The table's key cannot hold the record's id."

    static func put(
        _ db: Database, _ shape: TableSchema, _ id: RecordID, scope: Scope, version: Version, _ incoming: [Int: Cell]
    ) throws {
        var cells = try QuarantinedRow.cells(db, shape, id, scope.name) ?? shape.data.map(\.defaultCell)
        for (index, cell) in incoming { cells[index] = cell }
        try QuarantinedRow.put(
            db, shape, record: id.text, scope: scope.name, version: version, cells: cells, reason: reason,
            contends: false)
    }

    /// After a migration: where the key holds such an id now, the table's records are asked for anew.
    static func release(_ db: Database, _ shape: TableSchema) throws {
        let records = try QuarantinedRow.records(db, shape.name, refusedFor: reason)
        let fitting = records.filter { RecordID($0).flatMap(shape.key(of:)) != nil }
        guard !fitting.isEmpty else { return }
        for record in fitting {
            try QuarantinedRow.remove(db, shape.name, record, refusedFor: reason)
        }
        try QuarantinedRow.changed(db)
        try Backfills.enqueue(db, entity: shape.name, fields: nil, rule: shape.rule)
    }
}
