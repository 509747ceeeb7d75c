import GRDB
import TidemarkCore
import TidemarkWire

extension DeviceReport {
    /// Things of one kind that are counted: their number is only told roughly.
    private static let countLimit = 10_000

    /// Counts what waits in a scope beside the operations of a request.
    ///
    /// - Parameter now: in milliseconds since 1970.
    init(
        _ db: Database, _ schema: SyncSchema, _ scope: Scope, beside entries: [OutboxEntry], now: Int64
    ) throws {
        self.init()
        func count(_ source: String) throws -> Int64 {
            let sql = "SELECT count(*) FROM (SELECT 1 FROM \(source) LIMIT \(Self.countLimit))"
            return try Query(db, sql).first(db, [], { $0.integer(0) }) ?? 0
        }
        var since: [Int64] = []
        var waiting: Int64 = 0
        for shape in schema.shapes(in: scope) {
            for place in shape.placesSQL(scope) {
                let marks = "\(shape.shadowSQL) WHERE tidemark_mark IS NOT NULL AND \(place)"
                waiting += try count(marks)
                // Marks are numbered in the order of first edits; those that are put off have negative numbers.
                for order in ["tidemark_mark > 0", "tidemark_mark < 0"] {
                    let sign = order.hasSuffix("> 0") ? "" : "DESC"
                    let sql = "SELECT tidemark_since FROM \(marks) AND \(order) ORDER BY tidemark_mark \(sign) LIMIT 1"
                    since += try Query(db, sql).rows(db) { $0.optionalInteger(0) }.compactMap { $0 }
                }
            }
            waiting += try count("tidemark_blocked WHERE entity = \(literal(shape.name))")
            let first = try FirstCapture.left(db, shape.name, upTo: Self.countLimit)
            waiting += Int64(min(first.untouched, Self.countLimit))
            since += [first.since].compactMap { $0 }
        }
        let open = try Outbox.open(db, scope, behind: entries.map(\.id).max() ?? 0, limit: Self.countLimit)
        waiting += open.count
        since += [open.since].compactMap { $0 }
        pending = Self.rounded(waiting)
        if waiting > 0, let first = since.min() {
            oldest = min(max(0, now.subtractingReportingOverflow(first).partialValue / 1000), Self.ages.upperBound)
        }
        refused = Self.rounded(try Outbox.countRejected(db, scope, limit: Self.countLimit))
        quarantined = Self.rounded(
            try count("tidemark_quarantine WHERE move = 0 AND scope = \(literal(scope.name))"))
    }
}
