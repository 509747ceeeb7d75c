import TidemarkCore
package import TidemarkWire

/// Lets a bounded amount of work through at a time, and the rest in turns (I14). Each piece has a weight: 1 at a gate
/// over threads, its bytes at a gate over memory. One caller never holds more than a share, so that another one finds a
/// place.
package final class FairGate: Sendable {
    private struct State {
        var free: Int
        /// The weight that each caller holds.
        var held: [String: Int] = [:]
        var waiting = FairQueue<Waiter>()
    }

    /// Somebody who waits; whichever comes first, his turn or his going away, ends it.
    private final class Waiter: Sendable {
        let caller: String
        let weight: Int
        private let continuation: Guarded<CheckedContinuation<Void, any Error>?>

        init(_ caller: String, _ weight: Int, _ continuation: CheckedContinuation<Void, any Error>) {
            self.caller = caller
            self.weight = weight
            self.continuation = Guarded(continuation)
        }

        /// Returns whether he still waited.
        func end(_ result: Result<Void, any Error>) -> Bool {
            let continuation = continuation.withLock { continuation in
                defer { continuation = nil }
                return continuation
            }
            continuation?.resume(with: result)
            return continuation != nil
        }
    }

    private let capacity: Int
    private let share: Int
    private let waitingLimit: Int
    private let state: Guarded<State>

    /// - Parameters:
    ///   - capacity: the weight that is let through at a time. A piece that weighs more goes alone.
    ///   - share: the weight that one caller may hold; one piece of his may always go. It does not bind the caller
    ///     without a name: the server itself, or all those whom a host does not tell apart.
    ///   - waitingLimit: pieces that may wait; those beyond are refused with ``StoreUnavailable``.
    package init(capacity: Int, share: Int, waitingLimit: Int) {
        self.share = share
        self.capacity = max(1, capacity)
        self.waitingLimit = waitingLimit
        state = Guarded(State(free: max(1, capacity)))
    }

    /// Whether anybody waits before it.
    package var hasWaiting: Bool { state.withLock { !$0.waiting.isEmpty } }

    /// How many wait before it.
    package var waitingCount: Int { state.withLock { $0.waiting.count } }

    /// Runs a piece of work when its turn has come.
    ///
    /// - Throws: ``StoreUnavailable`` where too many wait; `CancellationError` where the caller goes away before; what
    ///   `body` throws.
    package func pass<Result: Sendable>(
        for caller: String, in scope: Scope = "-", weight: Int = 1, _ body: () async throws -> Result
    ) async throws -> Result {
        let weight = min(max(1, weight), capacity)
        try await enter(caller, scope, weight)
        defer { leave(caller, weight) }
        return try await body()
    }

    private func enter(_ caller: String, _ scope: Scope, _ weight: Int) async throws {
        let gone = Guarded<(isGone: Bool, waiter: Waiter?)>((false, nil))
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let waiter = Waiter(caller, weight, continuation)
                let isGone = gone.withLock { gone in
                    gone.waiter = waiter
                    return gone.isGone
                }
                guard !isGone else {
                    _ = waiter.end(.failure(CancellationError()))
                    return
                }
                let outcome: (isFull: Bool, next: [Waiter]) = state.withLock { state in
                    if state.waiting.count >= waitingLimit { return (true, []) }
                    state.waiting.append(waiter, of: caller, in: scope)
                    return (false, next(&state))
                }
                if outcome.isFull {
                    _ = waiter.end(.failure(StoreUnavailable("\(waitingLimit) calls are waiting already")))
                }
                admit(outcome.next)
            }
        } onCancel: {
            let waiter = gone.withLock { gone in
                gone.isGone = true
                return gone.waiter
            }
            guard let waiter, waiter.end(.failure(CancellationError())) else { return }
            // It may have been the one whose size the others waited for.
            let waiters = state.withLock { state in
                _ = state.waiting.remove(of: caller, in: scope) { $0 === waiter }
                return next(&state)
            }
            admit(waiters)
        }
    }

    private func leave(_ caller: String, _ weight: Int) {
        let waiters = state.withLock { state in
            state.free += weight
            let rest = state.held[caller, default: 0] - weight
            state.held[caller] = rest > 0 ? rest : nil
            return next(&state)
        }
        admit(waiters)
    }

    /// The waiters whose turn it is. The first that does not fit is waited for: others would go past it for ever.
    private func next(_ state: inout State) -> [Waiter] {
        var admitted: [Waiter] = []
        // Not in `state` meanwhile: what is asked of each waiter reads it.
        var held: [String: Int] = [:]
        swap(&held, &state.held)
        defer { swap(&held, &state.held) }
        func mayGo(_: Scope, _ waiter: Waiter) -> Bool {
            waiter.caller.isEmpty || held[waiter.caller].map { $0 + waiter.weight <= share } ?? true
        }
        while let waiter = state.waiting.first(where: mayGo), waiter.weight <= state.free {
            _ = state.waiting.popFirst(where: mayGo)
            state.free -= waiter.weight
            held[waiter.caller, default: 0] += waiter.weight
            admitted.append(waiter)
        }
        return admitted
    }

    /// Lets them through. The place of one who has gone away meanwhile is the next one's.
    private func admit(_ waiters: [Waiter]) {
        for waiter in waiters where !waiter.end(.success(())) { leave(waiter.caller, waiter.weight) }
    }
}
