import GRDB
import TidemarkCore
import TidemarkWire

// MARK: - What the operator asks of this device (W108)

extension ScopeDriver {
    /// Goes over to what the file says of the operator's remedies. Another engine on it may have heard one.
    func use(_ remedy: RemedyMachine) {
        // A new one waits for no failure of the one before.
        if remedy.number != self.remedy.number { putOff = PutOffComparison() }
        self.remedy = remedy
        machine.slow(to: remedy.interval(now: wallClockMilliseconds()))
    }

    /// Asks the server whether a scope that the operator has stopped may go on; `nil` where it is not stopped.
    func askWhereStopped(_ schema: SyncSchema) async throws -> SyncMachine.Event? {
        guard let halted = remedy.stopError(scope) else { return nil }
        let (scope, telling, time) = (scope, told(), wallClockMilliseconds())
        let question = try await database {
            try await self.schemaCache.file.read { db in
                try RemedyQuestion(db, scope, schema, telling, now: time)
            }
        }
        let response: TransportResponse
        let heard: RemedyMachine.Event?
        do {
            response = try await send(question.request)
            heard = try question.answer(response)
        } catch {
            // Once the server has heard that the stop is carried out, a failure of the network or of the server changes
            // nothing: the scope stays stopped.
            let kind = Failure(error, scope: scope).kind
            guard kind == .transient || kind == .server, self.telling.hasTold(question.report) else { throw error }
            throw halted
        }
        self.telling.answered(question.report, now: now)
        await received(.remedy(heard), response)
        return .answered
    }

    /// Takes in what the operator asks now of a scope that he has stopped.
    func hear(_ heard: RemedyMachine.Event?) async throws {
        guard let heard else { return try remedy.refuseStopped(scope) }
        let (scope, time) = (scope, wallClockMilliseconds())
        use(
            try await database {
                try await self.schemaCache.file.write(at: .apply) { db in
                    try RemedyMachine.handle(heard, db, scope, now: time)
                }
            })
        try remedy.refuseStopped(scope)
    }

    /// An answer has carried a remedy. Returns whether there is something to do, or to tell, at once.
    func isNew(_ remedy: RemedyMachine?) -> Bool {
        guard let remedy else { return false }
        guard remedy != self.remedy else {
            // The server has not heard what came of it.
            telling.repeatRemedy()
            return false
        }
        use(remedy)
        return true
    }

    /// Begins to fill the scope anew, where the operator wants it.
    func refillWhereAsked() async throws {
        guard case .refillDue = remedy.state else { return }
        isPageNext = false
        try await recovering(at: .recover) { db, recovery in try recovery.refill(db) }
    }

    /// Compares the scope once with the server's records, where the operator wants it and it is in sync. One that a
    /// failure of the network ended is begun anew with a later round.
    ///
    /// - Parameter isUrgent: the user asks: neither a server that wants to hear nothing nor an earlier failure puts it
    ///   off.
    func verifyWhereAsked(isUrgent: Bool = false) async {
        guard remedy.wantsVerify, machine.state == .idle, !isVerifying, !Task.isCancelled else { return }
        guard isUrgent || !machine.isQuiet(now: now) && !putOff.waits(now: now) else { return }
        isVerifying = true
        defer { isVerifying = false }
        if putOff.isUnnoted {
            guard await handleRemedy(.verifyPutOff) else { return }
            putOff.isUnnoted = false
        }
        // The beginning is in the file: what kills the process each time is not begun for ever.
        guard await handleRemedy(.verifyBegan) else { return }
        guard remedy.wantsVerify else { return await tellOutcome() }
        let before = counts
        let result = await Verification(schemaCache: schemaCache, scope: scope, repair: .keepingLocal)
            .run { await self.syncAlone() }
        counts = before
        counts += result.counts
        let tables = result.part.tables.values
        let event: RemedyMachine.Event =
            switch result.error {
            // The app lives on, and its server has not failed.
            case _ where Task.isCancelled: .verifyPutOff
            case nil:
                .verified(
                    differing: Int64(tables.reduce(0) { $0 + $1.differing }),
                    repaired: Int64(tables.reduce(0) { $0 + $1.repaired }))
            case let error? where error.recovery == .wait: .verifyPutOff
            case let error?: .verifyFailed(code: error.code.rawValue)
            }
        if event == .verifyPutOff, !Task.isCancelled {
            putOff.failed(machine.settings.backoff, now: now, jitter: Dependencies.current.random())
        }
        guard await handleRemedy(event) else {
            putOff.isUnnoted = true
            return
        }
        guard !remedy.wantsVerify else { return }
        await tellOutcome()
    }

    /// Tells the server the outcome at once, since the operator looks at it.
    private func tellOutcome() async {
        await carryOut(machine.handle(.wake, now: now, jitter: Dependencies.current.random()))
    }

    /// Hands an event to the file's machine; `false` where it could not be written. A task that is cancelled meanwhile
    /// would leave a comparison behind as one that ended with its process.
    private func handleRemedy(_ event: RemedyMachine.Event) async -> Bool {
        let (file, scope, time) = (schemaCache.file, scope, wallClockMilliseconds())
        let found = try? await Dependencies.current.uncancelled {
            try await file.write(at: .attempts) { db in try RemedyMachine.handle(event, db, scope, now: time) }
        }
        guard let found else { return false }
        use(found)
        return true
    }
}

/// The waits of a comparison that the operator wants and that has failed.
struct PutOffComparison {
    private var failures = 0
    private var until: Instant?
    /// Whether the file still counts it as one whose process has ended: its end could not be written.
    var isUnnoted = false

    /// Whether it is too early for another one.
    func waits(now: Instant) -> Bool { until.map { now < $0 } ?? false }

    /// Notes that another comparison has failed. Exchanges in between, which say nothing of it, do not end the wait.
    mutating func failed(_ backoff: Backoff, now: Instant, jitter: UInt64) {
        failures += 1
        until = now + backoff.delay(failures: failures, class: .transient, jitter: jitter)
    }
}
