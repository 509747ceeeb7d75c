import GRDB
import TidemarkWire

extension Outbox {
    /// Records in one group at most: what every server takes in one request.
    static let groupLimit = Limits().operations

    static func lastID(_ db: Database) throws -> Int64 {
        try Query(db, "SELECT coalesce(max(id), 0) FROM tidemark_operation").first(db) { $0.integer(0) } ?? 0
    }

    static func hasLocalRefusal(_ db: Database, entity: String, record: String, after id: Int64) throws -> Bool {
        try Query(
            db,
            """
            SELECT 1 FROM tidemark_operation
            WHERE entity = ?1 AND record = ?2 AND \(isRejected) AND lane IS NULL AND id > ?3 LIMIT 1
            """
        ).first(db, [.text(entity), .text(record), .integer(id)]) { _ in true } ?? false
    }

    static func noteGroup(_ db: Database, _ group: String, entity: String, record: String) throws {
        try Query(
            db,
            """
            UPDATE tidemark_operation SET in_group = ?3
            WHERE entity = ?1 AND record = ?2 AND \(isRejected) AND lane IS NULL
            """
        ).execute([.text(entity), .text(record), .text(group)])
    }

    /// The operations of a group that stand behind one of them.
    static func rest(_ db: Database, of group: String, after id: Int64) throws -> [OutboxEntry] {
        try Query(
            db,
            """
            SELECT \(columns) FROM tidemark_operation
            WHERE id > ?1 AND in_group = ?2 AND \(isOpen) ORDER BY id LIMIT ?3
            """
        ).rows(db, [.integer(id), .text(group), .integer(Int64(Outbox.groupLimit))], entry)
    }
}
