import GRDB
import TidemarkWire

/// How far the filling of a scope from a snapshot has come (A6). It stands beside the scope's durable checkpoint, which
/// moves only when the snapshot has come to its end.
struct Bootstrap: Hashable, Sendable {
    var scope: Scope
    /// Names the snapshot; `nil` before its first page.
    var token: String?
    /// Where its next page begins.
    var cursor: String?
    /// The version that it is fixed at.
    var version: Version = 0
    /// The device had no rows: pages go straight into the tables.
    var isDirect = false
    /// Entities whose rows here are the snapshot's.
    var swapped: [String] = []
    /// The entity whose pages are staged and may go on.
    var entity: String?
    var rows: Int64 = 0
    /// How many records the snapshot brings, where its first page said so (W94).
    var total: Int64?
    /// The server is asked first whether it still has this device's operations: the name of the history that they were
    /// answered in, empty where it is not known.
    var asking: String?
    /// The server has lost history: what a snapshot lacks may still be on its way back from another device.
    var hasLost = false

    /// Whether an entity's clean rows stand as of `version`.
    func covers(_ entity: String) -> Bool { token != nil && (isDirect || swapped.contains(entity)) }

    static func read(_ db: Database, _ scope: Scope) throws -> Bootstrap? {
        try Query(
            db,
            """
            SELECT token, cursor, version, direct, swapped, entity, rows, total, asking, lost
            FROM tidemark_bootstrap WHERE scope = ?1
            """
        ).first(db, [.text(scope.name)]) { row in
            Bootstrap(
                scope: scope, token: row.optionalText(0), cursor: row.optionalText(1), version: row.integer(2),
                isDirect: row.integer(3) != 0, swapped: NameList(row.text(4)).list,
                entity: row.optionalText(5), rows: row.integer(6), total: row.optionalInteger(7),
                asking: row.optionalText(8), hasLost: row.integer(9) != 0)
        }
    }

    func write(_ db: Database) throws {
        try Query(
            db,
            """
            INSERT INTO tidemark_bootstrap(
              scope, token, cursor, version, direct, swapped, entity, rows, total, asking, lost)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)
            ON CONFLICT(scope) DO UPDATE SET token = excluded.token, cursor = excluded.cursor,
              version = excluded.version, direct = excluded.direct, swapped = excluded.swapped,
              entity = excluded.entity, rows = excluded.rows, total = excluded.total, asking = excluded.asking,
              lost = excluded.lost
            """
        ).execute([
            .text(scope.name), .optional(token), .optional(cursor), .integer(version), .integer(isDirect ? 1 : 0),
            .text(NameList(swapped).text), .optional(entity), .integer(rows), .optional(total), .optional(asking),
            .integer(hasLost ? 1 : 0),
        ])
    }

    /// Begins the snapshot, or begins it anew: what is shown stays, what was staged goes.
    static func begin(_ db: Database, _ scope: Scope, asking: String?, hasLost: Bool = false) throws {
        try dropStaged(db, scope)
        let hadLost = try read(db, scope)?.hasLost ?? false
        try Bootstrap(scope: scope, asking: asking, hasLost: hasLost || hadLost).write(db)
    }

    static func end(_ db: Database, _ scope: Scope) throws {
        try dropStaged(db, scope)
        try Query(db, "DELETE FROM tidemark_bootstrap WHERE scope = ?1").execute([.text(scope.name)])
    }

    // MARK: Staged pages

    static func stage(_ db: Database, _ scope: Scope, _ changes: UnsafeRawBufferPointer) throws {
        let query = try Query(db, "INSERT INTO tidemark_staged(scope, changes) VALUES (?1, ?2)")
        query.bind([.text(scope.name)])
        query.bind(blob: changes, at: 2)
        try query.execute()
        query.clear()
    }

    static func staged(_ db: Database, _ scope: Scope) throws -> [Int64] {
        try Query(db, "SELECT id FROM tidemark_staged WHERE scope = ?1 ORDER BY id")
            .rows(db, [.text(scope.name)]) { $0.integer(0) }
    }

    static func stagedPage(_ db: Database, _ id: Int64) throws -> [UInt8] {
        try Query(db, "SELECT changes FROM tidemark_staged WHERE id = ?1").first(db, [.integer(id)]) { $0.blob(0) }
            ?? []
    }

    static func dropStaged(_ db: Database, _ scope: Scope) throws {
        try Query(db, "DELETE FROM tidemark_staged WHERE scope = ?1").execute([.text(scope.name)])
    }
}
