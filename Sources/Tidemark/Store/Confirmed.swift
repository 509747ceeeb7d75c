import GRDB
import TidemarkWire

/// Deletes that the server's brake refused and that somebody confirmed: they are sent anew, and say so.
enum Confirmed {
    static func note(_ db: Database, _ name: RecordName) throws {
        try Query(db, "INSERT INTO tidemark_confirmed(entity, record) VALUES (?1, ?2) ON CONFLICT DO NOTHING")
            .execute([.text(name.entity), .text(name.record)])
    }

    static func remove(_ db: Database, _ name: RecordName) throws -> Bool {
        try Query(db, "DELETE FROM tidemark_confirmed WHERE entity = ?1 AND record = ?2")
            .execute([.text(name.entity), .text(name.record)])
        return db.changesCount > 0
    }
}
