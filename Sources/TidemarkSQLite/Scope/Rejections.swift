import Foundation
import GRDB
import TidemarkServer

/// Each scope's bounded list of refused edits.
enum Rejections {
    static func keep(_ db: Database, _ rejection: StoredRejection) throws {
        let insert = try db.cachedStatement(
            sql: """
                INSERT INTO rejection (
                    scope, entity, record, is_delete, fields, principal, client, lane, number, code, detail, time)
                VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
                """)
        try insert.execute(arguments: [
            rejection.scope.name, rejection.entity, rejection.record, rejection.isDelete,
            rejection.fields.map { Data($0) }, rejection.lane.principal.whole, rejection.lane.client,
            rejection.lane.lane, rejection.number, rejection.code, rejection.detail.whole, rejection.time,
        ])
    }

    static func trim(_ db: Database, _ scope: Scope, to limit: Int) throws {
        let trim = try db.cachedStatement(
            sql: """
                DELETE FROM rejection WHERE scope = ?1 AND id <=
                    (SELECT id FROM rejection WHERE scope = ?1 ORDER BY id DESC LIMIT 1 OFFSET ?2)
                """)
        try trim.execute(arguments: [scope.name, limit])
    }

    static func discard(_ db: Database, _ id: Int64) throws -> Bool {
        try db.execute(sql: "DELETE FROM rejection WHERE id = ?", arguments: [id])
        return db.changesCount > 0
    }

    static func newest(_ db: Database, in scope: Scope?, id: Int64?, limit: Int) throws -> [StoredRejection] {
        var arguments: StatementArguments = ["limit": limit]
        if let scope { arguments += ["scope": scope.name] }
        if let id { arguments += ["id": id] }
        let rows = try Row.fetchAll(
            db,
            sql: """
                SELECT scope, entity, record, is_delete, fields, principal, client, lane, number, code, detail, time, id
                FROM rejection WHERE true\(scope == nil ? "" : " AND scope = :scope")\(id == nil ? "" : " AND id = :id")
                ORDER BY id DESC LIMIT :limit
                """, arguments: arguments)
        return rows.compactMap { row in
            guard let scope = Scope(row[0] as String) else { return nil }
            return StoredRejection(
                id: row[12], scope: scope, entity: row[1], record: row[2], isDelete: row[3],
                fields: (row[4] as Data?).map { [UInt8]($0) },
                lane: LaneName(principal: row[5], client: row[6], lane: row[7]), number: row[8], code: row[9],
                detail: row[10], time: row[11])
        }
    }
}

extension SQLiteScopeWriter {
    func keep(_ rejection: StoredRejection, limit: Int) throws {
        try Rejections.keep(db, rejection)
        rejections += 1
        guard rejections % Self.trimInterval == 1 || limit <= Self.trimInterval else { return }
        try Rejections.trim(db, rejection.scope, to: limit)
    }

    /// A trim reads as many entries as the list may have: of a transaction's refusals the first trims, and then every
    /// 64th.
    private static let trimInterval = 64
}
