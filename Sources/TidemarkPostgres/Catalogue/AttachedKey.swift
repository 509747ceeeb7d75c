import TidemarkServer
import TidemarkWire

/// The primary key of an attached table, and how it is spelled as the id of a record (Protocol.md): a text or a number
/// alone as it is, anything else as the JSON array of the columns' values.
struct AttachedKey: Codable, Hashable, Sendable {
    let columns: [AttachedColumn]

    init(columns: [AttachedColumn]) { self.columns = columns }

    /// A key of one column is written as that column, as it was before there were others.
    init(from decoder: any Decoder) throws {
        if let column = try? AttachedColumn(from: decoder) {
            columns = [column]
        } else {
            columns = try [AttachedColumn](from: decoder)
        }
    }

    func encode(to encoder: any Encoder) throws {
        if columns.count == 1 { try columns[0].encode(to: encoder) } else { try columns.encode(to: encoder) }
    }

    /// The columns' names, as messages show them.
    var label: String { columns.map(\.name).joined(separator: ", ") }

    /// The columns in a statement, with commas between.
    var sql: String { columns.map(\.sql).joined(separator: ", ") }

    private var isPlain: Bool { columns.count == 1 && columns[0].form != .blob }

    func contains(_ column: AttachedColumn?) -> Bool { column.map { columns.contains($0) } ?? false }

    func index(of column: AttachedColumn?) -> Int? { column.flatMap { columns.firstIndex(of: $0) } }

    /// The id of a row under an alias, as an expression.
    func id(of row: String) -> String {
        let values = columns.map { ($0, "\(row).\($0.sql)") }
        if isPlain { return values.map { $0.spelled($1) }.joined() }
        return "'[' || \(values.map { $0.member($1) }.joined(separator: " || ',' || ")) || ']'"
    }

    /// Whether a row under an alias is the one whose key stands in places of the statement from a number on.
    func isSame(_ row: String, from index: Int) -> String {
        columns.enumerated().map { offset, column in
            "\(row).\(column.sql) \(column.compared("=")) \(column.place(index + offset))"
        }.joined(separator: " AND ")
    }

    /// Whether a row comes behind a key that stands in places of the statement.
    func isBehind(_ row: String, from index: Int) -> String {
        let own = columns.map { "\(row).\($0.sql)" }
        let places = columns.enumerated().map { $1.place(index + $0) }
        if columns.allSatisfy({ $0.operators == nil }) {
            let greater = "OPERATOR(pg_catalog.>)"
            return "ROW(\(own.joined(separator: ", "))) \(greater) ROW(\(places.joined(separator: ", ")))"
        }
        return columns.indices.reversed().reduce("false") { rest, index in
            let column = columns[index]
            return """
                (\(own[index]) \(column.compared(">=")) \(places[index]) \
                AND (\(own[index]) \(column.compared(">")) \(places[index]) OR \(rest)))
                """
        }
    }

    /// The values of an id, as texts and bytes for the columns' places; `nil` where the id is spelled in another way
    /// than any row's.
    func values(of id: String) -> [Parameter]? {
        if isPlain { return columns[0].mayBeCanonical(id) ? [.text(id)] : nil }
        guard let values = Self.members(of: id), values.count == columns.count,
            Self.spelled(values).elementsEqual(id.utf8)
        else { return nil }
        var parameters: [Parameter] = []
        for (column, value) in zip(columns, values) {
            switch (column.form, value) {
            case (.blob, .blob(let bytes)): parameters.append(.bytes(bytes))
            case (.integer, .integer(let integer)): parameters.append(.text(String(integer)))
            case (.flag, .integer(let integer)) where (0...1).contains(integer):
                parameters.append(.text(String(integer)))
            case (.text, .text(let text)), (.instant, .text(let text)), (.moment, .text(let text)),
                (.day, .text(let text)):
                guard column.mayBeCanonical(text) else { return nil }
                parameters.append(.text(text))
            default: return nil
            }
        }
        return parameters
    }

    private static func members(of id: String) -> [Value]? {
        Array(id.utf8).withUnsafeBytes { buffer in
            var reader = JSONReader(buffer)
            var values: [Value] = []
            do {
                try reader.enterArray()
                while try reader.nextElement() { values.append(try reader.readValue()) }
                try reader.finish()
                return values
            } catch { return nil }
        }
    }

    private static func spelled(_ values: [Value]) -> [UInt8] {
        var writer = JSONWriter(capacity: 64)
        writer.raw("[")
        for (index, value) in values.enumerated() {
            if index > 0 { writer.raw(",") }
            writer.value(value)
        }
        writer.raw("]")
        return writer.bytes
    }

    /// The statements by which the server checks an id's spelling; `nil` where `values(of:)` has done so.
    var spelling: KeySpelling? {
        guard columns.contains(where: \.isSpelledByServer) else { return nil }
        let places = columns.enumerated().map { "\($1.place($0 + 1)) AS \($1.sql)" }
        return KeySpelling(
            id: id(of: "k"), row: "(SELECT \(places.joined(separator: ", "))) AS k", place: columns.count + 1)
    }
}

/// Statements about the row that the values of an id would make.
struct KeySpelling {
    fileprivate let id: String
    fileprivate let row: String
    /// The first place that no value of the key has.
    fileprivate let place: Int

    /// The statement that returns the row's id.
    var statement: Statement { Statement("", "SELECT \(id) FROM \(row)") }

    /// A request that fails where the record's id differs from the row's.
    func check(_ record: RecordID, _ values: [Parameter]) -> Request {
        let isSame = "(\(id)) OPERATOR(pg_catalog.=) $\(place)::text COLLATE \"C\""
        return Request(Statement("", "SELECT 1 / (\(isSame))::integer FROM \(row)"), values + [.text(record.text)])
    }
}

extension AttachedColumn {
    /// An operator of the key's index.
    func compared(_ name: String) -> String { "OPERATOR(\(operators.map(SQL.quoted) ?? "pg_catalog").\(name))" }

    /// An expression's value as a member of an id.
    fileprivate func member(_ value: String) -> String {
        let limit = JSONWriter.plainIntegerLimit
        switch form {
        case .integer where kind == "int8" || kind == "bigint":
            return """
                CASE WHEN \(value) BETWEEN -\(limit) AND \(limit) THEN (\(value))::text \
                ELSE '{"$int":"' || (\(value))::text || '"}' END
                """
        case .integer, .flag: return spelled(value)
        case .blob:
            let text = "pg_catalog.translate(pg_catalog.encode(\(value), 'base64'), pg_catalog.chr(10), '')"
            return #"'{"$blob":"' || \#(text) || '"}'"#
        case .real, .text, .instant, .moment, .day: return "pg_catalog.to_json(\(spelled(value)))::text"
        }
    }
}
