import GRDB
import TidemarkWire

/// Writes of one table that were found by comparing it with what this device last had, and are too many to be sent
/// without a question: no trigger saw them being made.
public struct InferredEdits: Hashable, Sendable {
    /// The table's name.
    public var table: String
    /// Rows that are not as this device last had them.
    public var updates: Int
    /// Records whose row is gone.
    public var deletes: Int

    /// Makes a value, for previews and tests.
    public init(table: String, updates: Int, deletes: Int) {
        self.table = table
        self.updates = updates
        self.deletes = deletes
    }
}

extension InferredEdits: CustomStringConvertible {
    /// A sentence for a log: `todo has 3 updates and 1 delete that no trigger saw.`
    public var description: String {
        "\(table) has \(counted(updates, "update")) and \(counted(deletes, "delete")) that no trigger saw."
            .printable
    }
}

extension SyncEngine {
    /// The edits that wait for ``confirmInferredEdits(in:)`` or ``discardInferredEdits(in:)``, by table.
    ///
    /// A table may be rebuilt, restored or written to while its triggers are gone. What was written then is found and
    /// sent by itself, but for more than 100 deletes or 1,000 changed rows of a table, and for a table that came back
    /// empty: these wait, and stay as they were written. A migration that calls ``removeCapture(_:)`` first has said
    /// that it means what it writes.
    ///
    /// - Throws: ``SyncError`` `database_failed` where the file cannot be read.
    public func inferredEdits() async throws -> [InferredEdits] {
        try await file.asked(to: .read) { db in
            guard try LibrarySchema.isInstalled(db) else { return [] }
            let waiting = Dictionary(grouping: try Inferred.awaitingConfirmation(db, entity: nil), by: \.entity)
            return waiting.sorted { $0.key < $1.key }.map { table, entries in
                let deletes = entries.count { $0.kind == .delete }
                return InferredEdits(table: table, updates: entries.count - deletes, deletes: deletes)
            }
        }
    }

    /// Sends what waits: the writes of a table were meant.
    ///
    /// - Parameter table: `nil`: of all tables.
    /// - Throws: ``SyncError`` as ``install()`` does, and `database_failed` where the file cannot be written; nothing
    ///   is confirmed then.
    public func confirmInferredEdits(in table: String? = nil) async throws {
        try await decideInferred(in: table) { db, _, shape, entry in
            guard entry.isCompared else { return try Inferred.letGo(db, entry) }
            if let key = RecordID(entry.record).flatMap({ shape.key(of: $0) }) { try RecordTable(shape).mark(db, key) }
            try Inferred.compared(db, entry, waits: false)
        }
    }

    /// Takes the server's rows instead of what waits: the writes of a table were an accident. A record that was
    /// edited in sight since, and that edit not sent yet, keeps its row: the edit is sent with it. A row that the
    /// server has lost comes back once another device has replayed it. A table that is only pushed stays as it was
    /// written: the server hands out nothing of it.
    ///
    /// - Parameter table: `nil`: of all tables.
    /// - Throws: ``SyncError`` as ``install()`` does, and `database_failed` where the file cannot be written; GRDB's
    ///   `DatabaseError` where the app's schema refuses what a row's return brings about. Nothing is discarded then.
    public func discardInferredEdits(in table: String? = nil) async throws {
        try await decideInferred(in: table) { db, schema, shape, entry in
            try Inferred.compared(db, entry, waits: false)
            guard let id = RecordID(entry.record), let key = shape.key(of: id) else { return }
            let records = RecordTable(shape)
            let shadow = entry.isCompared ? try records.shadow(db, key) : nil
            guard let scope = Scope(entry.scope) else { return }
            guard let shadow, shadow.mark == nil, shadow.isRowKnown else {
                // The server's row is not known here: it is fetched with the next exchange.
                try RefetchQueue.note(db, scope, entry.entity, entry.record)
                // A row that the server did not have is no edit any more. The fetch removes it, and applies `ON DELETE`
                // to its children; an edit in flight keeps it until its verdict.
                guard let shadow, shadow.mark == nil,
                    try Outbox.open(db, entity: entry.entity, record: entry.record, scope: entry.scope).isEmpty
                else { return }
                return try records.forget(db, key, id)
            }
            try records.putBack(db, key, id, shadow, in: scope, schema)
            try records.forget(db, key, id)
        }
    }

    /// Takes the server's rows instead of all that was written unseen, whether it waits for a word or not.
    func discardUnseen() async throws {
        let shapes = await schemaCache.schema?.shapes ?? []
        try await file.asked(to: .write) { db in
            for shape in shapes { try FirstCapture.takeApart(db, shape) }
            try Inferred.requireConfirmation(db)
        }
        try await discardInferredEdits()
    }

    private func decideInferred(
        in table: String?,
        _ decide: @escaping @Sendable (Database, SyncSchema, TableSchema, Inferred.Entry) throws -> Void
    ) async throws {
        try await install()
        guard let schema = await schemaCache.schema else { return }
        try await file.asked(to: .write) { db in
            // Off once for all rows.
            try ConnectionSwitch.foreignKeys.off(db) {
                for entry in try Inferred.awaitingConfirmation(db, entity: table) {
                    guard let shape = schema[entry.entity] else { continue }
                    try decide(db, schema, shape, entry)
                }
            }
            try Marks.announce(db)
        }
        await publishStatus()
    }
}
