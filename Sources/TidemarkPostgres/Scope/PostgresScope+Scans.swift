import TidemarkServer

/// Rows come in portions, since a visit may end at any of them; what is heavy comes by itself when it is visited. So a
/// reader holds a few megabytes, whatever the records weigh.
extension PostgresScope {
    private static let portion: Int64 = 512
    private static let columns = """
        version, kind, time, entity, record, CASE WHEN octet_length(payload) <= 16384 THEN payload END,
        octet_length(payload) > 16384
        """
    private static let versions: Int32 = 7
    private static let payload = Statement(
        "payload", "SELECT payload FROM change WHERE scope = $1 AND version = $2")

    private func show(
        _ answer: QueryResult, _ row: Int, versions: Int32? = nil, to visit: (BorrowedChange) -> Bool
    ) throws -> Bool {
        defer { withExtendedLifetime(answer) {} }
        var change = try BorrowedChange(answer, row)
        if let versions { change.fieldVersions = answer.bytes(row, versions) }
        guard answer.flag(row, 6) else { return visit(change) }
        let heavy = try session.ask(Self.payload, name, .integer(change.version))
        defer { withExtendedLifetime(heavy) {} }
        guard heavy.count > 0 else { throw PostgresError(.schema, "a row of a snapshot is gone from it") }
        change.payload = heavy.bytes(0, 0)
        return visit(change)
    }

    private static let scan = Statement(
        "scan",
        """
        SELECT \(columns), CASE WHEN kind = 0 AND octet_length(field_versions) <= \(BorrowedChange.largestNote)
          THEN field_versions END FROM change
        WHERE scope = $1 AND version > $2 AND version <= $3
          AND (superseded_by IS NULL OR superseded_by > $3) AND (kind IN (0, 2) OR version > $4)
        ORDER BY version LIMIT $5
        """)

    func changes(
        after position: Version, through horizon: Version, tombstonesAfter: Version,
        _ visit: (BorrowedChange) -> Bool
    ) throws {
        guard kept.exists else { return }
        var last = position
        while true {
            let answer = try session.ask(
                Self.scan, name, .integer(last), .integer(horizon), .integer(tombstonesAfter), .integer(Self.portion))
            for index in 0..<answer.count {
                guard try show(answer, index, versions: Self.versions, to: visit) else { return }
            }
            guard answer.count == Self.portion else { return }
            last = try answer.integer(answer.count - 1, 0)
        }
    }

    private static let records = Statement(
        "records",
        """
        SELECT \(columns) FROM change
        WHERE scope = $1 AND entity = $2 AND (record, version) > ($3, $4) AND version > $5 AND version <= $6
          AND (superseded_by IS NULL OR superseded_by > $6) AND (kind <> 1 OR $5 > 0)
        ORDER BY record, version LIMIT $7
        """)

    func records(
        of entity: String, above base: Version, at horizon: Version?, after record: RecordID?,
        _ visit: (BorrowedChange) -> Bool
    ) throws {
        guard kept.exists else { return }
        var last = (record: Array((record?.text ?? "").utf8), version: Version.max)
        while true {
            let answer = try session.ask(
                Self.records, name, .text(entity), .bytes(last.record), .integer(last.version), .integer(base),
                .integer(horizon ?? .max), .integer(Self.portion))
            for index in 0..<answer.count {
                guard try show(answer, index, to: visit) else { return }
            }
            guard answer.count == Self.portion else { return }
            last = (Array(answer.bytes(answer.count - 1, 4)), try answer.integer(answer.count - 1, 0))
        }
    }

    private static let ages = Statement(
        "ages",
        """
        SELECT version, kind, time FROM change WHERE scope = $1 AND version > $2 AND version <= $3
        ORDER BY version LIMIT $4
        """)
    /// Rows that are looked at together for their ages.
    private static let ageStep = 500

    func aged(
        after version: Version, through last: Version, before moment: Int64, events: Bool, limit: Int
    ) throws -> (through: Version, rows: Int) {
        var aged = (through: version, rows: 0)
        guard kept.exists else { return aged }
        var rest = limit
        while rest > 0 {
            let step = min(rest, Self.ageStep)
            let answer = try session.ask(
                Self.ages, name, .integer(aged.through), .integer(last), .integer(Int64(step)))
            for index in 0..<answer.count {
                guard try answer.integer(index, 2) < moment else { return aged }
                aged.through = try answer.integer(index, 0)
                if RowKind(rawValue: try answer.integer(index, 1))?.expires(withEvents: events) == true {
                    aged.rows += 1
                }
            }
            guard answer.count == step else { break }
            rest -= step
        }
        return aged
    }
}
