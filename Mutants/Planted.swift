import GRDB
import TidemarkWire

/// What planted bugs do on a device, where it is more than a line.
enum Planted {
    /// All that is to be sent is forgotten.
    static func clearOutbox(_ db: Database, _ scope: Scope, _ schema: SyncSchema) throws {
        try Query(db, "DELETE FROM tidemark_operation WHERE scope = ?1 AND finished_at IS NULL")
            .execute([.text(scope.name)])
        for shape in schema.shapes(in: scope) { try Query(db, "DELETE FROM \(shape.shadowSQL)").execute() }
    }

    static func drop(_ db: Database, _ entry: OutboxEntry) {
        try? Query(db, "DELETE FROM tidemark_operation WHERE id = ?1").execute([.integer(entry.id)])
    }

    /// Per lane all numbers that were given out, answered or not.
    static func allNumbers(_ db: Database, _ scope: Scope) throws -> [String: Int64] {
        let lanes = try Query(
            db, "SELECT id, next_number - 1 FROM tidemark_lane WHERE scope = ?1 AND next_number - 1 > told"
        ).rows(db, [.text(scope.name)]) { ($0.text(0), $0.integer(1)) }
        return Dictionary(lanes, uniquingKeysWith: max)
    }

    /// An insert that may have been sent, and the delete of its row, are taken for nothing at all.
    static func coalesce(_ db: Database, _ scope: Scope, _ schema: SyncSchema) throws {
        for entry in try Outbox.open(db, scope: scope, limit: .max) where try entry.operation().isInsert {
            guard let (table, key) = record(of: entry, schema), try table.row(db, key) == nil else { continue }
            drop(db, entry)
            try table.dropShadow(db, key)
        }
    }

    /// Sealed operations take in what was edited since.
    static func rewrite(_ db: Database, _ scope: Scope, _ schema: SyncSchema) throws {
        for entry in try Outbox.open(db, scope: scope, limit: .max) where entry.content == nil {
            var operation = try entry.sealedOperation()
            guard operation.setsFields, let (table, key) = record(of: entry, schema),
                let row = try table.row(db, key)
            else { continue }
            var fields = DataObject.Builder(capacity: 128)
            for (index, column) in table.shape.data.enumerated()
            where operation.fields.value(column.name) != nil && row[index].isSendable {
                fields.append(name: column.wireName) { $0.cell(row[index]) }
            }
            operation.fields = fields.finish()
            try Query(db, "UPDATE tidemark_operation SET members = ?2 WHERE id = ?1")
                .execute([.integer(entry.id), .blob(operation.sealedMembers())])
        }
    }

    /// What was sealed and has no answer yet is as if it had never been sealed.
    static func unseal(_ db: Database, _ scope: Scope, _ schema: SyncSchema) throws {
        for entry in try Outbox.open(db, scope: scope, limit: .max) {
            drop(db, entry)
            guard let (table, key) = record(of: entry, schema) else { continue }
            try table.mark(db, key)
        }
    }

    /// The same lane at every opening.
    static func lane(of client: String, _ scope: Scope) -> String {
        var lane = ""
        for salt in ["a", "b"] {
            var hash: UInt64 = 0xcbf2_9ce4_8422_2325
            for byte in (salt + client + scope.name).utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
            let digits = String(hash, radix: 16)
            lane += String(repeating: "0", count: 16 - digits.utf8.count) + digits
        }
        return lane
    }

    /// An answer that takes all that was sent.
    static func applied(_ keys: Set<OperationKey>) throws -> Answer {
        var writer = JSONWriter(capacity: 256)
        writer.raw("{\"results\":[")
        // In the same order in every process.
        for (index, key) in keys.sorted(by: { ($0.lane, $0.number) < ($1.lane, $1.number) }).enumerated() {
            writer.raw(index == 0 ? "{\"lane\":" : ",{\"lane\":")
            writer.string(key.lane)
            writer.member("number", key.number)
            writer.raw(",")
            writer.raw(Verdict(.applied, version: 0).members())
            writer.raw("}")
        }
        writer.raw("]}")
        return try Answer(body: writer.bytes)
    }

    /// The checkpoint of a page whose rows are not here yet.
    static func storeCheckpoint(_ db: Database, _ transaction: ApplyTransaction) throws {
        var record = try ScopeRecord.read(db, transaction.scope)
        guard let page = transaction.answer.page, record.checkpoint == transaction.since, record.bootstrap == nil,
            page.scope == transaction.scope.name, page.since == transaction.since
        else { return }
        record.checkpoint = page.nextSince
        record.isScanning = page.hasMore
        record.head = max(page.head, record.head ?? 0)
        if !page.hasMore { record.complete = max(page.head, record.complete ?? 0) }
        try record.write(db)
    }

    private static func record(of entry: OutboxEntry, _ schema: SyncSchema) -> (RecordTable, [Cell])? {
        guard let shape = schema[entry.entity], let key = RecordID(entry.record).flatMap({ shape.key(of: $0) })
        else { return nil }
        return (RecordTable(shape), key)
    }
}
