public import TidemarkWire

/// A store that other nodes may write to at the same time. It is called from any task.
public protocol WatchedStore: Sendable {
    /// Tells the heads of scopes that other nodes on the same database may have moved, soon after they have, until it
    /// is cancelled. It may tell what is known, and what this node did; in what `watched` names when it is asked, it
    /// leaves nothing out for long. Where there are no other nodes there is nothing to tell.
    ///
    /// It also passes on in `changed`, as hints that may be lost, which scopes other nodes say that they have changed;
    /// `nil`: perhaps any. The store calls the closures on any thread.
    ///
    /// - Throws: `CancellationError` when it is cancelled. Where the store is away, the next look finds out.
    func watch(
        _ watched: @escaping @Sendable () -> Set<Scope>, seen: @escaping @Sendable ([Scope: Version]) -> Void,
        changed: @escaping @Sendable (Set<Scope>?) -> Void
    ) async throws
}

extension WatchedStore {
    /// For a store of one node: waits until its task is cancelled, and calls nobody.
    ///
    /// - Throws: `CancellationError` when cancelled.
    public func watch(
        _ watched: @escaping @Sendable () -> Set<Scope>, seen: @escaping @Sendable ([Scope: Version]) -> Void,
        changed: @escaping @Sendable (Set<Scope>?) -> Void
    ) async throws {
        while true { try await Task.sleep(for: .seconds(3600)) }
    }
}
