import GRDB

/// Shadows of rows of the first capture that lie between two keys of a table with one key column.
extension RecordTable {
    /// SQL: whether a shadow tells of an edit or a delete after the capture.
    static let isTouched = "tidemark_state = \(Shadow.State.known.rawValue)"

    private var isBetween: String { "\(shape.key[0].sql) BETWEEN ?1 AND ?2" }

    func hasShadows(_ db: Database, between ends: [Cell]) throws -> Bool {
        try Query(db, "SELECT 1 FROM \(shape.shadowSQL) WHERE \(isBetween) LIMIT 1").first(db, ends) { _ in true }
            ?? false
    }

    /// How many rows were edited or deleted since their capture.
    func touched(_ db: Database, between ends: [Cell]) throws -> Int {
        try Query(db, "SELECT count(*) FROM \(shape.shadowSQL) WHERE \(isBetween) AND \(Self.isTouched)")
            .first(db, ends) { Int($0.integer(0)) } ?? 0
    }

    /// Lets shadows of edited and deleted rows say that the server has no such rows.
    func becomeSeeds(_ db: Database, between ends: [Cell]) throws { try becomeSeeds(db, where: isBetween, ends) }

    func becomeSeeds(_ db: Database, where isMeant: String, _ cells: [Cell]) throws {
        try Query(
            db,
            """
            UPDATE \(shape.shadowSQL) SET tidemark_state = \(Shadow.State.absent.rawValue),
              tidemark_bases = \(literal(Shadow.seedBases)) WHERE \(isMeant) AND \(Self.isTouched)
            """
        ).execute(cells)
    }
}
