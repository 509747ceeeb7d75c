import GRDB
import TidemarkWire

/// Columns or rows that the server gave, or passed over, while this device had no place for them: a migration has added
/// the column since, or no engine on this file named the table (F5). They are fetched by themselves, before anything
/// newer.
struct Backfill: Hashable, Sendable {
    var scope: Scope
    var entity: String
    /// The columns; `nil`: whole rows.
    var fields: [String]?
    /// The scan in progress.
    var token: String?
    var cursor: String?
    /// Where the scope stood when the scan began. Once another process has moved it on, the scan's rows may be older
    /// than those in the table, and it begins anew.
    var since: String?
}

/// The backfills to be made, durably: noted in the transaction that made room for them, done when the last page is in.
enum Backfills {
    /// For every scope of the file that may have passed it over, whether this engine follows it or not: another engine,
    /// or a later one, goes on from where the scope stands.
    static func enqueue(_ db: Database, entity: String, fields: [String]?, rule: SyncedTable.ScopeRule) throws {
        for scope in try ScopeRecord.begun(db) where rule.mayHaveRows(in: scope) {
            try enqueue(db, entity: entity, fields: fields, scope)
        }
    }

    static func enqueue(_ db: Database, entity: String, fields: [String]?, _ scope: Scope) throws {
        let known = try read(db, scope).first { $0.entity == entity }
        var refetch = fields
        if let known { refetch = known.fields.flatMap { old in fields.map { old + $0 } } }
        try write(db, Backfill(scope: scope, entity: entity, fields: refetch))
    }

    /// Tables that have a shadow, and so were synced once, but are not named now: what comes for them is passed over.
    static func noteDormant(_ db: Database, named: Set<String>, scopes: [Scope]) throws {
        let named = Set(named.map(SQLName.init))
        for table in try ShadowTable.entities(db) where !named.contains(SQLName(table)) {
            for scope in scopes { try enqueue(db, entity: table, fields: nil, scope) }
        }
    }

    /// The next one of a scope, among the tables that are named.
    static func next(_ db: Database, _ schema: SyncSchema, _ scope: Scope) throws -> Backfill? {
        try read(db, scope).first { backfill in schema[backfill.entity]?.rule.mayHaveRows(in: scope) ?? false }
    }

    /// The columns of a table whose values are to be fetched into rows that are here.
    static func columns(_ db: Database, _ scope: Scope, _ shape: TableSchema) throws -> [Int] {
        try read(db, scope).first { $0.entity == shape.name }?.fields?.compactMap(shape.dataIndex) ?? []
    }

    static func write(_ db: Database, _ backfill: Backfill) throws {
        try Query(
            db,
            """
            INSERT INTO tidemark_backfill(scope, entity, fields, token, cursor, since) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
            ON CONFLICT(scope, entity) DO UPDATE SET fields = excluded.fields, token = excluded.token,
              cursor = excluded.cursor, since = excluded.since
            """
        ).execute([
            .text(backfill.scope.name), .text(backfill.entity), .optional(backfill.fields.map { NameList($0).text }),
            .optional(backfill.token), .optional(backfill.cursor), .optional(backfill.since),
        ])
        if backfill.token == nil { try forgetSeen(db, backfill) }
    }

    static func end(_ db: Database, _ backfill: Backfill) throws {
        try Query(db, "DELETE FROM tidemark_backfill WHERE scope = ?1 AND entity = ?2")
            .execute([.text(backfill.scope.name), .text(backfill.entity)])
        try forgetSeen(db, backfill)
    }

    /// Notes that the scan has brought a record. Once the scan has ended, a row here that was not brought is gone on
    /// the server, or has no values of the new columns there.
    static func see(_ db: Database, _ backfill: Backfill, _ record: RecordID) throws {
        try Query(
            db,
            """
            INSERT INTO tidemark_backfill_seen(scope, entity, record) VALUES (?1, ?2, ?3)
            ON CONFLICT(scope, entity, record) DO NOTHING
            """
        ).execute([.text(backfill.scope.name), .text(backfill.entity), .text(record.text)])
    }

    static func hasSeen(_ db: Database, _ backfill: Backfill, _ record: RecordID) throws -> Bool {
        try Query(db, "SELECT 1 FROM tidemark_backfill_seen WHERE scope = ?1 AND entity = ?2 AND record = ?3")
            .first(db, [.text(backfill.scope.name), .text(backfill.entity), .text(record.text)]) { _ in true } != nil
    }

    private static func forgetSeen(_ db: Database, _ backfill: Backfill) throws {
        try Query(db, "DELETE FROM tidemark_backfill_seen WHERE scope = ?1 AND entity = ?2")
            .execute([.text(backfill.scope.name), .text(backfill.entity)])
    }

    private static func read(_ db: Database, _ scope: Scope) throws -> [Backfill] {
        try Query(
            db, "SELECT entity, fields, token, cursor, since FROM tidemark_backfill WHERE scope = ?1 ORDER BY entity"
        ).rows(db, [.text(scope.name)]) { row in
            Backfill(
                scope: scope, entity: row.text(0), fields: row.optionalText(1).map { NameList($0).list },
                token: row.optionalText(2), cursor: row.optionalText(3), since: row.optionalText(4))
        }
    }
}
