import TidemarkServer
import TidemarkWire

/// The one writer of a scope inside a transaction, which holds the lock of the scope's row: versions are taken in the
/// order of commits, on however many nodes.
///
/// Jobs of one transaction share it. What it knows beside the database goes back with a part that fails.
final class PostgresScopeWriter: PostgresScope, ScopeWriter {
    private let incarnation: Int64
    private var memory = Memory()
    /// Digests as they were stored before this transaction.
    private var keptDigests: [EntityKey: [UInt8]?] = [:]

    private struct Memory {
        /// Lanes that moved, and when they were used; written once, at the end.
        var moved: [LaneName: Int64] = [:]
        var digests = DigestKeeper()
        /// Whether the scope's row is to be written, and whether a row of the log was.
        var isChanged = false
        var hasAppended = false
        /// Whether the scope's list of entities is to be written too.
        var hasNewEntity = false
        var rejections: [(rejection: StoredRejection, limit: Int)] = []
    }

    /// The last answer to a question for a record's newest row; an append to it need not ask again.
    private var lastNewest: (entity: String, record: RecordID, Newest)?
    /// Whether the scope had a row when the transaction began.
    private let wasThere: Bool
    /// The operator's own tables, which hold rows of some entities too.
    let tables: AttachedTables
    /// Whether what is appended comes from such a table.
    var isTakingCaptured = false
    /// The rules of the tables that this transaction has written to, read once from the catalogue.
    var rules: [Int64: TableRules] = [:]
    /// What the caller may read of other scopes, as far as that is known; `nil` for the server's own programs.
    var referenceGrants: [Scope: Bool]?

    func serverFields(of entity: String) -> [String] { tables[entity]?.readOnly ?? [] }

    init(
        _ session: Session, _ scope: Scope, _ row: ScopeRow, incarnation: Int64, tables: AttachedTables = .none
    ) {
        self.incarnation = incarnation
        self.tables = tables
        wasThere = row.exists
        super.init(session, scope, row)
    }

    var hasAppended: Bool { memory.hasAppended }

    // MARK: Rows

    /// Newest rows that were asked for together, until they are written.
    private var expected: (entity: String, rows: [RecordID: Newest]) = ("", [:])
    private typealias Newest = (kind: RowKind?, row: StoredRecord?, size: ScopeSize)

    func expect(_ entity: String, _ keys: [[UInt8]], _ answer: QueryResult) throws {
        let ids = keys.compactMap { RecordID(String(decoding: $0, as: UTF8.self)) }
        expected = (entity, Dictionary(ids.map { ($0, (nil, nil, ScopeSize())) }) { first, _ in first })
        for index in 0..<answer.count {
            guard let record = RecordID(answer.text(index, 4)) else { continue }
            expected.rows[record] = try newest(answer, index)
        }
    }

    func forgetExpected() { expected = ("", [:]) }

    /// Asks for the entity's digest in the same round trip: it is wanted as soon as the record is written.
    override func newest(entity: String, record: RecordID) throws -> StoredRecord? {
        if Identifier.isSameName(expected.entity, entity), let newest = expected.rows[record] {
            lastNewest = (entity, record, newest)
            return newest.row
        }
        guard kept.exists else { return nil }
        var requests = [newestRow(entity: entity, record: record)]
        if keptDigests[EntityKey(entity)] == nil { requests.append(keptDigest(of: entity)) }
        let answers = try session.ask(requests)
        if answers.count > 1 {
            keptDigests[EntityKey(entity)] = .some(answers[1].count > 0 ? answers[1].array(0, 0) : nil)
        }
        let newest: Newest = answers[0].count > 0 ? try newest(answers[0], 0) : (nil, nil, ScopeSize())
        lastNewest = (entity, record, newest)
        return newest.row
    }

    private func newest(_ answer: QueryResult, _ index: Int) throws -> Newest {
        let row = try StoredRecord(answer, index)
        return (RowKind(rawValue: try answer.integer(index, 1)), row, row?.size ?? ScopeSize())
    }

    private static let insert = """
        INSERT INTO change (scope, entity, record, version, kind, time, payload, field_versions, originals)
        VALUES ($1, $2, $3, $4, $5::bigint::smallint, $6, $7, $8, $9)
        """
    private static let append = Statement("append", insert)
    private static let replace = Statement(
        "replace",
        """
        WITH former AS (
            UPDATE change SET superseded_by = $4, superseded_at = $10
            WHERE scope = $1 AND entity = $2 AND record = $3 AND superseded_by IS NULL)
        \(insert)
        """)

    /// Other nodes may wait for the scope's row, which nobody sees from here.
    var othersWait: Bool { true }
    var holdsUpOthers = false

    func append(_ row: NewRow, at moment: Int64) throws -> Version {
        if !isTakingCaptured, let table = tables[row.entity] { try write(row, to: table) }
        try create(at: moment)
        if !memory.hasAppended { try begin() }
        let version = kept.state.head + 1
        kept.state.lastTime = max(moment, kept.state.lastTime + 1)
        if kept.state.entities.insert(row.entity) { memory.hasNewEntity = true }
        var statement = Self.append
        var parameters: [Parameter] = [
            name, .text(row.entity), .text(row.record.text), .integer(version), .integer(row.kind.rawValue),
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
            if former.mayBeThere {
                statement = Self.replace
                parameters.append(.integer(moment))
            }
        }
        try session.write(Request(statement, parameters))
        kept.state.head = version
        lastNewest = nil
        expected.rows[row.record] = nil
        return version
    }

    /// The fields of the record's live row, whether it may have one at all, and what all rows take that the new one
    /// takes the place of; the engine has mostly just read them.
    func live(_ row: NewRow) throws -> (payload: [UInt8]?, mayBeThere: Bool, size: ScopeSize) {
        if let (entity, record, newest) = lastNewest, Identifier.isSameName(entity, row.entity), record == row.record {
            switch newest.kind {
            case .upsert: return (newest.row?.payload, true, newest.size)
            case .delete: return (nil, true, newest.size)
            case nil: return (nil, false, ScopeSize())
            // An entity that held events once: there may be a row of its records below.
            case .event, .idmap: break
            }
        }
        let answer = try session.ask(Self.live, name, .text(row.entity), .text(row.record.text))
        let size = ScopeSize(rows: try answer.integer(0, 0), bytes: try answer.integer(0, 1))
        return (answer.isNull(0, 2) ? nil : answer.array(0, 2), true, size)
    }

    private static let live = Statement(
        "live",
        """
        SELECT \(size), (array_agg(payload) FILTER (WHERE kind = 0))[1] FROM change
        WHERE scope = $1 AND entity = $2 AND record = $3 AND superseded_by IS NULL
        """)

    /// The columns of a sum over rows: how many they are, and what they take.
    static let size = "count(*), coalesce(sum(\(bytes)), 0)::bigint"
    /// What a row takes, as `ScopeSize` counts it.
    static let bytes = "coalesce(length(CASE kind WHEN 1 THEN field_versions ELSE payload END), 0)::bigint"

    /// The first write in a scope makes it, and history begins to age with the store's first scope.
    private func create(at moment: Int64) throws {
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
        SELECT superseded_by IS NULL, \(size) FROM gone GROUP BY 1
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

    func markErased(at moment: Int64) throws {
        guard kept.state.erasedAt == nil else { return }
        try create(at: moment)
        kept.state = .erased(at: moment, head: kept.state.head + 1)
        try Erasing.mark(session, name)
        // Other nodes hear of it as of a change.
        (memory.isChanged, memory.hasAppended, memory.hasNewEntity) = (true, true, true)
        (memory.digests, keptDigests, lastNewest) = (DigestKeeper(), [:], nil)
    }

    // MARK: Digests

    private func storedDigest(of entity: String) throws -> [UInt8]? {
        if let known = keptDigests[EntityKey(entity)] { return known }
        let stored = try super.digest(of: entity)
        keptDigests[EntityKey(entity)] = .some(stored)
        return stored
    }

    /// Includes the rows that this transaction has appended.
    override func digest(of entity: String) throws -> [UInt8]? {
        try memory.digests.stored(of: entity) ?? storedDigest(of: entity)
    }

    // MARK: Lanes

    func store(_ verdict: StoredVerdict, _ lane: LaneName, _ number: Int64, at moment: Int64) throws {
        try create(at: moment)
        var laneRow = try laneRow(lane) ?? newLane()
        try laneRow.store(verdict, session, name, number)
        laneRow.number = number
        laneRow.top = max(laneRow.top, number)
        laneRows[lane] = .some(laneRow)
        memory.moved[lane] = moment
    }

    private func newLane() -> LaneRow {
        kept.lanes += 1
        memory.isChanged = true
        return LaneRow(place: kept.lanes, number: 0, top: 0)
    }

    override func lanes(of device: DeviceName, limit: Int) throws -> [(lane: String, number: Int64)] {
        try settleLanes()
        return try super.lanes(of: device, limit: limit)
    }

    override func unheard(devicesBefore: Int64, lanesBefore: Int64) throws -> (devices: Int, lanes: Int) {
        try settleLanes()
        return try super.unheard(devicesBefore: devicesBefore, lanesBefore: lanesBefore)
    }

    func forgetVerdicts(_ lane: LaneName, through number: Int64) throws {
        try laneRow(lane)?.forgetVerdicts(session, name, through: number)
    }

    /// Writes down how far the lanes have come: once at the end, and for one who looks at more than one of them.
    private func settleLanes() throws {
        for (lane, moment) in memory.moved { try laneRows[lane]??.keep(session, name, lane, at: moment) }
        memory.moved = [:]
    }

    // MARK: Devices and ids

    func note(_ standing: DeviceStanding, of device: DeviceName) throws {
        // A scope that nobody wrote to has nothing to keep for anybody.
        guard kept.exists else { return }
        try Devices.note(session, name, standing, of: device)
    }

    func store(tally note: [UInt8], by principal: String, of entity: String, at moment: Int64) throws {
        try create(at: moment)
        try Deletes.store(session, name, note, by: principal, of: entity, at: moment)
    }

    func forgetDevices(beyond limit: Int, besides device: DeviceName) throws {
        guard kept.exists else { return }
        try settleLanes()
        laneRows = [:]
        try Devices.forget(session, name, beyond: limit, besides: device)
    }

    func forget(devicesBefore: Int64, lanesBefore: Int64, limit: Int) throws -> (devices: Int, lanes: Int) {
        guard kept.exists else { return (0, 0) }
        try settleLanes()
        laneRows = [:]
        return try Devices.forget(
            session, name, devicesBefore: devicesBefore, lanesBefore: lanesBefore, limit: limit)
    }

    func store(_ id: RecordID, for name: TemporaryName, at moment: Int64) throws {
        try create(at: moment)
        try AssignedIDs.store(session, id, for: name, self.name, at: moment)
    }

    // MARK: Parts and the end

    /// Written at the end: the row that counts the list is everybody's, and should be held for a moment only.
    func keep(_ rejection: StoredRejection, limit: Int) throws { memory.rejections.append((rejection, limit)) }

    func attempt<Result>(_ body: () throws -> Result) throws -> Result {
        let (memory, kept, laneRows) = (memory, kept, laneRows)
        do { return try session.attempt(body) } catch {
            (self.memory, self.kept, self.laneRows) = (memory, kept, laneRows)
            lastNewest = nil
            throw error
        }
    }

    private static let keepDigest = Statement(
        "keep digest",
        """
        INSERT INTO digest (scope, entity, sums) VALUES ($1, $2, $3)
        ON CONFLICT (scope, entity) DO UPDATE SET sums = excluded.sums
        """)
    private static let insertRow = Statement(
        "insert scope",
        """
        INSERT INTO scope (name, head, last_time, retention_floor, lanes, live_rows, live_bytes, sweep_floor,
            superseded_rows, superseded_bytes, erased_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
        """)
    private static let updateRow = Statement(
        "update scope",
        """
        UPDATE scope SET head = $2, last_time = $3, retention_floor = $4, lanes = $5, live_rows = $6, live_bytes = $7,
            sweep_floor = $8, superseded_rows = $9, superseded_bytes = $10, erased_at = $11
        WHERE name = $1
        """)

    /// Writes the scope's row, its lanes and digests once, however much was written.
    func finish() throws {
        try settleLanes()
        for (entity, sums) in memory.digests.stored {
            try session.write(Self.keepDigest, name, .text(entity), .bytes(sums))
        }
        guard memory.isChanged else { return }
        try session.write(
            wasThere ? Self.updateRow : Self.insertRow, name, .integer(kept.state.head), .integer(kept.state.lastTime),
            .integer(kept.state.retentionFloor), .integer(kept.lanes), .integer(kept.state.size.rows),
            .integer(kept.state.size.bytes), .integer(kept.state.sweepFloor), .integer(kept.state.superseded.rows),
            .integer(kept.state.superseded.bytes), .optional(kept.state.erasedAt))
        if memory.hasNewEntity { try session.write(Self.keepEntities, name, .text(kept.state.entities.stored)) }
    }

    private static let keepEntities = Statement(
        "keep entities", "UPDATE scope SET entities = $2 WHERE name = $1")

    /// The transaction's last write, for all of its scopes.
    func keepRejections() throws {
        for (index, entry) in memory.rejections.enumerated() {
            try Rejections.keep(session, entry.rejection)
            let next = memory.rejections.dropFirst(index + 1).first
            guard next?.limit != entry.limit || next?.rejection.scope != entry.rejection.scope else { continue }
            try Rejections.trim(session, entry.rejection.scope, to: entry.limit)
        }
    }
}
