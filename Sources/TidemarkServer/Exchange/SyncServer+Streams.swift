package import TidemarkWire

extension SyncServer {
    /// Begins to wait for news of scopes that the caller may read. The waiter first takes their present heads.
    ///
    /// - Throws: the refusal of a scope, and `too_many_requests`.
    package func waiter(for grants: [(scope: Scope, access: Access)]) async throws -> Waiter {
        guard let principal = grants.first?.access.principal else {
            throw Problem(.malformedRequest, "In `scope`: a required member is missing.")
        }
        guard grants.count <= limits.streamScopes else {
            throw Problem(.limitOutOfRange, "In `scope`: \(grants.count) names where \(limits.streamScopes) are taken.")
        }
        for (scope, access) in grants { try access.require(.read, in: scope) }
        let waiter = try nudges.wait(for: Set(grants.map(\.scope)), as: principal, limits)
        do {
            // Read after it has begun: what is committed from now on is told.
            try await openings.pass(for: principal) {
                for scope in waiter.scopes {
                    waiter.note(scope, try await readScope(scope, for: principal) { $0.state.head })
                }
            }
        } catch {
            nudges.end(waiter)
            throw error
        }
        return waiter
    }

    package func end(_ waiter: Waiter) { nudges.end(waiter) }

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
        let (rest, overflow) = moment.subtractingReportingOverflow(configuration.now())
        return min(overflow ? .max : rest, 86_400_000)
    }
}
