import GRDB

/// Shadows of rows of the first capture, of a table with one key column (``FirstCapture``).
extension ShadowTable {
    /// SQL: whether a shadow tells of an edit or a delete after the capture.
    static let isTouched = "tidemark_state = \(Shadow.State.known.rawValue)"

    private var isBetween: String { "\(shape.key[0].sql) BETWEEN ?1 AND ?2" }

    func isAny(_ db: Database, between ends: [Cell]) throws -> Bool {
        try Query(db, "SELECT 1 FROM \(sql) WHERE \(isBetween) LIMIT 1").first(db, ends) { _ in true } ?? false
    }

    /// How many rows were edited or deleted since their capture.
    func countTouched(_ db: Database, between ends: [Cell]) throws -> Int {
        try Query(db, "SELECT count(*) FROM \(sql) WHERE \(isBetween) AND \(Self.isTouched)")
            .first(db, ends) { Int($0.integer(0)) } ?? 0
    }

    /// How many were, in a table whose schema is not known.
    ///
    /// - Parameters:
    ///   - isMeant: makes the condition of the key's column, as SQL.
    ///   - cells: what that condition is given.
    /// - Returns: `nil` where the table was never synced.
    static func countTouched(
        _ db: Database, of entity: String, where isMeant: (String) -> String, _ cells: [Cell]
    ) throws -> Int? {
        let shadow = TableSchema.shadowPrefix + entity
        guard let key = try TableSchema.key(ofShadow: shadow, db).first else { return nil }
        return try Query(db, "SELECT count(*) FROM \(quoted(shadow)) WHERE \(isTouched) AND \(isMeant(quoted(key)))")
            .first(db, cells) { Int($0.integer(0)) } ?? 0
    }

    /// SQL for the keys of rows that were edited or deleted, between `?1` and `?2`.
    var touchedKeysSQL: String {
        "SELECT \(shape.key[0].sql) FROM \(sql) WHERE \(isBetween) AND \(Self.isTouched)"
    }

    /// Lets shadows of edited and deleted rows say that the server has no such rows.
    func becomeSeeds(_ db: Database, between ends: [Cell]) throws { try becomeSeeds(db, where: isBetween, ends) }

    func becomeSeeds(_ db: Database, where isMeant: String, _ cells: [Cell]) throws {
        try Query(
            db,
            """
            UPDATE \(sql) SET tidemark_state = \(Shadow.State.absent.rawValue),
              tidemark_bases = \(literal(Shadow.seedBases)) WHERE \(isMeant) AND \(Self.isTouched)
            """
        ).execute(cells)
    }

    /// Gives rows of the table shadows that say that the server lacks them, with marks.
    ///
    /// - Parameters:
    ///   - mark: their place among the marks.
    ///   - since: SQL for the time of their capture, in milliseconds since 1970.
    ///   - place: SQL for their scope's name.
    ///   - isMeant: SQL, where the table's alias is `t`.
    func insertSeeds(
        _ db: Database, mark: Int64, since: String, place: String, where isMeant: String, _ cells: [Cell]
    ) throws {
        let row = shape.columns.map { "t.\($0.sql)" }.joined(separator: ", ")
        try Query(
            db,
            """
            INSERT INTO \(sql)(
              \(shape.columns.map(\.sql).joined(separator: ", ")), tidemark_state, tidemark_bases, tidemark_mark,
              tidemark_since, tidemark_edited, tidemark_scope, tidemark_routing_scope)
            SELECT \(row), \(Shadow.State.absent.rawValue), \(literal(Shadow.seedBases)), \(mark),
              (SELECT \(since)), \(Shadow.seedStamp), \(place), \(place)
            FROM \(shape.sql) AS t
            WHERE \(isMeant)
            """
        ).execute(cells)
    }
}
