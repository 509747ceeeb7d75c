import GRDB
import TidemarkServer
import TidemarkWire

// Rows that are quarantined at the end are so for a reason that the app's schema gives (I4).
@available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
extension Oracle {
    /// The row as the log has it is refused by the table, or the record stands there as another scope's.
    func checkQuarantined(_ key: OracleKey, _ sight: OracleDevice.Sight, _ device: Int, _ db: Database) throws {
        guard let table = tables[key.entity] else { return }
        let rows = table.scopes.compactMap { scopes[$0]?.current.newest(key) }.map { $0.compactMap(\.self) }
        guard !rows.isEmpty else {
            throw Violation("I4", "device \(device): \(key) is quarantined, and in no scope")
        }
        for cells in rows where cells.count == table.data.count {
            if sight.rows[key] != nil, table.place != nil, rows.count > 1 { continue }
            guard try fits(key, cells, table, db) else { continue }
            throw Violation("I4", "device \(device): \(key) is quarantined, and the table takes \(text(cells))")
        }
    }

    /// Whether the table takes a row as things stand. Where an app enforces foreign keys, pages come in without them.
    private func fits(_ key: OracleKey, _ cells: [Value], _ table: OracleTable, _ db: Database) throws -> Bool {
        var isTaken = false
        try db.inSavepoint {
            do {
                try db.execute(
                    sql: table.insertSQL,
                    arguments: StatementArguments([key.record.databaseValue] + cells.map(\.databaseValue)))
                isTaken = true
            } catch let error as DatabaseError where error.resultCode == .SQLITE_CONSTRAINT {
                isTaken = error.extendedResultCode == .SQLITE_CONSTRAINT_FOREIGNKEY
            }
            return .rollback
        }
        return isTaken
    }
}
