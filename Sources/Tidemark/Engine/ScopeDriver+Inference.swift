import GRDB
import TidemarkCore
import TidemarkWire

extension ScopeDriver {
    /// Holds what was written while no trigger stood against the server's rows, before anything is sent or applied: a
    /// page would pass over it, or over what it was made on. Nothing is asked where the operator has stopped the scope.
    func resolveInferred(_ schema: SyncSchema, _ declarations: Declarations) async throws {
        while true {
            let scope = scope
            let (entries, remedy) = try await database {
                try await self.schemaCache.file.read { db in
                    (
                        try Inferred.uncompared(db, scope, schema, limit: RecordFetch.requestLimit),
                        try RemedyMachine.read(db, scope)
                    )
                }
            }
            use(remedy)
            guard remedy.stop == nil else { return }
            guard let entity = entries.first?.entity else { return }
            var question = InferenceTransaction(
                entries: entries, scope: scope, schema: schema, declarations: declarations,
                now: wallClockMilliseconds())
            // The server hands out nothing of a table that is only pushed.
            if declarations.entity(entity).direction != .push {
                try await ask(&question, entity, schema, declarations)
            }
            if question.fetched?.head == 0 { isPageNext = true }
            let transaction = question
            let resolved = try await database {
                try await self.file.writeWithoutTransaction(at: .inferred) { db in try transaction.run(db) }
            }
            counts.conflicts += resolved.conflicts
            guard resolved.records == 0 else { continue }
            let left = try await database {
                try await self.schemaCache.file.read { db in
                    try Inferred.uncompared(db, scope, schema, limit: RecordFetch.requestLimit)
                }
            }
            // Either another engine on this file was faster, or the answer spoke of other records.
            if left == entries {
                throw SyncError(
                    .answerUnusable, "The answer says nothing of the records that it was asked for.",
                    hint: "It is asked for again.", scope: scope)
            }
        }
    }

    private func ask(
        _ question: inout InferenceTransaction, _ entity: String, _ schema: SyncSchema, _ declarations: Declarations
    ) async throws {
        let scope = scope
        let since = try await database {
            try await self.schemaCache.file.read { db in try ScopeRecord.read(db, scope).checkpoint }
        }
        let fetch = RecordFetch(schemaCache: schemaCache, scope: scope, schema: schema, declarations: declarations)
        let records = question.entries.compactMap { entry in
            RecordID(entry.record).map { RefetchQueue.Record(entity: entity, id: $0) }
        }
        let part = RecordFetch.part(of: records)
        var response = try await send(fetch.request(entity, part, since: since))
        let problem = Failure(response, scope: scope).problem
        let isOutOfDate = since != nil && [.checkpointExpired, .invalidCheckpoint].contains(problem?.code)
        if isOutOfDate {
            // The server has forgotten deletions below the floor: it cannot tell which of the records were deleted, and
            // none is revived. A server that has lost history deleted none.
            question.isBelowFloor = problem?.reason == .retention
            response = try await send(fetch.request(entity, part, since: nil))
        }
        guard response.status == 200 else { throw Failure(response, scope: scope) }
        let fetched = try FetchedRecords(body: response.body)
        guard fetched.scope == scope.name, fetched.since == (isOutOfDate ? nil : since) else {
            throw SyncError(
                .answerUnusable, "The answer belongs to another request.", hint: "It is asked for again.", scope: scope)
        }
        question.since = since
        question.fetched = fetched
        let traffic = try EntityBytes(fetched).traffic
        schemaCache.measures.update { $0.add(traffic) }
    }
}
