import GRDB
import TidemarkCore
import TidemarkWire

/// The question for a backfill's next page, and what must still hold when the answer comes.
struct BackfillRequest: Sendable {
    var backfill: Backfill
    /// Where the scope stood when the page was asked for.
    var since: String?
    var schema: SyncSchema
    var declarations: Declarations
    var request: TransportRequest

    init(_ backfill: Backfill, since: String?, schema: SyncSchema, declarations: Declarations, pageLimit: Int) {
        self.backfill = backfill
        self.since = backfill.token == nil ? since : backfill.since
        self.schema = schema
        self.declarations = declarations
        var query: [TransportRequest.QueryItem] = [
            .init("scope", backfill.scope.name), .init("entity", backfill.entity),
        ]
        if let fields = Self.list(backfill.fields ?? []) { query.append(.init("fields", fields)) }
        if let token = backfill.token { query.append(.init("snapshotToken", token)) }
        if let cursor = backfill.cursor { query.append(.init("pageCursor", cursor)) }
        query.append(.init("limit", String(pageLimit)))
        request = TransportRequest(
            path: "/sync/snapshot", query: query, headers: TransportRequest.headers(clientID: schema.clientID))
    }

    /// Names as the address takes them; `nil` where it does not take them, and whole rows are asked for instead.
    private static func list(_ fields: [String]) -> String? {
        guard !fields.isEmpty, fields.count <= Limits.selectedFields, !fields.contains(where: { $0.contains(",") })
        else { return nil }
        return fields.joined(separator: ",")
    }

    func answer(_ response: TransportResponse) throws -> SnapshotAnswer {
        try SnapshotAnswer(response, scope: backfill.scope, token: backfill.token, isWhole: false)
    }

    func transaction(_ answer: SnapshotAnswer, now: Int64) -> BackfillTransaction {
        BackfillTransaction(
            answer: answer, backfill: backfill, since: since, schema: schema, declarations: declarations, now: now)
    }
}

/// The one transaction that takes in a page of a backfill, and the place where the next one begins.
struct BackfillTransaction: Sendable {
    var answer: SnapshotAnswer
    var backfill: Backfill
    var since: String?
    var schema: SyncSchema
    var declarations: Declarations
    var now: Int64

    /// Runs on the writer, outside any transaction: foreign keys can only be switched there.
    func run(_ db: Database) throws -> Applier.Outcome {
        try ApplyTransaction.withoutForeignKeys(db) {
            try schema.check(db, backfill.scope)
            try CaptureSuppression.raise(db)
            let outcome = try applyPage(db)
            try CaptureSuppression.lower(db)
            return outcome
        }
    }

    private func applyPage(_ db: Database) throws -> Applier.Outcome {
        let record = try ScopeRecord.read(db, backfill.scope)
        var outcome = Applier.Outcome()
        // Another engine on this file has gone on or begun anew meanwhile, or the schema wants more by now.
        guard try Backfills.next(db, schema, backfill.scope) == backfill else { return outcome }
        guard since == record.checkpoint else {
            try Backfills.write(
                db, Backfill(scope: backfill.scope, entity: backfill.entity, fields: backfill.fields))
            return outcome
        }
        if let known = record.epoch, let epoch = answer.epoch, !Epoch.contains(record.base, of: known, in: epoch) {
            // The page is of a history that this device does not know: it asks first what became of its own operations.
            try Bootstrap.begin(db, backfill.scope, asking: known, hasLost: true)
            outcome.hasMore = true
            return outcome
        }
        var next = backfill
        (next.token, next.cursor, next.since) = (answer.token, answer.cursor, record.checkpoint)
        let applier = try Applier(db, schema: schema, record: record, declarations: declarations, now: now)
        try applier.applyBackfillPage(answer, of: backfill, declared: declarations.entity(backfill.entity))
        if answer.hasMore { try Backfills.write(db, next) } else { try Backfills.end(db, backfill) }
        outcome = applier.outcome
        outcome.pageTaken = true
        outcome.isFilled = !answer.hasMore
        return outcome
    }
}
