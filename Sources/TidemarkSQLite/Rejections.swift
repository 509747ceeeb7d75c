import Foundation
import GRDB
import TidemarkServer

/// The bounded list of refused edits.
enum Rejections {
    static func keep(_ db: Database, _ rejection: StoredRejection, limit: Int) throws {
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
        let trim = try db.cachedStatement(sql: "DELETE FROM rejection WHERE id <= ?")
        try trim.execute(arguments: [db.lastInsertedRowID - Int64(limit)])
    }

    static func discard(_ db: Database, _ id: Int64) throws -> Bool {
        try db.execute(sql: "DELETE FROM rejection WHERE id = ?", arguments: [id])
        return db.changesCount > 0
    }

    static func newest(_ db: Database, in scope: Scope?, limit: Int) throws -> [StoredRejection] {
        let rows = try Row.fetchAll(
            db,
            sql: """
                SELECT scope, entity, record, is_delete, fields, principal, client, lane, number, code, detail, time, id
                FROM rejection WHERE ?1 IS NULL OR scope = ?1 ORDER BY id DESC LIMIT ?2
                """,
            arguments: [scope?.name, limit])
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
