import TidemarkServer

/// PostgreSQL's error about a value names no column, so that the one that it means is looked for.
extension PostgresScopeWriter {
    private static let indexed = Statement(
        "indexed columns",
        """
        SELECT DISTINCT a.attname::text FROM pg_index i
        JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey::int2[])
        WHERE i.indrelid = to_regclass($1)
        """)

    /// Returns the refusal of the value that PostgreSQL does not take; `nil` where the error is about something else,
    /// or none of the values is at fault by itself.
    func refusal(
        of changes: [TableChange], _ table: AttachedTable, _ error: PostgresError
    ) throws -> RowRefusal? {
        if error.sqlState.hasPrefix("22") {
            return try refused(among: changes[...], table).map { RowRefusal(valueOf: $0.column, nil) }
        }
        guard error.sqlState == "54000" else { return nil }
        let answer = try session.ask(Self.indexed, .text(table.sql))
        let names = Set((0..<answer.count).map { answer.text($0, 0) })
        let longest = changes.filter { names.contains($0.column.name) }.max { $0.parameter.size < $1.parameter.size }
        guard let longest, longest.parameter.size > 0 else { return nil }
        let limit = error.message.firstMatch(of: /maximum (?:size is )?([0-9]+)/).map { " (\($0.1) bytes)" } ?? ""
        return RowRefusal(
            valueOf: longest.column,
            "The column \(longest.column.name) has \(longest.parameter.size) bytes, more than its index takes\(limit).")
    }

    /// Finds the value by halves: a row may have a thousand.
    private func refused(among changes: ArraySlice<TableChange>, _ table: AttachedTable) throws -> TableChange? {
        guard !changes.isEmpty, try !areTaken(changes, table) else { return nil }
        var changes = changes
        while changes.count > 1 {
            let half = changes.prefix(changes.count / 2)
            changes = try areTaken(half, table) ? changes.dropFirst(half.count) : half
        }
        return changes.first
    }

    private func areTaken(_ changes: ArraySlice<TableChange>, _ table: AttachedTable) throws -> Bool {
        let places = changes.enumerated().map { $1.column.place($0 + 1) }.joined(separator: ", ")
        let request = Request(Statement("", "SELECT \(places)"), changes.map(\.parameter))
        let outcome = try session.trial([Request(Self.pathOut), request, Request(Self.pathBack(to: table.home))])
        if case .failure = outcome { return false }
        return true
    }
}

extension Parameter {
    /// How many bytes a text or a BLOB has.
    fileprivate var size: Int {
        switch self {
        case .text(let text): text.utf8.count
        case .bytes(let bytes): bytes.count
        case .null, .integer, .flag, .integers, .texts, .array: 0
        }
    }
}
