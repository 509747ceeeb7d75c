import GRDB
import TidemarkCore
import TidemarkWire

// MARK: - What the operator asks of this device (W108)

extension ScopeDriver {
    /// Goes over to what the file says of the operator's remedies. Another engine on it may have heard one.
    func use(_ remedy: RemedyMachine) {
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
        do { response = try await send(question.request) } catch {
            // Nobody is in a hurry to hear that nothing has changed, once the stop is told.
            guard Failure(error, scope: scope).kind == .transient, self.telling.hasTold(question.report) else {
                throw error
            }
            throw halted
        }
        let heard = try question.answer(response)
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
    /// failure of the network ended is begun anew with the next round.
    func verifyWhereAsked() async {
        guard remedy.wantsVerify, machine.state == .idle, !isVerifying else { return }
        isVerifying = true
        defer { isVerifying = false }
        // The beginning is in the file: what kills the process each time is not begun for ever.
        guard await note(.verifyBegan) else { return }
        guard remedy.wantsVerify else { return await tellOutcome() }
        let before = counts
        let result = await Verification(schemaCache: schemaCache, scope: scope, repair: .keepingLocal)
            .run { await self.syncAlone() }
        counts = before
        counts += result.counts
        guard !Task.isCancelled else { return }
        let tables = result.part.tables.values
        let event: RemedyMachine.Event =
            switch result.error {
            case nil:
                .verified(
                    differing: Int64(tables.reduce(0) { $0 + $1.differing }),
                    repaired: Int64(tables.reduce(0) { $0 + $1.repaired }))
            case let error? where error.recovery == .wait: .verifyPutOff
            case let error?: .verifyFailed(code: error.code.rawValue)
            }
        guard await note(event), !remedy.wantsVerify else { return }
        await tellOutcome()
    }

    /// What was done is told at once: the operator looks at it.
    private func tellOutcome() async {
        await carryOut(machine.handle(.wake, now: now, jitter: Dependencies.current.random()))
    }

    /// Hands an event to the file's machine; `false` where it could not be written.
    private func note(_ event: RemedyMachine.Event) async -> Bool {
        let (scope, time) = (scope, wallClockMilliseconds())
        let found = try? await schemaCache.file.write(at: .attempts) { db in
            try RemedyMachine.handle(event, db, scope, now: time)
        }
        guard let found else { return false }
        use(found)
        return true
    }
}
