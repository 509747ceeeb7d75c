import TidemarkServer
import TidemarkWire

// Rows enter the log at its head, and leave it below its floors.
extension PostgresScopeWriter {
    private static let columns = "entity, record, version, kind, time, payload, field_versions, originals"
    private static let insert = """
        INSERT INTO change (scope, \(columns)) VALUES ($1, $2, $3, $4, $5::bigint::smallint, $6, $7, $8, $9)
        """
    private static let append = RowForm(
        one: Statement("append", insert),
        many: Statement(
            "append many",
            """
            INSERT INTO change (scope, \(columns))
            SELECT $1, entity, record, version, kind::smallint, time, payload, field_versions, originals
            FROM unnest($2::bytea[], $3::bytea[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bytea[], $8::bytea[],
                $9::bytea[]) AS n(\(columns))
            """),
        columns: [.bytes, .bytes, .integer, .integer, .integer, .bytes, .bytes, .bytes])
    /// Rows that are superseded go one by one, since a plan for many of them that was made while the table was small
    /// would read the whole scope for each.
    private static let supersede = Statement(
        "supersede",
        """
        UPDATE change SET superseded_by = $3, superseded_at = $4
        WHERE scope = $1 AND version = $2 AND superseded_by IS NULL
        """)
    /// A row that takes the place of one which may wait to be written itself: what waits goes out before it.
    private static let replace = Statement(
        "replace",
        """
        WITH former AS (
            UPDATE change SET superseded_by = $4, superseded_at = $10
            WHERE scope = $1 AND entity = $2 AND record = $3 AND superseded_by IS NULL)
        \(insert)
        """)

    func append(_ row: NewRow, at moment: Int64) throws -> Version {
        if !isDrainingCapture, let table = tables[row.entity] { try write(row, to: table) }
        try create(at: moment)
        if !memory.hasAppended { try begin() }
        let version = kept.state.head + 1
        kept.state.lastTime = max(moment, kept.state.lastTime + 1)
        if kept.state.entities.insert(row.entity) { memory.hasNewEntity = true }
        var (mayReplace, superseded): (Bool, Version?) = (false, nil)
        let columns: [Parameter] = [
            .text(row.entity), .text(row.record.text), .integer(version), .integer(row.kind.rawValue),
            .integer(kept.state.lastTime), .optional(row.payload), .optional(row.fieldVersions),
            .optional(row.originals),
        ]
        kept.state.size = kept.state.size + row.size
        if row.kind.supersedes {
            let former = try live(row)
            kept.state.size = kept.state.size - former.size
            kept.state.superseded = kept.state.superseded + former.size
            try memory.digests.replace(
                row.entity, row.record, former.payload, with: row.kind == .upsert ? row.payload : nil
            ) { try storedDigest(of: row.entity) }
            (mayReplace, superseded) = (former.mayBeThere, former.version)
        }
        if let superseded, superseded <= formerHead {
            try session.writeAhead(
                Request(Self.supersede, name, .integer(superseded), .integer(version), .integer(moment)))
            try session.write(columns, of: Self.append, scope: name)
        } else if mayReplace {
            try session.write(Request(Self.replace, [name] + columns + [.integer(moment)]))
        } else {
            try session.write(columns, of: Self.append, scope: name)
        }
        kept.state.head = version
        lastNewest = nil
        if !expected.isEmpty { expected[EntityKey(row.entity)]?[row.record] = nil }
        return version
    }

    /// The rows of a record that a new one replaces.
    struct Former {
        /// The fields of the record's live row.
        var payload: [UInt8]?
        /// Whether there may be any row at all.
        var mayBeThere = true
        /// The size of all of them.
        var size = ScopeSize()
        /// The version of the row, where it is known to be the only one.
        var version: Version?
    }

    /// Returns what a row takes the place of, which the engine has mostly just read.
    func live(_ row: NewRow) throws -> Former {
        if let (entity, record, newest) = lastNewest, Identifier.isSameName(entity, row.entity), record == row.record {
            switch newest.kind {
            case .upsert: return Former(payload: newest.row?.payload, size: newest.size, version: newest.row?.version)
            case .delete: return Former(size: newest.size, version: newest.row?.version)
            case nil: return Former(mayBeThere: false)
            // An entity that held events once: there may be a row of its records below.
            case .event, .idmap: break
            }
        }
        let answer = try session.ask(Self.live, name, .text(row.entity), .text(row.record.text))
        let size = ScopeSize(rows: try answer.integer(0, 0), bytes: try answer.integer(0, 1))
        return Former(payload: answer.isNull(0, 2) ? nil : answer.array(0, 2), size: size)
    }

    private static let live = Statement(
        "live",
        """
        SELECT \(SizeColumns.sum), (array_agg(payload) FILTER (WHERE kind = 0))[1] FROM change
        WHERE scope = $1 AND entity = $2 AND record = $3 AND superseded_by IS NULL
        """)

    /// The first write in a scope makes it, and history begins to age with the store's first scope.
    func create(at moment: Int64) throws {
        guard !kept.exists else { return }
        try session.write(Self.beginAges, .integer(moment))
        kept.exists = true
        memory.isChanged = true
    }

    private static let beginAges = Statement(
        "begin ages", "INSERT INTO meta (key, number) VALUES ('age_clock', $1) ON CONFLICT DO NOTHING")
    private static let beginIncarnation = Statement(
        "incarnation", "INSERT INTO incarnation (scope, start, id) VALUES ($1, $2, $3)")

    /// The first row of this opening in the scope: from here on versions are this incarnation's.
    private func begin() throws {
        memory.isChanged = true
        memory.hasAppended = true
        guard !kept.state.incarnations.contains(where: { $0.id == incarnation }) else { return }
        try session.write(Self.beginIncarnation, name, .integer(kept.state.head), .integer(incarnation))
        kept.state.incarnations.append((incarnation, kept.state.head))
    }

    private static let expire = Statement(
        "expire",
        """
        WITH gone AS (
            DELETE FROM change WHERE scope = $1 AND version > $2 AND version <= $3 AND kind <> 0 AND kind <> $4::bigint
            RETURNING superseded_by, kind, payload, field_versions)
        SELECT superseded_by IS NULL, \(SizeColumns.sum) FROM gone GROUP BY 1
        """)

    private static let forgetOpenings = Statement(
        "forget openings", "DELETE FROM incarnation WHERE scope = $1 AND start < $2")

    /// The floor, which is written at the end, and the rows change together: a reader sees neither or both (T38).
    func expire(through version: Version, events: Bool) throws {
        guard kept.exists, version > kept.state.retentionFloor else { return }
        let staying: RowKind = events ? .upsert : .event
        let gone = try session.change(
            Self.expire, name, .integer(kept.state.retentionFloor), .integer(version), .integer(staying.rawValue))
        for row in 0..<gone.count {
            let size = ScopeSize(rows: try gone.integer(row, 1), bytes: try gone.integer(row, 2))
            let path = gone.flag(row, 0) ? \ScopeState.size : \ScopeState.superseded
            kept.state[keyPath: path] = kept.state[keyPath: path] - size
        }
        kept.state.retentionFloor = version
        memory.isChanged = true
        if let first = kept.state.forgetOpenings() { try session.write(Self.forgetOpenings, name, .integer(first)) }
        lastNewest = nil
    }

    /// The floor and what is counted are written at the end.
    func sweep(supersededBeyond weight: Int64, limit: Int) throws -> Int {
        guard kept.exists else { return 0 }
        let count = try Sweep.run(session, name, supersededBeyond: weight, limit: limit, &kept.state)
        if count > 0 { memory.isChanged = true }
        return count
    }
}
