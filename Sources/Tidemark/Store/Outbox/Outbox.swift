import GRDB
import TidemarkWire

/// An operation as it stands in the outbox. It is sealed before its first sending and is sent as it was sealed, unless
/// its lane broke off, the server has lost it, or has something else under its key: then it gets another key
/// (``Outbox/repair(_:scope:from:lane:)``) or is sealed again (`Outbox+Again`).
struct OutboxEntry: Hashable, Sendable {
    var id: Int64
    var key: OperationKey
    var entity: String
    var record: String
    var isDelete: Bool
    /// The operation's members as on the wire, without its key.
    var members: [UInt8]
    /// Its fields whole, where the members carry patches.
    var content: [UInt8]?
    /// The same with ids in the place of temporary ones: what the operation means on this device by now.
    var resolved: [UInt8]?
    /// The group that it is taken with, or not at all.
    var group: String?
    /// The row that it makes, where it was sealed in a run of the first capture.
    var seed: SealedSeed?

    /// The operation on the wire: its key is spliced in front of what was sealed.
    func append(to writer: inout JSONWriter) { append(members, to: &writer) }

    private func append(_ members: [UInt8], to writer: inout JSONWriter) {
        writer.raw("{\"lane\":")
        writer.string(key.lane)
        writer.member("number", key.number)
        writer.raw(",")
        writer.raw(members)
        writer.raw("}")
    }

    /// The operation with all its fields whole, however it travels, and with the ids that are known by now.
    func operation() throws(JSONError) -> Operation {
        guard let resolved else { return try sealedOperation() }
        return try operation(resolved)
    }

    /// The operation as it was sealed, with all its fields whole.
    func sealedOperation() throws(JSONError) -> Operation {
        var operation = try operation(members)
        if let content {
            operation.kind = .upsert
            operation.patches = []
            operation.fields = try DataObject(stored: content)
        }
        return operation
    }

    private func operation(_ members: [UInt8]) throws(JSONError) -> Operation {
        var writer = JSONWriter(capacity: members.count + 64)
        append(members, to: &writer)
        return try writer.bytes.reading { (reader: inout JSONReader) throws(JSONError) -> Operation in
            try Operation.read(from: &reader).1
        }
    }
}

/// A row of the first capture that was sealed in a run, remembered until its verdict.
struct SealedSeed: Hashable, Sendable {
    /// The row's hash.
    var hash: UInt64
    /// Its run's number.
    var run: Int64
}

/// The durable queue of operations. Each is open until its own verdict, which names its exact key, and then stays for
/// as long as a server that lost it may need it again, at last in a block (``OutboxHistory``), or until its scope
/// leaves.
enum Outbox {
    static let table = "tidemark_operation"
    static let columns =
        "id, lane, number, entity, record, kind = 'delete', members, content, resolved, in_group"

    /// The sealed members, or, of one that travels as a patch, the fields that it stands for.
    static let contentSQL = "coalesce('\"fields\":' || CAST(content AS TEXT), resolved, members)"

    static func entry(_ row: Query) -> OutboxEntry {
        OutboxEntry(
            id: row.integer(0), key: OperationKey(lane: row.text(1), number: row.integer(2)), entity: row.text(3),
            record: row.text(4), isDelete: row.integer(5) != 0, members: row.blob(6), content: row.optionalBlob(7),
            resolved: row.optionalBlob(8), group: row.optionalText(9))
    }

    /// Operations without a verdict, oldest first.
    ///
    /// - Parameter last: the operation that they stand behind.
    static func open(_ db: Database, scope: Scope, behind last: Int64 = 0, limit: Int) throws -> [OutboxEntry] {
        try Query(
            db,
            """
            SELECT \(columns) FROM tidemark_operation
            WHERE scope = ?1 AND \(isOpen) AND id > ?3 ORDER BY id LIMIT ?2
            """
        ).rows(db, [.text(scope.name), .integer(Int64(limit)), .integer(last)], entry)
    }

    static func open(_ db: Database, key: OperationKey) throws -> OutboxEntry? {
        try Query(
            db, "SELECT \(columns) FROM tidemark_operation WHERE lane = ?1 AND number = ?2 AND \(isOpen)"
        ).first(db, [.text(key.lane), .integer(key.number)], entry)
    }

    /// Operations without a verdict, by their places in the outbox.
    static func open(_ db: Database, ids: ClosedRange<Int64>) throws -> [OutboxEntry] {
        try Query(
            db, "SELECT \(columns) FROM tidemark_operation WHERE id BETWEEN ?1 AND ?2 AND \(isOpen) ORDER BY id"
        ).rows(db, [.integer(ids.lowerBound), .integer(ids.upperBound)], entry)
    }

    static func entry(_ db: Database, id: Int64) throws -> OutboxEntry? {
        try Query(db, "SELECT \(columns) FROM tidemark_operation WHERE id = ?1").first(db, [.integer(id)], entry)
    }

    /// A record's operations without a verdict in one scope, oldest first.
    static func open(_ db: Database, entity: String, record: String, scope: String) throws -> [OutboxEntry] {
        try Query(
            db,
            """
            SELECT \(columns) FROM tidemark_operation
            WHERE entity = ?1 AND record = ?2 AND scope = ?3 AND \(isOpen) ORDER BY id
            """
        ).rows(db, [.text(entity), .text(record), .text(scope)], entry)
    }

    /// Whether a record has operations without a verdict, in one scope or (`nil`) in any.
    static func hasOpen(_ db: Database, entity: String, record: String, scope: String? = nil) throws -> Bool {
        try Query(
            db,
            """
            SELECT 1 FROM tidemark_operation
            WHERE entity = ?1 AND record = ?2 AND scope = coalesce(?3, scope) AND \(isOpen) LIMIT 1
            """
        ).first(db, [.text(entity), .text(record), .optional(scope)]) { _ in true } ?? false
    }

    /// Operations on a record that the server took at a version above `base`, and that are in no block yet.
    static func taken(
        _ db: Database, entity: String, record: String, scope: Scope, after base: Version
    ) throws -> [OutboxEntry] {
        try Query(
            db,
            """
            SELECT \(columns) FROM tidemark_operation WHERE entity = ?1 AND record = ?2 AND scope = ?3
            AND version > ?4 AND \(isTaken) ORDER BY id
            """
        ).rows(db, [.text(entity), .text(record), .text(scope.name), .integer(base)], entry)
    }

    /// The operations on a record that set fields, that the server has answered without saying what became of them, and
    /// that no delete of this device's has followed; oldest first.
    static func untold(_ db: Database, entity: String, record: String, scope: Scope) throws -> [OutboxEntry] {
        try Query(
            db,
            """
            SELECT \(columns) FROM tidemark_operation AS o WHERE entity = ?1 AND record = ?2 AND scope = ?3
              AND \(isUntold) AND kind <> 'delete' AND NOT EXISTS (
                SELECT 1 FROM tidemark_operation
                WHERE entity = ?1 AND record = ?2 AND scope = ?3 AND kind = 'delete' AND id > o.id)
            ORDER BY id
            """
        ).rows(db, [.text(entity), .text(record), .text(scope.name)], entry)
    }

    /// Removes an operation whose outcome was not told.
    static func removeUntold(_ db: Database, id: Int64) throws {
        try Query(db, "DELETE FROM tidemark_operation WHERE id = ?1 AND \(isUntold)")
            .execute([.integer(id)])
    }

    /// Notes when an operation was last put into a request.
    static func noteSending(_ db: Database, _ entry: OutboxEntry, now: Int64) throws {
        try Query(db, "UPDATE tidemark_operation SET sent_at = ?2 WHERE id = ?1")
            .execute([.integer(entry.id), .integer(now)])
    }

    /// An operation under a number that its lane has given out.
    struct Sealed {
        private let key: OperationKey
        private let operation: Operation
        private let members: [UInt8]
        /// The fields whole, where the operation carries patches.
        private let content: [UInt8]?
        private let scope: Scope
        private let editedAt: Int64?
        private let sealedAt: Int64

        /// - Parameter patched: the same operation as it travels, where it carries patches.
        init(
            _ operation: Operation, patched: Operation? = nil, key: OperationKey, scope: Scope, editedAt: Int64?,
            now: Int64
        ) {
            (self.operation, self.key, self.scope) = (operation, key, scope)
            (self.editedAt, sealedAt) = (editedAt, now)
            members = (patched ?? operation).sealedMembers()
            content = patched == nil ? nil : operation.fields.bytes
        }

        private var record: String { (operation.tempID ?? operation.id)?.text ?? "" }

        /// Binds the columns of `sealing`.
        fileprivate func bind(to query: Query, from first: Int) {
            query.bind(text: scope.name, at: first)
            query.bind(integer: editedAt, at: first + 1)
            query.bind(integer: sealedAt, at: first + 2)
            query.bind(text: key.lane, at: first + 3)
            query.bind(integer: key.number, at: first + 4)
            query.bind(text: operation.entity, at: first + 5)
            query.bind(text: record, at: first + 6)
            query.bind(text: operation.kind.rawValue, at: first + 7)
            members.withUnsafeBytes { query.bind(blob: $0, at: first + 8) }
            query.bind(content.map(Cell.blob) ?? .null, at: first + 9)
            query.bind(integer: operation.isInsert ? 1 : 0, at: first + 10)
            query.bind(.optional(operation.group), at: first + 11)
        }

        /// The operation as it stands in the outbox.
        func entry(id: Int64) -> OutboxEntry {
            OutboxEntry(
                id: id, key: key, entity: operation.entity, record: record, isDelete: operation.kind == .delete,
                members: members, content: content, resolved: nil, group: operation.group)
        }
    }

    private static let sealing = RowsInsert(
        """
        INSERT INTO tidemark_operation(
          scope, edited_at, sealed_at, lane, number, entity, record, kind, members, content, is_insert, in_group, state)
        """,
        row: "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, '\(State.sealed.rawValue)')")

    /// Writes sealed operations; their ids follow each other and end with the last inserted one.
    static func seal(_ db: Database, _ operations: [Sealed]) throws {
        try sealing.run(db, operations) { $0.bind(to: $1, from: $2) }
    }

    /// Keeps an edit that cannot be put on the wire, or must not be, with the reason, until the app decides or edits
    /// the row again.
    static func refuse(
        _ db: Database, _ operation: Operation, record: String, scope: Scope,
        code: String = RejectionCode.unsendableValue, isInsert: Bool = false, detail: String, hint: String, now: Int64
    ) throws {
        try forgetLocalRefusals(db, entity: operation.entity, record: record)
        try Query(
            db,
            """
            INSERT INTO tidemark_operation(
              scope, entity, record, kind, members, sealed_at, finished_at, state, code, detail, hint, is_insert)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6, '\(State.rejected.rawValue)', ?7, ?8, ?9, ?10)
            """
        ).execute([
            .text(scope.name), .text(operation.entity), .text(record), .text(operation.kind.rawValue),
            .blob(operation.sealedMembers()), .integer(now), .text(code), .text(detail), .text(hint),
            .integer(isInsert ? 1 : 0),
        ])
    }

    static func hasLocalRefusals(_ db: Database) throws -> Bool {
        try Query(db, "SELECT 1 FROM tidemark_operation WHERE \(isRejected) AND lane IS NULL LIMIT 1")
            .first(db) { _ in true } ?? false
    }

    static func forgetLocalRefusals(_ db: Database, entity: String, record: String) throws {
        try Query(
            db,
            """
            DELETE FROM tidemark_operation
            WHERE \(isRejected) AND lane IS NULL AND entity = ?1 AND record = ?2
            """
        ).execute([.text(entity), .text(record)])
    }

    static func finish(_ db: Database, _ entry: OutboxEntry, _ verdict: Verdict, now: Int64) throws {
        var (state, version) = (verdict.isShort ? State.merged : State(verdict.status), verdict.version)
        let sealed = state == .outcomeUnknown ? try entry.sealedOperation() : nil
        if let sealed, let original = sealed.original?.version {
            // The operation was not lost after all: it keeps its first version, by which another loss is recovered.
            (state, version) = (sealed.isSeed ? .merged : .applied, original)
        } else if state == .merged || state == .applied && verdict.record != nil, let newest = version {
            guard let place = try place(db, entry, verdict, at: newest) else { return try remove(db, id: entry.id) }
            version = place
        }
        try Query(
            db,
            """
            UPDATE tidemark_operation
            SET finished_at = ?2, state = ?3, version = ?4, code = ?5, detail = ?6, hint = ?7 WHERE id = ?1
            """
        ).execute([
            .integer(entry.id), .integer(now), .text(state.rawValue), .optional(version),
            .optional(verdict.refusal?.code ?? (verdict.status == .conflict ? "conflict" : nil)),
            .optional(verdict.refusal?.detail), .optional(verdict.refusal?.hint),
        ])
    }

    /// After a gap: operations that the server has never seen go into a new lane, in order, with the numbers of those
    /// that they need. Those that it has seen keep their keys: they are answered from memory and not done twice.
    static func repair(_ db: Database, scope: Scope, from problem: Problem?, lane: String) throws {
        let entries = try open(db, scope: scope, limit: .max)
        guard let broken = problem?.lane ?? entries.first?.key.lane else { return }
        var numbers = try LaneNumbers(db, lane: lane)
        var moved: [Int64: Int64] = [:]
        for entry in entries where entry.key.lane == broken && entry.key.number >= problem?.expected ?? 1 {
            let number = numbers.nextKey().number
            moved[entry.key.number] = number
            try Query(db, "UPDATE tidemark_operation SET lane = ?2, number = ?3 WHERE id = ?1")
                .execute([.integer(entry.id), .text(lane), .integer(number)])
            try renumber(db, entry, moved, own: number)
        }
        try numbers.store(db, scope: scope)
        // The server never had its last numbers: they must not be acknowledged as if it had. Those before them are told
        // on, so that a server which loses them is found out.
        let next = problem?.expected ?? 1
        try Query(db, "UPDATE tidemark_lane SET next_number = ?2 WHERE id = ?1 AND next_number > ?2")
            .execute([.text(broken), .integer(next)])
        try Query(db, "DELETE FROM tidemark_lane WHERE id = ?1 AND told >= next_number - 1").execute([.text(broken)])
    }
}

/// The numbers of one lane, taken one by one and written once for a whole batch, in the transaction that uses them.
struct LaneNumbers {
    private let lane: String
    private let first: Int64
    private(set) var next: Int64

    init(_ db: Database, lane: String) throws {
        self.lane = lane
        first =
            try Query(db, "SELECT next_number FROM tidemark_lane WHERE id = ?1")
            .first(db, [.text(lane)]) { $0.integer(0) } ?? 1
        next = first
    }

    mutating func nextKey() -> OperationKey {
        defer { next += 1 }
        return OperationKey(lane: lane, number: next)
    }

    func store(_ db: Database, scope: Scope) throws {
        guard next > first else { return }
        try Query(
            db,
            """
            INSERT INTO tidemark_lane(id, scope, next_number) VALUES (?1, ?2, ?3)
            ON CONFLICT(id) DO UPDATE SET next_number = excluded.next_number
            """
        ).execute([.text(lane), .text(scope.name), .integer(next)])
    }
}

// MARK: - What the server may forget

extension Outbox {
    static func hasLane(_ db: Database, _ lane: String) throws -> Bool {
        try Query(db, "SELECT 1 FROM tidemark_lane WHERE id = ?1").first(db, [.text(lane)]) { _ in true } != nil
    }

    /// The lanes of operations without a verdict that stand behind another one.
    static func lanes(_ db: Database, _ scope: Scope, ofOpenBehind last: Int64) throws -> Set<String> {
        Set(
            try Query(db, "SELECT DISTINCT lane FROM tidemark_operation WHERE scope = ?1 AND \(isOpen) AND id > ?2")
                .rows(db, [.text(scope.name), .integer(last)]) { $0.text(0) })
    }

    /// Per lane, the number up to which every verdict is applied, where the server does not know it yet. No operation
    /// at or below what it knows is open, but for replayed ones.
    static func acknowledgements(_ db: Database, scope: Scope) throws -> [String: Int64] {
        let lanes = try Query(
            db,
            """
            SELECT id, coalesce((
              SELECT number FROM tidemark_operation INDEXED BY tidemark_operation_key
              WHERE lane = tidemark_lane.id AND number > told AND \(isOpen) ORDER BY number LIMIT 1
            ), next_number) - 1 AS finished
            FROM tidemark_lane WHERE scope = ?1 AND finished > told AND NOT EXISTS (
              SELECT 1 FROM tidemark_operation INDEXED BY tidemark_operation_replay
              WHERE tidemark_operation.scope = ?1 AND \(isReplay) AND \(isOpen)
              AND lane = tidemark_lane.id AND number <= told)
            LIMIT 100
            """
        ).rows(db, [.text(scope.name)]) { ($0.text(0), $0.integer(1)) }
        return Dictionary(lanes, uniquingKeysWith: max)
    }

    /// The server has had these; a lane with nothing left to tell is done with, unless it is the one in use.
    static func acknowledged(_ db: Database, _ told: [String: Int64], scope: Scope, currentLane: String) throws {
        for (lane, number) in told {
            try Query(db, "UPDATE tidemark_lane SET told = max(told, ?2) WHERE id = ?1")
                .execute([.text(lane), .integer(number)])
        }
        guard !told.isEmpty else { return }
        try Query(db, "DELETE FROM tidemark_lane WHERE scope = ?1 AND id <> ?2 AND told = next_number - 1")
            .execute([.text(scope.name), .text(currentLane)])
    }
}
