import GRDB
import TidemarkWire

/// Parents deleted in the scan under way, whose children are looked at when it ends (`CascadeRepair`).
struct DeletedParents {
    struct Entry {
        let entity: String
        let record: String
        /// What children may refer to, as an object of the wire.
        let columns: [UInt8]
        /// The version of the deletion; `nil` where it is not known.
        let version: Version?
    }

    let db: Database
    let scope: Scope

    func note(_ entity: String, _ id: RecordID, columns: [UInt8], version: Version) throws {
        try Query(
            db,
            """
            INSERT INTO tidemark_cascade(scope, entity, record, columns, version) VALUES (?1, ?2, ?3, ?4, ?5)
            ON CONFLICT(scope, entity, record) DO UPDATE SET columns = excluded.columns, version = excluded.version
            """
        ).execute([.text(scope.name), .text(entity), .text(id.text), .blob(columns), .integer(version)])
    }

    func areAny() throws -> Bool {
        let sql = "SELECT 1 FROM tidemark_cascade WHERE scope = ?1 LIMIT 1"
        return try Query(db, sql).first(db, [.text(scope.name)]) { _ in true } ?? false
    }

    func all() throws -> [Entry] {
        try Query(db, "SELECT entity, record, columns, version FROM tidemark_cascade WHERE scope = ?1")
            .rows(db, [.text(scope.name)]) {
                Entry(
                    entity: $0.text(0), record: $0.text(1), columns: $0.blob(2), version: $0.optionalInteger(3))
            }
    }

    func remove(_ entry: Entry) throws {
        try Query(db, "DELETE FROM tidemark_cascade WHERE scope = ?1 AND entity = ?2 AND record = ?3")
            .execute([.text(scope.name), .text(entry.entity), .text(entry.record)])
    }
}
