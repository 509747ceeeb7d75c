import TidemarkServer

/// Removes rows that no scan in the window can still need.
enum Sweep {
    /// Rows that one transaction removes: it holds up the writers of their scopes for so long.
    private static let step = 1000

    /// Lets one node at a time sweep: two would wait for each other and find nothing.
    private static let lock = Statement(
        "sweep", "SELECT pg_try_advisory_xact_lock(hashtextextended('tidemark sweep ' || current_schema(), 0))")
    private static let find = Statement(
        "superseded",
        """
        SELECT scope, version, superseded_by FROM change
        WHERE superseded_at IS NOT NULL AND superseded_at < $1 ORDER BY superseded_at, scope, version LIMIT $2
        """)
    /// The floor rises with the rows that go: a reader that asks for less learns it instead of missing a row (T38).
    private static let raise = Statement(
        "raise floor", "UPDATE scope SET sweep_floor = greatest(sweep_floor, $2) WHERE name = $1")
    /// Somebody else may have removed some of them meanwhile: what counts is what goes now.
    private static let remove = Statement(
        "remove",
        """
        WITH gone AS (
            DELETE FROM change WHERE scope = $1 AND version = ANY ($2) RETURNING kind, payload, field_versions)
        SELECT \(SizeColumns.sum) FROM gone
        """)
    private static let count = Statement(
        "count removed",
        """
        UPDATE scope SET superseded_rows = superseded_rows - $2, superseded_bytes = superseded_bytes - $3
        WHERE name = $1
        """)

    static func run(_ line: Line, supersededBefore moment: Int64, limit: Int) throws -> Int {
        var gone = 0
        while gone < limit {
            let wanted = min(step, limit - gone)
            let went = try line.write { session in
                try run(session, supersededBefore: moment, limit: wanted)
            }
            gone += went
            if went == 0 { break }
        }
        return gone
    }

    private static func run(_ session: Session, supersededBefore moment: Int64, limit: Int) throws -> Int {
        guard try session.ask(lock).flag(0, 0) else { return 0 }
        try WriteMark.sweep(session, limit: step)
        let answer = try session.ask(find, .integer(moment), .integer(Int64(limit)))
        var old: [String: (versions: [Int64], floor: Version)] = [:]
        for row in 0..<answer.count {
            let (version, floor) = (try answer.integer(row, 1), try answer.integer(row, 2))
            let name = answer.text(row, 0)
            var scope = old.removeValue(forKey: name) ?? ([], 0)
            scope.versions.append(version)
            scope.floor = max(scope.floor, floor)
            old[name] = scope
        }
        let scopes = old.sorted { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }
        // All floors are raised before any row goes: other writers of these scopes take their locks in this order too.
        for (name, scope) in scopes { try session.write(raise, .text(name), .integer(scope.floor)) }
        let gone = try session.ask(
            scopes.map { name, scope in Request(remove, .text(name), .integers(scope.versions)) })
        var count = 0
        for ((name, _), gone) in zip(scopes, gone) {
            let (rows, bytes) = (try gone.integer(0, 0), try gone.integer(0, 1))
            try session.write(Self.count, .text(name), .integer(rows), .integer(bytes))
            count += Int(rows)
        }
        return count
    }

    private static let oldest = Statement(
        "oldest superseded",
        """
        SELECT version, superseded_by, \(SizeColumns.bytes) FROM change
        WHERE scope = $1 AND superseded_by IS NOT NULL ORDER BY superseded_by, version LIMIT $2
        """)
    private static let removeOldest = Statement(
        "remove oldest", "DELETE FROM change WHERE scope = $1 AND version = ANY ($2)")

    /// Sweeps one scope as its writer, who stores the state at the end: a reader sees the rows or the floor.
    static func run(
        _ session: Session, _ scope: Parameter, supersededBeyond weight: Int64, limit: Int, _ state: inout ScopeState
    ) throws -> Int {
        guard state.superseded.weight > weight else { return 0 }
        let answer = try session.ask(oldest, scope, .integer(Int64(max(0, limit))))
        var versions: [Int64] = []
        for row in 0..<answer.count where state.superseded.weight > weight {
            versions.append(try answer.integer(row, 0))
            state.sweepFloor = max(state.sweepFloor, try answer.integer(row, 1))
            state.superseded = state.superseded - ScopeSize(rows: 1, bytes: try answer.integer(row, 2))
        }
        if !versions.isEmpty { try session.write(removeOldest, scope, .integers(versions)) }
        return versions.count
    }
}
