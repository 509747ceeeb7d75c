public import TidemarkServer

extension PostgresStore {
    /// Scopes that one question asks for.
    private static let watchStep = 2000

    private static let heads = Statement("heads", "SELECT name, head FROM scope WHERE name = ANY ($1)")

    /// Looks at the heads of the scopes that are watched, every ``Configuration/lookInterval`` and as soon as a hint of
    /// another node has come. The closures are called from one task of this call's own.
    ///
    /// - Throws: `CancellationError` when cancelled; where the server is away, the next look finds out.
    public func watch(
        _ watched: @escaping @Sendable () -> Set<Scope>, seen: @escaping @Sendable ([Scope: Version]) -> Void,
        changed: @escaping @Sendable (Set<Scope>?) -> Void
    ) async throws {
        let hinted = HintedScopes()
        let wakes = hinted.wakes()
        let listener = listener(hinted)
        listener.start()
        defer { listener.end() }
        let interval = Configuration.bounded(configuration.lookInterval)
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                while true {
                    try await Task.sleep(for: interval)
                    hinted.look()
                }
            }
            group.addTask {
                for await _ in wakes {
                    let (hints, isTime) = hinted.take()
                    switch hints {
                    case .all: changed(nil)
                    case .these(let names) where names.isEmpty: break
                    case .these(let names): changed(Set(names.compactMap { Scope($0) }))
                    }
                    let scopes = watched().filter { isTime || hints.contains($0.name) }.sorted()
                    for start in stride(from: 0, to: scopes.count, by: Self.watchStep) {
                        let step = scopes[start..<min(start + Self.watchStep, scopes.count)]
                        // Where the server is away, the next look finds out.
                        if let heads = try? await self.heads(of: step) { seen(heads) }
                    }
                }
                try Task.checkCancellation()
            }
            try await group.waitForAll()
        }
    }

    /// Heads of scopes; those that nobody wrote to are left out.
    private func heads(of scopes: ArraySlice<Scope>) async throws -> [Scope: Version] {
        let names = scopes.map(\.name)
        return try await reads.run { line in
            try line.read { session in
                let answer = try session.ask(Self.heads, .texts(names))
                var heads: [Scope: Version] = [:]
                for row in 0..<answer.count {
                    if let scope = Scope(answer.text(row, 0)) { heads[scope] = try answer.integer(row, 1) }
                }
                return heads
            }
        }
    }
}
