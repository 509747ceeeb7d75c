import GRDB
import TidemarkCore
import TidemarkWire

extension DeviceReport {
    /// Things of one kind that are counted: their number is only told roughly.
    private static let countLimit = 10_000

    /// Counts a scope's edits beside the operations of a request. The wire's `pending` is the sum of those that are
    /// pending, sent and blocked.
    ///
    /// - Parameter now: in milliseconds since 1970.
    init(
        _ db: Database, _ schema: SyncSchema, _ scope: Scope, beside entries: [OutboxEntry], now: Int64
    ) throws {
        self.init()
        var since: [Int64] = []
        var edits: Int64 = 0
        for shape in schema.shapes(in: scope) {
            for place in shape.placesSQL(scope) {
                let marks = try ShadowTable(shape).unsent(db, place, limit: Int64(Self.countLimit))
                edits += marks.count
                since += marks.since
            }
            edits += try BlockedEdits.count(db, shape.name, limit: Self.countLimit)
            let first = try FirstCapture.left(db, shape.name, upTo: Self.countLimit)
            edits += Int64(min(first.untouched, Self.countLimit))
            since += [first.since].compactMap { $0 }
        }
        let open = try Outbox.open(db, scope, behind: entries.map(\.id).max() ?? 0, limit: Self.countLimit)
        edits += open.count
        since += [open.since].compactMap { $0 }
        pending = Self.rounded(edits)
        if edits > 0, let first = since.min() {
            let age = now.saturatingSubtracting(first) / 1000
            oldest = .seconds(min(max(0, age), Self.ages.upperBound))
        }
        refused = Self.rounded(try Outbox.countRejected(db, scope, limit: Self.countLimit))
        quarantined = Self.rounded(try QuarantinedRow.count(db, scope, limit: Self.countLimit))
    }
}
