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
    let schema: SyncSchema

    /// Runs while capture is suppressed, before the transaction ends.
    func restore() throws {
        for shape in schema.shapes where shape.isGuarded { try restore(RecordTable(shape)) }
    }

    /// Accepts the writes noted so far: the library wrote to the tables by statements of its own.
    func accept() throws {
        for shape in schema.shapes where shape.isGuarded { try TouchedTable(shape).clear(db) }
    }

    private func restore(_ table: RecordTable) throws {
        let touched = TouchedTable(table.shape)
        let noted = try touched.all(db)
        guard !noted.isEmpty else { return }
        let changed = try noted.filter { try table.rowAsItIs(db, $0.key) != $0.row }
        if !changed.isEmpty {
            try ConnectionTriggers.off(db) {
                let inTheWay = try changed.filter { try !put($0.row, at: $0.key, table) }
                // Rows of which a trigger has made room for each other: all of them give way first.
                for (key, _) in inTheWay { try table.deleteRow(db, key) }
                let contending = try inTheWay.filter { try !put($0.row, at: $0.key, table) }
                let resolver = UniqueResolver(db: db, table: table)
                for case (let key, let row?) in contending {
                    guard let id = table.shape.recordID(key) else {
                        try resolver.putBack(key, row)
                        continue
                    }
                    try table.quarantineContender(db, key, id, row)
                }
                if !contending.isEmpty { _ = try resolver.resolve() }
            }
        }
        try touched.clear(db)
    }

    /// Puts a row to rights; `false` where another one stands in its way.
    private func put(_ row: [Cell]?, at key: [Cell], _ table: RecordTable) throws -> Bool {
        do {
            if let row { try table.writeRow(db, key, row) } else { try table.deleteRow(db, key) }
            return true
        } catch let error as DatabaseError where error.refusesRow { return false }
    }
}

extension CaptureSuppression {
    /// - Parameter schema: the tables whose rows are put to rights after the app's triggers have fired.
    static func whileApplying(_ db: Database, _ schema: SyncSchema, _ body: () throws -> Void) throws {
        try raise(db)
        // The suppression goes with the transaction, where the body fails for good and everything is rolled back.
        let result = Result {
            try body()
            try TriggerGuard(db: db, schema: schema).restore()
        }
        try lower(db)
        try result.get()
    }
}
