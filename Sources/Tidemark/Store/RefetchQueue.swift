import GRDB
import TidemarkWire

/// Records that the scan will not bring, or not soon enough: the server is asked for them by name before the next
/// exchange. Noted in the transaction that finds them wanting, so that a crash forgets none.
enum RefetchQueue {
    struct Record: Hashable, Sendable {
        var entity: String
        var id: RecordID
    }

    static func note(_ db: Database, _ scope: Scope, _ entity: String, _ record: String) throws {
        try Query(
            db, "INSERT INTO tidemark_refetch(scope, entity, record) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING"
        ).execute([.text(scope.name), .text(entity), .text(record)])
    }

    static func all(_ db: Database, _ scope: Scope, limit: Int) throws -> [Record] {
        try Query(db, "SELECT entity, record FROM tidemark_refetch WHERE scope = ?1 ORDER BY entity, record LIMIT ?2")
            .rows(db, [.text(scope.name), .integer(Int64(limit))]) { row in
                RecordID(row.text(1)).map { Record(entity: row.text(0), id: $0) }
            }.compactMap { $0 }
    }

    static func isAny(_ db: Database, _ entity: String) throws -> Bool {
        try Query(db, "SELECT 1 FROM tidemark_refetch WHERE entity = ?1 LIMIT 1")
            .first(db, [.text(entity)]) { _ in true } ?? false
    }

    static func remove(_ db: Database, _ scope: Scope, _ entity: String, _ record: String) throws {
        try Query(db, "DELETE FROM tidemark_refetch WHERE scope = ?1 AND entity = ?2 AND record = ?3")
            .execute([.text(scope.name), .text(entity), .text(record)])
    }

    /// Forgets all records of one table.
    static func remove(_ db: Database, _ scope: Scope, _ entity: String) throws {
        try Query(db, "DELETE FROM tidemark_refetch WHERE scope = ?1 AND entity = ?2")
            .execute([.text(scope.name), .text(entity)])
    }

    /// Whether the server is asked for a record in the scope of that name.
    static func contains(_ db: Database, _ entity: String, _ record: String, in scope: String) throws -> Bool {
        try Query(db, "SELECT 1 FROM tidemark_refetch WHERE entity = ?1 AND record = ?2 AND scope = ?3 LIMIT 1")
            .first(db, [.text(entity), .text(record), .text(scope)]) { _ in true } ?? false
    }

    /// Returns the records of a table that the server is asked for, with the scope of each.
    static func places(_ db: Database, _ entity: String) throws -> [(record: String, scope: String)] {
        try Query(db, "SELECT record, scope FROM tidemark_refetch WHERE entity = ?1")
            .rows(db, [.text(entity)]) { ($0.text(0), $0.text(1)) }
    }
}
