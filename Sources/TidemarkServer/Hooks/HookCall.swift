import TidemarkCore

/// One call of a hook, in a task of its own: a closure that goes on although it is cancelled is left to itself, and
/// holds up nobody who waits for it.
enum HookCall {
    /// How a call went; `nil` where the task that waits for it was cancelled, and the call did not end within
    /// `patience` after that.
    ///
    /// - Parameters:
    ///   - patience: for how long a call that is cancelled is waited for.
    ///   - ended: is called when the closure has returned, however late.
    static func outcome(
        of hook: CommitHook, _ notice: CommitNotice, patience: Duration, ended: @escaping @Sendable () async -> Void
    ) async -> (outcome: HookMachine.Outcome, reason: String)? {
        typealias Outcome = (outcome: HookMachine.Outcome, reason: String)
        let (outcomes, continuation) = AsyncStream<Outcome>.makeStream(bufferingPolicy: .bufferingOldest(1))
        let call = Task {
            let outcome = await hook.call(notice)
            await ended()
            continuation.yield(outcome)
        }
        let limit = Task {
            try await Task.sleep(for: hook.timeout)
            call.cancel()
            try await Task.sleep(for: patience)
            continuation.yield((.failed(), "no end in time"))
        }
        defer { limit.cancel() }
        // In a task that nobody cancels: in one that is cancelled a stream ends at once.
        let outcome = Task { await outcomes.first { _ in true } }
        return await withTaskCancellationHandler {
            await outcome.value
        } onCancel: {
            call.cancel()
            Task {
                try? await Task.sleep(for: patience)
                continuation.finish()
            }
        }
    }
}
