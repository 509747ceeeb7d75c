import TidemarkCore
import TidemarkWire

// MARK: - Requests that are larger than a server takes

extension ScopeDriver {
    /// Whether a server, or a proxy before it, takes less than this device sends or asks for at once, and a smaller
    /// request goes without a wait: each is half as large, so there are few of them.
    func isMadeSmaller(_ exchange: Exchange, _ failure: Failure, status: Int) -> Bool {
        if failure.problem?.code == .limitOutOfRange { return sizing.refused() }
        guard exchange.onlyKeys.isEmpty, exchange.keys.count > 1 else { return false }
        if status == 413 { return batching.refused(at: exchange.keys.count) }
        // A bad operation must not stop the others: halving finds it, and later batches grow again.
        guard failure.mayBeOfOperation else { return false }
        batching.failed(at: exchange.keys.count)
        return true
    }

    /// An operation that is sent alone and is still too large would stop everything behind it for ever. A small one is
    /// not at fault.
    func refuse(_ exchange: Exchange) async throws {
        guard !exchange.onlyKeys.isEmpty, exchange.onlyKeys.count > 1 || exchange.onlyBytes >= Self.leastTooLarge
        else { return }
        // Nothing in such an answer says whose it is: one that is late is about a larger request.
        guard tooLarge == exchange.onlyKeys else {
            tooLarge = exchange.onlyKeys
            throw SyncError(.answerUnusable, "The request was too large.", hint: "It is sent once more.")
        }
        try await refuse(
            exchange,
            as: Verdict.Refusal(
                code: RejectionCode.recordTooLarge,
                detail: "It takes \(exchange.onlyBytes) bytes, more than the server accepts.",
                hint: "Keep large content apart from the record, and groups small."))
        throw SyncError(.answerUnusable, "One edit was too large.", hint: "It is listed as refused; the others go on.")
    }

    /// Takes an operation that no request can carry, or a group, out of the way of the others.
    func refuse(_ exchange: Exchange, as refusal: Verdict.Refusal) async throws {
        guard let key = exchange.onlyKeys.first else { return }
        let verdict = try exchange.answered(refusal, now: wallClockMilliseconds())
        let outcome = try await database {
            try await self.schemaCache.file.writeWithoutTransaction(at: .refuse) { db in try verdict.run(db) }
        }
        counts.rejected += outcome.rejected
        // Its number never reaches the server, so nothing can follow it in its lane.
        var gap = Problem(.operationGap, "One edit was refused.")
        gap.lane = key.lane
        gap.expected = key.number
        problem = gap
        _ = try await repair()
    }

    /// No server takes less than this in one request.
    private static let leastTooLarge = 64 << 10

    /// The server ends a push behind an operation where others wait: what it took tells how much to send at once.
    func resizeBatch(_ verdicts: Int, of sent: Int) {
        guard sent > 0 else { return }
        if verdicts < sent {
            batching.failed(at: sent)
        } else {
            batching.received(rows: sent, bytes: 0, milliseconds: 0)
        }
    }
}
