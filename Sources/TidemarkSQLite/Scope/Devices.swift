import Foundation
import GRDB
import TidemarkServer
import TidemarkWire

/// The devices of a scope: who is known, and from which version on deletions are kept for it.
enum Devices {
    static func standing(_ db: Database, scope: Int64, of device: DeviceName) throws -> DeviceStanding? {
        let statement = try db.cachedStatement(
            sql: """
                SELECT version, seen_at, oldest, remedy FROM device WHERE scope = ? AND principal = ? AND client = ?
                """)
        return try Row.fetchOne(statement, arguments: [scope, device.principal.whole, device.client]).map { row in
            var standing = DeviceStanding(version: row[0], seen: row[1], oldest: row[2])
            standing.remedy = remedy(row, 3)
            return standing
        }
    }

    /// The remedy that a column holds.
    static func remedy(_ row: Row, _ column: Int) -> KeptRemedy? {
        (row[column] as Data?).flatMap { KeptRemedy(bytes: [UInt8]($0)) }
    }

    static func note(_ db: Database, scope: Int64, _ remedy: KeptRemedy, of device: DeviceName) throws {
        let statement = try db.cachedStatement(
            sql: "UPDATE device SET remedy = ? WHERE scope = ? AND principal = ? AND client = ?")
        try statement.execute(arguments: [Data(remedy.bytes), scope, device.principal.whole, device.client])
    }

    static func note(_ db: Database, scope: Int64, _ standing: DeviceStanding, of device: DeviceName) throws {
        let statement = try db.cachedStatement(
            sql: """
                INSERT INTO device (scope, principal, client, version, seen_at, oldest) VALUES (?, ?, ?, ?, ?, ?)
                ON CONFLICT DO UPDATE SET version = coalesce(excluded.version, version), seen_at = excluded.seen_at,
                    oldest = CASE WHEN excluded.version IS NULL THEN coalesce(excluded.oldest, oldest)
                        ELSE excluded.oldest END
                """)
        try statement.execute(arguments: [
            scope, device.principal.whole, device.client, standing.version, standing.seen, standing.oldest,
        ])
    }

    static func slowest(_ db: Database, scope: Int64) throws -> Version? {
        let statement = try db.cachedStatement(
            sql: "SELECT version FROM device WHERE scope = ? AND version IS NOT NULL ORDER BY version LIMIT 1")
        return try Int64.fetchOne(statement, arguments: [scope])
    }

    /// Lanes of devices that are not known, and were not used since a moment.
    private static let oldLanes = """
        lane WHERE scope = ?1 AND seen_at < ?2 AND NOT EXISTS (
            SELECT 1 FROM device WHERE device.scope = ?1 AND device.principal = lane.principal
            AND device.client = lane.client)
        """

    static func unheard(
        _ db: Database, scope: Int64, devicesBefore: Int64, lanesBefore: Int64
    ) throws -> (devices: Int, lanes: Int) {
        let devices = try Int.fetchOne(
            db, sql: "SELECT count(*) FROM device WHERE scope = ? AND seen_at < ?", arguments: [scope, devicesBefore])
        let lanes = try Int.fetchOne(
            db, sql: "SELECT count(*) FROM \(oldLanes)", arguments: [scope, lanesBefore])
        return (devices ?? 0, lanes ?? 0)
    }

    /// A device that is gone names nothing any more by the ids that it had made up for a while.
    private static func forgetAliases(_ db: Database, madeBefore moment: Int64, limit: Int) throws {
        let old = try Row.fetchAll(
            db,
            sql: """
                SELECT principal, client, entity, temporary FROM alias INDEXED BY alias_age WHERE made_at < ?
                AND (principal, client) NOT IN (SELECT principal, client FROM device)
                AND (principal, client) NOT IN (SELECT principal, client FROM lane) LIMIT ?
                """,
            arguments: [moment, limit])
        let delete = try db.cachedStatement(
            sql: "DELETE FROM alias WHERE principal = ? AND client = ? AND entity = ? AND temporary = ?")
        for row in old {
            try delete.execute(arguments: [
                row[0] as DatabaseValue, row[1] as String, row[2] as String, row[3] as String,
            ])
        }
    }

    static func forget(
        _ db: Database, scope: Int64, devicesBefore: Int64, lanesBefore: Int64, limit: Int
    ) throws -> (devices: Int, lanes: Int) {
        let devices = try Row.fetchAll(
            db, sql: "SELECT principal, client, seen_at FROM device WHERE scope = ? AND seen_at < ? LIMIT ?",
            arguments: [scope, devicesBefore, limit])
        try forget(db, scope: scope, devices)
        let lanes = try Int64.fetchAll(
            db, sql: "SELECT id FROM \(oldLanes) LIMIT ?3", arguments: [scope, lanesBefore, limit])
        for lane in lanes {
            try db.execute(sql: "DELETE FROM verdict WHERE lane = ?", arguments: [lane])
            try db.execute(sql: "DELETE FROM lane WHERE id = ?", arguments: [lane])
        }
        try forgetAliases(db, madeBefore: lanesBefore, limit: limit)
        try Tallies.forget(db, scope: scope, before: devicesBefore)
        return (devices.count, lanes.count)
    }

    static func forget(_ db: Database, scope: Int64, beyond limit: Int, besides device: DeviceName) throws {
        let devices = try Row.fetchAll(
            db,
            sql: """
                SELECT principal, client, seen_at FROM device WHERE scope = ? AND principal = ? AND client <> ?
                ORDER BY seen_at DESC, client LIMIT -1 OFFSET ?
                """,
            arguments: [scope, device.principal.whole, device.client, max(0, limit - 1)])
        try forget(db, scope: scope, devices)
    }

    private static func forget(_ db: Database, scope: Int64, _ devices: [Row]) throws {
        for device in devices {
            let arguments: StatementArguments = [scope, device[0] as DatabaseValue, device[1] as String]
            try db.execute(
                sql: """
                    DELETE FROM verdict WHERE lane IN (
                        SELECT id FROM lane WHERE scope = ? AND principal = ? AND client = ?)
                    """,
                arguments: arguments)
            // From now on its lanes age by themselves.
            try db.execute(
                sql: """
                    UPDATE lane SET seen_at = max(seen_at, ?4) WHERE scope = ?1 AND principal = ?2 AND client = ?3
                    """,
                arguments: arguments + [device[2] as Int64])
            try db.execute(
                sql: "DELETE FROM device WHERE scope = ? AND principal = ? AND client = ?", arguments: arguments)
        }
    }
}

extension SQLiteScope {
    func standing(of device: DeviceName) throws -> DeviceStanding? {
        try id.flatMap { try Devices.standing(db, scope: $0, of: device) }
    }

    func slowest() throws -> Version? { try id.flatMap { try Devices.slowest(db, scope: $0) } }
}

extension SQLiteScopeWriter {
    func note(_ standing: DeviceStanding, of device: DeviceName) throws {
        // A scope that nobody wrote to has nothing to keep for anybody.
        guard let id else { return }
        try Devices.note(db, scope: id, standing, of: device)
    }

    func note(_ remedy: KeptRemedy, of device: DeviceName) throws {
        guard let id else { return }
        try Devices.note(db, scope: id, remedy, of: device)
    }

    func forgetDevices(beyond limit: Int, besides device: DeviceName) throws {
        guard let id else { return }
        try flushLanes()
        try Devices.forget(db, scope: id, beyond: limit, besides: device)
    }

    func forget(devicesBefore: Int64, lanesBefore: Int64, limit: Int) throws -> (devices: Int, lanes: Int) {
        guard let id else { return (0, 0) }
        try flushLanes()
        return try Devices.forget(db, scope: id, devicesBefore: devicesBefore, lanesBefore: lanesBefore, limit: limit)
    }
}
