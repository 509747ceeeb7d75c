import TidemarkWire

/// The blobs that are on their way, in either direction: each holds a piece or two in memory (I14).
final class BlobTransfers: Sendable {
    /// One caller may have one of so many parts of the limit. A caller who has no transfer yet is let in beyond the
    /// limit, up to so many times of it, so that callers who send slowly keep no other one out.
    private static let shares = 4

    private struct State {
        var count = 0
        var held: [String: Int] = [:]
    }

    private let limit: Int
    private let state = Guarded(State())

    init(limit: Int) { self.limit = max(1, limit) }

    /// Lets one more begin; it counts for as long as somebody holds what is returned. The caller without a name, all
    /// those whom a host does not tell apart, has no share of his own.
    func begin(for caller: String) throws(Problem) -> BlobTransfer {
        let share = caller.isEmpty ? limit : max(1, limit / Self.shares)
        let refusal: Problem? = state.withLock { state in
            let held = state.held[caller, default: 0]
            if held >= share {
                return Problem(.tooManyRequests, "One caller may have \(share) blobs on their way here.")
            }
            if state.count >= (held == 0 ? limit * Self.shares : limit) {
                return Problem(.unavailable, "Too many blobs are on their way.")
            }
            state.count += 1
            state.held[caller, default: 0] += 1
            return nil
        }
        if var refusal {
            refusal.retryAfter = 1
            throw refusal
        }
        return BlobTransfer { [self] in end(for: caller) }
    }

    private func end(for caller: String) {
        state.withLock { state in
            state.count -= 1
            let rest = state.held[caller, default: 0] - 1
            state.held[caller] = rest > 0 ? rest : nil
        }
    }
}

/// A blob that is on its way, until nobody holds this.
package final class BlobTransfer: Sendable {
    private let end: @Sendable () -> Void

    init(_ end: @escaping @Sendable () -> Void) { self.end = end }

    deinit { end() }
}
