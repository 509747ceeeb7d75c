/// How long a device waits before it opens its stream of nudges anew (B3).
package struct Reconnection: Hashable, Sendable {
    /// A stream that was open for so long has worked, in milliseconds.
    package static let stable: Int64 = 60_000

    package var backoff: Backoff
    /// No wait is longer, in milliseconds, unless the server asks for it.
    package var longest: Int64
    /// Streams in a row that were refused, or ended before they were stable.
    package private(set) var failures = 0
    /// More make no wait longer.
    private static let limit = 64

    package init(_ backoff: Backoff, longest: Int64) {
        self.backoff = backoff
        self.longest = longest
    }

    /// Returns the wait after a stream, in milliseconds.
    ///
    /// - Parameters:
    ///   - failure: why it ended; `nil` where the server has ended it in order, as it does with its token, or when it
    ///     stops: all its readers come back then, and should not at one moment.
    ///   - lasted: how long it was open, in milliseconds.
    ///   - asked: the wait that the server asked for, in milliseconds.
    ///   - jitter: a random number that the caller drew; any value will do.
    package mutating func wait(
        after failure: FailureClass?, lasted: Int64, asked: Int64? = nil, jitter: UInt64
    ) -> Int64 {
        if lasted >= Self.stable { failures = 0 }
        let asked = asked ?? 0
        guard failure != nil || lasted < Self.stable else {
            return max(Int64(jitter % (UInt64(max(backoff.jitterMilliseconds, 0)) + 1)), asked)
        }
        // A server without streams is not going to have them soon.
        guard failure != .needsApp else { return max(backoff.maximumMilliseconds, asked) }
        failures = min(failures + 1, Self.limit)
        return max(
            backoff.delay(failures: failures, class: failure ?? .transient, jitter: jitter, longest: longest), asked)
    }
}
