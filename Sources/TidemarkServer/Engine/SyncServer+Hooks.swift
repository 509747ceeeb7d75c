import TidemarkWire

/// The hooks of a server (B3).
extension SyncServer {
    /// Tells everybody on this node that a scope has a new head: those who wait for nudges, and the hooks. Commits of
    /// a scope may be told in another order than they were made.
    func tell(_ scope: Scope, _ head: Version) {
        nudges.publish(scope, head)
        for (hook, names) in hooks where hook.includes(scope) { names.note([scope]) }
    }

    /// Another node has changed scopes; `nil`: perhaps any.
    func hear(_ scopes: Set<Scope>?) {
        for (hook, names) in hooks {
            guard let scopes else {
                names.note(nil)
                continue
            }
            let included = scopes.filter(hook.includes)
            if !included.isEmpty { names.note(included) }
        }
    }

    /// Scopes with news that the hooks which this node calls were not told, and for how many seconds the oldest waits;
    /// `nil` where it calls none.
    package var hookStanding: (behind: Int, oldestSeconds: Int64?)? {
        let standings = hooks.compactMap { $0.names.standing.withLock { $0 } }
        guard !standings.isEmpty else { return nil }
        let ages = standings.compactMap(\.oldest).map { moment in
            let (age, overflow) = configuration.moment().subtractingReportingOverflow(moment)
            return overflow ? 0 : max(0, age / 1000)
        }
        return (standings.reduce(0) { $0 + $1.behind }, ages.max())
    }

    /// Calls the hooks of ``Configuration/hooks`` until the task is cancelled; without any it returns at once. A
    /// Hummingbird application does so by naming the engine among its services.
    ///
    /// - Throws: `CancellationError` when cancelled, and ``StoreWithoutHooks``.
    public func callHooksContinuously() async throws {
        guard !hooks.isEmpty else { return }
        guard let store = store as? any HookStore else { throw StoreWithoutHooks() }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for (hook, names) in hooks {
                let runner = HookRunner(
                    hook, names, store, times: configuration.hookTimes, now: configuration.moment,
                    uptime: configuration.uptime, report: configuration.onHookEvent)
                group.addTask { try await runner.run() }
            }
            try await group.waitForAll()
        }
    }
}

/// The store cannot remember what hooks were told.
public struct StoreWithoutHooks: Error, CustomStringConvertible {
    /// What to do.
    public let description = "hooks need a store that remembers what they were told: SQLiteStore or PostgresStore"

    /// Makes the error, for tests.
    public init() {}
}
