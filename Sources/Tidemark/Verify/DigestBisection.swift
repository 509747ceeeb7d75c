import GRDB
import TidemarkCore
import TidemarkWire

/// Finds the records of one table that differ: by cutting the key range into parts, and those that differ again, until
/// each part is one record.
struct DigestBisection {
    /// Parts that a range is cut into.
    private static let fanOut = 16
    /// Ranges with no more records are listed one by one.
    private static let listSize = 64
    /// Differing records that one comparison looks for.
    static let limit = 10_000

    /// A range that differs: behind `after`, up to and with `through`, to be cut after `every` records.
    private struct Range {
        var after: String?
        var through: String?
        var every: Int
    }

    let comparison: TableComparison
    let scope: Scope
    let stand: ScopeStand
    let file: AppFile

    private let defaults: [(name: [UInt8], content: UInt64)]
    private var ranges: [Range] = []
    private(set) var differing: [RecordID] = []
    private(set) var isCutShort = false

    init(_ comparison: TableComparison, scope: Scope, stand: ScopeStand, file: AppFile) {
        (self.comparison, self.scope, self.stand, self.file) = (comparison, scope, stand, file)
        defaults = comparison.contentsLacking
    }

    mutating func run(_ questions: inout DigestQuestions) async throws {
        ranges = [Range(after: nil, through: nil, every: Self.step(comparison.count))]
        while let range = ranges.popLast() {
            let answer = try await questions.ask(query(range))
            guard let end = answer.parts.last else { continue }
            if answer.hasMore, let last = end.through {
                ranges.append(Range(after: last, through: range.through, every: range.every))
            }
            try await compare(range, answer.parts)
            guard differing.count < Self.limit else {
                isCutShort = true
                return
            }
        }
    }

    /// A count comes from the server, and may be any number.
    static func step(_ count: Int) -> Int { count <= listSize ? 1 : count / fanOut + (count % fanOut).signum() }

    private func query(_ range: Range) -> [TransportRequest.QueryItem] {
        var query = [
            TransportRequest.QueryItem("entity", comparison.shape.name),
            TransportRequest.QueryItem("every", String(range.every)),
        ]
        if let after = range.after { query.append(TransportRequest.QueryItem("after", after)) }
        if let through = range.through { query.append(TransportRequest.QueryItem("through", through)) }
        return query
            + comparison.columns.map { TransportRequest.QueryItem("field", comparison.shape.data[$0].name) }
    }

    private mutating func compare(_ range: Range, _ parts: [DigestPart]) async throws {
        let sums = try await ServerRowScan(
            comparison.shape, scope, stand, after: range.after, through: parts.last?.through
        ).run(
            file,
            into: LocalDigest(
                comparison.shape, columns: comparison.columns, after: range.after, bounds: parts.map(\.through),
                lists: parts.map { $0.count <= 1 }, listLimit: Self.limit))
        isCutShort = isCutShort || sums.isCutShort
        var after = range.after
        var found: [Range] = []
        for (index, part) in parts.enumerated() {
            defer { after = part.through }
            let own = sums.parts[index]
            let expected = part.sum(defaults: defaults)
            if own.count == part.count, own.records == part.records, own.total == expected { continue }
            if part.count <= 1, range.every == 1 || part.count == 0 {
                list(part, expected: expected, sums.listed[index])
            } else if let last = found.last, last.through == after {
                // Adjoining ranges that differ are looked at together.
                let every = max(last.every, Self.step(Int(truncatingIfNeeded: part.count)))
                found[found.count - 1] = Range(after: last.after, through: part.through, every: every)
            } else {
                found.append(
                    Range(
                        after: after, through: part.through, every: Self.step(Int(truncatingIfNeeded: part.count))))
            }
        }
        // The last one in is looked at first, so that work goes along the keys.
        ranges += found.reversed()
    }

    /// A part with one record, whose id ends it, or with none.
    private mutating func list(_ part: DigestPart, expected: UInt64, _ own: [LocalDigest.Record]) {
        var isThere = part.count == 0
        for record in own {
            if part.count == 1, record.number == part.records {
                isThere = true
                if record.sum == expected { continue }
            }
            differing.append(record.id)
        }
        if !isThere, let id = part.through.flatMap({ RecordID($0) }) { differing.append(id) }
    }
}
