import TidemarkServer
import TidemarkWire

extension AttachedTable {
    /// Reads rows by their keys: the id, the scope's name, and more. A text that is too long for a scope's name is cut,
    /// and so names none.
    private func reading(_ more: String) -> Statement {
        let keys = "pg_catalog.json_array_elements($1::text::json) AS e(value)"
        let places = key.columns.enumerated().map { index, column in
            let text = "(e.value OPERATOR(pg_catalog.->>) \(index))"
            return column.form == .blob ? "pg_catalog.decode(\(text), 'hex')" : "\(text)::\(column.castType)"
        }
        let fields = "\(key.id(of: "t")), left(\(scopeName(of: "t")), 200)\(more.isEmpty ? "" : ", ")\(more)"
        if let column = key.columns.first, key.columns.count == 1 {
            return Statement(
                "",
                """
                SELECT \(fields) FROM \(sql) AS t
                WHERE t.\(column.sql) \(column.compared("=")) ANY (ARRAY(SELECT \(places[0]) FROM \(keys)))
                """)
        }
        let pairs = zip(key.columns, places).map { "t.\($0.sql) \($0.compared("=")) \($1)" }
        return Statement(
            "", "SELECT \(fields) FROM \(keys) JOIN \(sql) AS t ON \(pairs.joined(separator: " AND "))")
    }

    /// Keys as a place in a statement takes them: a JSON array with an array for each key that a row may have.
    private func list(of keys: [[UInt8]]) -> Parameter {
        var list = JSONWriter(capacity: keys.count * 40)
        for bytes in keys {
            guard let values = key.values(of: String(decoding: bytes, as: UTF8.self)) else { continue }
            list.raw(list.bytes.isEmpty ? "[[" : ",[")
            for (index, value) in values.enumerated() {
                if index > 0 { list.raw(",") }
                switch value {
                case .text(let text): list.string(text)
                case .bytes(let bytes): list.string(Self.hexadecimal(bytes))
                case .null, .integer, .flag, .integers, .texts, .array: list.raw("null")
                }
            }
            list.raw("]")
        }
        list.raw(list.bytes.isEmpty ? "[]" : "]")
        return .bytes(list.bytes)
    }

    private static func hexadecimal(_ bytes: [UInt8]) -> String {
        bytes.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
    }

    /// Ids as a place in a statement takes them: a JSON array.
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
        let fields = columns.map { column in column.reading("t." + column.sql) }
        return try ask(fields.joined(separator: ", "), keys, session)
    }

    func ask(
        _ more: String, _ keys: [[UInt8]], _ session: Session
    ) throws -> Result<QueryResult, PostgresError> {
        let requests = [
            Request(Self.allRows), Request(session.shaped(reading(more)), list(of: keys)), Request(Self.rowsAsBefore),
            isInPlace,
        ]
        return try session.trial(requests).flatMap { answers in
            answers.count == requests.count && answers[3].flag(0, 0) ? .success(answers[1]) : .failure(Self.notInPlace)
        }
    }

    /// The keys that the columns' types can hold. The log may have records from before the table was attached, whose
    /// ids name no label of an enumeration, or no day of the calendar.
    ///
    /// - Returns: `nil` where the table cannot be read at all.
    func readable(_ keys: [[UInt8]], _ session: Session) throws -> [[UInt8]]? {
        let possible = keys.filter { key.values(of: String(decoding: $0, as: UTF8.self)) != nil }
        guard key.spelling != nil || key.columns.contains(where: { $0.base != nil }) else { return possible }
        // ASCII is text in a database of any encoding.
        if key.columns.allSatisfy(\.isReadWhereCanonical), possible.allSatisfy({ $0.allSatisfy { $0 < 0x80 } }) {
            return possible
        }
        var readable: [[UInt8]] = []
        var parts = [possible[...]]
        while let part = parts.popLast(), !part.isEmpty {
            switch try ask("", Array(part), session) {
            case .success: readable += part
            // A domain's own condition refuses an id with a state of class 23.
            case .failure(let error) where !["22", "23"].contains(error.sqlState.prefix(2)): return nil
            case .failure where part.count > 1:
                parts += [part.prefix(part.count / 2), part.dropFirst(part.count / 2)]
            case .failure: break
            }
        }
        return readable
    }

    /// The fields of a row that `rows(_:_:)` has brought; or the column whose value cannot travel.
    func fields(_ answer: QueryResult, _ row: Int) throws -> CapturedFields {
        var builder = DataObject.Builder(capacity: 256)
        for (index, column) in columns.enumerated() {
            let place = Int32(index + 2)
            guard try !column.form.isUnsendable(answer, row, place) else { return .unsendable(column: column.name) }
            var value = JSONWriter()
            try column.form.write(answer, row, place, to: &value)
            builder.append(name: DataObject.Builder.quoted(column.name)) { $0.raw(value.bytes) }
        }
        return .fields(builder.finish().bytes)
    }
}

/// The fields of a row that was read, or the reason why there are none.
enum CapturedFields {
    case fields([UInt8])
    /// A value that neither JSON nor SQLite has, such as NaN.
    case unsendable(column: String)
}
