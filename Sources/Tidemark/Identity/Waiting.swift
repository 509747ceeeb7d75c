import GRDB
import TidemarkWire

/// Records that wait, unsealed, for another one: the server could not put anything in the place of its temporary id, or
/// would hear of them before it hears of what they refer to.
enum Waiting {
    static func isEmpty(_ db: Database) throws -> Bool {
        try Query(db, "SELECT 1 FROM tidemark_waiting LIMIT 1").first(db) { _ in true } == nil
    }

    static func note(_ db: Database, _ name: RecordName, for parent: RecordName) throws {
        try Query(
            db,
            """
            INSERT INTO tidemark_waiting(entity, record, parent_entity, parent) VALUES (?1, ?2, ?3, ?4)
            ON CONFLICT(entity, record) DO UPDATE
              SET parent_entity = excluded.parent_entity, parent = excluded.parent
            """
        ).execute([.text(name.entity), .text(name.record), .text(parent.entity), .text(parent.record)])
    }

    /// What a record waits for.
    static func parent(_ db: Database, of name: RecordName) throws -> RecordName? {
        try Query(db, "SELECT parent_entity, parent FROM tidemark_waiting WHERE entity = ?1 AND record = ?2")
            .first(db, [.text(name.entity), .text(name.record)]) { row in
                RecordName(entity: row.text(0), record: row.text(1))
            }
    }

    static func holds(_ db: Database, _ name: RecordName) throws -> Bool { try parent(db, of: name) != nil }

    static func forget(_ db: Database, _ name: RecordName) throws {
        try Query(db, "DELETE FROM tidemark_waiting WHERE entity = ?1 AND record = ?2")
            .execute([.text(name.entity), .text(name.record)])
    }

    /// The parent has its id, or is sealed: what waited for it is sealed with the next batch.
    static func wake(_ db: Database, _ layout: Layout, for parent: RecordName) throws {
        let found = try Query(
            db, "SELECT entity, record FROM tidemark_waiting WHERE parent_entity = ?1 AND parent = ?2"
        ).rows(db, [.text(parent.entity), .text(parent.record)]) {
            RecordName(entity: $0.text(0), record: $0.text(1))
        }
        for name in found {
            try forget(db, name)
            guard let shape = layout[name.entity], let key = RecordID(name.record).flatMap(shape.key(of:)) else {
                continue
            }
            try RecordTable(shape).mark(db, key)
        }
    }
}
