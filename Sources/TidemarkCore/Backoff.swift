/// How long to wait before another attempt: `min(MAX, BASE·2^attempt) + random(0, JITTER)` (B10).
public struct Backoff: Hashable, Sendable {
    /// The first wait.
    public var baseMilliseconds: Int64 = 1_000
    /// No wait is longer, jitter apart.
    public var maximumMilliseconds: Int64 = 15 * 60 * 1_000
    /// Up to this much is added at random, so that devices do not come back together.
    public var jitterMilliseconds: Int64 = 1_000

    /// The defaults: 1 s, 15 min and up to 1 s.
    public init() {}

    /// `jitter` is a random number that the caller drew; any value will do.
    package func delay(attempt: Int, class failure: FailureClass, jitter: UInt64) -> Int64 {
        let exponent = attempt + failure.backoffHeadStart
        let (doubled, overflow) = baseMilliseconds.multipliedReportingOverflow(
            by: 1 << Int64(min(max(exponent, 0), 40)))
        let wait = overflow ? maximumMilliseconds : min(maximumMilliseconds, doubled)
        return wait + Int64(jitter % UInt64(max(jitterMilliseconds, 0) + 1))
    }
}
