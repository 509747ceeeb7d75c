import Foundation
import GRDB
import GRDBSQLite
import TidemarkServer

/// One scope as a transaction sees it.
class SQLiteScope: ScopeReader {
    let db: Database
    let scope: Scope
    /// The scope's row; `nil` before the first write.
    private(set) var id: Int64?
    var state = ScopeState()
    /// The last answer to a question for a record's newest row; a writer that appends to it need not ask again.
    var lastNewest: (entity: String, record: RecordID, kind: RowKind?, payload: [UInt8]?, size: ScopeSize)?

    /// What a row takes, as `ScopeSize` counts it.
    static let bytes = "coalesce(length(CASE kind WHEN 1 THEN field_versions ELSE payload END), 0)"
    /// The columns of a sum over rows: how many they are, and what they take.
    static let size = "count(*), coalesce(sum(\(bytes)), 0)"

    init(_ db: Database, _ scope: Scope) throws {
        self.db = db
        self.scope = scope
        let sql = """
            SELECT id, head, last_time, sweep_floor, retention_floor, entities, live_rows, live_bytes,
                superseded_rows, superseded_bytes, erased_at
            FROM scope WHERE name = ?
            """
        guard let row = try Row.fetchOne(db.cachedStatement(sql: sql), arguments: [scope.name]) else { return }
        let id: Int64 = row[0]
        self.id = id
        state.head = row[1]
        state.lastTime = row[2]
        state.sweepFloor = row[3]
        state.retentionFloor = row[4]
        state.entities = EntityNames(stored: row[5])
        state.size = ScopeSize(rows: row[6], bytes: row[7])
        state.superseded = ScopeSize(rows: row[8], bytes: row[9])
        state.erasedAt = row[10]
        let incarnations = try db.cachedStatement(
            sql: "SELECT id, start FROM incarnation WHERE scope = ? ORDER BY start")
        state.incarnations = try Row.fetchAll(incarnations, arguments: [id]).map { ($0[0], $0[1]) }
    }

    /// What this object knows beside the database, so that a part of a transaction can be undone.
    var memory: (id: Int64?, state: ScopeState) {
        get { (id, state) }
        set { (id, state) = newValue }
    }

    func create(at moment: Int64) throws -> Int64 {
        if let id { return id }
        // History begins to age with the store's first scope.
        try db.execute(sql: "INSERT OR IGNORE INTO meta VALUES ('age_clock', ?)", arguments: [moment])
        try db.execute(sql: "INSERT INTO scope (name, head, last_time) VALUES (?, 0, 0)", arguments: [scope.name])
        id = db.lastInsertedRowID
        return db.lastInsertedRowID
    }

    func newest(entity: String, record: RecordID) throws -> StoredRecord? {
        guard let id else { return nil }
        let statement = try db.cachedStatement(
            sql: """
                SELECT version, CASE kind WHEN 1 THEN NULL ELSE payload END, field_versions, time, originals, kind
                FROM change
                WHERE scope = ? AND entity = ? AND record = ? AND superseded_by IS NULL ORDER BY version DESC LIMIT 1
                """)
        let row = try Row.fetchOne(statement, arguments: [id, entity, record.text])
        let newest = row.map(stored)
        let kind = row.flatMap { RowKind(rawValue: $0[5]) }
        lastNewest = (entity, record, kind, newest?.payload, newest?.size ?? ScopeSize())
        return newest
    }

    func row(entity: String, record: RecordID, at version: Version) throws -> StoredRecord? {
        guard let id else { return nil }
        let statement = try db.cachedStatement(
            sql: """
                SELECT version, CASE kind WHEN 1 THEN NULL ELSE payload END, field_versions, time, originals FROM change
                WHERE scope = ?1 AND entity = ?2 AND record = ?3 AND version <= ?4
                  AND (superseded_by IS NULL OR superseded_by > ?4) ORDER BY version DESC LIMIT 1
                """)
        return try Row.fetchOne(statement, arguments: [id, entity, record.text, version]).map(stored)
    }

    private func stored(_ row: Row) -> StoredRecord {
        StoredRecord(
            version: row[0], time: row[3], payload: (row[1] as Data?).map { [UInt8]($0) },
            fieldVersions: (row[2] as Data?).map { [UInt8]($0) }, originals: (row[4] as Data?).map { [UInt8]($0) })
    }

    func newest(entity: String, record: RecordID, _ visit: (BorrowedChange) -> Void) throws {
        guard let id else { return }
        let statement = try db.cachedStatement(
            sql: """
                SELECT version, kind, time, entity, record, payload, NULL FROM change
                WHERE scope = ? AND entity = ? AND record = ? AND superseded_by IS NULL ORDER BY version DESC LIMIT 1
                """)
        try visitRows(statement, [id, entity, record.text]) { change in
            visit(change)
            return false
        }
    }

    func changes(
        after position: Version, through horizon: Version, tombstonesAfter: Version,
        _ visit: (BorrowedChange) -> Bool
    ) throws {
        guard let id else { return }
        let statement = try db.cachedStatement(
            sql: """
                SELECT version, kind, time, entity, record, payload,
                  CASE WHEN kind = 0 AND length(field_versions) <= \(BorrowedChange.largestNote)
                    THEN field_versions END FROM change
                WHERE scope = ?1 AND version > ?2 AND version <= ?3
                  AND (superseded_by IS NULL OR superseded_by > ?3) AND (kind IN (0, 2) OR version > ?4)
                ORDER BY version
                """)
        try visitRows(statement, [id, position, horizon, tombstonesAfter], visit)
    }

    func digest(of entity: String) throws -> [UInt8]? {
        guard let id else { return nil }
        let statement = try db.cachedStatement(sql: "SELECT sums FROM digest WHERE scope = ? AND entity = ?")
        return try Data.fetchOne(statement, arguments: [id, entity]).map { [UInt8]($0) }
    }

    func records(
        of entity: String, above base: Version, at horizon: Version?, after record: RecordID?,
        _ visit: (BorrowedChange) -> Bool
    ) throws {
        guard let id else { return }
        let statement = try db.cachedStatement(
            sql: """
                SELECT version, kind, time, entity, record, payload, NULL FROM change
                WHERE scope = ?1 AND entity = ?2 AND record > ?3 AND version > ?4 AND version <= ?5
                  AND (superseded_by IS NULL OR superseded_by > ?5) AND (kind <> 1 OR ?4 > 0)
                ORDER BY record
                """)
        try visitRows(statement, [id, entity, record?.text ?? "", base, horizon ?? Int64.max], visit)
    }

    private func visitRows(
        _ statement: Statement, _ arguments: StatementArguments, _ visit: (BorrowedChange) -> Bool
    ) throws {
        let cursor = try Row.fetchCursor(statement, arguments: arguments)
        // The columns are read where SQLite holds them: a row goes from its page into the answer in one copy.
        let raw = statement.sqliteStatement
        while try cursor.next() != nil {
            guard let kind = RowKind(rawValue: sqlite3_column_int64(raw, 1)) else {
                throw DatabaseError(resultCode: .SQLITE_CORRUPT, message: "A row of an unknown kind.")
            }
            let change = BorrowedChange(
                version: sqlite3_column_int64(raw, 0), kind: kind, time: sqlite3_column_int64(raw, 2),
                entity: column(raw, 3), record: column(raw, 4), payload: column(raw, 5),
                fieldVersions: column(raw, 6))
            if !visit(change) { return }
        }
    }

    private func column(_ statement: OpaquePointer, _ index: Int32) -> UnsafeRawBufferPointer {
        let start = sqlite3_column_blob(statement, index)
        return UnsafeRawBufferPointer(start: start, count: Int(sqlite3_column_bytes(statement, index)))
    }

    func lane(_ lane: LaneName) throws -> Int64 { try laneRow(lane)?.number ?? 0 }

    func laneRow(_ lane: LaneName) throws -> (id: Int64, number: Int64)? {
        guard let id else { return nil }
        let statement = try db.cachedStatement(
            sql: "SELECT id, number FROM lane WHERE scope = ? AND principal = ? AND client = ? AND lane = ?")
        return try Row.fetchOne(statement, arguments: [id, lane.principal.whole, lane.client, lane.lane])
            .map { ($0[0], $0[1]) }
    }

    func lanes(of device: DeviceName, limit: Int) throws -> [(lane: String, number: Int64)] {
        guard let id else { return [] }
        return try Row.fetchAll(
            db,
            sql: """
                SELECT lane, number FROM lane WHERE scope = ? AND principal = ? AND client = ?
                ORDER BY seen_at DESC, id DESC LIMIT ?
                """,
            arguments: [id, device.principal.whole, device.client, limit]
        ).map { ($0[0], $0[1]) }
    }

    func standing(of device: DeviceName) throws -> DeviceStanding? {
        try id.flatMap { try Devices.standing(db, scope: $0, of: device) }
    }

    func tally(by principal: String, of entity: String) throws -> [UInt8]? {
        try id.flatMap { try Deletes.note(db, scope: $0, by: principal, of: entity) }
    }

    func slowest() throws -> Version? { try id.flatMap { try Devices.slowest(db, scope: $0) } }

    func unheard(devicesBefore: Int64, lanesBefore: Int64) throws -> (devices: Int, lanes: Int) {
        guard let id else { return (0, 0) }
        return try Devices.unheard(db, scope: id, devicesBefore: devicesBefore, lanesBefore: lanesBefore)
    }

    func aged(
        after version: Version, through last: Version, before moment: Int64, events: Bool, limit: Int
    ) throws -> (through: Version, rows: Int) {
        guard let id else { return (version, 0) }
        let statement = try db.cachedStatement(
            sql: """
                SELECT version, kind, time FROM change WHERE scope = ? AND version > ? AND version <= ?
                ORDER BY version LIMIT ?
                """)
        var aged = (through: version, rows: 0)
        let rows = try Row.fetchCursor(statement, arguments: [id, version, last, limit])
        while let row = try rows.next(), (row[2] as Int64) < moment {
            aged.through = row[0]
            if RowKind(rawValue: row[1])?.expires(withEvents: events) == true { aged.rows += 1 }
        }
        return aged
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
