import GRDB
import TidemarkCore
import TidemarkWire

// MARK: - What is remembered of failures

extension ScopeDriver {
    /// Goes on where the app was when it ended: it tries at once, and if that fails waits as long as it would have.
    func recall() async {
        guard attempts == nil else { return }
        let scope = scope
        // A file that was never installed, or that cannot be read now, tells of no failures.
        let found = try? await schemaCache.file.read { db in
            (try Attempts.read(db, scope), try RemedyMachine.read(db, scope))
        }
        attempts = found?.0 ?? Attempts()
        machine = SyncMachine(configuration.machine, failures: attempts?.failures ?? 0)
        use(found?.1 ?? remedy)
        telling.opened(found?.1.outcome)
    }

    func keepAttempts(until moment: Instant) async {
        let next = machine.failures > 0 ? wallClockMilliseconds().saturatingAdding(max(0, moment - now)) : nil
        let (scope, attempts) = (scope, Attempts(failures: machine.failures, next: next))
        // A file that could not be written is not written to again to say so.
        guard attempts != self.attempts, !Task.isCancelled else { return }
        guard lastError?.code != .databaseFailed, lastError?.code != .databaseInterrupted else { return }
        do {
            try await schemaCache.file.write(at: .attempts) { db in try attempts.write(db, scope) }
            self.attempts = attempts
        } catch {}
    }

    /// The last report, with the error and the version that the next one has to tell.
    func told() -> Telling {
        var telling = telling
        (telling.app, telling.error) = (configuration.appVersion, lastError?.code)
        telling.isSilent = !configuration.sendsReports
        return telling
    }

    /// A request without operations went through. Returns whether they are sent now.
    func liftRefusal() async throws -> Bool {
        if refusal?.isLifted == true {
            // Nothing was left to be sent.
            refusal = nil
            return false
        }
        if let known = refusal, known.isProven, let suspect = known.suspect {
            // The same request goes through without that operation: neither the token nor the request is at fault.
            refusal = nil
            try await refuse(suspect, as: known.verdict)
            return true
        }
        refusal?.notePull(now: now)
        return refusal?.isLifted == true
    }

    /// Gives operations that the server has never seen a new lane, after a gap in the old one.
    func repair() async throws -> SyncMachine.Event? {
        lane = randomHex(bytes: 16)
        let (scope, lane, problem) = (scope, lane, problem)
        try await database {
            try await self.schemaCache.file.write(at: .repair) { db in
                try Outbox.repair(db, scope: scope, from: problem, lane: lane)
            }
        }
        return nil
    }
}
