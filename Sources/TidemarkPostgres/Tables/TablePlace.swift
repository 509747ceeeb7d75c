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
        SELECT n.nspname::text, c.relname::text FROM pg_trigger t
        JOIN pg_class c ON c.oid = t.tgrelid JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE t.tgfoid = to_regproc($1) AND t.tgname = 'tidemark_capture' AND t.tgparentid = 0 LIMIT 1
        """)

    /// Asks for one flag; what has read or written the table before stands in the way of whoever would rename it.
    var isInPlace: Request { Request(Self.bears, .text(sql), .text(function)) }

    static let notInPlace = PostgresError(.schema, "its name does not lead to a table with its triggers")

    /// The schema and the name that the table has by now; `nil` where it is gone.
    func whereItIs(_ session: Session) throws -> (schema: String, name: String)? {
        let answer = try session.ask(Self.bearer, .text(function))
        return answer.count > 0 ? (answer.text(0, 0), answer.text(0, 1)) : nil
    }

    private static let names = Statement(
        "table names",
        """
        SELECT attname::text FROM pg_attribute
        WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped
        """)

    /// Why the table cannot be read, for the operator, who may have renamed it or a column of it; `nil` where it can.
    func problem(_ session: Session) throws -> String? {
        guard case .failure(let error) = try rows([], session) else { return nil }
        let again = "or give `tidemark attach` once more with what it is called now"
        guard let place = try whereItIs(session) else {
            return "\(label) does not bear the triggers any more: it was dropped, or came from a dump; detach it"
        }
        guard place == (schema, name) else {
            return "\(label) is \(place.schema).\(place.name) now: give it its name back, \(again)"
        }
        let answer = try session.ask(Self.names, .text(sql))
        let present = Set((0..<answer.count).map { answer.text($0, 0) })
        let missing = (key.columns + columns).map(\.name).filter { !present.contains($0) }
        guard missing.isEmpty else {
            let names = missing.joined(separator: ", ")
            return "\(label) has no column \(names) any more: give it its name back, \(again)"
        }
        return error.description
    }
}
