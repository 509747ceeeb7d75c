import GRDB
import TidemarkCore
import TidemarkWire

/// Carries out what one scope's machine decides. It owns the machine, and nothing that the machine could know.
actor ScopeDriver {
    let scope: Scope
    let schemaCache: SchemaCache
    var file: AppFile { schemaCache.file.of(scope) }
    private(set) var configuration: SyncConfiguration
    let decider: ConflictDecider
    /// Hears whether the scope has stopped.
    let changed: @Sendable (Bool) async -> Void
    var machine: SyncMachine
    var sizing: PageSizing
    var snapshotSizing: PageSizing
    /// Whether pages of a snapshot may come from addresses that caches answer: not where those have failed.
    var takesShared = true
    var batching: PageSizing
    var lane = randomHex(bytes: 16)
    /// Whether pages may hold differences from the rows that are here. Once one did not fit, pages hold whole rows
    /// until the scan ends.
    var takesDifferences = true
    /// When the last page of a scan in key order was asked for.
    var pageSent = Dependencies.current.uptime
    var telling = Telling()
    /// What the operator asks of this device, as last read from the file.
    var remedy = RemedyMachine()
    /// Whether a comparison is under way, the operator's or the app's own.
    var isVerifying = false
    /// Why the comparison that the operator wants is not begun yet.
    var putOff = PutOffComparison()
    /// The mutex of all work of this engine on the scope.
    let mutex = AsyncMutex()
    let signal = WakeSignal()
    /// The newest head that nudges have told since the scope was last at rest.
    var heard: Version?
    /// Whether the app called, and not an edit.
    private var isNudged = false
    /// Whether a round was called for that has not begun.
    private var isCalled = false
    /// Whether the loop of `run()` is only to look anew how long it sleeps.
    var isRetimed = false

    private(set) var lastError: SyncError?
    /// Whether the scope has left the device; nothing works on it any more.
    private var isRetired = false
    /// The failures that the file has noted; `nil` until it was read.
    var attempts: Attempts?
    var counts = SyncReport.Counts()
    /// Why nothing is pushed (B11). Pulls go on.
    var refusal: PushRefusal?
    /// Why records could not be fetched by name, last.
    var fetchError: SyncError?
    /// Whether more records may wait to be fetched than the last exchange asked for.
    var hasMoreToFetch = false
    private var noRoom: SyncError?
    /// The operations that were sent alone when a request was last too large.
    var tooLarge: [OperationKey] = []
    /// Whether what the server had no room for goes again at once: the app asks.
    private var retriesDeferred = false
    /// An answer that is not applied yet, and what a server that wants less asked for.
    var current: (answer: Answered, wait: Int64?)?
    /// Requests and answers that are ahead of their turn.
    var early = Early()
    /// The call that came since operations were last sealed for a request that went at once: another exchange answers
    /// it.
    var owed: SyncMachine.Event?
    /// How long the last request of an exchange took, in milliseconds.
    var requestTime: Int64 = 0
    /// Whether a filling asks for its next page before anything is pushed: behind a push, so that neither holds up the
    /// other, and where the server has nothing yet, since its page would undo what was pushed just before.
    var isPageNext = false
    /// When the scope was last in sync, where critical tables were asked for by themselves since.
    var criticalSync: Int64?
    var problem: Problem?
    var measuring = ScopeMeasuring()
    /// When old history was last looked for, in milliseconds since 1970.
    var lastPrune: Int64?
    /// Whether the lanes of earlier openings were looked at (``OutboxHistory``).
    var hasPacked = false
    /// The rows and edits that went when access to the scope was taken away, until it is granted again.
    var loss: ScopeRemoval.Removed?
    var nextTimer: Instant?

    init(
        scope: Scope, schemaCache: SchemaCache, configuration: SyncConfiguration, onConflict: ConflictHandler?,
        changed: @escaping @Sendable (Bool) async -> Void
    ) {
        self.scope = scope
        self.schemaCache = schemaCache
        self.configuration = configuration
        decider = ConflictDecider(scope: scope, file: schemaCache.file, handler: onConflict)
        self.changed = changed
        machine = SyncMachine(configuration.machine)
        sizing = PageSizing(configuration.paging)
        snapshotSizing = PageSizing(configuration.snapshotPaging)
        batching = PageSizing(configuration.batching)
    }

    // MARK: Two ways in

    /// Syncs until the task is cancelled, or the scope has left the device.
    func run() async {
        var event = SyncMachine.Event.reset
        isRetimed = false
        while !Task.isCancelled, !isRetired {
            if isRetimed { isRetimed = false } else { await drive(event) }
            // The engine does not hear when the app resumes its file, so it looks no more often than it polls.
            let least = lastError?.code == .databaseInterrupted ? configuration.pollInterval.milliseconds : 0
            let wait = nextTimer.map { max(least, $0 - now) } ?? configuration.tick.milliseconds
            guard await signal.sleep(for: .milliseconds(wait)) else {
                event = .timer
                continue
            }
            event = isNudged ? .nudge : .wake
            isNudged = false
        }
    }

    /// Syncs until everything is pushed and pulled, or something stands in the way.
    func syncNow() async -> (SyncReport.Counts, SyncError?) {
        await mutex.lock()
        defer { mutex.unlock() }
        return isRetired ? (SyncReport.Counts(), nil) : await syncAlone()
    }

    func syncAlone() async -> (SyncReport.Counts, SyncError?) {
        await recall()
        counts = SyncReport.Counts()
        refusal = nil
        retriesDeferred = true
        await carryOut(machine.handle(.reset, now: now, jitter: Dependencies.current.random()))
        // The loop of `run()` may sleep until a time that counts no more: it is woken.
        if machine.state != .idle { rouse() }
        await verifyWhereAsked(isUrgent: true)
        await rouseWhereBehind()
        return (counts, lastError)
    }

    /// Compares the scope's tables with the server's records. Nothing else of this engine works on the scope meanwhile.
    func verify(repairing repair: RecordRepair?) async -> Verification.Result {
        await mutex.lock()
        defer { mutex.unlock() }
        guard !isRetired else { return Verification.Result() }
        // The operator's own comparison does not run inside this one.
        isVerifying = true
        defer { isVerifying = false }
        await recall()
        if remedy.stop != nil {
            let (counts, error) = await syncAlone()
            if remedy.stop != nil { return Verification.Result(counts: counts, error: error) }
        }
        return await Verification(schemaCache: schemaCache, scope: scope, repair: repair)
            .run { await self.syncAlone() }
    }

    /// There is something to send, or, as `isNudge`, the app says that there may be news or a token that grants more.
    func wake(isNudge: Bool = false) async {
        guard machine.isBusy else {
            (isNudged, isCalled) = (isNudged || isNudge, true)
            return rouse()
        }
        // The task at work on the scope goes on with it: a second wake is redundant.
        if isNudge { refusal = nil }
        owe(isNudge ? .nudge : .wake)
        _ = machine.handle(isNudge ? .nudge : .wake, now: now, jitter: 0)
    }

    /// The state to be shown, and for waits how many milliseconds are left.
    var activity: (state: SyncMachine.State, remaining: Int64) {
        switch machine.state {
        case .waiting(let until): (machine.state, max(0, until - now))
        case .idle, .exchanging, .applying, .bootstrapping, .filling, .stopped: (machine.state, 0)
        }
    }

    /// Whether the scope is at work, or is about to be.
    var isAtWork: Bool { machine.isBusy || isCalled }

    /// Whether the app or the operator must act.
    var isStopped: Bool { if case .stopped = machine.state { true } else { false } }

    /// The driver's state outside the file, without points in time.
    var memory: String {
        let flags = [
            takesDifferences, isPageNext, refusal != nil, fetchError != nil, current != nil, signal.isRaised,
            early.sealed != nil, early.sent != nil, early.response != nil, owed != nil, owed == .nudge, isNudged,
            takesShared, telling.isDue(now: now),
        ]
        return "\(machine.outline) \(lane) \(flags) \(problem?.code.rawValue ?? "") \(tooLarge.map(\.number))"
    }

    /// Goes over to another configuration.
    ///
    /// - Parameter syncs: whether a scope at rest syncs at once.
    func use(_ configuration: SyncConfiguration, syncs: Bool) async {
        self.configuration = configuration
        await recall()
        sizing.use(configuration.paging)
        snapshotSizing.use(configuration.snapshotPaging)
        batching.use(configuration.batching)
        await carryOut(machine.use(configuration.machine, now: now))
        rouse(syncs: syncs)
    }

    func retire() {
        isRetired = true
        rouse()
    }

    private func drive(_ event: SyncMachine.Event) async {
        await mutex.lock()
        defer { mutex.unlock() }
        guard !isRetired else { return }
        await recall()
        // The app's start, or its word that there may be a token that grants more.
        if event == .reset || event == .nudge { refusal = nil }
        if event == .nudge { retriesDeferred = true }
        let effects = machine.handle(event, now: now, jitter: Dependencies.current.random())
        isCalled = false
        await carryOut(effects)
        await verifyWhereAsked()
        await rouseWhereBehind()
    }

    // MARK: Effects

    func carryOut(_ effects: [SyncMachine.Effect]) async {
        var effects = effects
        while !effects.isEmpty {
            let event: SyncMachine.Event?
            switch effects.removeFirst() {
            case .exchange: event = await attempt { try await exchange() }
            case .apply: event = await attempt { try await apply() }
            case .bootstrap: event = await attempt { try await bootstrap() }
            case .repair: event = await attempt { try await repair() }
            case .recover: event = await attempt { try await recover() }
            case .sleep(let until):
                nextTimer = until
                early = Early()
                await keepAttempts(until: until)
                event = nil
            }
            if let event { effects += machine.handle(event, now: now, jitter: Dependencies.current.random()) }
            await changed(isStopped)
        }
    }

    private func attempt(_ work: () async throws -> SyncMachine.Event?) async -> SyncMachine.Event? {
        do { return try await work() } catch {
            let failure = Failure(error, scope: scope)
            // A cancelled task has not failed, and says nothing about the server.
            if !Task.isCancelled { lastError = told(failure.error) }
            refusal?.suspect = nil
            problem = failure.problem ?? problem
            // Nor has one whose file the app has interrupted.
            let isAbandoned = Task.isCancelled || failure.error.code == .databaseInterrupted
            if !isAbandoned, failure.kind != .halted { noteFailure(failure) }
            return isAbandoned ? .abandoned : .failed(failure.kind, wait: failure.wait)
        }
    }

    private func exchange() async throws -> SyncMachine.Event? {
        let sent = early.sent
        early.sent = nil
        nextTimer = nil
        measuring.stage = .seal
        let (schema, declarations) = try await prepared()
        try await resolveInferred(schema, declarations)
        if let event = try await askWhereStopped(schema) { return event }
        try await refillWhereAsked()
        try await bringCriticalFirst(schema, declarations)
        if let sent, try await isNext(sent, schema, declarations) {
            // The request was made before that call came, and does not answer it.
            if let owed { _ = machine.handle(owed, now: now, jitter: 0) }
            return try await send(sent) { try await self.exchange() }
        }
        early = Early()
        owed = nil
        guard let exchange = try await sealExchange(schema, declarations, isPull: true) else { return .unfilled }
        return try await send(exchange) { try await self.exchange() }
    }

    /// Seals in steps: marks that turn out to be no edits make room for those behind them. `nil` where a page is
    /// wanted and the scope has to be filled first.
    func sealExchange(_ schema: SyncSchema, _ declarations: Declarations, isPull: Bool) async throws -> Exchange? {
        let (scope, lane, limit, takesDifferences) = (scope, lane, sizing.limit, takesDifferences)
        if refusal?.isOutdated(by: declarations) == true { refusal = nil }
        let operations = refusal.map { $0.operationLimit(now: now) ?? batching.limit } ?? batching.limit
        let asked = retriesDeferred
        let telling = told()
        var marksLeft = Int.max
        while true {
            let exchange = try await database {
                try await self.schemaCache.file.durably(at: .seal) { db -> Exchange? in
                    let record = try ScopeRecord.read(db, scope)
                    var telling = telling
                    try Deferral.resume(db, schema, scope, now: wallClockMilliseconds(), asked: asked)
                    if isPull {
                        // Columns and rows that this device had no place for come before anything newer.
                        guard record.isFilled, try Backfills.next(db, schema, scope) == nil else { return nil }
                        telling.outcome = try RemedyMachine.handle(.filled, db, scope, now: wallClockMilliseconds())
                            .outcome
                    } else {
                        telling.outcome = try RemedyMachine.read(db, scope).outcome
                    }
                    return try Exchange(
                        db, record: record, isPull: isPull, lane: lane, schema: schema, declarations: declarations,
                        pageLimit: limit, takesDifferences: takesDifferences, operationLimit: operations,
                        telling: telling, now: wallClockMilliseconds())
                }
            }
            retriesDeferred = false
            guard let exchange, operations > 0, exchange.marksLeft > 0, exchange.marksLeft < marksLeft else {
                return exchange
            }
            marksLeft = exchange.marksLeft
        }
    }

    private func apply() async throws -> SyncMachine.Event? {
        guard let (answer, wait) = current else { return .applied(hasMore: false, wait: nil) }
        current = nil
        measuring.stage = .apply
        let now = wallClockMilliseconds()
        let event: SyncMachine.Event
        var isPull = false
        switch answer {
        case .exchange(let exchange, let answer):
            isPull = exchange.keys.isEmpty
            var transaction = exchange.transaction(answer, now: now)
            transaction.leastBlock = configuration.leastHistoryBlock
            let next = try await next(after: exchange, answer, wait: wait)
            let applied = try await applyAnswer(transaction, sending: next)
            event = .applied(hasMore: applied.hasMore || !applied.isTaken || applied.goesOn, wait: wait)
            noRoom = applied.deferral?.error(in: scope)
        case .page(let take, let next):
            let outcome = try await applyPage(take, sending: wait ?? 0 == 0 ? next : nil, at: now)
            // The exchange behind the filling keeps them in the file.
            schemaCache.measures.update { $0 += SyncMeasures(outcome) }
            count(outcome)
            // A scope that is being filled does not wait for its end to ask again.
            if refusal?.isLifted == false { refusal?.notePage(now: self.now) }
            event = .applied(hasMore: !outcome.isFilled, wait: wait)
        case .lossProbe(let outcome):
            try await recovering(at: .lossProbe) { db, recovery in try recovery.answered(db, outcome) }
            event = .applied(hasMore: true, wait: wait)
        case .remedy(let heard):
            try await hear(heard)
            event = .applied(hasMore: true, wait: wait)
        }
        loss = nil
        let goesOn = isPull ? try await liftRefusal() : false
        lastError = refusal?.error ?? fetchError ?? noRoom
        problem = nil
        if goesOn, case .applied(false, let wait) = event { return .applied(hasMore: true, wait: wait) }
        return event
    }

    func count(_ outcome: Applier.Outcome) {
        counts.pushed += outcome.verdicts
        counts.received += outcome.received
        counts.applied += outcome.applied
        counts.quarantined += outcome.quarantined
        counts.rejected += outcome.rejected
        counts.conflicts += outcome.conflicts
        noteFirstData(outcome)
    }

    func database<T: Sendable>(_ work: @Sendable () async throws -> T) async throws -> T {
        do { return try await work() } catch { throw Failure.database(error, scope: scope) }
    }

    var now: Instant { Dependencies.current.uptime }
}
