import TidemarkServer

/// The state of a lane beside its name.
struct LaneRow {
    /// Its number among the lanes of its scope; its verdicts are found by it.
    var place: Int64
    /// How far it has come.
    var number: Int64
    /// The highest number that a verdict of it ever had.
    var top: Int64

    private static let find = Statement(
        "lane",
        """
        SELECT place, number, top FROM lane WHERE scope = $1 AND principal = $2 AND client = $3 AND lane = $4
        """)

    static func find(_ session: Session, _ scope: Parameter, _ lane: LaneName) throws -> LaneRow? {
        let answer = try session.ask(
            find, scope, .text(lane.principal), .text(lane.client), .text(lane.lane))
        guard answer.count > 0 else { return nil }
        return LaneRow(
            place: try answer.integer(0, 0), number: try answer.integer(0, 1), top: try answer.integer(0, 2))
    }

    private static let ofDevice = Statement(
        "lanes",
        """
        SELECT lane, number FROM lane WHERE scope = $1 AND principal = $2 AND client = $3
        ORDER BY seen_at DESC, place DESC LIMIT $4
        """)

    static func all(
        _ session: Session, _ scope: Parameter, of device: DeviceName, limit: Int
    ) throws -> [(lane: String, number: Int64)] {
        let answer = try session.ask(
            ofDevice, scope, .text(device.principal), .text(device.client), .integer(Int64(max(0, limit))))
        return try (0..<answer.count).map { (answer.text($0, 0), try answer.integer($0, 1)) }
    }

    private static let keep = Statement(
        "keep lane",
        """
        INSERT INTO lane (scope, principal, client, lane, place, number, top, seen_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
        ON CONFLICT (scope, principal, client, lane)
        DO UPDATE SET number = excluded.number, top = excluded.top, seen_at = excluded.seen_at
        """)

    func keep(_ session: Session, _ scope: Parameter, _ lane: LaneName, at moment: Int64) throws {
        try session.write(
            Self.keep, scope, .text(lane.principal), .text(lane.client), .text(lane.lane), .integer(place),
            .integer(number), .integer(top), .integer(moment))
    }

    // MARK: Verdicts

    private static let verdict = Statement(
        "verdict",
        """
        SELECT digest, members, version, base_number, took_effect FROM verdict
        WHERE scope = $1 AND lane = $2 AND number = $3
        """)

    static func verdict(
        _ session: Session, _ scope: Parameter, _ place: Int64, _ number: Int64
    ) throws -> StoredVerdict? {
        let answer = try session.ask(verdict, scope, .integer(place), .integer(number))
        guard answer.count > 0 else { return nil }
        return StoredVerdict(
            digest: answer.array(0, 0) ?? [], members: answer.array(0, 1) ?? [],
            version: try answer.integerIfAny(0, 2), baseNumber: try answer.integerIfAny(0, 3),
            tookEffect: answer.flag(0, 4))
    }

    private static let columns = "number, digest, members, version, base_number, took_effect"
    private static let store = RowForm(
        one: Statement(
            "store verdict",
            """
            INSERT INTO verdict (scope, \(columns), lane) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
            ON CONFLICT DO NOTHING
            """),
        many: Statement(
            "store verdicts",
            """
            INSERT INTO verdict (scope, \(columns), lane)
            SELECT $1, \(columns), $8 FROM unnest($2::bigint[], $3::bytea[], $4::bytea[], $5::bigint[], $6::bigint[],
                $7::boolean[]) AS n(\(columns))
            ON CONFLICT DO NOTHING
            """), columns: [.integer, .bytes, .bytes, .integer, .integer, .flag])

    /// Stores the verdict of a number.
    ///
    /// - Throws: ``AlreadyStored`` where it has one. Above all that ever were no answer is waited for.
    func store(_ verdict: StoredVerdict, _ session: Session, _ scope: Parameter, _ number: Int64) throws {
        let columns: [Parameter] = [
            .integer(number), .bytes(verdict.digest), .bytes(verdict.members), .optional(verdict.version),
            .optional(verdict.baseNumber), .flag(verdict.tookEffect),
        ]
        guard number <= top else {
            return try session.write(columns, of: Self.store, scope: scope, rest: [.integer(place)])
        }
        let request = Request(Self.store.one, [scope] + columns + [.integer(place)])
        guard try session.change(request).affected == 1 else { throw AlreadyStored() }
    }

    private static let forget = Statement(
        "forget verdicts", "DELETE FROM verdict WHERE scope = $1 AND lane = $2 AND number <= $3")

    func forgetVerdicts(_ session: Session, _ scope: Parameter, through number: Int64) throws {
        try session.write(Self.forget, scope, .integer(place), .integer(number))
    }
}
