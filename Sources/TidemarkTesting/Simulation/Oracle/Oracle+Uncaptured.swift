import GRDB
import TidemarkServer
import TidemarkWire

// What acts write while no trigger notes it: a table was rebuilt, renamed, dropped or restored, or its triggers went.
// It counts as if it had been noted, on the row that the device knew then. But what the server has deleted and such a
// table resurrects is kept, and not sent (I6).
@available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
extension Oracle {
    /// Notes a row that an act has changed unseen, with what it stood on.
    ///
    /// - Returns: whether that is all that is expected of it: it is a deleted record, resurrected.
    func noteUncaptured(
        _ key: OracleKey, _ table: OracleTable, from former: OracleDevice.Sight, to sight: inout OracleDevice.Sight,
        _ device: Int
    ) -> Bool {
        guard let count = table.captureCount else { return false }
        let isCaptured = former.captureCounts[key.entity] == count && sight.captureCounts[key.entity] == count
        guard !isCaptured, sight.shadows[key] == nil else {
            noteTaken(key, table, sight, device)
            return false
        }
        if sight.uncaptured[key] == nil { sight.uncaptured.updateValue(former.base(key), forKey: key) }
        guard sight.rows[key] != nil else {
            return devices[device].resurrected.remove(key) != nil
        }
        if former.rows[key] == nil, isDeleted(key, table) {
            devices[device].resurrected.insert(key)
            devices[device].writes[key] = nil
        }
        return devices[device].resurrected.contains(key)
    }

    /// A record that was resurrected is edited like any other, before the device has heard what the server says of it.
    private func noteTaken(_ key: OracleKey, _ table: OracleTable, _ sight: OracleDevice.Sight, _ device: Int) {
        guard devices[device].resurrected.remove(key) != nil else { return }
        for (column, value) in zip(table.data, sight.rows[key] ?? []) {
            allowed[OracleCell(key: key, column: column, value: value), default: 0] += 1
        }
    }

    /// Whether the log says that there was such a record and is no more.
    private func isDeleted(_ key: OracleKey, _ table: OracleTable) -> Bool {
        let logs = table.scopes.compactMap { scopes[$0]?.current }
        return logs.contains { $0.versions[key] != nil } && logs.allSatisfy { $0.newest(key) == nil }
    }

    /// Lets go of what the device has found out since: it has the triggers back, and does not ask the server any more.
    func noteFound(
        _ device: Int, _ sight: inout OracleDevice.Sight, since former: OracleDevice.Sight, byAct isAct: Bool
    ) {
        for (key, base) in sight.uncaptured where !sight.missing.contains(key.entity) {
            let isTold = sight.shadows[key] != nil || isSame(sight.rows[key], base)
            let isCompared =
                !isAct && !sight.inferred.contains(key)
                && sight.captureCounts[key.entity] == tables[key.entity]?.captureCount
            if isTold || isCompared { sight.uncaptured[key] = nil }
        }
        for key in former.inferred.subtracting(sight.inferred) { allowWhole(key, sight) }
    }

    /// A record that was written unseen, and that a restored server has lost, goes as a new one: nobody can tell any
    /// more what of it was edited.
    private func allowWhole(_ key: OracleKey, _ sight: OracleDevice.Sight) {
        guard let table = tables[key.entity], let cells = sight.rows[key], sight.shadows[key] == .some(nil),
            table.scopes.contains(where: { scopes[$0]?.newest ?? 0 > 0 })
        else { return }
        for (column, value) in zip(table.data, cells) {
            allowed[OracleCell(key: key, column: column, value: value), default: 0] += 1
        }
    }

    /// The app takes the server's rows for what waits.
    func discards(_ device: Int) {
        for key in devices[device].sight.held {
            if devices[device].writes[key]?[""] != nil { deletes.takeBack(key) }
            devices[device].writes[key] = nil
        }
    }

    private func isSame(_ left: [Value]?, _ right: [Value]?) -> Bool {
        guard let left, let right else { return left == nil && right == nil }
        return zip(left, right).allSatisfy { $0 == $1 || $0 == .absent || $1 == .absent }
    }

    /// At the end: all that was written unseen was found, and what was resurrected is listed.
    func checkFound(_ device: Int, _ sight: OracleDevice.Sight, _ db: Database) throws {
        if let table = sight.missing.min() { throw Violation("I13", "device \(device): \(table) is not there") }
        if let key = Set(sight.uncaptured.keys).union(sight.inferred).min() {
            throw Violation("I13", "device \(device): \(key) was written unseen, and never found")
        }
        guard !world.lostDevices.contains(device), scopes.values.allSatisfy({ $0.newest == 0 }) else { return }
        for key in devices[device].resurrected.sorted() {
            guard let table = tables[key.entity], isDeleted(key, table) else { continue }
            let isListed = try Bool.fetchOne(
                db, sql: "SELECT EXISTS (SELECT 1 FROM tidemark_orphan WHERE entity = ? AND record = ?)",
                arguments: [key.entity, key.record])
            guard isListed != true else { continue }
            throw Violation("I7", "device \(device): \(key) was resurrected after its delete, and is in no list")
        }
    }
}

extension OracleDevice.Sight {
    /// Finds out how a table stands whose schema acts may have changed. Returns how it is to be read; `nil` where it is
    /// not there: what was seen of it last is as it was.
    mutating func read(
        _ db: Database, _ table: OracleTable, after former: Self
    ) throws -> (rows: String, shadows: String)? {
        guard table.captureCount != nil else {
            if !table.seeds.isEmpty { try readInferred(db, table) }
            return (table.rowsSQL, table.shadowsSQL)
        }
        let columns = try Self.columns(db, table.name)
        guard !columns.isEmpty else {
            missing.insert(table.name)
            odd[table.name] = former.odd[table.name]
            for (key, cells) in former.rows where key.entity == table.name { rows[key] = cells }
            for (key, cells) in former.shadows where key.entity == table.name {
                shadows.updateValue(cells, forKey: key)
            }
            return nil
        }
        captureCounts[table.name] = try Int.fetchOne(
            db.cachedStatement(sql: OracleTable.captureSQL), arguments: [table.name])
        let known = try Self.columns(db, "tidemark_shadow_\(table.name)")
        var filling: Set<String> = []
        let statement = try db.cachedStatement(
            sql: """
                SELECT field.value FROM tidemark_backfill, json_each(CAST(coalesce(fields, '[]') AS TEXT)) AS field
                WHERE entity = ?
                """)
        for field in try String.fetchAll(statement, arguments: [table.name]) { filling.insert(field) }
        let places = table.data.indices.filter { index in
            let name = table.data[index]
            return columns.contains(name) && (!known.contains(name) || filling.contains(name))
        }
        if !places.isEmpty { unfilled[table.name] = places }
        try readInferred(db, table)
        return table.reading(columns, shadow: known)
    }

    /// Rows of the first capture that are not sealed yet, or are under way without a shadow: the server has none of
    /// them, as far as this device knows.
    mutating func readFirstCapture(_ db: Database, _ table: OracleTable, _ names: OracleNames) throws {
        let statement = try db.cachedStatement(
            sql: """
                SELECT prefix || value FROM tidemark_first_capture, json_each(keys) WHERE entity = ?
                AND CASE typeof(first) WHEN 'integer' THEN value ELSE prefix || value END >= first
                UNION SELECT record FROM tidemark_sealed_run AS run, tidemark_operation WHERE run.entity = ?
                AND tidemark_operation.id BETWEEN first_operation AND last_operation
                """)
        for record in try String.fetchAll(statement, arguments: [table.name, table.name]) {
            let key = names[OracleKey(entity: table.name, record: record)]
            if rows[key] != nil || shadows[key] != nil { shadows.updateValue(nil, forKey: key) }
        }
    }

    private static func columns(_ db: Database, _ table: String) throws -> Set<String> {
        Set(try String.fetchAll(db.cachedStatement(sql: "SELECT name FROM pragma_table_info(?)"), arguments: [table]))
    }

    private mutating func readInferred(_ db: Database, _ table: OracleTable) throws {
        let statement = try db.cachedStatement(sql: "SELECT record, compared FROM tidemark_inferred WHERE entity = ?")
        for row in try Row.fetchAll(statement, arguments: [table.name]) {
            let key = OracleKey(entity: table.name, record: row[0])
            if row[1] { held.insert(key) } else { inferred.insert(key) }
        }
    }
}
