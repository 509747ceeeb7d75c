import GRDB
import TidemarkCore
import TidemarkWire

extension ScopeDriver {
    /// An answer that waits to be applied.
    enum Answered: Sendable {
        case exchange(Exchange, Answer)
        /// A page of a scan in key order: takes it in, at a time in milliseconds since 1970. And the question for the
        /// page behind it.
        case page(@Sendable (Database, Int64) throws -> Applier.Outcome, next: SnapshotRequest?)
        case lossProbe(LossProbe.Outcome)
        /// What the operator asks of a scope that he has stopped.
        case remedy(RemedyMachine.Event?)
    }

    /// Makes a request of a scope that is being filled: pending edits go first, so that a large snapshot never holds
    /// them up; then the next page.
    func bootstrap() async throws -> SyncMachine.Event? {
        nextTimer = nil
        measuring.stage = .seal
        let (schema, declarations) = try await prepared()
        try await resolveInferred(schema, declarations)
        if let event = try await askWhereStopped(schema) { return event }
        let scope = scope
        let (record, isPending, backfill) = try await database {
            try await self.schemaCache.file.read { db in
                (
                    try ScopeRecord.read(db, scope), try Pending.exists(db, schema, scope),
                    try Backfills.next(db, schema, scope)
                )
            }
        }
        noteBeginning(record)
        guard !record.isFilled else {
            // Another engine on this file has come to the snapshot's end: nothing is left to fill.
            guard let backfill else { return .answered }
            return try await fill(backfill, since: record.checkpoint, schema, declarations)
        }
        if record.bootstrap?.asking != nil { return try await ask(schema) }
        if isPending, refusal?.isLifted != false, !isPageNext,
            let exchange = try await sealExchange(schema, declarations, isPull: false), !exchange.keys.isEmpty
        {
            isPageNext = true
            return try await send(exchange) { try await self.bootstrap() }
        }
        isPageNext = false
        // A cache that failed during one fill may be good again for the next.
        if record.bootstrap?.token == nil { takesShared = true }
        let request = SnapshotRequest(
            record.bootstrap, scope: scope, known: takesShared ? max(record.base, record.head ?? 0) : nil,
            schema: schema, declarations: declarations, pageLimit: snapshotSizing.limit)
        return try await send(request)
    }

    private func send(_ request: SnapshotRequest) async throws -> SyncMachine.Event? {
        let response = try await page(request.request)
        if isAskedForLess(response) { return try await bootstrap() }
        if let address = SharedPageAddress(response, scope: scope) {
            guard let answer = try await sharedPage(at: address) else { return try await send(request.alone) }
            // The fields beside the page, the declarations' name too, are from the server's answer and not from the
            // cache.
            await received(
                .page(
                    { db, now in try request.transaction(answer, now: now).run(db) }, next: next(request, answer)),
                response)
            return .answered
        }
        let answer = try request.answer(response)
        return await received(answer, response, of: request) { db, now in
            try request.transaction(answer, now: now).run(db)
        }
    }

    /// Fetches a page from where a cache may answer. `nil`: the server itself is asked for it. What stands between may
    /// be late, wrong or gone, and none of that is the server's word on anything.
    private func sharedPage(at address: SharedPageAddress) async throws -> SnapshotAnswer? {
        let response: TransportResponse
        do { response = try await carry(address.request) } catch {
            // A cancelled task asks for nothing more.
            if Task.isCancelled { throw error }
            takesShared = false
            return nil
        }
        let answer = try? SnapshotAnswer(response, scope: scope, token: address.token, isWhole: true)
        // An address that expired on the way says nothing about the next one.
        takesShared = answer != nil || response.status == 410
        return answer
    }

    /// Asks for a page of a scan in key order.
    func page(_ request: TransportRequest) async throws -> TransportResponse {
        pageSent = sentAt(request)
        do { return try await send(request) } catch {
            snapshotSizing.failed()
            throw error
        }
    }

    /// Whether the page was larger than the server gives, and a smaller one is asked for without a wait.
    func isAskedForLess(_ response: TransportResponse) -> Bool {
        response.status == 400 && Failure(response, scope: scope).problem?.code == .limitOutOfRange
            && snapshotSizing.refused()
    }

    /// - Parameter request: the question, where it is one for the whole scope.
    func received(
        _ answer: SnapshotAnswer, _ response: TransportResponse, of request: SnapshotRequest? = nil,
        _ take: @escaping @Sendable (Database, Int64) throws -> Applier.Outcome
    ) async -> SyncMachine.Event {
        snapshotSizing.received(
            rows: answer.hasMore ? snapshotSizing.limit : 0, bytes: response.body.count,
            milliseconds: Dependencies.current.uptime - pageSent)
        await received(.page(take, next: request.flatMap { next($0, answer) }), response)
        return .answered
    }

    /// The question for the page behind an answer, as it will be asked once that is taken in.
    private func next(_ request: SnapshotRequest, _ answer: SnapshotAnswer) -> SnapshotRequest? {
        guard configuration.sendsEarly, answer.hasMore else { return nil }
        var bootstrap = Bootstrap(scope: scope)
        (bootstrap.token, bootstrap.cursor) = (answer.token, answer.cursor)
        return SnapshotRequest(
            bootstrap, scope: scope, known: takesShared ? max(request.known ?? 0, answer.version) : nil,
            schema: request.schema, declarations: request.declarations, pageLimit: snapshotSizing.limit)
    }

    /// Takes in a page, and asks for the one behind it meanwhile, where no edits wait to be sent before it.
    func applyPage(
        _ take: @escaping @Sendable (Database, Int64) throws -> Applier.Outcome, sending next: SnapshotRequest?,
        at now: Int64
    ) async throws -> Applier.Outcome {
        let take = { @Sendable in
            try await self.database {
                try await self.file.writeWithoutTransaction(at: .page) { db in try take(db, now) }
            }
        }
        guard let next, try await !isAnythingPending(next.schema) else { return try await take() }
        async let response = sendEarly(next.request)
        let outcome = try await take()
        early.response = await response
        return outcome
    }

    /// Whether the server has lost what it once answered has to be known before anything is sent or shown.
    private func ask(_ schema: SyncSchema) async throws -> SyncMachine.Event? {
        let scope = scope
        let lossProbe = try await database {
            try await self.schemaCache.file.read { db in try LossProbe(db, scope, schema) }
        }
        let response = try await send(lossProbe.request)
        await received(.lossProbe(try lossProbe.answer(response)), response)
        return .answered
    }

    /// The server cannot go on from where this device stands: the scope is filled anew, and the outbox is kept.
    func recover() async throws -> SyncMachine.Event? {
        let problem = problem
        isPageNext = false
        try await recovering(at: .recover) { db, recovery in try recovery.begin(db, after: problem) }
        return nil
    }

    func recovering(
        at point: WritePoint, _ work: @escaping @Sendable (Database, Recovery) throws -> Void
    ) async throws {
        let (schema, declarations) = try await prepared()
        lane = randomHex(bytes: 16)
        let recovery = Recovery(
            scope: scope, schema: schema, declarations: declarations, lane: lane, now: wallClockMilliseconds())
        try await database {
            try await self.file.writeWithoutTransaction(at: point) { db in try work(db, recovery) }
        }
    }
}
