import Foundation
import GRDB
import TidemarkServer

/// The one writer of a scope inside a transaction: SQLite has one writer at all, so versions are taken in commit order.
final class SQLiteScopeWriter: SQLiteScope, ScopeWriter {
    private let incarnation: Int64
    let holdsUpOthers: Bool
    private let hasWaiting: () -> Bool
    /// The lanes that moved in this transaction: row id, number and time, written once at its end.
    private var lanes: [LaneName: (id: Int64, number: Int64, moment: Int64)] = [:]
    private var isChanged = false
    private var rejections = 0
    private var digests = DigestKeeper()

    init(
        _ db: Database, _ scope: Scope, incarnation: Int64, holdsUpOthers: Bool, hasWaiting: @escaping () -> Bool
    ) throws {
        self.incarnation = incarnation
        self.holdsUpOthers = holdsUpOthers
        self.hasWaiting = hasWaiting
        try super.init(db, scope)
    }

    var othersWait: Bool { hasWaiting() }

    func append(_ row: NewRow, at moment: Int64) throws -> Version {
        let id = try create(at: moment)
        if !isChanged { try begin(id) }
        let version = state.head + 1
        state.lastTime = max(moment, state.lastTime + 1)
        if state.entities.insert(row.entity) {
            try db.execute(
                sql: "UPDATE scope SET entities = ? WHERE id = ?", arguments: [state.entities.stored, id])
        }
        state.size = state.size + row.size
        if row.kind.supersedes {
            let former = try live(row, of: id)
            state.size = state.size - former.size
            state.superseded = state.superseded + former.size
            try digests.replace(
                row.entity, row.record, former.payload, with: row.kind == .upsert ? row.payload : nil
            ) { try super.digest(of: row.entity) }
            let supersede = try db.cachedStatement(
                sql: """
                    UPDATE change SET superseded_by = ?, superseded_at = ?
                    WHERE scope = ? AND entity = ? AND record = ? AND superseded_by IS NULL
                    """)
            try supersede.execute(arguments: [version, moment, id, row.entity, row.record.text])
        }
        let insert = try db.cachedStatement(
            sql: """
                INSERT INTO change (scope, version, entity, record, kind, time, payload, field_versions, originals)
                VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
                """)
        try insert.execute(arguments: [
            id, version, row.entity, row.record.text, row.kind.rawValue, state.lastTime, row.payload.map { Data($0) },
            row.fieldVersions.map { Data($0) }, row.originals.map { Data($0) },
        ])
        state.head = version
        lastNewest = nil
        return version
    }

    /// The fields of the record's live row, and what all rows take that the new one takes the place of; the engine has
    /// mostly just read them.
    private func live(_ row: NewRow, of id: Int64) throws -> (payload: [UInt8]?, size: ScopeSize) {
        if let lastNewest, lastNewest.entity.utf8.elementsEqual(row.entity.utf8), lastNewest.record == row.record {
            switch lastNewest.kind {
            case .upsert: return (lastNewest.payload, lastNewest.size)
            case .delete, nil: return (nil, lastNewest.size)
            // An entity that held events once: there may be a row of its records below.
            case .event, .idmap: break
            }
        }
        let place = "FROM change WHERE scope = ? AND entity = ? AND record = ? AND superseded_by IS NULL"
        let arguments: StatementArguments = [id, row.entity, row.record.text]
        let payload = try Data.fetchOne(
            db.cachedStatement(sql: "SELECT payload \(place) AND kind = 0"), arguments: arguments)
        let size = try Row.fetchOne(db.cachedStatement(sql: "SELECT \(Self.size) \(place)"), arguments: arguments)
        return (payload.map { [UInt8]($0) }, size.map { ScopeSize(rows: $0[0], bytes: $0[1]) } ?? ScopeSize())
    }

    /// The first row of this opening in the scope: from here on versions are this incarnation's.
    private func begin(_ id: Int64) throws {
        isChanged = true
        guard !state.incarnations.contains(where: { $0.id == incarnation }) else { return }
        try db.execute(
            sql: "INSERT INTO incarnation (scope, start, id) VALUES (?, ?, ?)",
            arguments: [id, state.head, incarnation])
        state.incarnations.append((incarnation, state.head))
    }

    func store(_ verdict: StoredVerdict, _ lane: LaneName, _ number: Int64, at moment: Int64) throws {
        let laneID = try lanes[lane]?.id ?? laneRow(lane)?.id ?? createLane(lane, at: moment)
        let statement = try db.cachedStatement(
            sql: """
                INSERT INTO verdict (lane, number, digest, members, version, base_number, took_effect)
                VALUES (?, ?, ?, ?, ?, ?, ?)
                """)
        try statement.execute(arguments: [
            laneID, number, Data(verdict.digest), Data(verdict.members), verdict.version, verdict.baseNumber,
            verdict.tookEffect,
        ])
        lanes[lane] = (laneID, number, moment)
    }

    private func createLane(_ lane: LaneName, at moment: Int64) throws -> Int64 {
        try db.execute(
            sql: "INSERT INTO lane (scope, principal, client, lane, number, seen_at) VALUES (?, ?, ?, ?, 0, ?)",
            arguments: [try create(at: moment), lane.principal.whole, lane.client, lane.lane, moment])
        return db.lastInsertedRowID
    }

    /// Includes what this transaction has stored.
    override func lane(_ lane: LaneName) throws -> Int64 { try lanes[lane]?.number ?? super.lane(lane) }

    override func lanes(of device: DeviceName, limit: Int) throws -> [(lane: String, number: Int64)] {
        try settleLanes()
        return try super.lanes(of: device, limit: limit)
    }

    override func unheard(devicesBefore: Int64, lanesBefore: Int64) throws -> (devices: Int, lanes: Int) {
        try settleLanes()
        return try super.unheard(devicesBefore: devicesBefore, lanesBefore: lanesBefore)
    }

    /// Writes down how far the lanes have come, for one who looks at more than one of them.
    private func settleLanes() throws {
        let advance = try db.cachedStatement(sql: "UPDATE lane SET number = ?, seen_at = ? WHERE id = ?")
        for lane in lanes.values { try advance.execute(arguments: [lane.number, lane.moment, lane.id]) }
        lanes = [:]
    }

    /// Includes the rows that this transaction has appended.
    override func digest(of entity: String) throws -> [UInt8]? {
        try digests.stored(of: entity) ?? super.digest(of: entity)
    }

    func keep(_ rejection: StoredRejection, limit: Int) throws {
        try Rejections.keep(db, rejection)
        rejections += 1
        guard rejections % Self.trimInterval == 1 || limit <= Self.trimInterval else { return }
        try Rejections.trim(db, rejection.scope, to: limit)
    }

    /// A trim reads as many entries as the list may have: of a transaction's refusals the first trims, and then every
    /// 64th.
    private static let trimInterval = 64

    func note(_ standing: DeviceStanding, of device: DeviceName) throws {
        // A scope that nobody wrote to has nothing to keep for anybody.
        guard let id else { return }
        try Devices.note(db, scope: id, standing, of: device)
    }

    func store(tally note: [UInt8], by principal: String, of entity: String, at moment: Int64) throws {
        try Deletes.store(db, scope: create(at: moment), note, by: principal, of: entity, at: moment)
    }

    func expire(through version: Version, events: Bool) throws {
        guard let id, version > state.retentionFloor else { return }
        // The floor rises before anything goes: a reader that asks for less learns it instead of missing a row (T38).
        let aged = "FROM change WHERE scope = ? AND version > ? AND version <= ? AND kind <> 0 AND kind <> ?"
        let staying: RowKind = events ? .upsert : .event
        let arguments: StatementArguments = [id, state.retentionFloor, version, staying.rawValue]
        let gone = try Row.fetchAll(
            db, sql: "SELECT superseded_by IS NULL, \(Self.size) \(aged) GROUP BY 1", arguments: arguments)
        for row in gone {
            let size = ScopeSize(rows: row[1], bytes: row[2])
            if row[0] { state.size = state.size - size } else { state.superseded = state.superseded - size }
        }
        state.retentionFloor = version
        try keepFloors(id)
        try db.execute(sql: "DELETE \(aged)", arguments: arguments)
        guard let first = state.forgetOpenings() else { return }
        try db.execute(sql: "DELETE FROM incarnation WHERE scope = ? AND start < ?", arguments: [id, first])
    }

    /// Floors rise before anything goes, and what is counted with them.
    func keepFloors(_ id: Int64) throws {
        try db.cachedStatement(
            sql: """
                UPDATE scope SET sweep_floor = ?, retention_floor = ?, live_rows = ?, live_bytes = ?,
                    superseded_rows = ?, superseded_bytes = ? WHERE id = ?
                """
        ).execute(arguments: [
            state.sweepFloor, state.retentionFloor, state.size.rows, state.size.bytes, state.superseded.rows,
            state.superseded.bytes, id,
        ])
    }

    func forgetDevices(beyond limit: Int, besides device: DeviceName) throws {
        guard let id else { return }
        try settleLanes()
        try Devices.forget(db, scope: id, beyond: limit, besides: device)
    }

    func forget(devicesBefore: Int64, lanesBefore: Int64, limit: Int) throws -> (devices: Int, lanes: Int) {
        guard let id else { return (0, 0) }
        try settleLanes()
        return try Devices.forget(db, scope: id, devicesBefore: devicesBefore, lanesBefore: lanesBefore, limit: limit)
    }

    func forgetVerdicts(_ lane: LaneName, through number: Int64) throws {
        guard let laneRow = try laneRow(lane) else { return }
        let statement = try db.cachedStatement(sql: "DELETE FROM verdict WHERE lane = ? AND number <= ?")
        try statement.execute(arguments: [laneRow.id, number])
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
        try settleLanes()
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
