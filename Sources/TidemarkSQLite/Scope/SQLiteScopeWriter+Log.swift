import Foundation
import GRDB
import TidemarkServer

// Rows enter the log at its head, and leave it below its floors.
extension SQLiteScopeWriter {
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
            if former.size.rows > 0 {
                let supersede = try db.cachedStatement(
                    sql: """
                        UPDATE change SET superseded_by = ?, superseded_at = ?
                        WHERE scope = ? AND entity = ? AND record = ? AND superseded_by IS NULL
                        """)
                try supersede.execute(arguments: [version, moment, id, row.entity, row.record.text])
            }
        }
        let insert = try changeInsert.get()
        try insert.bind(id, at: 1)
        try insert.bind(version, at: 2)
        try insert.bind(row.entity, at: 3)
        try insert.bind(row.record.text, at: 4)
        try insert.bind(row.kind.rawValue, at: 5)
        try insert.bind(state.lastTime, at: 6)
        try insert.bind(row.payload, at: 7)
        try insert.bind(row.fieldVersions, at: 8)
        try insert.bind(row.originals, at: 9)
        try insert.run(db)
        state.head = version
        lastNewest = nil
        return version
    }

    /// The fields of the record's live row, and what all rows take that the new one takes the place of; the engine has
    /// mostly just read them.
    private func live(_ row: NewRow, of id: Int64) throws -> (payload: [UInt8]?, size: ScopeSize) {
        if let lastNewest, lastNewest.entity.hasSameBytes(as: row.entity), lastNewest.record == row.record {
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
}
