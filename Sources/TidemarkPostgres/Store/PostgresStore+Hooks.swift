package import TidemarkCore
package import TidemarkServer

/// What hooks were told, and which node may call them (B3). All functions throw `StoreUnavailable` for what passes by
/// itself, and ``PostgresError`` for the rest.
extension PostgresStore: HookStore {
    /// The time is the database's: nodes' clocks differ.
    private static let hold = Statement(
        "hold hook",
        """
        INSERT INTO hook (name, holder, held_until)
        VALUES ($1, $2, clock_timestamp() + $3::bigint * interval '1 millisecond')
        ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, held_until = excluded.held_until
        WHERE hook.holder = excluded.holder OR hook.held_until < clock_timestamp()
        OR hook.held_until > clock_timestamp() + $3::bigint * interval '1 millisecond'
        """)
    private static let release = Statement(
        "release hook", "UPDATE hook SET held_until = '-infinity' WHERE name = $1 AND holder = $2")

    package func holdHook(_ hook: String, as holder: String, for time: Duration) async throws -> Bool {
        try await reads.run { line in
            try line.write { session in
                try session.change(Self.hold, .text(hook), .text(holder), .integer(time.milliseconds)).affected > 0
            }
        }
    }

    package func releaseHook(_ hook: String, as holder: String) async throws {
        try await reads.run { line in
            try line.write { session in try session.write(Self.release, .text(hook), .text(holder)) }
        }
    }

    private static let beginning = Statement(
        "hook beginning", "SELECT place, is_begun FROM hook WHERE name = $1 FOR UPDATE")
    private static let beginStep = Statement(
        "begin hook",
        """
        WITH step AS (SELECT name, head FROM scope WHERE name > $2 ORDER BY name LIMIT $3), begun AS (
            INSERT INTO hook_told (hook, scope, told) SELECT $1, name, head FROM step ON CONFLICT DO NOTHING)
        SELECT coalesce(max(name), '') FROM step
        """)
    private static let beginPlace = Statement("hook place", "UPDATE hook SET place = $2 WHERE name = $1")
    private static let begun = Statement("hook begun", "UPDATE hook SET is_begun = true WHERE name = $1")

    package func beginHook(_ hook: String, limit: Int) async throws -> Bool {
        try await reads.run { line in
            try line.write { session in
                let answer = try session.ask(Self.beginning, .text(hook))
                guard answer.count > 0, !answer.flag(0, 1) else { return false }
                let last = try session.ask(
                    Self.beginStep, .text(hook), .text(answer.text(0, 0)), .integer(Int64(max(1, limit)))
                ).text(0, 0)
                if last.isEmpty {
                    try session.write(Self.begun, .text(hook))
                } else {
                    try session.write(Self.beginPlace, .text(hook), .text(last))
                }
                return !last.isEmpty
            }
        }
    }

    package func beginHookAtStart(_ hook: String) async throws {
        try await reads.run { line in try line.write { try $0.write(Self.begun, .text(hook)) } }
    }

    private static func untold(_ name: String, where condition: String) -> Statement {
        Statement(
            name,
            """
            SELECT s.name, s.head, coalesce(t.told, 0), s.last_time, (
                SELECT coalesce(string_agg(id || ' ' || start, ','), '') FROM (
                    SELECT id, start FROM incarnation WHERE scope = s.name AND start < s.head
                    ORDER BY start DESC LIMIT \(HookMachine.News.openings)) AS opening)
            FROM scope s LEFT JOIN hook_told t ON t.scope = s.name AND t.hook = $1
            WHERE \(condition) AND s.head > coalesce(t.told, 0) AND s.erased_at IS NULL
            ORDER BY s.name LIMIT $3
            """)
    }

    private static let untoldOf = untold("untold", where: "s.name = ANY ($2)")
    private static let untoldAfter = untold("all untold", where: "s.name > $2")

    package func untold(
        to hook: String, of scopes: [Scope]?, after scope: Scope?, limit: Int
    ) async throws -> [HookMachine.News] {
        try await reads.run { line in
            try line.read { session in
                let answer = try session.ask(
                    scopes == nil ? Self.untoldAfter : Self.untoldOf, .text(hook),
                    scopes.map { .texts($0.map(\.name)) } ?? .text(scope?.name ?? ""), .integer(Int64(max(0, limit))))
                return try (0..<answer.count).compactMap { row in
                    guard let scope = Scope(answer.text(row, 0)) else { return nil }
                    return HookMachine.News(
                        scope: scope, head: try answer.integer(row, 1), told: try answer.integer(row, 2),
                        time: try answer.integer(row, 3), openings: answer.text(row, 4))
                }
            }
        }
    }

    private static let keep = Statement(
        "keep told",
        """
        INSERT INTO hook_told (hook, scope, told)
        SELECT $1, name, told FROM unnest($2::text[], $3::bigint[]) AS news (name, told)
        ON CONFLICT (scope, hook) DO UPDATE SET told = greatest(hook_told.told, excluded.told)
        """)

    package func keepTold(_ heads: [Scope: Version], to hook: String) async throws {
        let heads = heads.sorted { $0.key < $1.key }
        try await reads.run { line in
            try line.write { session in
                try session.write(
                    Self.keep, .text(hook), .texts(heads.map(\.key.name)), .integers(heads.map(\.value)))
            }
        }
    }
}
