import TidemarkServer

/// Whether a name still leads to the table that was attached, which is the one that bears its triggers. The catalogue's
/// number of a table would be another one where a dump is restored.
extension AttachedTable {
    private static let bears = Statement(
        "bears triggers",
        "SELECT EXISTS (SELECT 1 FROM pg_trigger WHERE tgrelid = to_regclass($1) AND tgfoid = to_regproc($2))")
    private static let bearer = Statement(
        "bearer of triggers",
        """
        SELECT format('%I.%I', n.nspname, c.relname) FROM pg_trigger t
        JOIN pg_class c ON c.oid = t.tgrelid JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE t.tgfoid = to_regproc($1) AND t.tgname = 'tidemark_capture' LIMIT 1
        """)

    /// Asks for one flag; what has read or written the table before stands in the way of whoever would rename it.
    var isInPlace: Request { Request(Self.bears, .text(sql), .text(function)) }

    static let notInPlace = PostgresError(.schema, "its name does not lead to a table with its triggers")

    /// The table as it stands in a statement, whatever its name is by now; `nil` where it is gone.
    func whereItIs(_ session: Session) throws -> String? {
        let answer = try session.ask(Self.bearer, .text(function))
        return answer.count > 0 ? answer.text(0, 0) : nil
    }
}
