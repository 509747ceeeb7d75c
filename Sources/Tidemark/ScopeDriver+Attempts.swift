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
        let found = try? await preparation.file.read { db in try Attempts.read(db, scope) }
        attempts = found ?? Attempts()
        machine = SyncMachine(configuration.machine, failures: attempts?.failures ?? 0)
    }

    func keepAttempts(until moment: Instant) async {
        // A file that could not be written is not written to again to say so.
        guard machine.failures != attempts?.failures, lastError?.code != .databaseFailed else { return }
        let next = machine.failures > 0 ? wallClockMilliseconds() + max(0, moment - now) : nil
        let (scope, attempts) = (scope, Attempts(failures: machine.failures, next: next))
        self.attempts = attempts
        try? await preparation.file.write(at: .attempts) { db in try attempts.write(db, scope) }
    }

    /// A request without operations went through. Returns whether they are sent now.
    func liftRefusal() async throws -> Bool {
        if refusal?.isLifted == true {
            // Nothing was left to be sent.
            refusal = nil
            return false
        }
        refusal?.notePull(now: now)
        guard let known = refusal, known.isLifted else { return false }
        guard let suspect = known.suspect else { return true }
        // The same request goes through without that operation: neither the token nor the request itself is at fault.
        refusal = nil
        try await setAside(suspect, as: known.verdict)
        return true
    }
}
