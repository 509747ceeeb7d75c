import Foundation
public import TidemarkServer
import TidemarkWire

/// The devices' own word on themselves, in the rows of `device`: it goes when they are forgotten.
enum DeviceReports {
    /// `reported_at` is NULL for a device that has told nothing; `oldest_edit` is an age, in seconds.
    static let columns = [
        "reported_at bigint", "pending bigint", "oldest_edit bigint", "refused bigint", "quarantined bigint",
        "app bytea", "library bytea", "last_error bytea",
    ]

    private static let read = "pending, oldest_edit, refused, quarantined, app, library, last_error"

    /// - Parameter start: the place of the first of the columns.
    private static func report(_ answer: QueryResult, _ row: Int, from start: Int32) throws -> DeviceReport {
        func text(_ column: Int32) -> String? { answer.isNull(row, column) ? nil : answer.text(row, column) }
        var report = DeviceReport()
        report.pending = try answer.integerIfAny(row, start) ?? 0
        report.oldest = try answer.integerIfAny(row, start + 1).map { .seconds($0) }
        report.refused = try answer.integerIfAny(row, start + 2) ?? 0
        report.quarantined = try answer.integerIfAny(row, start + 3) ?? 0
        (report.app, report.library, report.error) = (text(start + 4), text(start + 5), text(start + 6))
        return report
    }

    private static let last = Statement(
        "device report",
        """
        SELECT \(read) FROM device
        WHERE scope = $1 AND principal = $2 AND client = $3 AND reported_at IS NOT NULL
        """)

    static func last(_ session: Session, _ scope: Parameter, of device: DeviceName) throws -> DeviceReport? {
        let answer = try session.ask(last, scope, .text(device.principal), .text(device.client))
        return answer.count > 0 ? try report(answer, 0, from: 0) : nil
    }

    private static let note = Statement(
        "note report",
        """
        UPDATE device SET reported_at = $4, (\(read)) = ($5, $6, $7, $8, $9, $10, $11)
        WHERE scope = $1 AND principal = $2 AND client = $3
        """)

    static func note(
        _ session: Session, _ scope: Parameter, _ report: DeviceReport, at moment: Int64, of device: DeviceName
    ) throws {
        func text(_ text: String?) -> Parameter { text.map { .text($0) } ?? .null }
        try session.write(
            note, scope, .text(device.principal), .text(device.client), .integer(moment), .integer(report.pending),
            .optional(report.oldest?.wholeSeconds), .integer(report.refused), .integer(report.quarantined),
            text(report.app), text(report.library), text(report.error))
    }

    // MARK: The list

    private static let behind = "(s.head - coalesce(d.version, 0))"

    private static let place = """
        FROM device d JOIN scope s ON s.name = d.scope
        WHERE ($1::text IS NULL OR d.scope = $1) AND ($2::bytea IS NULL OR d.principal = $2)
        AND ($3::text IS NULL OR d.client = $3) AND ($4::bigint IS NULL OR \(behind) >= $4)
        AND ($5::bigint IS NULL OR d.seen_at < $5)
        AND (NOT $6::boolean OR d.refused > 0 OR d.quarantined > 0 OR d.last_error IS NOT NULL)
        """

    private static let count = Statement("count fleet", "SELECT count(*) \(place)")

    /// By how much a device comes first, in the order that is asked for.
    private static let rank = """
        CASE $8::text WHEN 'behind' THEN -\(behind) WHEN 'seen' THEN d.seen_at
        WHEN 'pending' THEN -coalesce(d.pending, 0) ELSE d.reported_at - d.oldest_edit * 1000 END
        """

    private static let list = Statement(
        "fleet",
        """
        SELECT f.name, f.principal, f.client, f.seen_at, f.behind, c.time, f.reported_at, f.remedy, \(read) FROM (
            SELECT s.name, \(behind) AS behind, d.*,
                row_number() OVER (ORDER BY \(rank) NULLS LAST, d.scope, d.principal, d.client) AS place
            \(place) ORDER BY place LIMIT $7) AS f
        LEFT JOIN LATERAL (
            SELECT time FROM change
            WHERE f.behind > 0 AND change.scope = f.scope AND change.version > coalesce(f.version, 0)
            ORDER BY change.version LIMIT 1) AS c ON true
        ORDER BY f.place
        """)

    static func page(_ session: Session, _ query: FleetQuery) throws -> FleetPage {
        let conditions: [Parameter] = [
            query.scope.map { .text($0.name) } ?? .null, query.principal.map { .text($0) } ?? .null,
            query.client.map { .text($0) } ?? .null, .optional(query.leastBehind),
            .optional(query.seenBefore?.milliseconds),
            .flag(query.hasTrouble),
        ]
        let limit = Parameter.integer(Int64(max(0, query.limit)))
        let answers = try session.ask([
            Request(count, conditions), Request(list, conditions + [limit, .text(query.order.rawValue)]),
        ])
        let answer = answers[1]
        let devices = try (0..<answer.count).compactMap { row -> FleetDevice? in
            guard let scope = Scope(answer.text(row, 0)) else { return nil }
            let name = DeviceName(principal: answer.text(row, 1), client: answer.text(row, 2))
            var device = FleetDevice(
                scope: scope, name: name, seen: Date(milliseconds: try answer.integer(row, 3)),
                behind: try answer.integer(row, 4))
            device.behindSince = try answer.integerIfAny(row, 5).map(Date.init(milliseconds:))
            device.reportedAt = try answer.integerIfAny(row, 6).map(Date.init(milliseconds:))
            device.remedy = Devices.remedy(answer, row, 7)
            if device.reportedAt != nil { device.report = try report(answer, row, from: 8) }
            return device
        }
        return FleetPage(devices: devices, total: Int(try answers[0].integer(0, 0)))
    }
}

extension PostgresScope {
    func report(of device: DeviceName) throws -> DeviceReport? {
        kept.exists ? try DeviceReports.last(session, name, of: device) : nil
    }
}

extension PostgresScopeWriter {
    func note(_ report: DeviceReport, at moment: Int64, of device: DeviceName) throws {
        guard kept.exists else { return }
        try DeviceReports.note(session, name, report, at: moment, of: device)
    }
}

extension PostgresStore {
    /// Counts the devices that are asked for, and reads the rows of one page.
    ///
    /// - Throws: `StoreUnavailable` for what passes by itself; ``PostgresError`` for the rest.
    public func devices(_ query: FleetQuery) async throws -> FleetPage {
        try await reads.run { line in try line.read { session in try DeviceReports.page(session, query) } }
    }
}
