import GRDB
import TidemarkWire

/// The one transaction that takes in a page of a snapshot: rows, or their staging, commit together with the place
/// where the next page begins (A6).
struct SnapshotTransaction: Sendable {
    var answer: SnapshotAnswer
    var scope: Scope
    /// The token and cursor that the request named.
    var token: String?
    var cursor: String?
    var schema: SyncSchema
    var declarations: Declarations
    var now: Int64

    /// Runs on the writer, outside any transaction: foreign keys can only be switched there.
    func run(_ db: Database) throws -> Applier.Outcome {
        try ApplyTransaction.withoutForeignKeys(db) {
            try schema.check(db, scope)
            try CaptureSuppression.raise(db)
            let outcome = try applyPage(db)
            try CaptureSuppression.lower(db)
            return outcome
        }
    }

    private func applyPage(_ db: Database) throws -> Applier.Outcome {
        var record = try ScopeRecord.read(db, scope)
        var outcome = Applier.Outcome()
        outcome.hasMore = true
        // Another engine on this file has gone on, has come to the end or has begun anew meanwhile.
        guard !record.isFilled, record.bootstrap?.token == token, record.bootstrap?.cursor == cursor,
            record.bootstrap?.asking == nil
        else { return outcome }
        if token == nil, let known = record.epoch, let epoch = answer.epoch, epoch != known,
            try LossProbe.hasSomethingToLose(db, scope) || !KnownVersions.isEmpty(db, scope)
        {
            // The server took this device's operations in the history of that name; whether they are in this one is not
            // known. Nor can the snapshot's versions be held against those that are remembered.
            try Bootstrap.begin(db, scope, asking: known)
            return outcome
        }
        var bootstrap = record.bootstrap ?? Bootstrap(scope: scope)
        if token == nil { try begin(db, &bootstrap, &record) }
        bootstrap.cursor = answer.cursor
        record.bootstrap = bootstrap
        outcome = try answer.body.withUnsafeBytes { buffer in
            let changes = UnsafeRawBufferPointer(rebasing: buffer[answer.changes])
            if bootstrap.isDirect { return try fill(db, &record, changes) }
            return try Swap(db: db, schema: schema, declarations: declarations, now: now)
                .stagePage(changes, isLast: !answer.hasMore, &record)
        }
        try finish(db, record)
        outcome.hasMore = true
        outcome.pageTaken = true
        outcome.isFilled = !answer.hasMore
        return outcome
    }

    private func begin(_ db: Database, _ bootstrap: inout Bootstrap, _ record: inout ScopeRecord) throws {
        bootstrap.token = answer.token
        bootstrap.version = answer.version
        bootstrap.isDirect = try isEmpty(db)
        if bootstrap.isDirect, record.complete == nil { record.origin = answer.version }
        record.epoch = answer.epoch ?? record.epoch
        record.head = answer.version
        bootstrap.total = answer.records
    }

    /// Whether there is nothing that a snapshot could contradict.
    private func isEmpty(_ db: Database) throws -> Bool {
        guard try KnownVersions.isEmpty(db, scope) else { return false }
        return try schema.shapes(in: scope).allSatisfy { shape in
            try ShadowTable(shape).placesSQL.allSatisfy { table in
                try Query(db, "SELECT 1 FROM \(table) LIMIT 1").first(db) { _ in true } == nil
            } && QuarantinedRow.isEmpty(db, shape.name)
        }
    }

    private func fill(
        _ db: Database, _ record: inout ScopeRecord, _ changes: UnsafeRawBufferPointer
    ) throws -> Applier.Outcome {
        let applier = try Applier(db, schema: schema, record: record, declarations: declarations, now: now)
        // A scan that has outlived its window brings rows as they are now.
        applier.rememberRowsAbove = answer.version
        applier.isFilling = answer.hasMore
        try withoutIdleTriggers(db) { try applier.applyChanges(changes) }
        if answer.hasMore { try applier.resolvePage() } else { try applier.resolveFilling() }
        try applier.finish()
        record.bootstrap?.rows += Int64(applier.outcome.received)
        return applier.outcome
    }

    /// Runs with the connection's triggers off where all of them are the library's, which look away while changes are
    /// applied: SQLite then does without them, which is half the time of a row. Those that note attachments do not look
    /// away. A temporary trigger may stand on any table.
    private func withoutIdleTriggers(_ db: Database, _ body: () throws -> Void) throws {
        let isTemporary = try Query(db, "SELECT 1 FROM sqlite_temp_master WHERE type = 'trigger' LIMIT 1")
            .first(db) { _ in true }
        let isAny = schema.shapes(in: scope).contains {
            $0.hasTriggers || $0.isGuarded || !$0.attachments.isEmpty
        }
        if isAny || isTemporary == true { return try body() }
        try ConnectionSwitch.triggers.off(db, body)
    }

    private func finish(_ db: Database, _ record: ScopeRecord) throws {
        var record = record
        if let next = answer.nextSince, !answer.hasMore {
            record.checkpoint = next
            record.complete = answer.version
            record.origin = nil
            record.isScanning = false
            try KnownVersions.drop(db, scope, upTo: answer.version)
            try Bootstrap.end(db, scope)
        } else {
            try record.bootstrap?.write(db)
        }
        try record.write(db)
        guard !answer.hasMore else { return }
        // Rows that the snapshot does not hold went from the tables that are named, and only from those.
        try Backfills.noteDormant(db, named: Set(schema.shapes.map(\.name)), scopes: [scope])
    }
}
