import Foundation
import GRDB
import TidemarkServer

extension SQLiteScope {
    func laneRow(_ lane: LaneName) throws -> (id: Int64, number: Int64)? {
        guard let id else { return nil }
        let statement = try db.cachedStatement(
            sql: "SELECT id, number FROM lane WHERE scope = ? AND principal = ? AND client = ? AND lane = ?")
        return try Row.fetchOne(statement, arguments: [id, lane.principal.whole, lane.client, lane.lane])
            .map { ($0[0], $0[1]) }
    }

    func verdict(_ lane: LaneName, _ number: Int64) throws -> StoredVerdict? {
        guard let laneRow = try laneRow(lane) else { return nil }
        let statement = try db.cachedStatement(
            sql: """
                SELECT digest, members, version, base_number, took_effect FROM verdict WHERE lane = ? AND number = ?
                """)
        return try Row.fetchOne(statement, arguments: [laneRow.id, number]).map { row in
            StoredVerdict(
                digest: [UInt8](row[0] as Data), members: [UInt8](row[1] as Data), version: row[2], baseNumber: row[3],
                tookEffect: row[4])
        }
    }
}

extension SQLiteScopeWriter {
    func store(_ verdict: StoredVerdict, _ lane: LaneName, _ number: Int64, at moment: Int64) throws {
        let known = lanes.index(forKey: lane)
        let laneID = try known.map { lanes.values[$0].id } ?? laneRow(lane)?.id ?? createLane(lane, at: moment)
        let insert = try verdictInsert.get()
        try insert.bind(laneID, at: 1)
        try insert.bind(number, at: 2)
        try insert.bind(verdict.digest, at: 3)
        try insert.bind(verdict.members, at: 4)
        try insert.bind(verdict.version, at: 5)
        try insert.bind(verdict.baseNumber, at: 6)
        try insert.bind(verdict.tookEffect ? 1 : 0, at: 7)
        try insert.run(db)
        if let known { lanes.values[known] = (laneID, number, moment) } else { lanes[lane] = (laneID, number, moment) }
    }

    private func createLane(_ lane: LaneName, at moment: Int64) throws -> Int64 {
        try db.execute(
            sql: "INSERT INTO lane (scope, principal, client, lane, number, seen_at) VALUES (?, ?, ?, ?, 0, ?)",
            arguments: [try create(at: moment), lane.principal.whole, lane.client, lane.lane, moment])
        return db.lastInsertedRowID
    }

    func forgetVerdicts(_ lane: LaneName, through number: Int64) throws {
        guard let laneRow = try laneRow(lane) else { return }
        let statement = try db.cachedStatement(sql: "DELETE FROM verdict WHERE lane = ? AND number <= ?")
        try statement.execute(arguments: [laneRow.id, number])
    }
}
