package import TidemarkCore
package import TidemarkWire

/// A store that remembers what hooks were told (B3). Its functions are called from any task, several at once; each
/// throws ``StoreUnavailable`` for troubles that pass by themselves, and an error of the store's own for the rest.
package protocol HookStore: ChangeStore {
    /// Takes or keeps the right to call a hook for a time, and answers whether it was to be had: no other holder has it
    /// until then.
    func holdHook(_ hook: String, as holder: String, for time: Duration) async throws -> Bool

    /// Gives the right back; does nothing for a holder who has it not.
    func releaseHook(_ hook: String, as holder: String) async throws

    /// Notes for some scopes, at most `limit` and in the order of their names, that their present heads count as told,
    /// until it was done for all that there were. Answers whether something is left. Does nothing for a hook for which
    /// it is done.
    func beginHook(_ hook: String, limit: Int) async throws -> Bool

    /// The hook begins at the start: no head counts as told but those that are noted.
    func beginHookAtStart(_ hook: String) async throws

    /// What was not told: of the scopes that are named (`nil`: of at most `limit` scopes behind one, in the order of
    /// their names). Nothing of those that are erased.
    func untold(
        to hook: String, of scopes: [Scope]?, after scope: Scope?, limit: Int
    ) async throws -> [HookMachine.News]

    /// Notes what was told. A head that is noted already and newer stays.
    func keepTold(_ heads: [Scope: Version], to hook: String) async throws
}

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

    /// Yields an element whenever there is something to do, the first one at once; many together are one. It takes the
    /// place of the one before: a stream is over once somebody was cancelled who read it.
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
