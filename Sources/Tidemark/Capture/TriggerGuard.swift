import GRDB
import TidemarkWire

/// Keeps the app's own triggers from changing what the server sent.
///
/// They fire while changes are applied, so that a search index or a counter stays right. One that writes to a synced
/// table makes another row of it than the server has, on every device a different one: `AFTER UPDATE … SET
/// last_update = now`. So the rows of such a table are noted as they should be (by triggers of the library's, before
/// another one changes them, and by the library's own writes), and at the end those that are otherwise are written once
/// more, with all triggers of the connection off. Rows that have no place then are quarantined.
struct TriggerGuard {
    let db: Database
    let schema: SyncSchema

    /// How often a table's rows are put to rights in one transaction, at most: each time some find no place and are
    /// quarantined, which makes room for others.
    private static let roundLimit = 16

    /// A row that a trigger has changed.
    private struct Touched {
        var key: [Cell]
        /// As it should be; `nil` stands for none.
        var row: [Cell]?
        /// As the triggers left it.
        var found: [Cell]?
    }

    /// Runs while capture is suppressed, before the transaction ends.
    func restore() throws {
        for shape in schema.shapes where shape.isGuarded {
            let table = RecordTable(shape)
            let changed = try changed(table)
            guard !changed.isEmpty else { continue }
            try ConnectionSwitch.triggers.off(db) { try restore(changed, of: table) }
        }
        try accept()
    }

    /// Accepts the writes noted so far: the library wrote to the tables by statements of its own.
    func accept() throws {
        for shape in schema.shapes where shape.isGuarded { try TouchedTable(shape).clear(db) }
    }

    private func restore(_ first: [Touched], of table: RecordTable) throws {
        let resolver = UniqueResolver(db: db, table: table)
        var (changed, haveContended) = (first, false)
        for _ in 0..<Self.roundLimit {
            let contending = try changed.isEmpty ? [] : write(changed, table)
            guard !contending.isEmpty else { break }
            for row in contending { try giveWay(row, table, resolver) }
            haveContended = true
            changed = try self.changed(table)
        }
        if haveContended { _ = try resolver.resolve() }
    }

    /// The rows that were written in this transaction.
    private func touched(_ table: RecordTable) throws -> [Touched] {
        try TouchedTable(table.shape).all(db)
            .map { key, row in Touched(key: key, row: row, found: try table.rowAsItIs(db, key)) }
    }

    /// Those of them that are not as they should be.
    private func changed(_ table: RecordTable) throws -> [Touched] { try touched(table).filter { $0.row != $0.found } }

    /// Writes rows as they should be. Returns those in whose way others stand; then all that were in the way of another
    /// one are as the triggers left them, with the numbers that a search index knows them by.
    private func write(_ changed: [Touched], _ table: RecordTable) throws -> [Touched] {
        let inTheWay = try changed.filter { try !put($0.row, at: $0.key, table) }
        guard !inTheWay.isEmpty else { return [] }
        // Rows of which a trigger has made room for each other: all of them give way first.
        var contending: [Touched] = []
        try db.inSavepoint {
            for row in inTheWay { try table.deleteRow(db, row.key) }
            contending = try inTheWay.filter { try !put($0.row, at: $0.key, table) }
            return contending.isEmpty ? .commit : .rollback
        }
        return contending
    }

    /// Quarantines a row that contends for a unique value with one that a trigger has made room for. A row whose key is
    /// no record's id cannot be quarantined, and one with an unseen write keeps its place until that is compared: the
    /// other row gives way to them.
    private func giveWay(_ contending: Touched, _ table: RecordTable, _ resolver: UniqueResolver) throws {
        let id = table.shape.recordID(contending.key)
        guard let row = contending.row, try id.map(resolver.isUncompared) ?? true else {
            return try quarantine(contending, table)
        }
        let others = try obstacles(to: contending.key, row, table, resolver)
        for other in others { try quarantine(other, table) }
        if try !others.isEmpty && put(row, at: contending.key, table) { return }
        // It stays as the app's trigger has made it, or is kept off the table if that has deleted it.
        if contending.found == nil { return try quarantine(contending, table) }
        try table.noteIntended(db, contending.key, contending.found)
    }

    private func quarantine(_ touched: Touched, _ table: RecordTable) throws {
        guard let row = touched.row, let id = table.shape.recordID(touched.key) else { return }
        try table.deleteRow(db, touched.key)
        try table.quarantineContender(db, touched.key, id, row)
    }

    /// The rows of this transaction without which a row finds its place: one that holds a value of the row, or all that
    /// hold one, or else any one, since some indexes do not tell their values.
    private func obstacles(
        to key: [Cell], _ row: [Cell], _ table: RecordTable, _ resolver: UniqueResolver
    ) throws -> [Touched] {
        let others = try touched(table).filter { other in
            guard other.row != nil, other.found != nil, let id = table.shape.recordID(other.key) else { return false }
            return try other.key != key && !resolver.isUncompared(id)
        }
        let holding = Set(try resolver.candidates(key, row).map(\.key))
        let (likely, rest) = (others.filter { holding.contains($0.key) }, others.filter { !holding.contains($0.key) })
        for obstacles in likely.map({ [$0] }) + [likely] + rest.map({ [$0] }) where !obstacles.isEmpty {
            var fits = false
            try db.inSavepoint {
                for other in obstacles { try table.deleteRow(db, other.key) }
                fits = try put(row, at: key, table)
                return .rollback
            }
            if fits { return obstacles }
        }
        return []
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
    /// Runs without foreign keys: their actions would go uncaptured, and a row that gives way would take its children
    /// with it.
    ///
    /// - Parameter schema: the tables whose rows are put to rights after the app's triggers have fired.
    static func whileApplying(_ db: Database, _ schema: SyncSchema, _ body: () throws -> Void) throws {
        try ConnectionSwitch.foreignKeys.off(db) {
            try raise(db)
            let guarding = TriggerGuard(db: db, schema: schema)
            let result = Result {
                try body()
                try guarding.restore()
            }
            // The transaction may go on after a failure, but not with what was noted until then.
            if case .failure = result { try guarding.accept() }
            try lower(db)
            try result.get()
        }
    }
}
