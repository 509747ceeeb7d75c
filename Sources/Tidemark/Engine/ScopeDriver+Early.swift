import GRDB
import TidemarkCore
import TidemarkWire

/// A request that was sent before the answer to the one before it was applied, and what came of it.
struct EarlyResponse: Sendable {
    let request: TransportRequest
    let result: Result<TransportResponse, any Error>
    /// From the request to the end of its answer.
    let milliseconds: Int64
}

/// Work that a driver has done before its turn. All of it may be dropped at any time: operations stand in the outbox
/// and are sent again under their own keys, and a page is asked for again.
struct Early: Sendable {
    /// The next exchange, whose operations are sealed; its answer's checkpoint is not known yet.
    var sealed: Exchange?
    /// The exchange whose request has been sent.
    var sent: Exchange?
    /// The response to that request, or to one for a page of a snapshot.
    var response: EarlyResponse?
}

/// The outcome of an answer that is in the file now.
struct Applied: Sendable {
    /// Whether pages follow.
    var hasMore: Bool
    /// Whether the page was taken, and the scope goes on from where the answer says.
    var isTaken: Bool
    /// Whether there is more to send, or to ask for, at once.
    var goesOn: Bool
    /// Whether that is something which no request behind it can have: records by name, or what the app has decided.
    var isOwed: Bool
    var deferral: Deferral?
}

// MARK: - Requests before their turn

/// While an answer is applied, the next request is on its way; while that is, the operations behind it are sealed. So
/// the device and the server work at the same time. No more than one request is under way, and none goes before the
/// answer to the last one is here, with a verdict on each of its operations: the server gets those of a lane in their
/// order.
extension ScopeDriver {
    /// When a request was sent that is to be sent now, or has been.
    func sentAt(_ request: TransportRequest) -> Instant {
        guard let response = early.response, response.request == request else { return now }
        return now + -response.milliseconds
    }

    /// The response to a request that was sent early; `nil` where it was not.
    func takeEarly(_ request: TransportRequest) throws -> TransportResponse? {
        guard let response = early.response, response.request == request else { return nil }
        early.response = nil
        return try response.result.get()
    }

    /// Sends a request before its turn.
    func sendEarly(_ request: TransportRequest) async -> EarlyResponse {
        let began = now
        let result: Result<TransportResponse, any Error>
        do { result = .success(try await transmit(request)) } catch { result = .failure(error) }
        return EarlyResponse(request: request, result: result, milliseconds: now - began)
    }

    /// Applies an answer, and sends the request behind it meanwhile.
    func applyAnswer(_ transaction: ApplyTransaction, sending next: Exchange?) async throws -> Applied {
        guard let next else { return try await applyAnswer(transaction) }
        async let response = sendEarly(next.request)
        var applied = try await applyAnswer(transaction)
        // The early request was made before the answer said so.
        if applied.isOwed { owe(.wake) }
        let sealed = applied.isTaken ? await sealNext(behind: next) : nil
        let answered = await response
        // A page behind one that was not taken fits nowhere.
        early = applied.isTaken ? Early(sealed: sealed, sent: next, response: answered) : Early()
        applied.goesOn = true
        return applied
    }

    /// Something was asked for while the scope was at work. A request that was made before says nothing of it: once its
    /// answer is applied, another one goes.
    func owe(_ event: SyncMachine.Event) {
        if owed != .nudge { owed = event }
    }

    /// The exchange that follows on an answer whose page is taken; `nil` where what was sealed, or the place to go on
    /// from, may turn out to be another: behind a verdict that refuses, say, or in another history.
    func next(after exchange: Exchange, _ answer: Answer, wait: Int64?) async throws -> Exchange? {
        let sealed = early.sealed
        early = Early()
        guard configuration.sendsEarly, wait ?? 0 == 0, refusal == nil, fetchError == nil, exchange.refetch.isEmpty,
            answer.remedy == nil, let page = answer.page, page.since == exchange.since, exchange.isSameHistory(page),
            Set(answer.results.map(\.key)) == exchange.keys, answer.results.allSatisfy(\.verdict.tookEffect)
        else { return nil }
        if page.hasMore, try await mayBeCritical(exchange) { return nil }
        if let sealed { return sealed.following(page) }
        guard page.hasMore, try await !isAnythingPending(exchange.schema) else { return nil }
        return exchange.withoutOperations(pageLimit: sizing.limit).following(page)
    }

    /// Whether a page that follows would keep edits from being sent, those that wait for room on the server too, or
    /// records from being asked for by name.
    func isAnythingPending(_ schema: SyncSchema) async throws -> Bool {
        let scope = scope
        return try await database {
            try await self.schemaCache.file.read { db in
                try Pending.exists(db, schema, scope) || Deferral.read(db, scope) != nil
                    || !RefetchQueue.all(db, scope, limit: 1).isEmpty
            }
        }
    }

    /// Whether an exchange that was sent early is still the one that would be sent.
    func isNext(_ exchange: Exchange, _ schema: SyncSchema, _ declarations: Declarations) async throws -> Bool {
        guard exchange.schema == schema, exchange.declarations == declarations else { return false }
        let scope = scope
        return try await database {
            try await self.schemaCache.file.read { db in
                let record = try ScopeRecord.read(db, scope)
                return try record.isFilled && record.checkpoint == exchange.since
                    && Backfills.next(db, schema, scope) == nil
            }
        }
    }

    /// Seals what goes behind a full request that is under way; `nil` where there is nothing, or it cannot be sealed
    /// yet: then that is found out in its turn.
    func sealNext(behind exchange: Exchange) async -> Exchange? {
        guard configuration.sendsEarly, exchange.isFull, exchange.isPull, refusal == nil else { return nil }
        let (scope, limit, takesDifferences) = (scope, sizing.limit, takesDifferences)
        let operations = batching.limit
        let telling = told()
        let found = try? await schemaCache.file.durably(at: .seal) { db -> Exchange? in
            let record = try ScopeRecord.read(db, scope)
            guard record.isFilled, try Backfills.next(db, exchange.schema, scope) == nil,
                try Deferral.read(db, scope) == nil
            else { return nil }
            var telling = telling
            telling.outcome = try RemedyMachine.read(db, scope).outcome
            let next = try Exchange(
                db, record: record, isPull: true, lane: exchange.lane, schema: exchange.schema,
                declarations: exchange.declarations, pageLimit: limit, takesDifferences: takesDifferences,
                operationLimit: operations, behind: exchange.lastOperation, telling: telling,
                now: wallClockMilliseconds())
            return next.keys.isEmpty || !next.refetch.isEmpty ? nil : next
        }
        return found ?? nil
    }
}
