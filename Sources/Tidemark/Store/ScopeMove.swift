import GRDB
import TidemarkWire

/// Rows on their way from one scope to another. The insert in the new scope goes first; only its verdict lets the
/// delete go, so that no crash and no refusal leaves the record in neither.
extension QuarantinedRow {
    /// The row goes from its scope: what the server has there, and the version that it was left at.
    static func leave(
        _ db: Database, _ shape: TableSchema, _ id: RecordID, from scope: String, cells: [Cell], version: Version?,
        base: Version
    ) throws {
        try put(
            db, shape, record: id.text, scope: scope, version: version, cells: cells,
            reason: "It leaves for another scope.", contends: false)
        try Query(
            db,
            """
            UPDATE tidemark_quarantine SET move = \(Move.waiting.rawValue), base = ?4
            WHERE entity = ?1 AND record = ?2 AND scope = ?3
            """
        ).execute([.text(shape.name), .text(id.text), .text(scope), .integer(base)])
        try changed(db)
    }

    static func set(_ db: Database, _ entity: String, _ record: String, _ scope: String, _ move: Move) throws {
        try Query(
            db,
            """
            UPDATE tidemark_quarantine SET move = ?4, contends = ?4 = 0, fresh = ?4 = 0
            WHERE entity = ?1 AND record = ?2 AND scope = ?3
            """
        ).execute([.text(entity), .text(record), .text(scope), .integer(move.rawValue)])
        try changed(db)
    }

    /// Whether any row waits for its insert's verdict.
    static func isAnyWaiting(_ db: Database) throws -> Bool {
        try Query(
            db,
            "SELECT 1 FROM tidemark_quarantine WHERE move = \(Move.waiting.rawValue) AND move <> 0 LIMIT 1"
        ).first(db) { _ in true } ?? false
    }

    /// Ends the wait of a record's moves for the verdict on its insert in the new scope, and says what becomes of them.
    static func endWait(_ db: Database, _ entity: String, _ record: String, as move: Move) throws {
        try Query(
            db,
            """
            UPDATE tidemark_quarantine SET move = ?3, contends = ?3 = 0, fresh = ?3 = 0
            WHERE entity = ?1 AND record = ?2 AND move = \(Move.waiting.rawValue)
            """
        ).execute([.text(entity), .text(record), .integer(move.rawValue)])
        try changed(db)
        try Marks.announce(db)
    }

    /// Whether a scope waits to be left by the record.
    static func isLeaving(_ db: Database, _ entity: String, _ record: String) throws -> Bool {
        try Query(
            db,
            """
            SELECT 1 FROM tidemark_quarantine
            WHERE entity = ?1 AND record = ?2 AND move = \(Move.waiting.rawValue) LIMIT 1
            """
        ).first(db, [.text(entity), .text(record)]) { _ in true } ?? false
    }

    /// A table's records that leave a scope, each with how far its move has come.
    static func moves(_ db: Database, _ entity: String, _ scope: Scope) throws -> [(record: String, move: Move)] {
        try Query(
            db, "SELECT record, move FROM tidemark_quarantine WHERE entity = ?1 AND scope = ?2 AND move <> 0"
        ).rows(db, [.text(entity), .text(scope.name)]) { ($0.text(0), Move(rawValue: $0.integer(1)) ?? .no) }
    }

    struct Departure {
        var entity: String
        var record: String
        var base: Version
        var isMove: Bool
    }

    /// How many records of a table wait to be deleted where they were: until then a move is not done.
    static func leaving(_ db: Database, _ entity: String) throws -> Int {
        try Query.count(
            db, "SELECT count(*) FROM tidemark_quarantine WHERE move <> 0 AND entity = \(literal(entity))")
    }

    /// How many deletes wait to be sealed.
    static func departures(_ db: Database) throws -> Int {
        try Query.count(
            db,
            """
            SELECT count(*) FROM tidemark_quarantine
            WHERE move IN (\(Move.moved.rawValue), \(Move.deleted.rawValue)) AND move <> 0
            """)
    }

    /// Deletes that may be sealed now.
    static func departures(_ db: Database, _ scope: Scope, limit: Int) throws -> [Departure] {
        let (moved, deleted) = (Move.moved.rawValue, Move.deleted.rawValue)
        return try Query(
            db,
            """
            SELECT entity, record, base, move FROM tidemark_quarantine
            WHERE scope = ?1 AND move IN (\(moved), \(deleted)) AND move <> 0 ORDER BY entity, record LIMIT ?2
            """
        ).rows(db, [.text(scope.name), .integer(Int64(limit))]) { row in
            Departure(
                entity: row.text(0), record: row.text(1), base: row.integer(2), isMove: row.integer(3) == moved)
        }
    }
}
