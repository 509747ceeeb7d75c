import Foundation
import GRDB
import TidemarkServer

/// The one writer of a scope inside a transaction: SQLite has one writer at all, so versions are taken in commit order.
final class SQLiteScopeWriter: SQLiteScope, ScopeWriter {
    let incarnation: Int64
    let delaysOthers: Bool
    private let hasWaiting: () -> Bool
    /// The lanes that moved in this transaction: row id, number and time, written once at its end.
    var lanes: [LaneName: (id: Int64, number: Int64, moment: Int64)] = [:]
    var isChanged = false
    var rejections = 0
    var digests = DigestKeeper()
    /// Run once for each row and for each verdict.
    private(set) lazy var changeInsert = Result {
        try BoundStatement(
            db,
            """
            INSERT INTO change (scope, version, entity, record, kind, time, payload, field_versions, originals)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
            """)
    }
    private(set) lazy var verdictInsert = Result {
        try BoundStatement(
            db,
            """
            INSERT INTO verdict (lane, number, digest, members, version, base_number, took_effect)
            VALUES (?, ?, ?, ?, ?, ?, ?)
            """)
    }

    init(
        _ db: Database, _ scope: Scope, incarnation: Int64, delaysOthers: Bool, hasWaiting: @escaping () -> Bool
    ) throws {
        self.incarnation = incarnation
        self.delaysOthers = delaysOthers
        self.hasWaiting = hasWaiting
        try super.init(db, scope)
    }

    var othersWait: Bool { hasWaiting() }

    /// Includes what this transaction has stored.
    override func lane(_ lane: LaneName) throws -> Int64 { try lanes[lane]?.number ?? super.lane(lane) }

    override func lanes(of device: DeviceName, limit: Int) throws -> [(lane: String, number: Int64)] {
        try flushLanes()
        return try super.lanes(of: device, limit: limit)
    }

    override func unheard(devicesBefore: Int64, lanesBefore: Int64) throws -> (devices: Int, lanes: Int) {
        try flushLanes()
        return try super.unheard(devicesBefore: devicesBefore, lanesBefore: lanesBefore)
    }

    /// Writes down how far the lanes have come, before whoever reads several of them.
    func flushLanes() throws {
        let advance = try db.cachedStatement(sql: "UPDATE lane SET number = ?, seen_at = ? WHERE id = ?")
        for lane in lanes.values { try advance.execute(arguments: [lane.number, lane.moment, lane.id]) }
        lanes = [:]
    }

    /// Includes the rows that this transaction has appended.
    override func digest(of entity: String) throws -> [UInt8]? {
        try digests.stored(of: entity) ?? super.digest(of: entity)
    }

    func attempt<Result>(_ body: () throws -> Result) throws -> Result {
        let (memory, lanes, isChanged, digests) = (memory, lanes, isChanged, digests)
        var result: Result?
        do {
            try db.inSavepoint {
                result = try body()
                return .commit
            }
        } catch {
            (self.memory, self.lanes, self.isChanged, self.digests) = (memory, lanes, isChanged, digests)
            lastNewest = nil
            throw error
        }
        guard let result else { throw DatabaseError(resultCode: .SQLITE_INTERNAL) }
        return result
    }

    /// Writes the scope's row and its lanes once, however many rows were appended.
    func finish() throws {
        try flushLanes()
        guard isChanged, let id else { return }
        let keep = try db.cachedStatement(
            sql: """
                INSERT INTO digest (scope, entity, sums) VALUES (?, ?, ?)
                ON CONFLICT (scope, entity) DO UPDATE SET sums = excluded.sums
                """)
        for (entity, sums) in digests.stored { try keep.execute(arguments: [id, entity, Data(sums)]) }
        let statement = try db.cachedStatement(
            sql: """
                UPDATE scope SET head = ?, last_time = ?, live_rows = ?, live_bytes = ?, superseded_rows = ?,
                    superseded_bytes = ? WHERE id = ?
                """)
        try statement.execute(arguments: [
            state.head, state.lastTime, state.size.rows, state.size.bytes, state.superseded.rows,
            state.superseded.bytes, id,
        ])
    }
}
