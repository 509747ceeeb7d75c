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
    /// A note between the first and the last of them may have come since, and stays. The bounds keep PostgreSQL from
    /// reading all notes of the scope for each one.
    private static let forget = Statement(
        "forget notes", "DELETE FROM capture WHERE scope = $1 AND id BETWEEN $3 AND $4 AND id = ANY ($2)")
    /// Looks each record up by itself, behind `OFFSET 0`: a plan for all of them at once that was made while the table
    /// was small would read the whole scope. Rows have no payload from where they take more than `$4` bytes together.
    private static let newestOf = Statement(
        "newest of",
        """
        SELECT version, kind, time, entity, record, CASE WHEN fits THEN payload END, field_versions,
            CASE WHEN fits THEN originals END, fits
        FROM (
            SELECT c.*, sum(c.size) OVER (ORDER BY e.place, c.version) <= $4 AS fits
            FROM json_array_elements_text($3::text::json) WITH ORDINALITY AS e(value, place) CROSS JOIN LATERAL (
                SELECT version, kind, time, entity, record, payload, field_versions, originals,
                    coalesce(octet_length(payload), 0) + coalesce(octet_length(originals), 0) AS size
                FROM change WHERE scope = $1 AND entity = $2 AND superseded_by IS NULL
                    AND record = convert_to(e.value, 'UTF8') OFFSET 0) AS c) AS found
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
        SELECT c.record, c.size FROM json_array_elements_text($3::text::json) AS e(value) CROSS JOIN LATERAL (
            SELECT record, (coalesce(octet_length(payload), 0)::bigint + coalesce(octet_length(originals), 0))::bigint
            FROM change WHERE scope = $1 AND entity = $2 AND superseded_by IS NULL
                AND record = convert_to(e.value, 'UTF8') OFFSET 0) AS c(record, size)
        """)

    /// Rows that are looked at together, and how many bytes of them are read at once.
    private static let portion = 500
    private static let portionBytes = 4 << 20
    /// Bytes of a row that is read without a question for its size.
    private static let smallBytes = portionBytes / portion

    private func spelling(of entity: String) -> String { kept.state.entities.spelling(of: entity) ?? entity }

    func hasTable(of entity: String) -> Bool { tables[entity] != nil }

    func withReferences<Result>(grants: [Scope: Bool], _ body: () throws -> Result) throws -> Result {
        referenceGrants = grants
        // Other jobs of the transaction may be the operator's.
        defer { referenceGrants = nil }
        return try body()
    }

    func drainCapture(limit: Int, recordBytes: Int, _ take: (CapturedRecord) throws -> Void) throws -> Int {
        guard !tables.isEmpty else { return 0 }
        isDrainingCapture = true
        defer { isDrainingCapture = false }
        var count = 0
        var looks = memory.looks
        memory.looks = []
        // A table that cannot be read is the operator's to mend: its notes stay, and stand in nobody's way.
        var unread: [Int64] = []
        while count < limit {
            let answer = try session.ask(Self.notes, name, .integer(Int64(limit - count)), .integers(unread))
            guard answer.count > 0 || !looks.isEmpty else { break }
            var notes = looks.map { Note(table: $0.table, key: Array($0.record.utf8)) }
            var new: Set<Note> = []
            for row in 0..<answer.count {
                let note = Note(table: try answer.integer(row, 1), key: answer.array(row, 2) ?? [])
                notes.append(note)
                if answer.flag(row, 3) { new.insert(note) }
            }
            let failed = try look(at: notes, new, recordBytes: recordBytes, take)
            memory.looks += looks.filter { failed.contains($0.table) }
            looks = []
            var done: [Int64] = []
            for row in 0..<answer.count where !failed.contains(try answer.integer(row, 1)) {
                done.append(try answer.integer(row, 0))
            }
            if let first = done.first, let last = done.last {
                try session.write(Self.forget, name, .integers(done), .integer(first), .integer(last))
            }
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
        let limit = min(Self.smallBytes, recordBytes)
        guard case .success(let rows) = try table.smallRows(possible, limit: limit, session) else { return false }
        if let small = rows {
            let newest = try newest(of: table.entity, keys, limit: Self.portionBytes)
            if newest.isWhole {
                try self.take(keys[...], small, newest.answer, of: table, RowSizes(), take)
                return true
            }
        }
        return try takeInParts(keys, possible, of: table, recordBytes: recordBytes, take)
    }

    /// Takes rows of which some are large, after it has asked how large they are.
    private func takeInParts(
        _ keys: [[UInt8]], _ possible: [[UInt8]], of table: AttachedTable, recordBytes: Int,
        _ take: (CapturedRecord) throws -> Void
    ) throws -> Bool {
        var sizes = RowSizes()
        if table.hasLongValues {
            guard case .success(let answer) = try table.sizes(possible, session) else { return false }
            sizes = try RowSizes(answer, in: scope, limit: recordBytes)
        }
        let list = AttachedTable.list(of: keys)
        try sizes.add(logged: session.ask(Self.sizesOf, name, .text(spelling(of: table.entity)), list))
        let readable = Set(possible.filter { sizes.tooLarge[$0] == nil })
        for part in sizes.parts(of: keys, limit: Self.portionBytes) {
            guard case .success(let answer) = try table.rows(part.filter(readable.contains), session) else {
                return false
            }
            let newest = try newest(of: table.entity, Array(part), limit: .max)
            try self.take(part, answer, newest.answer, of: table, sizes, take)
        }
        return true
    }

    /// Reads the newest rows of records, as far as they take up to so many bytes together; and whether that are all.
    private func newest(
        of entity: String, _ keys: [[UInt8]], limit: Int
    ) throws -> (answer: QueryResult, isWhole: Bool) {
        let answer = try session.ask(
            Self.newestOf, name, .text(spelling(of: entity)), AttachedTable.list(of: keys), .integer(Int64(limit)))
        return (answer, (0..<answer.count).allSatisfy { answer.flag($0, 8) })
    }

    /// Reads the newest rows of records, as far as they are not large: an edit of one then need not ask for its own.
    func expectSmall(_ entity: String, _ keys: [[UInt8]]) throws {
        let (answer, isWhole) = try newest(of: entity, keys, limit: Self.portionBytes)
        guard !isWhole else { return try expect(entity, keys, answer) }
        let large = Set((0..<answer.count).filter { !answer.flag($0, 8) }.map { Array(answer.bytes($0, 4)) })
        try expect(entity, keys.filter { !large.contains($0) }, answer)
    }

    private func take(
        _ keys: ArraySlice<[UInt8]>, _ answer: QueryResult, _ newest: QueryResult, of table: AttachedTable,
        _ sizes: RowSizes, _ take: (CapturedRecord) throws -> Void
    ) throws {
        try expect(table.entity, Array(keys), newest)
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
