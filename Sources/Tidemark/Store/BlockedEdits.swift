import GRDB
import TidemarkWire

/// Why an edit is not sent now, although nothing is wrong with it.
struct Blocker: Hashable {
    enum Reason: String {
        /// The insert of a record that it refers to was refused: it waits until that is taken, mended or given up (F1).
        case refused
        /// A record that it refers to has no id of the server's yet, or its insert leaves first.
        case awaitingID = "awaiting_id"
    }

    var name: RecordName
    var reason: Reason
}

/// Edits that are blocked on this device by another record, each by one. A refused operation stops itself and what
/// depends on it, and nothing else (F1).
struct BlockedEdits {
    let db: Database
    let schema: SyncSchema

    /// SQL for an edit that a refused record blocks.
    static let isRefused = "reason = '\(Blocker.Reason.refused.rawValue)'"

    static func isAny(_ db: Database) throws -> Bool {
        try Query(db, "SELECT 1 FROM tidemark_blocked LIMIT 1").first(db) { _ in true } ?? false
    }

    static func block(_ db: Database, _ name: RecordName, by blocker: Blocker) throws {
        try Query(
            db,
            """
            INSERT INTO tidemark_blocked(entity, record, blocker_entity, blocker_record, reason)
            VALUES (?1, ?2, ?3, ?4, ?5)
            """
        ).execute([
            .text(name.entity), .text(name.record), .text(blocker.name.entity), .text(blocker.name.record),
            .text(blocker.reason.rawValue),
        ])
    }

    static func forget(_ db: Database, _ name: RecordName) throws {
        try Query(db, "DELETE FROM tidemark_blocked WHERE entity = ?1 AND record = ?2")
            .execute([.text(name.entity), .text(name.record)])
    }

    static func blocker(_ db: Database, of name: RecordName) throws -> Blocker? {
        try Query(
            db, "SELECT blocker_entity, blocker_record, reason FROM tidemark_blocked WHERE entity = ?1 AND record = ?2"
        ).first(db, [.text(name.entity), .text(name.record)]) {
            Blocker(
                name: RecordName(entity: $0.text(0), record: $0.text(1)),
                reason: Blocker.Reason(rawValue: $0.text(2)) ?? .refused)
        }
    }

    /// The record that a record waits for since that has no id yet.
    static func parentWithoutID(_ db: Database, of name: RecordName) throws -> RecordName? {
        try blocker(db, of: name).flatMap { $0.reason == .awaitingID ? $0.name : nil }
    }

    /// The records that one blocks, in the order in which they were blocked.
    static func dependants(
        _ db: Database, of blocker: RecordName, _ reason: Blocker.Reason = .refused
    ) throws -> [RecordName] {
        try Query(
            db,
            """
            SELECT entity, record FROM tidemark_blocked
            WHERE blocker_entity = ?1 AND blocker_record = ?2 AND reason = ?3 ORDER BY id
            """
        ).rows(db, [.text(blocker.entity), .text(blocker.record), .text(reason.rawValue)]) {
            RecordName(entity: $0.text(0), record: $0.text(1))
        }
    }

    /// The record whose refused insert stands in the way of a reference to `name`, directly or through one that waits.
    func blocker(behind name: RecordName) throws -> RecordName? {
        if try isBlocker(name) { return name }
        guard let blocker = try Self.blocker(db, of: name), blocker.reason == .refused else { return nil }
        return try isBlocker(blocker.name) ? blocker.name : nil
    }

    /// Whether the record's insert was refused and it is not on its way again.
    private func isBlocker(_ name: RecordName) throws -> Bool {
        guard let isLocal = try Outbox.isRefusedInsertLocal(db, name), let shape = schema[name.entity],
            let id = RecordID(name.record),
            let key = shape.key(of: id)
        else { return false }
        let table = RecordTable(shape)
        if try table.shadow(db, key)?.mark != nil { return false }
        if try Outbox.hasOpen(db, entity: name.entity, record: name.record) { return false }
        // An insert that this device refused to send is a blocker although its row is on screen still.
        return try isLocal || table.row(db, key) == nil
    }

    /// Releases the edits whose blocker is not refused any more.
    func release() throws {
        guard try Self.isAny(db) else { return }
        let blockers = try Query(
            db, "SELECT DISTINCT blocker_entity, blocker_record FROM tidemark_blocked WHERE \(Self.isRefused)"
        ).rows(db) { RecordName(entity: $0.text(0), record: $0.text(1)) }
        for blocker in blockers where try !isBlocker(blocker) {
            try Self.release(db, schema, Self.dependants(db, of: blocker))
        }
    }

    /// The parent has its id, or is sealed: what waited for it is sealed with the next batch.
    static func release(_ db: Database, _ schema: SyncSchema, behind parent: RecordName) throws {
        try release(db, schema, dependants(db, of: parent, .awaitingID))
    }

    /// The next batch looks at them again.
    private static func release(_ db: Database, _ schema: SyncSchema, _ names: [RecordName]) throws {
        for name in names {
            try forget(db, name)
            guard let shape = schema[name.entity], let key = RecordID(name.record).flatMap(shape.key(of:)) else {
                continue
            }
            try RecordTable(shape).mark(db, key)
        }
    }

    /// Counts the edits that are blocked, for whatever reason.
    static func count(_ db: Database) throws -> Int {
        try Query.count(db, "SELECT count(*) FROM tidemark_blocked")
    }

    /// Counts those of one table, up to a limit.
    static func count(_ db: Database, _ entity: String, limit: Int) throws -> Int64 {
        let blocked = "tidemark_blocked WHERE entity = \(literal(entity))"
        return Int64(try Query.count(db, "SELECT count(*) FROM (SELECT 1 FROM \(blocked) LIMIT \(limit))"))
    }

    /// Returns the records of a table whose edits another record's refused insert blocks.
    static func records(_ db: Database, _ entity: String) throws -> [String] {
        try Query(db, "SELECT record FROM tidemark_blocked WHERE entity = ?1 AND \(isRefused)")
            .rows(db, [.text(entity)]) { $0.text(0) }
    }
}

extension RecordTable {
    /// Forgets the record's edits, none of which is sent any more: its shadow, and the blocker that they waited for.
    func forget(_ db: Database, _ key: [Cell], _ id: RecordID) throws {
        try dropShadow(db, key)
        let name = RecordName(entity: shape.name, record: id.text)
        try BlockedEdits.forget(db, name)
    }
}
