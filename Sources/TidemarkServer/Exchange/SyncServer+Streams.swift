package import TidemarkWire

extension SyncServer {
    /// Begins to wait for news of scopes that the caller may read. The waiter first takes their present heads.
    ///
    /// - Throws: `malformed_request` without a scope; the refusal of a scope; `limit_out_of_range` for more than
    ///   `streamScopes` scopes; `too_many_requests`; `unavailable` where the server is stopping.
    package func waiter(for grants: [(scope: Scope, access: Access)]) async throws -> Waiter {
        guard let principal = grants.first?.access.principal else {
            throw Problem(.malformedRequest, "In `scope`: a required member is missing.")
        }
        guard grants.count <= limits.streamScopes else {
            throw Problem(.limitOutOfRange, "In `scope`: \(grants.count) names where \(limits.streamScopes) are taken.")
        }
        for (scope, access) in grants { try access.require(.read, in: scope) }
        let scopes = Set(grants.map(\.scope))
        let waiter = try nudges.wait(for: scopes, as: principal, limits)
        do {
            try await noteHeads(of: scopes, to: waiter)
        } catch {
            nudges.end(waiter)
            throw error
        }
        return waiter
    }

    /// Begins to wait without a scope.
    ///
    /// - Throws: `too_many_requests`; `unavailable` where the server is stopping.
    package func waiter(as principal: String) throws(Problem) -> Waiter {
        try nudges.wait(for: [], as: principal, limits)
    }

    package func end(_ waiter: Waiter) { nudges.end(waiter) }

    /// Waits for one scope more, and first takes its present head.
    ///
    /// - Throws: the refusal of the scope; `limit_out_of_range` where the waiter has `streamScopes` scopes already.
    package func add(_ scope: Scope, _ access: Access, to waiter: Waiter) async throws {
        try access.require(.read, in: scope)
        try nudges.add(scope, to: waiter, limits)
        do {
            try await noteHeads(of: [scope], to: waiter)
        } catch {
            nudges.remove(scope, from: waiter)
            throw error
        }
    }

    package func remove(_ scope: Scope, from waiter: Waiter) { nudges.remove(scope, from: waiter) }

    /// Read after the waiter has begun, so that what is committed from then on is told.
    private func noteHeads(of scopes: Set<Scope>, to waiter: Waiter) async throws {
        try await openings.pass(for: waiter.principal) {
            for scope in scopes {
                waiter.note(scope, try await readScope(scope, for: waiter.principal) { $0.state.head })
            }
        }
    }

    /// Whether a stream that was granted may go on.
    package func isGranted(_ access: Access, in scope: Scope) -> Bool {
        guard (try? access.require(.read, in: scope)) != nil else { return false }
        return access.expires.map { $0 > configuration.now() } ?? true
    }

    /// Tells those who wait, and the hooks, what other nodes have committed, until cancelled.
    package func watchOtherNodes() async throws {
        let nudges = nudges
        try await store.watch {
            nudges.watched
        } seen: {
            nudges.saw($0)
        } changed: {
            self.hear($0)
        }
    }

    /// Ends all streams; new ones are refused.
    package func endStreams() { nudges.close() }
}

// MARK: - For the floor above

extension SyncServer {
    /// How often a stream without news says that it is there.
    package var streamComment: Duration { configuration.streamComment }

    /// The time until a moment by the engine's clock, in milliseconds; at most a day, so that a clock which is set is
    /// noticed.
    package func millisecondsUntil(_ moment: Int64) -> Int64 {
        min(moment.saturatingSubtracting(configuration.moment()), 86_400_000)
    }
}
