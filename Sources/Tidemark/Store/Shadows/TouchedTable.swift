import GRDB

/// Notes the rows of a guarded table as they should be, while changes are applied (`TriggerGuard`). It is empty between
/// transactions. One row is looked up by ``RecordTable/row(_:_:)``.
struct TouchedTable {
    let shape: TableSchema

    init(_ shape: TableSchema) { self.shape = shape }

    private var sql: String { shape.touchedSQL }
    private var columns: String { shape.columns.map(\.sql).joined(separator: ", ") }

    /// Empties the table, and drops it where its columns are not those of the synced one.
    ///
    /// - Returns: whether it is to be made anew.
    func clearOrDrop(_ db: Database) throws -> Bool {
        // It is empty between transactions, so that it is made anew wherever the columns may be others.
        let known = try Query(db, "PRAGMA table_info(\(sql))").rows(db) { $0.text(1) }
        let wanted = shape.isGuarded ? shape.columns.map(\.name) + ["tidemark_was"] : []
        guard known != wanted else {
            if shape.isGuarded { try clear(db) }
            return false
        }
        try db.execute(sql: "DROP TABLE IF EXISTS \(sql)")
        return shape.isGuarded
    }

    func clear(_ db: Database) throws { try Query(db, "DELETE FROM \(sql)").execute() }

    /// The rows as they should be; `nil` stands for none.
    func all(_ db: Database) throws -> [(key: [Cell], row: [Cell]?)] {
        try Query(db, "SELECT tidemark_was, \(columns) FROM \(sql)").rows(db) { row in
            (
                key: row.cells(1..<(1 + shape.key.count)),
                row: row.integer(0) == 0 ? nil : row.cells((1 + shape.key.count)..<(1 + shape.columns.count))
            )
        }
    }

    /// Notes how the library wants a row to stand, where changes are being applied.
    ///
    /// - Parameter cells: `nil`: there should be none.
    func note(_ db: Database, _ key: [Cell], _ cells: [Cell]?) throws {
        let marks = (1...(shape.columns.count + 1)).map { "?\($0)" }.joined(separator: ", ")
        try Query(
            db,
            """
            INSERT OR REPLACE INTO \(sql)(\(columns), tidemark_was)
            SELECT \(marks) WHERE EXISTS (SELECT 1 FROM tidemark_applying)
            """
        ).execute(key + (cells ?? shape.data.map { _ in .null }) + [.integer(cells == nil ? 0 : 1)])
    }
}
