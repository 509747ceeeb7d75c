import GRDB
import TidemarkServer

/// Removes rows that no scan in the window can still need.
enum Sweep {
    static func run(_ db: Database, supersededBefore moment: Int64, limit: Int) throws -> Int {
        let rows = try Row.fetchAll(
            db,
            sql: """
                SELECT rowid, scope, superseded_by, \(SQLiteScope.bytes) FROM change
                WHERE superseded_at IS NOT NULL AND superseded_at < ? ORDER BY superseded_at LIMIT ?
                """,
            arguments: [moment, limit])
        // The floor rises before anything goes: a reader that asks for less learns it instead of missing a row (T38).
        let raise = try db.cachedStatement(
            sql: """
                UPDATE scope SET sweep_floor = max(sweep_floor, ?), superseded_rows = superseded_rows - 1,
                    superseded_bytes = superseded_bytes - ? WHERE id = ?
                """)
        for row in rows { try raise.execute(arguments: [row[2] as Int64, row[3] as Int64, row[1] as Int64]) }
        try remove(db, rows.map { $0[0] })
        return rows.count
    }

    fileprivate static func remove(_ db: Database, _ rows: [Int64]) throws {
        let delete = try db.cachedStatement(sql: "DELETE FROM change WHERE rowid = ?")
        for row in rows { try delete.execute(arguments: [row]) }
    }
}

extension SQLiteScopeWriter {
    func sweep(supersededBeyond weight: Int64, limit: Int) throws -> Int {
        guard let id else { return 0 }
        let statement = try db.cachedStatement(
            sql: """
                SELECT rowid, superseded_by, \(Self.bytes) FROM change
                WHERE scope = ? AND superseded_by IS NOT NULL ORDER BY superseded_by, version LIMIT ?
                """)
        var gone: [Int64] = []
        let rows = try Row.fetchCursor(statement, arguments: [id, max(0, limit)])
        while state.superseded.weight > weight, let row = try rows.next() {
            gone.append(row[0])
            state.sweepFloor = max(state.sweepFloor, row[1])
            state.superseded = state.superseded - ScopeSize(rows: 1, bytes: row[2])
        }
        guard !gone.isEmpty else { return 0 }
        try keepFloors(id)
        try Sweep.remove(db, gone)
        return gone.count
    }
}
