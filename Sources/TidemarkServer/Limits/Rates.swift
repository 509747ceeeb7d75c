import TidemarkCore
import TidemarkWire

// MARK: - How much one caller may ask for (I14)

/// The requests that each caller has left. A server that starts again has counted nothing.
final class Rates: Sendable {
    /// `nil`: there is no limit.
    private let requests: Guarded<TokenBuckets>?
    private let scopes: Guarded<TokenBuckets>?
    /// Requests for shared pages, by scope: they carry no token, and so no caller's name.
    private let pages: Guarded<TokenBuckets>?

    /// Seconds' worth of requests that may come at once.
    private static let burstSeconds = 10
    private static let day: Int64 = 86_400_000

    init(_ limits: Limits) {
        func buckets(_ count: Int, milliseconds: Int64, burst: Int) -> Guarded<TokenBuckets>? {
            guard count > 0 else { return nil }
            return Guarded(TokenBuckets(TokenBucket.Rate(count: count, milliseconds: milliseconds, burst: burst)))
        }
        let (perSecond, perDay) = (limits.requestsPerSecond, limits.scopesPerPrincipal)
        let (burst, isTooMuch) = perSecond.multipliedReportingOverflow(by: Self.burstSeconds)
        requests = buckets(perSecond, milliseconds: 1000, burst: isTooMuch ? .max : burst)
        pages = buckets(perSecond, milliseconds: 1000, burst: isTooMuch ? .max : burst)
        scopes = buckets(perDay, milliseconds: Self.day, burst: perDay)
    }

    func request(of caller: String, at now: Instant) -> Int64? {
        requests?.withLock { $0.take(for: caller, at: now) }
    }

    func page(of scope: Scope, at now: Instant) -> Int64? {
        pages?.withLock { $0.take(for: scope.name, at: now) }
    }

    func mayOpen(_ caller: String, at now: Instant) -> Bool {
        scopes?.withLock { $0.wait(for: caller, at: now) == 0 } ?? true
    }

    func opened(_ caller: String, at now: Instant) {
        _ = scopes?.withLock { $0.take(for: caller, at: now) }
    }
}
