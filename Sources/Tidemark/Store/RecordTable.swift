import GRDB
import TidemarkWire

/// A synced table and its shadow.
struct RecordTable {
    let shape: TableSchema
    private let kept: RowStatements?
    var sql: RecordStatements { shape.statements }

    init(_ shape: TableSchema) { (self.shape, kept) = (shape, nil) }

    /// - Parameter kept: for many rows, which the app's schema may refuse.
    init(_ shape: TableSchema, keeping kept: RowStatements) { (self.shape, self.kept) = (shape, kept) }

    /// For what runs once for each row of an answer.
    func query(_ db: Database, _ sql: String) throws -> Query { try kept?.query(db, sql) ?? Query(db, sql) }

    // MARK: Scopes

    /// By name, the scope that has the record on this device, with its row or with edits of it; the empty text where
    /// the row was never sent and belongs to none, `nil` where there is neither row nor edit.
    func owner(_ db: Database, _ key: [Cell]) throws -> String? {
        try Query(db, sql.ownerSelect).first(db, key) { $0.optionalText(0) } ?? nil
    }

    /// The scope that a row is or was sent in, or is to be sent in; the empty text where it belongs to none.
    func scopeName(_ db: Database, _ key: [Cell]) throws -> String {
        if case .constant(let scope) = shape.rule.kind { return scope.name }
        return try owner(db, key) ?? ""
    }

    /// Corrects the scope that has to look at the record's mark.
    func setRoutingScope(_ db: Database, _ key: [Cell], _ scope: String) throws {
        try Query(db, sql.shadowRoutingScope).execute(key + [.text(scope)])
    }

    /// Notes how the library wants a row to stand, whatever triggers make of it.
    func noteIntended(_ db: Database, _ key: [Cell], _ cells: [Cell]?) throws {
        if shape.isGuarded { try TouchedTable(shape).note(db, key, cells) }
    }

    // MARK: The app's table

    /// The row as it is to stand: while changes are applied, one that a trigger of the app's has changed counts as it
    /// was before (``TriggerGuard``).
    func row(_ db: Database, _ key: [Cell]) throws -> [Cell]? {
        guard shape.isGuarded else { return try rowAsItIs(db, key) }
        let noted = try Query(db, sql.touchedSelect).first(db, key) { row in
            row.integer(0) == 0 ? nil : row.cells(1..<(shape.data.count + 1))
        }
        return try noted ?? rowAsItIs(db, key)
    }

    func rowAsItIs(_ db: Database, _ key: [Cell]) throws -> [Cell]? {
        try query(db, sql.rowSelect).first(db, key) { $0.cells(1..<(shape.data.count + 1)) }
    }

    /// A trigger of the app's may forbid a delete, skip it, or fail in it (a row for an archive that has one of that
    /// key); what others have deleted goes all the same. Capture sees nothing of it then.
    func deleteRow(_ db: Database, _ key: [Cell]) throws {
        var isGone = false
        do {
            try Query(db, sql.rowDelete).execute(key)
            isGone = db.changesCount > 0
        } catch let error as DatabaseError where error.refusesRow {}
        if try !isGone && rowAsItIs(db, key) != nil {
            try ConnectionSwitch.triggers.off(db) { try Query(db, sql.rowDelete).execute(key) }
        }
        try noteIntended(db, key, nil)
    }

    /// Deletes the row as a statement of the app's would: captured, with all triggers, and with the actions of foreign
    /// keys where they are on.
    ///
    /// - Returns: whether the row is gone; a trigger may skip it.
    /// - Throws: `DatabaseError` where the app's schema forbids it.
    func deleteCaptured(_ db: Database, _ key: [Cell]) throws -> Bool {
        let hasActions = try ConnectionSwitch.foreignKeys.isOn(db)
        try Query(db, hasActions ? sql.rowDeleteWithActions : sql.rowDelete).execute(key)
        return try row(db, key) == nil
    }

    /// Writes the row as a statement of the app's would.
    ///
    /// - Returns: whether it was written; a trigger may skip it.
    /// - Throws: `DatabaseError` where the app's schema forbids it.
    func writeCaptured(_ db: Database, _ key: [Cell], _ cells: [Cell]) throws -> Bool {
        let hasActions = try ConnectionSwitch.foreignKeys.isOn(db)
        try Query(db, hasActions ? sql.rowUpsertWithActions : sql.rowUpsert).execute(key + cells)
        return try db.changesCount > 0 || rowAsItIs(db, key) == cells
    }

    /// Deletes the row, unless the app's schema keeps it: then it stays on this device.
    func attemptDelete(_ db: Database, _ key: [Cell]) throws {
        do { try deleteRow(db, key) } catch let error as DatabaseError where error.refusesRow {}
    }

    /// A trigger of the app's may skip the row, and the server's stands all the same.
    func writeRow(_ db: Database, _ key: [Cell], _ cells: [Cell]) throws {
        let upsert = try query(db, sql.rowUpsert)
        defer { upsert.reset() }
        try upsert.execute(key + cells)
        if db.changesCount == 0, try rowAsItIs(db, key) != cells {
            try ConnectionSwitch.triggers.off(db) { try Query(db, sql.rowUpsert).execute(key + cells) }
        }
        try noteIntended(db, key, cells)
    }
}
