import TidemarkServer
import TidemarkWire

extension AttachedTable {
    /// Rows by their keys: the key, the scope's name, and the fields.
    private var reading: Statement {
        let fields = columns.map { column in ", " + column.form.reading("t." + column.sql) }.joined()
        return Statement(
            "",
            """
            SELECT t.\(key.sql)::text, \(scopeName(of: "t"))\(fields) FROM \(sql) AS t
            WHERE t.\(key.sql) = ANY (ARRAY(
                SELECT e.value::\(key.type) FROM pg_catalog.json_array_elements_text($1::text::json) AS e(value)))
            """)
    }

    /// Keys as a place in a statement takes them: a JSON array.
    static func list(of keys: [[UInt8]]) -> Parameter {
        var list = JSONWriter(capacity: keys.count * 40)
        for (index, key) in keys.enumerated() {
            list.raw(byte: UInt8(ascii: index == 0 ? "[" : ","))
            key.withUnsafeBytes { list.string(utf8: $0) }
        }
        list.raw("]")
        return .bytes(list.bytes)
    }

    func read(_ keys: Parameter) -> Request { Request(reading, keys) }

    /// The fields of a row that `read(_:)` has brought.
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
