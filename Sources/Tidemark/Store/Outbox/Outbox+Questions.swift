import GRDB
import TidemarkWire

// MARK: - Without a verdict

extension Outbox {
    /// Whether anything of a scope has no verdict.
    static func hasOpen(_ db: Database, _ scope: Scope) throws -> Bool {
        try Query(db, "SELECT 1 FROM tidemark_operation WHERE scope = ?1 AND \(isOpen) LIMIT 1")
            .first(db, [.text(scope.name)]) { _ in true } != nil
    }

    /// The records whose inserts are on their way in a lane, with the inserts' numbers.
    static func openInserts(_ db: Database, lane: String) throws -> [(name: RecordName, number: Int64)] {
        try Query(
            db,
            """
            SELECT entity, record, number FROM tidemark_operation
            WHERE lane = ?1 AND \(isOpen) AND is_insert
            """
        ).rows(db, [.text(lane)]) { (RecordName(entity: $0.text(0), record: $0.text(1)), $0.integer(2)) }
    }

    /// Whether a record's last operation without a verdict is one that the server has lost; `nil` where it has none.
    static func isLastOpenReplayed(_ db: Database, _ name: RecordName, _ scope: Scope) throws -> Bool? {
        try Query(
            db,
            """
            SELECT \(isReplay) FROM tidemark_operation
            WHERE entity = ?1 AND record = ?2 AND scope = ?3 AND \(isOpen) ORDER BY id DESC LIMIT 1
            """
        ).first(db, [.text(name.entity), .text(name.record), .text(scope.name)]) { $0.integer(0) == 1 }
    }

    static func countOpen(_ db: Database) throws -> Int {
        try Query.count(db, "SELECT count(*) FROM tidemark_operation WHERE \(isOpen)")
    }

    /// The operations of a scope without a verdict behind one of them, counted up to a limit, and when the first of
    /// them was made, in milliseconds since 1970.
    static func open(
        _ db: Database, _ scope: Scope, behind id: Int64, limit: Int
    ) throws -> (count: Int64, since: Int64?) {
        try Query(
            db,
            """
            SELECT count(*), min(since) FROM (
                SELECT coalesce(edited_at, sealed_at) AS since FROM tidemark_operation
                WHERE scope = ?1 AND id > ?2 AND \(isOpen) ORDER BY id LIMIT \(limit))
            """
        ).first(db, [.text(scope.name), .integer(id)]) { ($0.integer(0), $0.optionalInteger(1)) } ?? (0, nil)
    }

    /// When the oldest edit without a verdict was made, in milliseconds since 1970.
    static func oldestOpen(_ db: Database) throws -> Int64? {
        try Query(db, "SELECT min(coalesce(edited_at, sealed_at)) FROM tidemark_operation WHERE \(isOpen)")
            .first(db) { $0.optionalInteger(0) } ?? nil
    }

    /// Whether a scope has operations without a verdict, or that the server refused.
    static func hasOpenOrRefused(_ db: Database, _ scope: Scope) throws -> Bool {
        if try hasOpen(db, scope) { return true }
        return try Query(
            db, "SELECT 1 FROM tidemark_operation WHERE \(isRejected) AND lane IS NOT NULL AND scope = ?1 LIMIT 1"
        ).first(db, [.text(scope.name)]) { _ in true } != nil
    }
}

// MARK: - Refused

extension Outbox {
    static func hasRefusals(_ db: Database) throws -> Bool {
        try Query(db, "SELECT 1 FROM tidemark_operation WHERE \(isRejected) LIMIT 1").first(db) { _ in true }
            ?? false
    }

    static func hasRefusedInserts(_ db: Database) throws -> Bool {
        try Query(db, "SELECT 1 FROM tidemark_operation WHERE \(isRejected) AND is_insert LIMIT 1")
            .first(db) { _ in true } ?? false
    }

    static func countRejected(_ db: Database) throws -> Int {
        try Query.count(db, "SELECT count(*) FROM tidemark_operation WHERE \(isRejected)")
    }

    /// The refused operations of a scope, counted up to a limit.
    static func countRejected(_ db: Database, _ scope: Scope, limit: Int) throws -> Int64 {
        try Query(
            db,
            """
            SELECT count(*) FROM (
                SELECT 1 FROM tidemark_operation WHERE scope = ?1 AND \(isRejected) LIMIT \(limit))
            """
        ).first(db, [.text(scope.name)]) { $0.integer(0) } ?? 0
    }

    /// Edits of rows that cannot travel: the rows are counted as such, and the server was never asked.
    static func countUnsendable(_ db: Database) throws -> Int {
        let isLocal = "\(isRejected) AND lane IS NULL AND code = \(literal(RejectionCode.unsendableValue))"
        return try Query.count(db, "SELECT count(*) FROM tidemark_operation WHERE \(isLocal) AND kind <> 'delete'")
    }

    /// Whether a record's refused insert was refused by this device itself; `nil` where none was refused.
    static func isRefusedInsertLocal(_ db: Database, _ name: RecordName) throws -> Bool? {
        let isLocal =
            try Query(
                db,
                """
                SELECT max(lane IS NULL) FROM tidemark_operation
                WHERE entity = ?1 AND record = ?2 AND \(isRejected) AND is_insert
                """
            ).first(db, [.text(name.entity), .text(name.record)]) { $0.optionalInteger(0) } ?? nil
        return isLocal.map { $0 == 1 }
    }

    /// The refused operations of a record that are older than one of its operations.
    static func refusals(
        _ db: Database, before entry: OutboxEntry
    ) throws -> [(id: Int64, isInsert: Bool, members: [UInt8])] {
        try Query(
            db,
            """
            SELECT id, is_insert, \(Outbox.contentSQL) FROM tidemark_operation
            WHERE entity = ?1 AND record = ?2 AND \(isRejected) AND id < ?3
            """
        ).rows(db, [.text(entry.entity), .text(entry.record), .integer(entry.id)]) {
            (id: $0.integer(0), isInsert: $0.integer(1) != 0, members: $0.blob(2))
        }
    }

    /// The records whose edits this device refused to send, one scope's or (`nil`) every scope's.
    static func localRefusals(_ db: Database, entity: String, in scope: Scope? = nil) throws -> [String] {
        try Query(
            db,
            """
            SELECT record FROM tidemark_operation
            WHERE entity = ?1 AND scope = coalesce(?2, scope) AND \(isRejected) AND lane IS NULL
            """
        ).rows(db, [.text(entity), .optional(scope?.name)]) { $0.text(0) }
    }

    /// How many deletes were refused for one reason.
    static func refusedDeletes(_ db: Database, entity: String, code: String) throws -> Int {
        try Query(
            db,
            """
            SELECT count(*) FROM tidemark_operation
            WHERE entity = ?1 AND \(isRejected) AND kind = 'delete' AND code = ?2
            """
        ).first(db, [.text(entity), .text(code)]) { Int($0.integer(0)) } ?? 0
    }

    /// The code of a record's last operation, whatever became of it.
    static func lastCode(_ db: Database, entity: String, record: String) throws -> String? {
        try Query(db, "SELECT code FROM tidemark_operation WHERE entity = ?1 AND record = ?2 ORDER BY id DESC LIMIT 1")
            .first(db, [.text(entity), .text(record)]) { $0.optionalText(0) } ?? nil
    }

    /// All refused operations, oldest first.
    static func rejected<T>(_ db: Database, _ columns: String, _ read: (Query) throws -> T) throws -> [T] {
        try Query(db, "SELECT \(columns) FROM tidemark_operation WHERE \(isRejected) ORDER BY id")
            .rows(db, [], read)
    }

    /// Whether a refused operation never left this device, and its record; `nil` where it is not refused any more.
    static func rejected(_ db: Database, id: Int64) throws -> (isLocal: Bool, record: String)? {
        try Query(db, "SELECT lane IS NULL, record FROM tidemark_operation WHERE id = ?1 AND \(isRejected)")
            .first(db, [.integer(id)]) { ($0.integer(0) == 1, $0.text(1)) }
    }

    /// Removes an operation that was kept for a decision.
    static func removeUndecided(_ db: Database, id: Int64) throws {
        try Query(db, "DELETE FROM tidemark_operation WHERE id = ?1 AND \(isUndecided)")
            .execute([.integer(id)])
    }
}

// MARK: - One record's, one operation's

extension Outbox {
    static func all(_ db: Database, entity: String, record: String) throws -> [Int64] {
        try Query(db, "SELECT id FROM tidemark_operation WHERE entity = ?1 AND record = ?2")
            .rows(db, [.text(entity), .text(record)]) { $0.integer(0) }
    }

    /// Whether a record has operations that the server had not taken at a version: without a verdict, or taken later.
    static func hasLater(
        _ db: Database, entity: String, record: String, _ scope: Scope, than version: Version
    ) throws -> Bool {
        try Query(
            db,
            """
            SELECT 1 FROM tidemark_operation
            WHERE entity = ?1 AND record = ?2 AND (\(isOpen) OR scope = ?4 AND version > ?3) LIMIT 1
            """
        ).first(db, [.text(entity), .text(record), .integer(version), .text(scope.name)]) { _ in true } ?? false
    }

    /// The version that an operation was taken at.
    static func version(_ db: Database, id: Int64) throws -> Version? {
        try Query(db, "SELECT version FROM tidemark_operation WHERE id = ?1")
            .first(db, [.integer(id)]) { $0.optionalInteger(0) } ?? nil
    }

    static func editedAt(_ db: Database, _ entry: OutboxEntry) throws -> Int64? {
        try Query(db, "SELECT edited_at FROM tidemark_operation WHERE id = ?1")
            .first(db, [.integer(entry.id)]) { $0.optionalInteger(0) } ?? nil
    }

    /// Records whose operations name another one by its temporary id.
    static func referring(
        _ db: Database, to temporary: RecordID, of entity: String
    ) throws -> [(entity: String, record: String)] {
        try Query(
            db,
            """
            SELECT DISTINCT o.entity, o.record FROM tidemark_ref AS r JOIN tidemark_operation AS o ON o.id = r.operation
            WHERE r.entity = ?1 AND r.temporary = ?2
            """
        ).rows(db, [.text(entity), .text(temporary.text)]) { (entity: $0.text(0), record: $0.text(1)) }
    }

    /// The operations that name a record by its temporary id.
    static func operations(_ db: Database, naming temporary: RecordID, of entity: String) throws -> [Int64] {
        try Query(db, "SELECT operation FROM tidemark_ref WHERE entity = ?1 AND temporary = ?2")
            .rows(db, [.text(entity), .text(temporary.text)]) { $0.integer(0) }
    }

    /// Notes that an operation names a record by its temporary id.
    static func noteReference(
        _ db: Database, to temporary: RecordID, of entity: String, in operation: Int64
    ) throws {
        try Query(
            db, "INSERT OR IGNORE INTO tidemark_ref(entity, temporary, operation) VALUES (?1, ?2, ?3)"
        ).execute([.text(entity), .text(temporary.text), .integer(operation)])
    }

    /// Notes what an operation means with the ids that are known by now, beside what was sealed.
    static func resolve(_ db: Database, _ entry: OutboxEntry, _ operation: Operation) throws {
        try Query(db, "UPDATE tidemark_operation SET resolved = ?2, record = ?3 WHERE id = ?1").execute([
            .integer(entry.id), .blob(operation.sealedMembers()),
            .text((operation.id ?? operation.tempID)?.text ?? entry.record),
        ])
    }

    static func remove(_ db: Database, id: Int64) throws {
        try Query(db, "DELETE FROM tidemark_operation WHERE id = ?1").execute([.integer(id)])
    }
}
