import TidemarkServer
import TidemarkWire

extension AttachedTable {
    /// Reads rows by their keys: the key, the scope's name, and more. A text that is too long for a scope's name is
    /// cut, and so names none.
    private func reading(_ more: String) -> Statement {
        Statement(
            "",
            """
            SELECT t.\(key.sql)::text, left(\(scopeName(of: "t")), 200)\(more.isEmpty ? "" : ", ")\(more)
            FROM \(sql) AS t
            WHERE t.\(key.sql) = ANY (ARRAY(
                SELECT e.value::\(key.castType) FROM pg_catalog.json_array_elements_text($1::text::json) AS e(value)))
            """)
    }

    /// Keys as a place in a statement takes them: a JSON array.
    static func list(of keys: [[UInt8]]) -> Parameter {
        var list = JSONWriter(capacity: keys.count * 40)
        list.raw("[")
        for (index, key) in keys.enumerated() {
            if index > 0 { list.raw(",") }
            key.withUnsafeBytes { list.string(utf8: $0) }
        }
        list.raw("]")
        return .bytes(list.bytes)
    }

    /// A row that its policy hides is not gone: PostgreSQL then answers with an error.
    static let allRows = Statement("all rows", "SET LOCAL row_security TO off")
    private static let rowsAsBefore = Statement("rows as before", "SET LOCAL row_security TO DEFAULT")

    /// Rows by their keys: the key, the scope's name, and the fields; or why the table cannot be read.
    func rows(_ keys: [[UInt8]], _ session: Session) throws -> Result<QueryResult, PostgresError> {
        let fields = columns.map { column in column.form.reading("t." + column.sql) }
        return try ask(fields.joined(separator: ", "), keys, session)
    }

    func ask(
        _ more: String, _ keys: [[UInt8]], _ session: Session
    ) throws -> Result<QueryResult, PostgresError> {
        let requests = [
            Request(Self.allRows), Request(reading(more), Self.list(of: keys)), Request(Self.rowsAsBefore), isInPlace,
        ]
        return try session.trial(requests).flatMap { answers in
            answers.count == requests.count && answers[3].flag(0, 0) ? .success(answers[1]) : .failure(Self.notInPlace)
        }
    }

    /// The fields of a row that `rows(_:_:)` has brought.
    func fields(_ answer: QueryResult, _ row: Int) throws -> [UInt8] {
        var builder = DataObject.Builder(capacity: 256)
        for (index, column) in columns.enumerated() {
            var value = JSONWriter()
            try column.form.write(answer, row, Int32(index + 2), to: &value)
            builder.append(name: DataObject.Builder.quoted(column.name)) { $0.raw(value.bytes) }
        }
        return builder.finish().bytes
    }
}
