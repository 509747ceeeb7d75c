import Foundation
import GRDB
import TidemarkServer
import TidemarkWire

/// The devices' own word on themselves, in the rows of `device`: it goes when they are forgotten.
enum DeviceReports {
    /// `reported_at` is NULL for a device that has told nothing; `oldest_edit` is an age, in seconds.
    static let columns = [
        "reported_at INTEGER", "pending INTEGER", "oldest_edit INTEGER", "refused INTEGER", "quarantined INTEGER",
        "app TEXT", "library TEXT", "last_error TEXT",
    ]

    private static let read = "pending, oldest_edit, refused, quarantined, app, library, last_error"

    /// - Parameter start: the place of the first of the columns.
    private static func report(_ row: Row, from start: Int) -> DeviceReport {
        var report = DeviceReport()
        report.pending = row[start] ?? 0
        report.oldest = (row[start + 1] as Int64?).map { .seconds($0) }
        (report.refused, report.quarantined) = (row[start + 2] ?? 0, row[start + 3] ?? 0)
        (report.app, report.library, report.error) = (row[start + 4], row[start + 5], row[start + 6])
        return report
    }

    static func last(_ db: Database, scope: Int64, of device: DeviceName) throws -> DeviceReport? {
        let statement = try db.cachedStatement(
            sql: """
                SELECT \(read) FROM device
                WHERE scope = ? AND principal = ? AND client = ? AND reported_at IS NOT NULL
                """)
        return try Row.fetchOne(statement, arguments: [scope, device.principal.whole, device.client])
            .map { report($0, from: 0) }
    }

    static func note(
        _ db: Database, scope: Int64, _ report: DeviceReport, at moment: Int64, of device: DeviceName
    ) throws {
        let statement = try db.cachedStatement(
            sql: """
                UPDATE device SET reported_at = ?, (\(read)) = (?, ?, ?, ?, ?, ?, ?)
                WHERE scope = ? AND principal = ? AND client = ?
                """)
        try statement.execute(arguments: [
            moment, report.pending, report.oldest?.wholeSeconds, report.refused, report.quarantined, report.app,
            report.library, report.error, scope, device.principal.whole, device.client,
        ])
    }

    // MARK: The list

    private static let behind = "(s.head - coalesce(d.version, 0))"

    static func page(_ db: Database, _ query: FleetQuery) throws -> FleetPage {
        let (conditions, arguments) = conditions(query)
        let place = "FROM device d JOIN scope s ON s.id = d.scope WHERE \(conditions)"
        let total = try Int.fetchOne(db, sql: "SELECT count(*) \(place)", arguments: arguments) ?? 0
        let rows = try Row.fetchAll(
            db,
            sql: """
                SELECT s.name, d.principal, d.client, d.seen_at, \(behind), d.scope, coalesce(d.version, 0),
                    d.reported_at, d.remedy, \(read)
                \(place) ORDER BY \(order(query.order)), s.name, CAST(d.principal AS BLOB), d.client
                LIMIT \(max(0, query.limit))
                """,
            arguments: arguments)
        let next = try db.cachedStatement(
            sql: "SELECT time FROM change WHERE scope = ? AND version > ? ORDER BY version LIMIT 1")
        let devices = try rows.compactMap { row -> FleetDevice? in
            guard let scope = Scope(row[0] as String) else { return nil }
            let name = DeviceName(principal: row[1], client: row[2])
            var device = FleetDevice(scope: scope, name: name, seen: Date(milliseconds: row[3]), behind: row[4])
            if device.behind > 0 {
                device.behindSince = try Int64.fetchOne(next, arguments: [row[5] as Int64, row[6] as Int64])
                    .map(Date.init(milliseconds:))
            }
            device.reportedAt = (row[7] as Int64?).map(Date.init(milliseconds:))
            device.remedy = Devices.remedy(row, 8)
            if device.reportedAt != nil { device.report = report(row, from: 9) }
            return device
        }
        return FleetPage(devices: devices, total: total)
    }

    private static func conditions(_ query: FleetQuery) -> (sql: String, StatementArguments) {
        var conditions: [String] = []
        var arguments = StatementArguments()
        func add(_ condition: String, _ value: (any DatabaseValueConvertible)?) {
            guard let value else { return }
            conditions.append(condition)
            arguments += [value]
        }
        add("s.name = ?", query.scope?.name)
        add("d.principal = ?", query.principal?.whole)
        add("d.client = ?", query.client)
        add("\(behind) >= ?", query.leastBehind)
        add("d.seen_at < ?", query.seenBefore?.milliseconds)
        if query.hasTrouble { conditions.append("(d.refused > 0 OR d.quarantined > 0 OR d.last_error IS NOT NULL)") }
        return (conditions.isEmpty ? "true" : conditions.joined(separator: " AND "), arguments)
    }

    private static func order(_ order: FleetQuery.Order) -> String {
        switch order {
        case .behind: "\(behind) DESC"
        case .seen: "d.seen_at"
        case .pending: "coalesce(d.pending, 0) DESC"
        case .oldest: "d.reported_at - d.oldest_edit * 1000 ASC NULLS LAST"
        }
    }
}

extension SQLiteScope {
    func report(of device: DeviceName) throws -> DeviceReport? {
        try id.flatMap { try DeviceReports.last(db, scope: $0, of: device) }
    }
}

extension SQLiteScopeWriter {
    func note(_ report: DeviceReport, at moment: Int64, of device: DeviceName) throws {
        guard let id else { return }
        try DeviceReports.note(db, scope: id, report, at: moment, of: device)
    }
}
