import GRDB
import TidemarkWire

/// A temporary id of this device, and the id that replaced it.
struct Alias: Hashable {
    var entity: String
    var temporary: RecordID
    var id: RecordID

    static func find(_ db: Database, _ entity: String, _ temporary: RecordID) throws -> RecordID? {
        try Query(db, "SELECT record FROM tidemark_alias WHERE entity = ?1 AND temporary = ?2")
            .first(db, [.text(entity), .text(temporary.text)]) { RecordID($0.text(0)) } ?? nil
    }

    /// The temporary ids that were used here after they had been replaced: a screen still knew them.
    static func usedAgain(_ db: Database) throws -> [Alias] {
        try Query(db, "SELECT entity, temporary, record FROM tidemark_alias WHERE again").rows(db) { row in
            guard let temporary = RecordID(row.text(1)), let id = RecordID(row.text(2)) else { return nil }
            return Alias(entity: row.text(0), temporary: temporary, id: id)
        }.compactMap { $0 }
    }

    static func noteUse(_ db: Database, _ entity: String, _ temporary: RecordID) throws {
        try Query(db, "UPDATE tidemark_alias SET again = 1 WHERE entity = ?1 AND temporary = ?2")
            .execute([.text(entity), .text(temporary.text)])
    }

    func store(_ db: Database, now: Int64) throws {
        try Query(
            db,
            """
            INSERT INTO tidemark_alias(entity, temporary, record, made_at) VALUES (?1, ?2, ?3, ?4)
            ON CONFLICT(entity, temporary) DO UPDATE SET record = excluded.record, again = 0
            """
        ).execute([.text(entity), .text(temporary.text), .text(id.text), .integer(now)])
    }

    /// A screen or a link may hold a temporary id for long.
    static let retention: Int64 = 365 * 24 * 3600 * 1000

    static func prune(_ db: Database, now: Int64) throws {
        try Query(db, "DELETE FROM tidemark_alias WHERE made_at < ?1").execute([.integer(now - retention)])
    }

    /// Returns the ids that have taken the place of temporary ones, by these.
    static func renamed(_ db: Database) throws -> [String: String] {
        let pairs = try Query(db, "SELECT temporary, record FROM tidemark_alias").rows(db) { ($0.text(0), $0.text(1)) }
        return Dictionary(pairs) { first, _ in first }
    }

    /// Returns the id that has taken the place of a temporary one in a table, whichever way the table is spelled.
    static func replacement(_ db: Database, of temporary: String, in table: String) throws -> String? {
        // Through GRDB's own reading, so that observations hear of changes.
        try String.fetchOne(
            db,
            sql: """
                SELECT record FROM tidemark_alias WHERE temporary = ?
                AND entity IN (SELECT name FROM tidemark_table WHERE name = ? COLLATE NOCASE)
                """, arguments: [temporary, table])
    }
}
