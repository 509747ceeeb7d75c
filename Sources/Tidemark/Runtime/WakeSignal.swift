/// Lets one task sleep until a time has passed or somebody calls.
final class WakeSignal: Sendable {
    private struct State {
        var isRaised = false
        var sleeper: CheckedContinuation<Void, Never>?
    }

    private let state = Locked(State())

    /// Whether somebody called since the last sleep.
    var isRaised: Bool { state.withLock(\.isRaised) }

    /// Wakes the sleeper, or makes its next sleep end at once.
    func raise() { wakeSleeper { $0.isRaised = true } }

    /// Returns whether somebody called, rather than the time having passed or the task having been cancelled.
    func sleep(for duration: Duration) async -> Bool {
        await withTaskGroup(of: Void.self) { group in
            group.addTask { try? await Dependencies.current.sleep(for: duration) }
            group.addTask { await self.call() }
            await group.next()
            group.cancelAll()
        }
        return state.withLock { state in
            defer { state.isRaised = false }
            return state.isRaised
        }
    }

    /// Returns when somebody calls, or when it is cancelled.
    private func call() async {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isOver = state.withLock { state in
                    if state.isRaised || Task.isCancelled { return true }
                    state.sleeper = continuation
                    return false
                }
                if isOver { continuation.resume() }
            }
        } onCancel: {
            wakeSleeper { _ in }
        }
    }

    private func wakeSleeper(_ change: (inout State) -> Void) {
        let sleeper = state.withLock { state in
            change(&state)
            defer { state.sleeper = nil }
            return state.sleeper
        }
        sleeper?.resume()
    }
}
