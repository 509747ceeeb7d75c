import CTriggerSwitch
import GRDB
import TidemarkWire

/// Keeps the app's own triggers from changing what the server sent.
///
/// They fire while changes are applied, so that a search index or a counter stays right. One that writes to a synced
/// table makes another row of it than the server has, on every device a different one: `AFTER UPDATE … SET
/// last_update = now`. So the rows of such a table are noted as they should be (by triggers of the library's, before
/// another one changes them, and by the library's own writes), and at the end those that are otherwise are written once
/// more, with all triggers of the connection off.
struct TriggerGuard {
    let db: Database
    let layout: Layout

    /// Runs with the flag up, before the transaction ends.
    func restore() throws {
        for shape in layout.shapes where shape.isGuarded { try restore(RecordTable(shape)) }
    }

    /// What was noted so far is as it should be: the library wrote to the tables by statements of its own.
    func accept() throws {
        for shape in layout.shapes where shape.isGuarded {
            try Query(db, "DELETE FROM \(shape.touchedSQL)").execute()
        }
    }

    private func restore(_ table: RecordTable) throws {
        let shape = table.shape
        let columns = shape.columns.map(\.sql).joined(separator: ", ")
        let noted = try Query(db, "SELECT tidemark_was, \(columns) FROM \(shape.touchedSQL)").rows(db) { row in
            (
                key: row.cells(1..<(1 + shape.key.count)),
                row: row.integer(0) == 0 ? nil : row.cells((1 + shape.key.count)..<(1 + shape.columns.count))
            )
        }
        guard !noted.isEmpty else { return }
        let changed = try noted.filter { try table.rowAsItIs(db, $0.key) != $0.row }
        if !changed.isEmpty {
            try Self.withoutTriggers(db) {
                for (key, row) in changed {
                    // Another row that a trigger made may stand in its way; the next change of either settles it.
                    do {
                        if let row { try table.write(db, key, row) } else { try table.deleteRow(db, key) }
                    } catch let error as DatabaseError where error.refusesRow {}
                }
            }
        }
        try Query(db, "DELETE FROM \(shape.touchedSQL)").execute()
    }

    private static func withoutTriggers(_ db: Database, _ body: () throws -> Void) throws {
        try set(db, true, to: false)
        let result = Result { try body() }
        try set(db, false, to: true)
        try result.get()
    }

    private static func set(_ db: Database, _ from: Bool, to isOn: Bool) throws {
        let connection = UnsafeMutableRawPointer(db.sqliteConnection)
        let code = tidemark_set_triggers(connection, isOn ? 1 : 0)
        guard code == 0 else { throw DatabaseError(resultCode: ResultCode(rawValue: code)) }
    }
}

extension RecordTable {
    /// Notes how the library wants a row to stand, whatever triggers make of it.
    func noteWanted(_ db: Database, _ key: [Cell], _ cells: [Cell]?) throws {
        guard shape.isGuarded else { return }
        let marks = (1...(shape.columns.count + 1)).map { "?\($0)" }.joined(separator: ", ")
        let columns = shape.columns.map(\.sql).joined(separator: ", ")
        try Query(
            db,
            """
            INSERT OR REPLACE INTO \(shape.touchedSQL)(\(columns), tidemark_was)
            SELECT \(marks) WHERE EXISTS (SELECT 1 FROM tidemark_applying)
            """
        ).execute(key + (cells ?? shape.data.map { _ in .null }) + [.integer(cells == nil ? 0 : 1)])
    }
}
