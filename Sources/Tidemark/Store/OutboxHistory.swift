package import GRDB
import TidemarkWire

/// Operations that the server took, compressed in blocks for as long as a server that lost them may need them again
/// (I11). A row of the outbox costs five index entries and its lane, table and column names; in a block it costs what
/// is new in it.
///
/// Nothing here is made from the app's rows, which may be others by then: a block holds the operations as they were
/// sealed. Before any of them is replayed they return to the outbox, with their ids and so in their order.
package enum OutboxHistory {
    static let schema = """
        -- Operations that the server took, in blocks of one lane (OutboxHistory). first, last: their numbers. version:
        -- the highest that one of them was taken at. finished_at: when the last one had its verdict.
        CREATE TABLE tidemark_history(
            id INTEGER PRIMARY KEY, scope TEXT NOT NULL, lane TEXT NOT NULL, first INTEGER NOT NULL,
            last INTEGER NOT NULL, version INTEGER NOT NULL, finished_at INTEGER NOT NULL, operations BLOB NOT NULL);
        CREATE INDEX tidemark_history_version ON tidemark_history(scope, version);
        """

    /// Operations in one block.
    static let blockLimit = 512
    /// Bytes of one block before it is compressed, but for its last operation.
    private static let blockBytes = 256 << 10

    // MARK: Packing

    /// Moves operations of these lanes out of the outbox, in blocks of at least `least`.
    ///
    /// What the outbox is still asked for stays there: operations that name a record by a temporary id, and refused
    /// ones.
    static func pack(_ db: Database, _ scope: Scope, lanes: Set<String>, least: Int) throws {
        for lane in lanes { while try pack(db, scope, lane, least: least) {} }
    }

    /// Returns whether there was enough for a block.
    private static func pack(_ db: Database, _ scope: Scope, _ lane: String, least: Int) throws -> Bool {
        let isPacked = "scope = ?1 AND \(Outbox.isPackable) AND lane = ?2"
        var block = OutboxBlock()
        _ = try Query(
            db,
            """
            SELECT \(OutboxBlock.columns) FROM tidemark_operation WHERE \(isPacked)
            ORDER BY id LIMIT \(blockLimit)
            """
        ).rows(db, [.text(scope.name), .text(lane)]) { row in
            if block.byteCount < blockBytes { block.append(row) }
        }
        guard block.count >= least || block.byteCount >= blockBytes else { return false }
        try Query(
            db,
            """
            INSERT INTO tidemark_history(scope, lane, first, last, version, finished_at, operations)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
            """
        ).execute([
            .text(scope.name), .text(lane), .integer(block.numbers.lowerBound), .integer(block.numbers.upperBound),
            .integer(block.version), .integer(block.finishedAt), .blob(block.compressed()),
        ])
        try Query(db, "DELETE FROM tidemark_operation WHERE \(isPacked) AND id <= ?3")
            .execute([.text(scope.name), .text(lane), .integer(block.lastID)])
        return true
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
        for operation in try OutboxBlock.operations(found.bytes) { try insert.execute(found.place + operation.cells) }
        try Query(db, "DELETE FROM tidemark_history WHERE id = ?1").execute([.integer(id)])
    }

    // MARK: Questions

    /// Operations of a scope that were taken at a version above `base`, oldest first, with their lanes.
    static func taken(
        _ db: Database, _ scope: Scope, after base: Version
    ) throws -> [(lane: String, operation: OutboxBlock.Operation)] {
        let blocks = try Query(
            db, "SELECT lane, operations FROM tidemark_history WHERE scope = ?1 AND version > ?2 ORDER BY id"
        ).rows(db, [.text(scope.name), .integer(base)]) { ($0.text(0), $0.blob(1)) }
        return try blocks.flatMap { lane, bytes in
            try OutboxBlock.operations(bytes).filter { $0.version > base }.map { (lane, $0) }
        }
    }

    static func isAny(_ db: Database, _ scope: Scope) throws -> Bool {
        try Query(db, "SELECT 1 FROM tidemark_history WHERE scope = ?1 LIMIT 1")
            .first(db, [.text(scope.name)]) { _ in true } ?? false
    }

    /// Whether an operation that is not in the outbox may be in a block. The numbers between a block's first and last
    /// that are not in it were refused or are without a verdict: those are in the outbox.
    static func spans(_ db: Database, _ key: OperationKey) throws -> Bool {
        try Query(db, "SELECT 1 FROM tidemark_history WHERE lane = ?1 AND ?2 BETWEEN first AND last LIMIT 1")
            .first(db, [.text(key.lane), .integer(key.number)]) { _ in true } ?? false
    }

    /// Whether a block holds an operation on a record. Every block is read, so that this is for the last question about
    /// a single record.
    static func names(_ db: Database, _ record: RecordName) throws -> Bool {
        let ids = try Query(db, "SELECT id FROM tidemark_history ORDER BY id DESC").rows(db) { $0.integer(0) }
        let block = try Query(db, "SELECT operations FROM tidemark_history WHERE id = ?1")
        return try ids.contains { id in
            let bytes = try block.first(db, [.integer(id)]) { $0.blob(0) } ?? []
            return try OutboxBlock.operations(bytes)
                .contains { $0.entity == record.entity && $0.record == record.record }
        }
    }

    /// All operations in blocks, for who looks at a file from outside: with their fields whole.
    package static func all(
        _ db: Database
    ) throws -> [(entity: String, record: String, isDelete: Bool, members: [UInt8])] {
        let blocks = try Query(db, "SELECT lane, operations FROM tidemark_history ORDER BY id")
            .rows(db) { ($0.text(0), $0.blob(1)) }
        return try blocks.flatMap { lane, bytes in
            try OutboxBlock.operations(bytes).map { operation in
                let entry = operation.entry(lane: lane)
                return (entry.entity, entry.record, entry.isDelete, entry.content ?? entry.members)
            }
        }
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
