import TidemarkServer
import TidemarkWire

/// Taking over what others have written.
///
/// The notes are read under the scope's lock and the rows behind them: a write whose note comes later is looked at
/// again, so none is missed; rows that stand in the log as they are make no change, so none comes twice.
extension PostgresScopeWriter: TableScopeWriter {
    private static let notes = Statement(
        "notes",
        """
        SELECT id, table_id, record, is_new FROM capture WHERE scope = $1 AND table_id <> ALL ($3::bigint[])
        ORDER BY id LIMIT $2
        """)
    private static let forget = Statement("forget notes", "DELETE FROM capture WHERE scope = $1 AND id = ANY ($2)")
    private static let newestOf = Statement(
        "newest of",
        """
        SELECT version, kind, time, entity, record, payload, field_versions, originals FROM change
        WHERE scope = $1 AND entity = $2 AND superseded_by IS NULL AND record = ANY (ARRAY(
            SELECT convert_to(e.value, 'UTF8') FROM json_array_elements_text($3::text::json) AS e(value)))
        ORDER BY version
        """)

    private struct Note: Hashable {
        let table: Int64
        /// Bytes: two spellings of a letter are two keys.
        let key: [UInt8]
    }

    private static let sizesOf = Statement(
        "sizes of",
        """
        SELECT record, (coalesce(octet_length(payload), 0)::bigint + coalesce(octet_length(originals), 0))::bigint
        FROM change WHERE scope = $1 AND entity = $2 AND superseded_by IS NULL AND record = ANY (ARRAY(
            SELECT convert_to(e.value, 'UTF8') FROM json_array_elements_text($3::text::json) AS e(value)))
        """)

    /// Rows that are looked at together, and how many bytes of them are read at once.
    private static let portion = 200
    private static let portionBytes = 4 << 20

    private func spelling(of table: AttachedTable) -> String {
        kept.state.entities.spelling(of: table.entity) ?? table.entity
    }

    func hasTable(of entity: String) -> Bool { tables[entity] != nil }

    func withReferences<Result>(grants: [Scope: Bool], _ body: () throws -> Result) throws -> Result {
        referenceGrants = grants
        // Other jobs of the transaction may be the operator's.
        defer { referenceGrants = nil }
        return try body()
    }

    func takeCaptured(limit: Int, recordBytes: Int, _ take: (CapturedRecord) throws -> Void) throws -> Int {
        guard !tables.isEmpty else { return 0 }
        isDrainingCapture = true
        defer { isDrainingCapture = false }
        var count = 0
        // A table that cannot be read is the operator's to mend: its notes stay, and stand in nobody's way.
        var unread: [Int64] = []
        while count < limit {
            let answer = try session.ask(Self.notes, name, .integer(Int64(limit - count)), .integers(unread))
            guard answer.count > 0 else { break }
            var done: [Int64] = []
            var notes: [Note] = []
            var new: Set<Note> = []
            for row in 0..<answer.count {
                let note = Note(table: try answer.integer(row, 1), key: answer.array(row, 2) ?? [])
                notes.append(note)
                if answer.flag(row, 3) { new.insert(note) }
            }
            let failed = try look(at: notes, new, recordBytes: recordBytes, take)
            for (row, note) in notes.enumerated() where !failed.contains(note.table) {
                done.append(try answer.integer(row, 0))
            }
            try session.write(Self.forget, name, .integers(done))
            count += done.count
            if failed.isEmpty { break }
            unread += failed
        }
        return count
    }

    /// Looks at each record once, those that were noted one behind the other in that order. Answers the tables that
    /// could not be read.
    private func look(
        at notes: [Note], _ new: Set<Note>, recordBytes: Int, _ take: (CapturedRecord) throws -> Void
    ) throws -> Set<Int64> {
        var seen: Set<Note> = []
        var failed: Set<Int64> = []
        var rest = notes.filter { seen.insert($0).inserted }[...]
        while let first = rest.first {
            let some = rest.prefix(Self.portion).prefix { $0.table == first.table }
            rest = rest.dropFirst(some.count)
            guard !failed.contains(first.table), let table = tables[first.table] else { continue }
            let isRead = try self.take(some.map(\.key), of: table, recordBytes: recordBytes) { record in
                var record = record
                record.isNew = new.contains(Note(table: table.id, key: Array(record.key.utf8)))
                try take(record)
            }
            if !isRead { failed.insert(table.id) }
        }
        return failed
    }

    private func take(
        _ keys: [[UInt8]], of table: AttachedTable, recordBytes: Int, _ take: (CapturedRecord) throws -> Void
    ) throws -> Bool {
        guard let possible = try table.readable(keys, session) else { return false }
        var sizes = RowSizes()
        if table.hasLongValues {
            guard case .success(let answer) = try table.sizes(possible, session) else { return false }
            sizes = try RowSizes(answer, in: scope, limit: recordBytes)
            let list = AttachedTable.list(of: keys)
            try sizes.add(logged: session.ask(Self.sizesOf, name, .text(spelling(of: table)), list))
        }
        let readable = Set(possible.filter { sizes.tooLarge[$0] == nil })
        for part in sizes.parts(of: keys, limit: Self.portionBytes) {
            guard case .success(let answer) = try table.rows(part.filter(readable.contains), session) else {
                return false
            }
            try self.take(part, answer, of: table, sizes, take)
        }
        return true
    }

    /// Reads the newest rows of records, as far as they are not large: an edit of one then need not ask for its own.
    func expectSmall(_ entity: String, _ keys: [[UInt8]]) throws {
        let spelling = kept.state.entities.spelling(of: entity) ?? entity
        let all = AttachedTable.list(of: keys)
        var sizes = RowSizes()
        try sizes.add(logged: session.ask(Self.sizesOf, name, .text(spelling), all))
        guard let part = sizes.parts(of: keys, limit: Self.portionBytes).first else { return }
        let list = part.count == keys.count ? all : AttachedTable.list(of: Array(part))
        try expect(entity, Array(part), session.ask(Self.newestOf, name, .text(spelling), list))
    }

    private func take(
        _ keys: ArraySlice<[UInt8]>, _ answer: QueryResult, of table: AttachedTable, _ sizes: RowSizes,
        _ take: (CapturedRecord) throws -> Void
    ) throws {
        let list = AttachedTable.list(of: Array(keys))
        try expect(table.entity, Array(keys), try session.ask(Self.newestOf, name, .text(spelling(of: table)), list))
        defer { forgetExpected() }
        var rows: [[UInt8]: Int] = [:]
        for row in 0..<answer.count { rows[Array(answer.bytes(row, 0))] = row }
        for key in keys {
            let row = rows[key]
            let isHere =
                row.map { !answer.isNull($0, 1) && answer.bytes($0, 1).elementsEqual(scope.name.utf8) }
                ?? sizes.tooLarge[key]
            var record = CapturedRecord(
                entity: table.entity, key: String(decoding: key, as: UTF8.self), fields: nil,
                isElsewhere: isHere == false)
            if isHere == true {
                switch try row.map({ try table.fields(answer, $0) }) {
                case .fields(let fields): record.fields = fields
                case .unsendable(let column): record.unsendable = .value(column: column)
                case nil: record.unsendable = .tooLarge
                }
            }
            try take(record)
        }
    }
}
