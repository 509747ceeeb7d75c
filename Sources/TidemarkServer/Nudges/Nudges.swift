import TidemarkCore
import TidemarkWire

/// The waiters for news of scopes, on one node (Protocol.md).
///
/// A nudge only says "pull": it may be lost, come twice or late, and nothing rests on it but how soon a device asks. So
/// the hub keeps no queue. Of each scope that somebody waits for it knows one number, the newest head that it has heard
/// of; a waiter has a set of heads that it has not taken yet, one for each of its scopes at most, and newer ones take
/// the place of older ones. A slow reader gets fewer nudges and holds no memory; a connection whose reader takes
/// nothing is the HTTP floor's to close (`writeTimeout`).
///
/// Heads come from this node's own commits, when they are durable, and from the store, which says what other nodes have
/// done (``WatchedStore/watch(_:seen:changed:)``): as fast as a hint travels, and by looking in any case.
///
/// ```
///   commit on this node ──▶ publish ─┐
///                                    ├──▶ hub: newest head per scope ──▶ waiter: heads not taken ──▶ stream
///   hint or look of the store ─▶ saw ┘
/// ```
final class Nudges: Sendable {
    private struct State {
        var waiters: [Int: Waiter] = [:]
        /// The scopes that each of them waits for.
        var waited: [Int: Set<Scope>] = [:]
        var lastWaiter = 0
        var scopes: [Scope: Watched] = [:]
        var perPrincipal: [String: Int] = [:]
        /// The scopes of many waiters who are still to be told. They are few, since each has more than
        /// ``Nudges/atOnce`` waiters.
        var untold = UniqueQueue<Scope>()
        /// Whether a task tells them.
        var isTelling = false
        var isClosed = false

        mutating func remove(_ waiter: Waiter) {
            guard waiters.removeValue(forKey: waiter.id) != nil else { return }
            let rest = perPrincipal[waiter.principal, default: 1] - 1
            perPrincipal[waiter.principal] = rest > 0 ? rest : nil
            for scope in waited.removeValue(forKey: waiter.id) ?? [] { forget(scope, waiter.id) }
        }

        mutating func insert(_ scope: Scope, for waiter: Int) {
            waited[waiter, default: []].insert(scope)
            scopes[scope, default: Watched()].waiters.insert(waiter)
        }

        mutating func remove(_ scope: Scope, for waiter: Int) {
            guard waited[waiter]?.remove(scope) != nil else { return }
            forget(scope, waiter)
        }

        private mutating func forget(_ scope: Scope, _ waiter: Int) {
            scopes[scope]?.waiters.remove(waiter)
            if scopes[scope]?.waiters.isEmpty == true { scopes[scope] = nil }
        }

        /// The one that has waited longest of those that are too many with one more.
        mutating func removeOldest(of principal: String, _ limits: Limits) -> Waiter? {
            guard perPrincipal[principal, default: 0] >= limits.streamsPerPrincipal else { return nil }
            let oldest = waiters.values.filter { $0.principal == principal }.min { $0.id < $1.id }
            if let oldest { remove(oldest) }
            return oldest
        }
    }

    private struct Watched {
        /// The newest head that anybody has told; `nil` at first.
        var head: Version?
        var waiters: Set<Int> = []
    }

    /// Waiters who are woken together.
    private static let atOnce = 8

    private let state = Guarded(State())

    /// Scopes that somebody waits for.
    var watched: Set<Scope> { state.withLock { Set($0.scopes.keys) } }

    /// Begins to wait. Where the principal waits often enough already, the one that has waited longest ends: it may
    /// well be a connection that is gone, which shows only in the second writing to it.
    ///
    /// - Throws: `too_many_requests` where all principals together have as many streams as there may be, or where the
    ///   server has no streams; `unavailable` where it is stopping.
    func wait(for scopes: Set<Scope>, as principal: String, _ limits: Limits) throws(Problem) -> Waiter {
        let waiter: Result<(Waiter, displaced: Waiter?), Problem> = state.withLock { state in
            if state.isClosed { return .failure(Problem(.unavailable, "The server is stopping.")) }
            guard limits.streams > 0, limits.streamsPerPrincipal > 0 else {
                return .failure(Problem(.tooManyRequests, "This server has no streams: pull from time to time."))
            }
            let displaced = state.removeOldest(of: principal, limits)
            guard state.waiters.count < limits.streams else {
                return .failure(Problem(.tooManyRequests, "\(limits.streams) streams are open on this server."))
            }
            state.lastWaiter += 1
            let waiter = Waiter(state.lastWaiter, principal)
            state.waiters[waiter.id] = waiter
            state.waited[waiter.id] = []
            state.perPrincipal[principal, default: 0] += 1
            for scope in scopes { state.insert(scope, for: waiter.id) }
            return .success((waiter, displaced))
        }
        let (new, displaced) = try waiter.get()
        displaced?.close(because: .displaced)
        return new
    }

    /// Waits for one scope more.
    ///
    /// - Throws: `limit_out_of_range` where the waiter has as many scopes as a stream may have.
    func add(_ scope: Scope, to waiter: Waiter, _ limits: Limits) throws(Problem) {
        let isTaken = state.withLock { state in
            // A waiter that has ended meanwhile waits for nothing.
            guard let waited = state.waited[waiter.id] else { return true }
            guard waited.contains(scope) || waited.count < limits.streamScopes else { return false }
            state.insert(scope, for: waiter.id)
            return true
        }
        guard isTaken else { throw Problem(.limitOutOfRange, "A stream has \(limits.streamScopes) scopes at most.") }
    }

    /// Waits for a scope no more.
    func remove(_ scope: Scope, from waiter: Waiter) {
        state.withLock { $0.remove(scope, for: waiter.id) }
        waiter.forget(scope)
    }

    /// Waits no more.
    func end(_ waiter: Waiter) {
        state.withLock { $0.remove(waiter) }
        waiter.close()
    }

    /// Tells all that wait for a scope that there is no more of it.
    func end(of scope: Scope) {
        let waiters = state.withLock { state in
            let ids = state.scopes[scope]?.waiters ?? []
            for id in ids { state.remove(scope, for: id) }
            return ids.compactMap { state.waiters[$0] }
        }
        for waiter in waiters { waiter.lose(scope) }
    }

    /// A commit of this node is durable. Commits of a scope may be told in another order than they were made.
    func publish(_ scope: Scope, _ head: Version) { tell(scope, head) }

    /// The store has looked. Where what it says is less, it was put back, or has looked before a commit that was told
    /// meanwhile: from there on what is more is news.
    func saw(_ heads: [Scope: Version]) {
        for (scope, head) in heads {
            state.withLock { state in
                if let known = state.scopes[scope]?.head, head < known { state.scopes[scope]?.head = head }
            }
            tell(scope, head)
        }
    }

    private func tell(_ scope: Scope, _ head: Version) {
        let (waiters, isFirst): ([Waiter], Bool) = state.withLock { state in
            guard let watched = state.scopes[scope], watched.head.map({ $0 < head }) ?? true else { return ([], false) }
            state.scopes[scope]?.head = head
            guard watched.waiters.count > Self.atOnce else {
                return (watched.waiters.compactMap { state.waiters[$0] }, false)
            }
            state.untold.append(scope)
            defer { state.isTelling = true }
            return ([], !state.isTelling)
        }
        for waiter in waiters { waiter.note(scope, head) }
        if isFirst { Task { await tellMany() } }
    }

    /// Wakes the waiters of large scopes a few at a time, so that requests have their turns between: the answer to the
    /// very commit that is told would wait for a thousand writes otherwise.
    private func tellMany() async {
        while let (scope, head, waiters) = nextUntold() {
            for start in stride(from: 0, to: waiters.count, by: Self.atOnce) {
                for waiter in waiters[start...].prefix(Self.atOnce) { waiter.note(scope, head) }
                await Task.yield()
            }
        }
    }

    private func nextUntold() -> (Scope, Version, [Waiter])? {
        state.withLock { state in
            while let scope = state.untold.popFirst() {
                guard let watched = state.scopes[scope], let head = watched.head else { continue }
                return (scope, head, watched.waiters.compactMap { state.waiters[$0] })
            }
            state.isTelling = false
            return nil
        }
    }

    /// Ends all that wait, for good.
    func close() {
        let waiters = state.withLock { state in
            state.isClosed = true
            return Array(state.waiters.values)
        }
        for waiter in waiters { waiter.close(because: .stopping) }
    }
}

/// A caller that waits for news of some scopes.
package final class Waiter: Sendable {
    /// Why a waiter was ended by others.
    package enum End: Sendable {
        /// Another one of its principal has taken its place.
        case displaced
        /// The server stops.
        case stopping
    }

    private struct State {
        var heads: [Scope: Version] = [:]
        var lost: Set<Scope> = []
        var end: End?
    }

    fileprivate let id: Int
    package let principal: String
    /// Yields an element whenever there is something to look at; many at once are one. Ends with the waiter.
    package let wakes: AsyncStream<Void>
    private let continuation: AsyncStream<Void>.Continuation
    private let state = Guarded(State())

    fileprivate init(_ id: Int, _ principal: String) {
        self.id = id
        self.principal = principal
        (wakes, continuation) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    /// There is a head to take, unless a newer one waits already.
    func note(_ scope: Scope, _ head: Version) {
        state.withLock { $0.heads[scope] = max($0.heads[scope] ?? 0, head) }
        wake()
    }

    fileprivate func forget(_ scope: Scope) { state.withLock { $0.heads[scope] = nil } }

    fileprivate func lose(_ scope: Scope) {
        state.withLock { state in
            state.heads[scope] = nil
            state.lost.insert(scope)
        }
        wake()
    }

    /// The heads that have come since the last time, in the order of their scopes.
    package func take() -> [(scope: Scope, head: Version)] {
        let taken = state.withLock { state in
            defer { state.heads = [:] }
            return state.heads
        }
        return taken.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
    }

    /// The scopes that were erased since the last time.
    package func takeLost() -> [Scope] {
        let taken = state.withLock { state in
            defer { state.lost = [] }
            return state.lost
        }
        return taken.sorted()
    }

    /// Why it has ended; `nil` where it has not, or of its own accord.
    package var end: End? { state.withLock { $0.end } }

    /// For a clock that has something to say.
    package func wake() { continuation.yield() }

    package func close(because end: End? = nil) {
        state.withLock { $0.end = $0.end ?? end }
        continuation.finish()
    }
}
