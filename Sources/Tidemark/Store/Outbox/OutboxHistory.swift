package import GRDB
import TidemarkWire

/// Operations that the server took, compressed in blocks for as long as a server that lost them may need them again
/// (I11). A row of the outbox costs four index entries and its lane, table and column names; in a block it costs what
/// is new in it.
///
/// Nothing here is made from the app's rows, which may be others by then: a block holds the operations as they were
/// sealed. Before any of them is replayed they return to the outbox, with their ids and so in their order. Of a block
/// that is damaged, what cannot be read counts as forgotten, as it is after a week.
package enum OutboxHistory {
    /// Operations in one block, at most.
    static let blockLimit = 1000
    /// Bytes of one block before it is compressed, but for its last operation.
    private static let blockBytes = 512 << 10

    // MARK: Packing

    /// Operations of a lane that no opening of the file numbers in any more: fewer stay where they are.
    private static let leastOfOldLane = 8

    /// Moves operations of these lanes out of the outbox, in blocks. Fewer than `least` stay; a block may hold fewer,
    /// where its bytes end it.
    ///
    /// Operations stay in the outbox where it is still asked for them: those without a verdict, refused ones, and those
    /// that name a record by a temporary id.
    static func pack(_ db: Database, _ scope: Scope, lanes: Set<String>, least: Int) throws {
        var isFirst = true
        for lane in lanes { while try pack(db, scope, lane, least: least, isFirst: isFirst) { isFirst = false } }
    }

    /// The same for all other lanes of the scope: those of earlier openings of the file.
    static func packOthers(_ db: Database, _ scope: Scope, than lanes: Set<String>, least: Int) throws {
        let least = min(least, leastOfOldLane)
        let old = try Query(
            db,
            """
            SELECT lane FROM tidemark_operation WHERE scope = ?1 AND \(Outbox.isPackable)
            GROUP BY lane HAVING count(*) >= ?2
            """
        ).rows(db, [.text(scope.name), .integer(Int64(least))]) { $0.text(0) }
        try pack(db, scope, lanes: Set(old).subtracting(lanes), least: least)
    }

    /// Returns whether there was enough for a block.
    private static func pack(
        _ db: Database, _ scope: Scope, _ lane: String, least: Int, isFirst: Bool
    ) throws -> Bool {
        let isPacked = """
            scope = ?1 AND \(Outbox.isPackable) AND lane = ?2 AND id NOT IN (SELECT operation FROM tidemark_ref)
            """
        var block = OutboxBlock()
        _ = try Query(
            db,
            """
            SELECT \(OutboxBlock.columns) FROM tidemark_operation WHERE \(isPacked)
            ORDER BY id LIMIT \(blockLimit)
            """
        ).rows(db, [.text(scope.name), .text(lane)]) { row in
            if block.byteCount < blockBytes { block.append(OutboxBlock.operation(row)) }
        }
        guard block.count > 0, block.count >= least || block.byteCount >= blockBytes else { return false }
        if isFirst { try dropDeferred(db, scope) }
        try keep(block, db, scope, lane)
        try Query(db, "DELETE FROM tidemark_operation WHERE \(isPacked) AND id <= ?3")
            .execute([.text(scope.name), .text(lane), .integer(block.lastID)])
        return true
    }

    private static func keep(_ block: OutboxBlock, _ db: Database, _ scope: Scope, _ lane: String) throws {
        try Query(
            db,
            """
            INSERT INTO tidemark_history(scope, lane, first, last, newest, version, finished_at, operations)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
            """
        ).execute([
            .text(scope.name), .text(lane), .integer(block.numbers.lowerBound), .integer(block.numbers.upperBound),
            .integer(block.lastID), .integer(block.version), .integer(block.finishedAt), .blob(block.compressed()),
        ])
    }

    /// Drops deferred operations whose record has a later one that was taken: they only tell how an edit is sealed the
    /// next time (`Outbox.lastCode`), and it was.
    private static func dropDeferred(_ db: Database, _ scope: Scope) throws {
        try Query(
            db,
            """
            DELETE FROM tidemark_operation AS old WHERE scope = ?1 AND \(Outbox.isFinished) AND \(Outbox.isDeferred)
              AND EXISTS (SELECT 1 FROM tidemark_operation WHERE entity = old.entity
                AND record = old.record AND id > old.id AND \(Outbox.isTaken))
            """
        ).execute([.text(scope.name)])
    }

    // MARK: Packing at once

    /// Whether operations may go into blocks as their verdicts come: no row of the outbox is deferred, which a taken
    /// one behind it would take along (`dropDeferred`), and none names a temporary id.
    static func mayPackAtOnce(_ db: Database, _ scope: Scope) throws -> Bool {
        try Query(
            db,
            """
            SELECT 1 FROM tidemark_operation
            WHERE scope = ?1 AND \(Outbox.isFinished) AND \(Outbox.isDeferred) LIMIT 1
            """
        ).first(db, [.text(scope.name)]) { _ in true } == nil
            && Query(db, "SELECT 1 FROM tidemark_ref LIMIT 1").first(db) { _ in true } == nil
    }

    /// Moves operations of one lane out of the outbox, where they stand without a verdict.
    static func pack(_ db: Database, _ scope: Scope, _ lane: String, _ taken: [OutboxBlock.Operation]) throws {
        var block = OutboxBlock()
        for operation in taken.sorted(by: { $0.id < $1.id }) {
            block.append(operation)
            guard block.count == blockLimit || block.byteCount >= blockBytes else { continue }
            try keep(block, db, scope, lane)
            block = OutboxBlock()
        }
        if block.count > 0 { try keep(block, db, scope, lane) }
        try remove(db, taken.map(\.id))
    }

    /// Whole runs of ids at once.
    private static func remove(_ db: Database, _ ids: [Int64]) throws {
        let remove = try Query(db, "DELETE FROM tidemark_operation WHERE id BETWEEN ?1 AND ?2")
        var rest = ids.sorted()[...]
        while let first = rest.popFirst() {
            var last = first
            while rest.first == last + 1 { last = rest.removeFirst() }
            try remove.execute([.integer(first), .integer(last)])
        }
    }

    // MARK: Unpacking

    /// Returns to the outbox what a server may have lost: the blocks with a number above its mark of their lane.
    static func restore(_ db: Database, _ scope: Scope, above marks: [String: Int64]) throws {
        let blocks = try Query(db, "SELECT id, lane, last FROM tidemark_history WHERE scope = ?1")
            .rows(db, [.text(scope.name)]) { (id: $0.integer(0), lane: $0.text(1), last: $0.integer(2)) }
        for block in blocks where block.last > marks[block.lane] ?? 0 { try restore(db, block: block.id) }
    }

    /// Returns everything to the outbox, before a change that concerns all operations of a table.
    static func restoreAll(_ db: Database) throws {
        let blocks = try Query(db, "SELECT id FROM tidemark_history").rows(db) { $0.integer(0) }
        for block in blocks { try restore(db, block: block) }
    }

    private static func restore(_ db: Database, block id: Int64) throws {
        let found = try Query(db, "SELECT scope, lane, operations FROM tidemark_history WHERE id = ?1")
            .first(db, [.integer(id)]) { (place: $0.cells(0..<2), bytes: $0.blob(2)) }
        guard let found else { return }
        let insert = try Query(db, OutboxBlock.insertion)
        for operation in OutboxBlock.operations(found.bytes) { try insert.execute(found.place + operation.cells) }
        try Query(db, "DELETE FROM tidemark_history WHERE id = ?1").execute([.integer(id)])
    }

    // MARK: Questions

    static func isAny(_ db: Database, _ scope: Scope) throws -> Bool {
        try Query(db, "SELECT 1 FROM tidemark_history WHERE scope = ?1 LIMIT 1")
            .first(db, [.text(scope.name)]) { _ in true } ?? false
    }

    static func contains(_ db: Database, _ key: OperationKey) throws -> Bool {
        try Query(db, "SELECT operations FROM tidemark_history WHERE lane = ?1 AND ?2 BETWEEN first AND last")
            .rows(db, [.text(key.lane), .integer(key.number)]) { $0.blob(0) }
            .contains { OutboxBlock.operations($0).contains { $0.number == key.number } }
    }

    /// Whether a block holds an operation on a record. Every block is read, so that this is for the last question about
    /// a single record.
    static func names(_ db: Database, _ record: RecordName) throws -> Bool {
        let ids = try Query(db, "SELECT id FROM tidemark_history ORDER BY id DESC").rows(db) { $0.integer(0) }
        let block = try Query(db, "SELECT operations FROM tidemark_history WHERE id = ?1")
        return try ids.contains { id in
            let bytes = try block.first(db, [.integer(id)]) { $0.blob(0) } ?? []
            return OutboxBlock.operations(bytes).contains { $0.name == record }
        }
    }

    /// The blocks of a scope whose newest version lies above `base`, and not above `newest`; oldest first.
    static func blocks(
        _ db: Database, _ scope: Scope, after base: Version, upTo newest: Version
    ) throws -> [(id: Int64, bytes: [UInt8])] {
        try Query(
            db,
            """
            SELECT id, operations FROM tidemark_history WHERE scope = ?1 AND version > ?2 AND version <= ?3
            ORDER BY id
            """
        ).rows(db, [.text(scope.name), .integer(base), .integer(newest)]) { ($0.integer(0), $0.blob(1)) }
    }

    static func block(_ db: Database, _ id: Int64) throws -> (lane: String, bytes: [UInt8])? {
        try Query(db, "SELECT lane, operations FROM tidemark_history WHERE id = ?1")
            .first(db, [.integer(id)]) { ($0.text(0), $0.blob(1)) }
    }

    /// All operations in blocks, with their fields whole, for tools that look at a file from outside.
    package static func all(
        _ db: Database
    ) throws -> [(entity: String, record: String, isDelete: Bool, members: [UInt8])] {
        let blocks = try Query(db, "SELECT lane, operations FROM tidemark_history ORDER BY id")
            .rows(db) { ($0.text(0), $0.blob(1)) }
        return blocks.flatMap { lane, bytes in
            OutboxBlock.operations(bytes).map { operation in
                let entry = operation.entry(lane: lane)
                return (entry.entity, entry.record, entry.isDelete, entry.content ?? entry.members)
            }
        }
    }

    /// How many operations the file holds without a verdict and with one, in blocks and outside, for tools that look
    /// at a file from outside.
    package static func counts(_ db: Database) throws -> (open: Int, answered: Int) {
        let packed = try Query.count(db, "SELECT coalesce(sum(last - first + 1), 0) FROM tidemark_history")
        let answered = try Query.count(db, "SELECT count(*) FROM tidemark_operation WHERE finished_at IS NOT NULL")
        return (try Outbox.countOpen(db), answered + packed)
    }

    // MARK: Removing

    static func clear(_ db: Database, _ scope: Scope) throws {
        try Query(db, "DELETE FROM tidemark_history WHERE scope = ?1").execute([.text(scope.name)])
    }

    static func prune(_ db: Database, _ scope: Scope, before: Int64) throws {
        try Query(db, "DELETE FROM tidemark_history WHERE scope = ?1 AND finished_at < ?2")
            .execute([.text(scope.name), .integer(before)])
    }
}
