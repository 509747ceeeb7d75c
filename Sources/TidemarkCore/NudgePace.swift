/// How soon after a nudge the next one may be written: at once where there were few, so that an edit arrives while
/// somebody watches; after a tenth of a second where they come one upon the other, and what comes meanwhile goes
/// together. Time is an argument.
package struct NudgePace: Hashable, Sendable {
    private static let rate = TokenBucket.Rate(count: 10, milliseconds: 1000, burst: 10)

    private var bucket: TokenBucket

    package init(at now: Instant) { bucket = TokenBucket(full: Self.rate, at: now) }

    /// Milliseconds to rest after what was written `now`, most often none.
    package mutating func rest(at now: Instant) -> Int64 {
        _ = bucket.take(Self.rate, at: now)
        return bucket.wait(Self.rate, at: now)
    }
}
