import TidemarkServer

/// The list of what other programs have written.
enum CaptureQueue {
    /// Hops from one scope to the next along the key.
    private static let scopes = Statement(
        "captured scopes",
        """
        WITH RECURSIVE name AS (
            (SELECT scope FROM capture WHERE scope > $1 ORDER BY scope LIMIT 1)
            UNION ALL
            SELECT (SELECT c.scope FROM capture c WHERE c.scope > n.scope ORDER BY c.scope LIMIT 1)
            FROM name n WHERE n.scope IS NOT NULL)
        SELECT scope FROM name WHERE scope IS NOT NULL LIMIT $2
        """)
    private static let isMarked = Statement("captured all", "SELECT 1 FROM capture WHERE scope = '' LIMIT 1")

    static func scopes(_ line: Line, after scope: Scope?, limit: Int) throws -> [Scope] {
        let (isMarked, scopes) = try look(line, after: scope, limit: limit)
        guard scope == nil, isMarked else { return scopes }
        do { try NoteExpansion.run(line) } catch {
            line.check()
            // It is tried again with the next look, and holds up nobody else's notes.
            if scopes.isEmpty { throw error }
        }
        return try look(line, after: scope, limit: limit).scopes
    }

    private static func look(
        _ line: Line, after scope: Scope?, limit: Int
    ) throws -> (isMarked: Bool, scopes: [Scope]) {
        try line.read { session in
            let answers = try session.ask([
                Request(isMarked), Request(scopes, .text(scope?.name ?? ""), .integer(Int64(max(0, limit)))),
            ])
            guard let last = answers.last else { return (false, []) }
            return (answers[0].count > 0, (0..<last.count).compactMap { Scope(last.text($0, 0)) })
        }
    }
}
