import TidemarkServer

/// The stored row of a scope, and its incarnations.
struct ScopeRow {
    var state = ScopeState()
    /// Lanes that were ever made in the scope.
    var lanes: Int64 = 0
    /// Whether anybody has written to the scope.
    var exists = false

    private static let view = Statement(
        "scope",
        """
        SELECT s.head, s.last_time, s.sweep_floor, s.retention_floor, s.lanes, s.entities, s.live_rows, s.live_bytes,
            s.superseded_rows, s.superseded_bytes, s.erased_at, i.id, i.start
        FROM scope s LEFT JOIN incarnation i ON i.scope = s.name WHERE s.name = $1 ORDER BY i.start
        """)
    private static let lockRow = Statement(
        "lock",
        """
        SELECT head, last_time, sweep_floor, retention_floor, lanes, entities, live_rows, live_bytes,
            superseded_rows, superseded_bytes, erased_at
        FROM scope WHERE name = $1 FOR NO KEY UPDATE
        """)
    /// Asked behind the lock: whoever held it before may have added one.
    private static let incarnations = Statement(
        "incarnations", "SELECT id, start FROM incarnation WHERE scope = $1 ORDER BY start")
    /// A scope without a row has nothing else to be locked by. Such locks are the whole database's, scopes a schema's.
    private static let lockName = Statement(
        "lock name", "SELECT pg_advisory_xact_lock(hashtextextended(current_schema() || ' ' || $1, 7))")

    /// The scope as a reader's snapshot has it.
    static func read(_ session: Session, _ scope: Scope) throws -> ScopeRow {
        let answer = try session.ask(view, .text(scope.name))
        var row = try ScopeRow(answer)
        for index in 0..<answer.count {
            guard let id = try answer.integerIfAny(index, 11) else { continue }
            row.state.incarnations.append((id, try answer.integer(index, 12)))
        }
        return row
    }

    /// Locks the name of a scope that has no row, for the length of the transaction.
    static func lockName(of scope: Scope, _ session: Session) throws {
        try session.tell(lockName, .text(scope.name))
    }

    /// The requests that read a scope's row and lock it for the length of the transaction.
    static func lock(_ scope: Scope) -> [Request] {
        [Request(lockRow, .text(scope.name)), Request(incarnations, .text(scope.name))]
    }

    /// The rows of scopes that were asked for by `lock`. Scopes that nobody has written to are locked by their names,
    /// and looked for again, since somebody else may have been the first.
    static func locked(
        _ scopes: [Scope], _ answers: ArraySlice<QueryResult>, _ session: Session
    ) throws -> [ScopeRow] {
        var rows = try rows(answers)
        let absent = rows.indices.filter { !rows[$0].exists }
        guard !absent.isEmpty else { return rows }
        for index in absent { try lockName(of: scopes[index], session) }
        let again = try session.ask(absent.flatMap { lock(scopes[$0]) })
        for (index, row) in zip(absent, try self.rows(again[...])) { rows[index] = row }
        return rows
    }

    private static func rows(_ answers: ArraySlice<QueryResult>) throws -> [ScopeRow] {
        try stride(from: answers.startIndex, to: answers.endIndex - 1, by: 2).map { index in
            var row = try ScopeRow(answers[index])
            let incarnations = answers[index + 1]
            for index in 0..<incarnations.count {
                row.state.incarnations.append((try incarnations.integer(index, 0), try incarnations.integer(index, 1)))
            }
            return row
        }
    }

    /// A scope that nobody wrote to.
    init() {}

    private init(_ answer: QueryResult) throws {
        guard answer.count > 0 else { return }
        exists = true
        state.head = try answer.integer(0, 0)
        state.lastTime = try answer.integer(0, 1)
        state.sweepFloor = try answer.integer(0, 2)
        state.retentionFloor = try answer.integer(0, 3)
        lanes = try answer.integer(0, 4)
        state.entities = EntityNames(stored: answer.text(0, 5))
        state.size = ScopeSize(rows: try answer.integer(0, 6), bytes: try answer.integer(0, 7))
        state.superseded = ScopeSize(rows: try answer.integer(0, 8), bytes: try answer.integer(0, 9))
        state.erasedAt = try answer.integerIfAny(0, 10)
    }
}
