import Foundation
import GRDB
import TidemarkWire

/// The server's answer to a question for records by name: each as it is at one version, `head`.
struct FetchedRecords: Hashable, Sendable {
    var body: [UInt8]
    var scope = ""
    var since: String?
    /// The name of the server's history.
    var epoch: String?
    /// Where the array of changes stands in the body.
    var changes = 0..<0
    /// Whether the answer was full before all records were in it.
    var hasMore = false
    var head: Version = 0

    init(body: [UInt8]) throws(JSONError) {
        self.body = body
        self = try body.reading { (reader: inout JSONReader) throws(JSONError) -> FetchedRecords in
            try FetchedRecords(body, from: &reader)
        }
    }

    private init(_ body: [UInt8], from reader: inout JSONReader) throws(JSONError) {
        self.body = body
        var scope: String?
        var changes: Range<Int>?
        var head: Version?
        try reader.enterObject()
        while let name = try reader.nextMember() {
            switch reader.string(name) {
            case "scope": scope = try reader.readString()
            case "since": since = try reader.readOptionalString()
            case "epoch": epoch = try reader.readOptionalString()
            case "changes":
                guard reader.peek() == UInt8(ascii: "[") else { throw JSONError(.wrongType, at: reader.index) }
                changes = try reader.skip()
            case "hasMore": hasMore = try reader.readBool()
            case "head": head = try reader.readInteger(in: 0...Int64.max)
            default: try reader.skip()
            }
        }
        try reader.finish()
        guard let scope, let changes, let head else { throw JSONError(.missingMember, at: body.count) }
        (self.scope, self.changes, self.head) = (scope, changes, head)
    }

    /// Visits the changes where they stand.
    ///
    /// - Parameter visit: a change, the reader behind it, and the change's bytes.
    func visitAll(_ visit: (IncomingChange, JSONReader, Int) throws -> Void) throws {
        try body.withUnsafeBytes { buffer in
            var reader = JSONReader(UnsafeRawBufferPointer(rebasing: buffer[changes]))
            try reader.enterArray()
            while try reader.nextElement() {
                let start = reader.index
                guard let change = try IncomingChange.read(from: &reader) else { continue }
                try visit(change, reader, reader.index - start)
            }
        }
    }

    /// The records that the answer speaks of, their tables spelled as in this file.
    func names(_ schema: SyncSchema) throws -> Set<RefetchQueue.Record> {
        var names: Set<RefetchQueue.Record> = []
        try visitAll { change, reader, _ in
            guard let id = RecordID(reader.string(change.id)) else { return }
            let entity = reader.string(change.entity)
            names.insert(RefetchQueue.Record(entity: schema[entity]?.name ?? entity, id: id))
        }
        return names
    }
}

/// The one transaction that takes in records fetched by name. The checkpoint stays where it is: rows above it are
/// remembered as ahead of it.
struct FetchTransaction: Sendable {
    var fetched: FetchedRecords
    var scope: Scope
    var schema: SyncSchema
    var declarations: Declarations
    var now: Int64
    /// Why the records are fetched, where a comparison found that they differ.
    var repair: RecordRepair?
    /// The rows that the same repair has found unsent: they wait to be compared, and stay whatever is taken in.
    var unsent: Set<RefetchQueue.Record> = []

    /// Runs on the writer, outside any transaction.
    func run(_ db: Database) throws -> Applier.Outcome {
        try ApplyTransaction.withoutForeignKeys(db) {
            guard schema.schemaVersion == (try SyncSchema.version(db)) else {
                throw SyncError(
                    .databaseFailed, "The app's schema changed during the request.",
                    hint: "It is tried again by itself.", scope: scope)
            }
            // A row that was written unseen would be written over.
            guard try !Inferred.isAny(db, scope, besides: unsent) else { return Applier.Outcome() }
            let record = try ScopeRecord.read(db, scope)
            let applier = try Applier(db, schema: schema, record: record, declarations: declarations, now: now)
            applier.repair = repair
            try CaptureSuppression.whileApplying(db, schema) { try applier.applyFetched(fetched) }
            return applier.outcome
        }
    }
}

extension Applier {
    /// Takes in records as the server has them at `head`. An answer that is older than what is here changes nothing,
    /// and `outcome.pageTaken` stays false.
    func applyFetched(_ fetched: FetchedRecords) throws {
        guard fetched.scope == scope.name, fetched.since == record.checkpoint, record.bootstrap == nil,
            fetched.head >= record.base
        else { return }
        if let epoch = fetched.epoch { try goOn(in: epoch) }
        try record.write(db)
        guard record.bootstrap == nil else { return }
        try fetched.visitAll { change, reader, bytes in
            outcome.received += 1
            outcome.bytes.add(change, in: reader, bytes: bytes)
            let entity = reader.string(change.entity)
            guard change.kind != .unknown, let table = tables[entity] else {
                outcome.skipped += 1
                return
            }
            guard let id = RecordID(reader.string(change.id)), let key = table.shape.key(of: id) else {
                return try takeMisfit(change, table, reader)
            }
            try applyFetchedChange(change, table, id, key, asOf: fetched.head, reader)
        }
        for name in try fetched.names(schema) { try RefetchQueue.remove(db, scope, name.entity, name.id.text) }
        try resolveUniqueValues()
        try finish()
        outcome.pageTaken = true
    }

    private func applyFetchedChange(
        _ change: IncomingChange, _ table: ApplyTable, _ id: RecordID, _ key: [Cell], asOf head: Version,
        _ reader: JSONReader
    ) throws {
        let known = try KnownVersions.version(db, scope, table.shape.name, id.text) ?? -1
        try overlayReplayed(table, id, key)
        let shadow = try ownShadow(table, key)
        // A verdict or page that came meanwhile knows the record better than this answer.
        guard max(known, shadow?.version ?? -1) <= head else { return }
        manifest.look(table.shape.name, id)
        if repair == .keepingLocal, shadow == nil, try keepsLocal(change, table, id, key, reader) { return }
        let incoming = change.kind == .upsert ? try table.cells(change, reader) : nil
        if change.version > max(record.base, known) {
            if change.kind == .delete, let base = change.base {
                try noteLostEdits(table, id.text, unseenSince: base, version: change.version)
            }
            try KnownVersions.note(db, scope, table.shape.name, id.text, change.version, deleted: incoming == nil)
        }
        if incoming == nil, !change.isMove, shadow?.isGone != true {
            try noteUntoldEdits(table, id.text, version: change.version)
        }
        if try quarantineForOtherScope(table, id, key, version: change.version, incoming: incoming) {
            outcome.applied += 1
            return
        }
        if incoming == nil, !change.isMove { try keepDeleted(table, id, key) }
        // Only a delete cascades: a record that is merely absent may never have been known here.
        if change.kind == .delete, !change.isMove { try noteTombstone(table, id, key, version: change.version) }
        if let shadow {
            try rebase(table, id, key, shadow, version: change.version, known: known, incoming: incoming)
        } else {
            try applyServerRow(table, id, key, version: change.version, incoming: incoming)
        }
        outcome.applied += 1
        if repair != nil { try noteUnrepaired(table, id, key, incoming) }
    }
}

extension Applier {
    /// A repair never takes away what may be unsent. A row that the server does not know is noted as an insert, and
    /// stays: `true`. A row that the server has otherwise gives way, and is listed as a conflict that can be undone.
    private func keepsLocal(
        _ change: IncomingChange, _ table: ApplyTable, _ id: RecordID, _ key: [Cell], _ reader: JSONReader
    ) throws -> Bool {
        let shape = table.shape
        guard let row = try table.records.row(db, key), shape.scope(ofKey: key, row) == scope else { return false }
        guard change.kind == .upsert else {
            guard change.kind == .absent else { return false }
            let made = Inferred.Entry(
                scope: scope.name, entity: shape.name, record: id.text, kind: .insert, hash: nil,
                awaitsConfirmation: false)
            try Inferred.note(db, [made])
            outcome.unsent.append(RefetchQueue.Record(entity: shape.name, id: id))
            return true
        }
        let fields = try table.cells(change, reader).sorted { $0.key < $1.key }.filter { $1 != row[$0] }.map {
            index, cell in
            Conflict.Field(
                name: shape.data[index].name, mine: row[index].value, theirs: cell.value, result: cell.value)
        }
        guard !fields.isEmpty else { return false }
        var conflict = Conflict(
            id: 0, scope: scope, entity: shape.name, record: id.text, rule: .repair, fields: fields,
            noticedAt: Date(milliseconds: now))
        conflict.version = change.version
        conflict.whole = shape.values(row)
        try Conflicts.add(db, conflict)
        return false
    }

    /// Says which column still differs from what the server has, without its value.
    private func noteUnrepaired(_ table: ApplyTable, _ id: RecordID, _ key: [Cell], _ incoming: [Int: Cell]?) throws {
        guard let incoming, let row = try table.records.serverRow(db, id, in: scope) else { return }
        guard let index = incoming.keys.sorted().first(where: { row[$0] != incoming[$0] }) else { return }
        let column = table.shape.data[index]
        outcome.unrepaired[RefetchQueue.Record(entity: table.shape.name, id: id)] =
            "Column '\(column.name)' does not keep the server's value as it is: its type here has "
            + "\(column.affinity.standardType) affinity, or a trigger changes it."
    }
}

extension EntityBytes {
    /// Counts an answer that tells of records by name.
    init(_ fetched: FetchedRecords) throws {
        self.init()
        try fetched.visitAll { change, reader, bytes in add(change, in: reader, bytes: bytes) }
    }
}
