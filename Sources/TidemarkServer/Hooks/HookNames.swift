import TidemarkWire

/// How far hooks are behind, as the node knows that calls them.
struct HookStanding: Hashable, Sendable {
    /// Scopes with news that was not told.
    var behind: Int
    /// When the oldest of that was committed, in milliseconds since 1970.
    var oldest: Int64?
}

/// Names of scopes that have changed, gathered for one hook until it looks; a bounded number of them.
final class HookNames: Sendable {
    /// With more names than this the whole store is looked through.
    private static let limit = 2000

    private struct State {
        var scopes: Set<Scope> = []
        var isAll = false
    }

    private let state = Guarded(State())
    private let continuation = Guarded<AsyncStream<Void>.Continuation?>(nil)
    /// How far the hook is behind; `nil` while another node calls it, or nobody does.
    let standing = Guarded<HookStanding?>(nil)

    /// Yields an element whenever there is something to do, the first one at once; many together are one. The new
    /// stream takes the place of the one before, because a stream ends when the task that reads it is cancelled.
    func wakes() -> AsyncStream<Void> {
        let (stream, next) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
        next.yield()
        let former = continuation.withLock { continuation in
            defer { continuation = next }
            return continuation
        }
        former?.finish()
        return stream
    }

    /// Notes scopes that have changed; `nil`: perhaps any.
    func note(_ scopes: Set<Scope>?) {
        state.withLock { state in
            guard !state.isAll else { return }
            if let scopes { state.scopes.formUnion(scopes) } else { state.isAll = true }
            if state.scopes.count > Self.limit { state.isAll = true }
            if state.isAll { state.scopes = [] }
        }
        wake()
    }

    func wake() { _ = continuation.withLock { $0?.yield() } }

    var isEmpty: Bool { state.withLock { $0.scopes.isEmpty && !$0.isAll } }

    /// Takes what was gathered.
    func take() -> (scopes: Set<Scope>, isAll: Bool) {
        state.withLock { state in
            defer { state = State() }
            return (state.scopes, state.isAll)
        }
    }
}
