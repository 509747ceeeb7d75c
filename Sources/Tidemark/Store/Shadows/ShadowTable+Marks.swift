import GRDB
import TidemarkWire

/// Marks: the edits that no operation carries yet. Those that the server has no room for have negative numbers
/// (``Deferral``).
extension ShadowTable {
    /// SQL: whether a shadow has a mark.
    static let isMarked = "tidemark_mark IS NOT NULL"

    // MARK: Whether there are any

    private func isAny(_ db: Database, where isMeant: String) throws -> Bool {
        try Query(db, "SELECT 1 FROM \(sql) WHERE \(isMeant) LIMIT 1").first(db) { _ in true } ?? false
    }

    /// Whether a scope may send an edit.
    ///
    /// - Parameter place: SQL, one of ``TableSchema/placesSQL(_:)``.
    func isAnyMarked(_ db: Database, _ place: String) throws -> Bool {
        try isAny(db, where: "tidemark_mark > 0 AND \(place)")
    }

    /// Whether an edit is put off.
    func isAnyPutOff(_ db: Database, _ place: String) throws -> Bool {
        try isAny(db, where: "tidemark_mark < 0 AND \(place)")
    }

    /// Whether an edit was put off, and its record edited after a stamp of the clock.
    func isAnyPutOff(_ db: Database, _ place: String, editedAfter clock: Int64) throws -> Bool {
        try isAny(db, where: "tidemark_mark < 0 AND tidemark_edited > \(clock) AND \(place)")
    }

    /// Whether an edit waits that is on the way to a scope, or of a row that stands in it on the server.
    func isAnyMarked(_ db: Database, concerning scope: Scope) throws -> Bool {
        let name = literal(scope.name)
        // A row that has another scope's name in its column by now, or none, is still this one's on the server.
        let place = shape.isScopedByColumn ? "tidemark_routing_scope = \(name) OR tidemark_scope = \(name)" : "1"
        return try isAny(db, where: "tidemark_mark IS NOT NULL AND (\(place))")
    }

    /// Whether a new row waits to be sent.
    ///
    /// - Parameter isMeant: SQL over the table's own columns.
    func isAnyInsertMarked(_ db: Database, where isMeant: String) throws -> Bool {
        try Query(
            db,
            """
            SELECT 1 FROM \(sql)
            WHERE tidemark_mark IS NOT NULL AND tidemark_state = \(Shadow.State.absent.rawValue)
              AND \(isMeant) LIMIT 1
            """
        ).first(db) { _ in true } ?? false
    }

    // MARK: Which there are

    /// - Parameter places: SQL.
    func countMarks(_ db: Database, _ places: String) throws -> Int {
        try Query.count(db, "SELECT count(*) FROM \(sql) WHERE tidemark_mark > 0 AND (\(places))")
    }

    /// How many edits are not sealed, those that are put off among them, and when the first of each kind was made, in
    /// milliseconds since 1970.
    ///
    /// - Parameter limit: edits that are counted, at most.
    func unsent(_ db: Database, _ place: String, limit: Int64) throws -> (count: Int64, since: [Int64]) {
        let marks = "\(sql) WHERE tidemark_mark IS NOT NULL AND \(place)"
        let counting = "SELECT count(*) FROM (SELECT 1 FROM \(marks) LIMIT \(limit))"
        let count = try Query(db, counting).first(db, [], { $0.integer(0) }) ?? 0
        var since: [Int64] = []
        // Marks are numbered in the order of first edits; those that are put off have negative numbers.
        for order in ["tidemark_mark > 0", "tidemark_mark < 0"] {
            let sign = order.hasSuffix("> 0") ? "" : "DESC"
            let first = "SELECT tidemark_since FROM \(marks) AND \(order) ORDER BY tidemark_mark \(sign) LIMIT 1"
            since += try Query(db, first).rows(db) { $0.optionalInteger(0) }.compactMap { $0 }
        }
        return (count, since)
    }

    func markedKeys(_ db: Database) throws -> [[Cell]] {
        try Query(db, "SELECT \(keyList) FROM \(sql) WHERE \(Self.isMarked)")
            .rows(db) { $0.cells(0..<shape.key.count) }
    }

    /// SQL for the next marks of a scope in this table, by mark, table, number of the shadow, and group.
    ///
    /// - Parameters:
    ///   - index: the table's place among those that are looked at.
    ///   - last: the mark behind which they lie, in whichever table.
    func nextMarksSQL(
        _ index: Int, _ place: String, behind last: (mark: Int64, table: Int, row: Int64)?, limit: Int
    ) -> String {
        let isBehind =
            last.map {
                """
                AND tidemark_mark >= \($0.mark)
                AND (tidemark_mark, \(index), tidemark_row) > (\($0.mark), \($0.table), \($0.row))
                """
            } ?? ""
        return """
            SELECT * FROM (SELECT tidemark_mark AS mark, \(index) AS part, tidemark_row AS row, tidemark_group
            FROM \(sql) WHERE tidemark_mark > 0 AND \(place) \(isBehind)
            ORDER BY tidemark_mark LIMIT \(limit))
            """
    }

    /// How a new record stands that the server does not know, as far as this device does.
    ///
    /// - Returns: `nil` where the record is not new. `place` is the scope that has to look at its mark.
    func insert(_ db: Database, _ key: [Cell]) throws -> (isMarked: Bool, group: String?, place: String?)? {
        return try Query(
            db,
            """
            SELECT tidemark_mark IS NOT NULL, tidemark_group, tidemark_routing_scope FROM \(sql)
            WHERE \(shape.isKeySQL) AND tidemark_state = \(Shadow.State.absent.rawValue)
            """
        ).first(db, key) { ($0.integer(0) == 1, $0.optionalText(1), $0.optionalText(2)) }
    }

    // MARK: Changes

    func unmarkAll(_ db: Database) throws {
        try db.execute(sql: "UPDATE \(sql) SET tidemark_mark = NULL WHERE \(Self.isMarked)")
    }

    /// Gives a record the latest number among the marks.
    func markLast(_ db: Database, _ key: [Cell]) throws {
        try Query(db, "UPDATE \(sql) SET tidemark_mark = \(Marks.counterSQL) WHERE \(shape.isKeySQL)")
            .execute(key)
    }

    /// Puts a record off.
    func putOff(_ db: Database, _ key: [Cell]) throws {
        try Query(
            db, "UPDATE \(sql) SET tidemark_mark = -tidemark_mark WHERE \(shape.isKeySQL) AND tidemark_mark > 0"
        ).execute(key)
    }

    /// Lets records go again that were put off.
    ///
    /// - Parameter clock: those edited after this stamp; `nil`: all.
    func resume(_ db: Database, _ place: String, editedAfter clock: Int64?) throws {
        let edited = clock.map { "AND tidemark_edited > \($0)" } ?? ""
        try Query(
            db,
            """
            UPDATE \(sql) SET tidemark_mark = -tidemark_mark
            WHERE tidemark_mark < 0 AND \(place) \(edited)
            """
        ).execute()
    }
}

/// Marks of tables whose schema is not known, as a command line sees them.
extension ShadowTable {
    /// Counts the marks that no scope of these names has to look at.
    ///
    /// - Parameter names: SQL literals.
    static func countMarks(_ db: Database, of entity: String, besides names: String) throws -> Int {
        try Query.count(
            db,
            """
            SELECT count(*) FROM \(quoted(TableSchema.shadowPrefix + entity))
            WHERE tidemark_mark IS NOT NULL AND tidemark_routing_scope NOT IN ('', \(names))
            """)
    }

    /// The scopes that have to look at marks, by name.
    static func routingScopes(_ db: Database, of entity: String) throws -> [String] {
        try Query(
            db,
            """
            SELECT DISTINCT tidemark_routing_scope FROM \(quoted(TableSchema.shadowPrefix + entity))
            WHERE tidemark_mark IS NOT NULL AND tidemark_routing_scope <> ''
            """
        ).rows(db) { $0.text(0) }
    }

    /// How many marks there are, and when the first was made, in milliseconds since 1970.
    static func marks(_ db: Database, of entity: String) throws -> (count: Int64, since: Int64?) {
        let shadow = quoted(TableSchema.shadowPrefix + entity)
        return try Query(
            db, "SELECT count(*), min(tidemark_since) FROM \(shadow) WHERE tidemark_mark IS NOT NULL"
        ).first(db) { ($0.integer(0), $0.optionalInteger(1)) } ?? (0, nil)
    }
}

extension TableSchema {
    /// SQL for the marks that a scope has to look at, each part in the order of an index: its own, and those that any
    /// scope may look at.
    func placesSQL(_ scope: Scope) -> [String] {
        isScopedByColumn
            ? ["tidemark_routing_scope = \(literal(scope.name))", "tidemark_routing_scope = ''"]
            : ["tidemark_routing_scope IS NULL"]
    }
}
