import GRDB
import TidemarkCore
import TidemarkWire

extension ScopeDriver {
    /// Fetches a page of the columns or rows that this device had no place for until now.
    func fill(
        _ backfill: Backfill, since: String?, _ schema: SyncSchema, _ declarations: Declarations
    ) async throws -> SyncMachine.Event? {
        let request = BackfillRequest(
            backfill, since: since, schema: schema, declarations: declarations, pageLimit: snapshotSizing.limit)
        let response = try await page(request.request)
        if isAskedForLess(response) { return try await bootstrap() }
        if response.status != 200 { try await beginAnew(backfill, after: Failure(response, scope: scope)) }
        let answer = try request.answer(response)
        return await received(answer, response) { db, now in try request.transaction(answer, now: now).run(db) }
    }

    /// A scan that the server cannot go on with says nothing about the scope, which stands where it stood.
    private func beginAnew(_ backfill: Backfill, after failure: Failure) async throws {
        let isOver = [.snapshotExpired, .invalidCheckpoint, .checkpointExpired].contains(failure.problem?.code)
        guard isOver, backfill.token != nil else { return }
        try await database {
            try await self.schemaCache.file.write(at: .restart) { db in
                try Backfills.write(
                    db, Backfill(scope: backfill.scope, entity: backfill.entity, fields: backfill.fields))
            }
        }
        throw SyncError(
            .answerUnusable, "The scan could not be continued.", hint: "It begins anew by itself.", scope: scope)
    }
}
