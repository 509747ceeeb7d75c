import TidemarkServer

/// Makes a note for a whole table, as TRUNCATE leaves it, into one for each record that the log has of the entity.
///
/// The log may have millions of them, so that is done in steps, each a transaction of its own, which leave a mark of
/// how far they have come. Whoever looks at the list next goes on there.
enum NoteExpansion {
    /// Rows of the log that a step looks at.
    private static let rows = 2000
    /// Steps between two looks at what is noted: the connection is wanted elsewhere.
    private static let steps = 10

    /// Takes the first note of a table to hand, unless another node has it.
    private static let first = Statement(
        "first of all",
        """
        SELECT id, table_id, at_scope, at_record, at_version FROM capture
        WHERE scope = '' AND id = (SELECT min(id) FROM capture WHERE scope = '') FOR UPDATE SKIP LOCKED
        """)
    /// The note for the whole table covers all other such notes of the table so far.
    private static let drop = Statement(
        "drop others", "DELETE FROM capture WHERE scope = '' AND table_id = $1 AND id <> $2")
    private static let end = Statement("end of all", "DELETE FROM capture WHERE scope = '' AND id = $1")
    private static let keep = Statement(
        "keep place",
        "UPDATE capture SET at_scope = $2, at_record = $3, at_version = $4 WHERE scope = '' AND id = $1")
    /// Reads along the index of records, superseded rows too: a limit of live rows would not bound the rows that are
    /// read.
    private static let note = Statement(
        "note records",
        """
        WITH part AS (
            SELECT record, version, superseded_by IS NULL AND kind = 0 AS is_live FROM change
            WHERE scope = $1 AND entity = $2 AND (record, version) > ($3, $4) ORDER BY record, version LIMIT $5),
        noted AS (
            INSERT INTO capture (scope, table_id, record)
            SELECT $1, $6, convert_from(record, 'UTF8') FROM part WHERE is_live)
        SELECT (SELECT count(*) FROM part), record, version FROM part ORDER BY record DESC, version DESC LIMIT 1
        """)
    static func run(_ line: Line) throws {
        for _ in 0..<steps {
            guard try line.write(step) else { return }
        }
    }

    /// Answers whether there is more to do here.
    private static func step(_ session: Session) throws -> Bool {
        // In the order in which a table is detached, so that the two never wait for each other.
        let tables = try AttachedTables(session.ask([AttachedTables.all]).first)
        let answer = try session.change(first)
        guard answer.count > 0 else { return false }
        let (id, tableID) = (try answer.integer(0, 0), try answer.integer(0, 1))
        guard let table = tables[tableID] else {
            try session.write(end, .integer(id))
            return true
        }
        if answer.isNull(0, 2) { try session.write(drop, .integer(tableID), .integer(id)) }
        let scope = answer.array(0, 2) ?? []
        if !answer.isNull(0, 2) {
            let spelling = try ScopeSpelling.of(scope, session).spelling(of: table.entity) ?? table.entity
            let part = try session.change(
                note, .bytes(scope), .text(spelling), .optional(answer.array(0, 3)),
                .integer(try answer.integer(0, 4)), .integer(Int64(rows)), .integer(tableID))
            if part.count > 0, try part.integer(0, 0) == rows {
                let version = try part.integer(0, 2)
                try session.write(
                    keep, .integer(id), .bytes(scope), .optional(part.array(0, 1)), .integer(version))
                return true
            }
        }
        let scopes = try ScopeSpelling.page(session, behind: scope)
        let found = scopes.first { $0.entities.spelling(of: table.entity) != nil }
        guard let place = found ?? (scopes.count == ScopeSpelling.limit ? scopes.last : nil) else {
            try session.write(end, .integer(id))
            return true
        }
        try session.write(keep, .integer(id), .bytes(place.name), .bytes([]), .integer(0))
        return true
    }
}
