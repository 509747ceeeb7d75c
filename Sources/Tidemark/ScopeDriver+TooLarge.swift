import TidemarkWire

// MARK: - Requests that are larger than a server takes

extension ScopeDriver {
    /// Whether a server, or a proxy before it, takes less than this device sends or asks for at once, and a smaller
    /// request goes without a wait: each is half as large, so there are few of them.
    func isMadeSmaller(_ exchange: Exchange, _ failure: Failure, status: Int) -> Bool {
        if failure.problem?.code == .limitOutOfRange { return sizing.refused() }
        guard status == 413, exchange.onlyKeys.isEmpty, exchange.keys.count > 1 else { return false }
        return batching.refused(at: exchange.keys.count)
    }

    /// An operation that is sent alone and is still too large would stop everything behind it for ever. A small one is
    /// not at fault.
    func setAside(_ exchange: Exchange) async throws {
        guard let key = exchange.onlyKeys.first, exchange.onlyKeys.count > 1 || exchange.onlyBytes >= Self.leastTooLarge
        else { return }
        // Nothing in such an answer says whose it is: one that is late is about a larger request.
        guard tooLarge == exchange.onlyKeys else {
            tooLarge = exchange.onlyKeys
            throw SyncError(.answerUnusable, "The request was too large.", hint: "It is sent once more.")
        }
        let verdict = try exchange.refusal(now: wallClockMilliseconds())
        let outcome = try await database {
            try await self.preparation.file.writeWithoutTransaction(at: .refuse) { db in try verdict.run(db) }
        }
        counts.rejected += outcome.rejected
        // Its number never reaches the server, so nothing can follow it in its lane.
        var gap = Problem(.operationGap, "One edit was too large.")
        gap.lane = key.lane
        gap.expected = key.number
        problem = gap
        _ = try await repair()
        throw SyncError(.answerUnusable, "One edit was too large.", hint: "It is set aside; the others go on.")
    }

    /// No server takes less than this in one request.
    private static let leastTooLarge = 64 << 10
}
