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

    /// How often rows are put to rights in one transaction, the last time without the app's triggers: those that change
    /// a row whenever another one is written would go on for ever.
    private static let roundLimit = 3

    /// A row that a trigger has changed.
    private struct Touched: Hashable {
        var key: [Cell]
        /// As it should be; `nil` stands for none.
        var row: [Cell]?
        /// As the triggers left it.
        var found: [Cell]?
    }

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
        for round in 1...Self.roundLimit {
            let changed = try touched.all(db).compactMap { key, row -> Touched? in
                let found = try table.rowAsItIs(db, key)
                return found == row ? nil : Touched(key: key, row: row, found: found)
            }
            guard !changed.isEmpty else { break }
            let contending = try ConnectionTriggers.off(db) { try write(changed, table) }
            guard !contending.isEmpty else { break }
            if round < Self.roundLimit {
                try giveWay(contending, table)
            } else {
                try ConnectionTriggers.off(db) {
                    try giveWay(contending, table)
                    for row in changed where !contending.contains(row) { _ = try put(row.row, at: row.key, table) }
                }
            }
        }
        try touched.clear(db)
    }

    /// Writes rows as they should be. Returns those in whose way others stand; then all that were in the way of another
    /// one are as the triggers left them, with the numbers that a search index knows them by.
    private func write(_ changed: [Touched], _ table: RecordTable) throws -> [Touched] {
        let inTheWay = try changed.filter { try !put($0.row, at: $0.key, table) }
        guard !inTheWay.isEmpty else { return [] }
        // Rows of which a trigger has made room for each other: all of them give way first.
        try db.execute(sql: "SAVEPOINT tidemark_guard")
        for row in inTheWay { try table.deleteRow(db, row.key) }
        let contending = try inTheWay.filter { try !put($0.row, at: $0.key, table) }
        if !contending.isEmpty { try db.execute(sql: "ROLLBACK TO tidemark_guard") }
        try db.execute(sql: "RELEASE tidemark_guard")
        return contending
    }

    /// Quarantines rows that contend for a unique value with one that a trigger has made room for. They leave the table
    /// as any row does, so that a search index follows. A row whose key is no record's id is on this device only: it
    /// cannot be quarantined, and stays as the app's trigger has made it.
    private func giveWay(_ contending: [Touched], _ table: RecordTable) throws {
        for touched in contending {
            guard let row = touched.row, let id = table.shape.recordID(touched.key) else {
                try table.noteIntended(db, touched.key, touched.found)
                continue
            }
            try table.deleteRow(db, touched.key)
            try table.quarantineContender(db, touched.key, id, row)
        }
        _ = try UniqueResolver(db: db, table: table).resolve()
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
