import TidemarkServer
import TidemarkWire

/// The one writer of a scope inside a transaction, which holds the lock of the scope's row: versions are taken in the
/// order of commits, on however many nodes.
///
/// Jobs of one transaction share it. Its state beside the database goes back with a part that fails.
final class PostgresScopeWriter: PostgresScope, ScopeWriter {
    let incarnation: Int64
    var memory = Memory()
    /// Digests as they were stored before this transaction.
    var keptDigests: [EntityKey: [UInt8]?] = [:]

    struct Memory {
        /// Lanes that moved, and when they were used; written once, at the end.
        var moved: [LaneName: Int64] = [:]
        var digests = DigestKeeper()
        /// Whether the scope's row is to be written, and whether a row of the log was.
        var isChanged = false
        var hasAppended = false
        /// Whether the scope's list of entities is to be written too.
        var hasNewEntity = false
        var rejections: [(rejection: StoredRejection, limit: Int)] = []
        /// The table writes that are kept back while writes go out together.
        var tableWrites = TableWrites()
        /// Records that this transaction has written to their tables, to be looked at.
        var looks: [(table: Int64, record: String)] = []
    }

    /// The last answer to a question for a record's newest row; an append to it need not ask again.
    var lastNewest: (entity: String, record: RecordID, Newest)?
    /// Whether the scope had a row when the transaction began, and its newest version then.
    private let wasThere: Bool
    let formerHead: Version
    /// The operator's own tables, which hold rows of some entities too.
    let tables: AttachedTables
    /// Whether what is appended comes from such a table.
    var isDrainingCapture = false
    /// Whether the writer keeps table writes back, to send them together.
    var writesTogether = false
    /// The rules of the tables that this transaction has written to, read once from the catalogue.
    var rules: [Int64: TableRules] = [:]
    /// Whether the caller may read other scopes, as far as that is known; `nil` for the server's own programs.
    var referenceGrants: [Scope: Bool]?

    func serverFields(of entity: String) -> [String] { tables[entity]?.readOnly ?? [] }

    init(
        _ session: Session, _ scope: Scope, _ row: ScopeRow, incarnation: Int64, tables: AttachedTables = .none
    ) {
        self.incarnation = incarnation
        self.tables = tables
        (wasThere, formerHead) = (row.exists, row.state.head)
        super.init(session, scope, row)
    }

    var hasAppended: Bool { memory.hasAppended }

    /// Newest rows that were asked for together, until they are written.
    var expected: [EntityKey: [RecordID: Newest]] = [:]
    typealias Newest = (kind: RowKind?, row: StoredRecord?, size: ScopeSize)

    func expect(_ entity: String, _ keys: [[UInt8]], _ answer: QueryResult) throws {
        let ids = keys.compactMap { RecordID(String(decoding: $0, as: UTF8.self)) }
        var rows = Dictionary(ids.map { ($0, Newest(nil, nil, ScopeSize())) }) { first, _ in first }
        for index in 0..<answer.count {
            guard let record = RecordID(answer.text(index, 4)), rows[record] != nil else { continue }
            rows[record] = try newest(answer, index)
        }
        expected[EntityKey(entity)] = rows
    }

    func forgetExpected() { expected = [:] }

    /// Asks for the entity's digest in the same round trip: it is wanted as soon as the record is written.
    override func newest(entity: String, record: RecordID) throws -> StoredRecord? {
        if let newest = expected[EntityKey(entity)]?[record] {
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

    /// Other nodes may wait for the scope's row, which nobody sees from here.
    var othersWait: Bool { true }
    var delaysOthers = false

    func storedDigest(of entity: String) throws -> [UInt8]? {
        if let known = keptDigests[EntityKey(entity)] { return known }
        let stored = try super.digest(of: entity)
        keptDigests[EntityKey(entity)] = .some(stored)
        return stored
    }

    /// Includes the rows that this transaction has appended.
    override func digest(of entity: String) throws -> [UInt8]? {
        try memory.digests.stored(of: entity) ?? storedDigest(of: entity)
    }

    override func lanes(of device: DeviceName, limit: Int) throws -> [(lane: String, number: Int64)] {
        try flushLanes()
        return try super.lanes(of: device, limit: limit)
    }

    override func unheard(devicesBefore: Int64, lanesBefore: Int64) throws -> (devices: Int, lanes: Int) {
        try flushLanes()
        return try super.unheard(devicesBefore: devicesBefore, lanesBefore: lanesBefore)
    }

    /// Writes down how far the lanes have come: once at the end, and before whoever reads several of them.
    func flushLanes() throws {
        for (lane, moment) in memory.moved { try laneRows[lane]??.keep(session, name, lane, at: moment) }
        memory.moved = [:]
    }

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
        try flushLanes()
        try noteLooks()
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
}
