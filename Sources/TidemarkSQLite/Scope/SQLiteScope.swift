import Foundation
import GRDB
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

    /// Finds a record's newest row, once for each operation of a push.
    private(set) lazy var newestSelect = Result {
        try BoundStatement(
            db,
            """
            SELECT version, CASE kind WHEN 1 THEN NULL ELSE payload END, field_versions, time, originals, kind
            FROM change
            WHERE scope = ? AND entity = ? AND record = ? AND superseded_by IS NULL ORDER BY version DESC LIMIT 1
            """)
    }

    /// The bytes of a row, as `ScopeSize` counts them.
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

    /// The state of this object beside the database, so that a part of a transaction can be undone.
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

    func digest(of entity: String) throws -> [UInt8]? {
        guard let id else { return nil }
        let statement = try db.cachedStatement(sql: "SELECT sums FROM digest WHERE scope = ? AND entity = ?")
        return try Data.fetchOne(statement, arguments: [id, entity]).map { [UInt8]($0) }
    }

    func lane(_ lane: LaneName) throws -> Int64 { try laneRow(lane)?.number ?? 0 }

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

    func unheard(devicesBefore: Int64, lanesBefore: Int64) throws -> (devices: Int, lanes: Int) {
        guard let id else { return (0, 0) }
        return try Devices.unheard(db, scope: id, devicesBefore: devicesBefore, lanesBefore: lanesBefore)
    }
}
