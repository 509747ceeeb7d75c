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

    func read(keys: [[UInt8]]) -> Request {
        var list = JSONWriter(capacity: keys.count * 40)
        for (index, key) in keys.enumerated() {
            list.raw(byte: UInt8(ascii: index == 0 ? "[" : ","))
            key.withUnsafeBytes { list.string(utf8: $0) }
        }
        list.raw("]")
        return Request(reading, .text(String(decoding: list.bytes, as: UTF8.self)))
    }

    /// The fields of a row that `read(keys:)` has brought.
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

// MARK: - Taking over what others have written

extension PostgresScopeWriter: TableScopeWriter {
    /// Reads the notes under the scope's lock and the rows behind them: a write whose note comes later is looked at
    /// again, so none is missed; rows that stand in the log as they are make no change, so none comes twice.
    private static let takeNotes = Statement(
        "take notes",
        """
        DELETE FROM capture WHERE scope = $1 AND id = ANY (
            ARRAY(SELECT id FROM capture WHERE scope = $1 ORDER BY id LIMIT $2)) RETURNING id, table_id, record
        """)
    private static let putBack = Statement(
        "put note back", "INSERT INTO capture (scope, table_id, record) VALUES ($1, $2, $3)")

    private struct Note: Hashable {
        let table: Int64
        /// Bytes: two spellings of a letter are two keys.
        let key: [UInt8]
    }

    /// Rows that are read at once.
    private static let portion = 200

    func takeCaptured(limit: Int, _ take: (CapturedRecord) throws -> Void) throws -> Int {
        guard !tables.isEmpty else { return 0 }
        let answer = try session.change(Self.takeNotes, name, .integer(Int64(limit)))
        var notes: [(id: Int64, note: Note)] = []
        for row in 0..<answer.count {
            guard let key = answer.array(row, 2) else { continue }
            let note = Note(table: try answer.integer(row, 1), key: key)
            notes.append((try answer.integer(row, 0), note))
        }
        notes.sort { $0.id < $1.id }
        var seen: Set<Note> = []
        var rest = notes.map(\.note).filter { seen.insert($0).inserted }[...]
        isTakingCaptured = true
        defer { isTakingCaptured = false }
        var unread = 0
        while let first = rest.first {
            // What was written one behind the other is taken over in that order.
            let some = rest.prefix(Self.portion).prefix { $0.table == first.table }
            rest = rest.dropFirst(some.count)
            guard let table = tables[first.table] else { continue }
            if try !self.take(some.map(\.key), of: table, take) { unread += some.count }
        }
        return answer.count - unread
    }

    /// Answers whether the table could be read. One that cannot is the operator's to mend, and its notes stay.
    private func take(
        _ keys: [[UInt8]], of table: AttachedTable, _ take: (CapturedRecord) throws -> Void
    ) throws -> Bool {
        guard case .success(let answers) = try session.trial([table.read(keys: keys)]), let answer = answers.first
        else {
            for key in keys { try session.write(Self.putBack, name, .integer(table.id), .bytes(key)) }
            return false
        }
        var rows: [[UInt8]: Int] = [:]
        for row in 0..<answer.count { rows[Array(answer.bytes(row, 0))] = row }
        for key in keys {
            let row = rows[key]
            let isHere =
                row.map { !answer.isNull($0, 1) && answer.bytes($0, 1).elementsEqual(scope.name.utf8) } ?? false
            let fields = isHere ? try row.map { try table.fields(answer, $0) } : nil
            try take(
                CapturedRecord(
                    entity: table.entity, key: String(decoding: key, as: UTF8.self), fields: fields,
                    isElsewhere: row != nil && !isHere))
        }
        return true
    }
}
