/// How long to wait after n failures in a row (B10): `w + random(0, min(max(JITTER, w), MAX − w))`, where `w` is
/// `min(BASE·2^(n − 1), ⅔·MAX)`.
///
/// A wait is spread by as much again: devices that lost a server at one moment would else come back to it at one
/// moment.
package struct Backoff: Hashable, Sendable {
    /// The first wait.
    package var baseMilliseconds: Int64 = 1_000
    /// No wait is longer, with what is added at random.
    package var maximumMilliseconds: Int64 = 15 * 60 * 1_000
    /// Up to this much is added at random, or up to as much as the wait where that is more. A third of the longest wait
    /// is kept for it.
    package var jitterMilliseconds: Int64 = 1_000

    /// The defaults: 1 s, 15 min and up to 1 s.
    package init() {}

    /// - Parameters:
    ///   - failures: how many there were in a row, at least 1.
    ///   - failure: the last one's class.
    ///   - jitter: a random number that the caller drew; any value will do.
    ///   - shortest: what is waited at least, in milliseconds, up to two thirds of the longest wait: a breaker's
    ///     cool-down.
    ///   - longest: what is waited at most, with all that is added.
    package func delay(
        failures: Int, class failure: FailureClass, jitter: UInt64, shortest: Int64 = 0, longest: Int64 = .max
    ) -> Int64 {
        let exponent = failures - 1 + failure.backoffHeadStart
        let (doubled, overflow) = baseMilliseconds.multipliedReportingOverflow(
            by: 1 << Int64(min(max(exponent, 0), 40)))
        let longest = max(min(longest, maximumMilliseconds), 0)
        let wait = min(max(overflow ? .max : doubled, shortest, 0), longest / 3 * 2)
        let spread = min(max(jitterMilliseconds, wait, 0), longest - wait)
        return wait + Int64(jitter % (UInt64(spread) + 1))
    }
}
