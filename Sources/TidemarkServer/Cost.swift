import TidemarkWire

/// What one push has cost so far, inside the transaction that carries it out, and whether it has come to its end (I14).
///
/// Everybody who pushes shares one writer, so a request is ended before others wait too long: behind an operation or a
/// group, never within one.
final class Cost {
    private let limits: Limits
    private let uptime: () -> Duration
    private let end: Duration
    private let othersWait: () -> Bool
    private var lookups = 0
    private var bytes = 0

    init(_ limits: Limits, uptime: @escaping () -> Duration, othersWait: @escaping () -> Bool) {
        self.limits = limits
        self.uptime = uptime
        self.othersWait = othersWait
        end = uptime() + limits.pushTime
    }

    /// One row was looked up that no operation names as its own.
    func lookUp() { lookups += 1 }

    /// So many bytes go into the log, or are kept beside it.
    func write(_ count: Int) { bytes += count }

    var isSpent: Bool { lookups >= limits.pushLookups || bytes >= limits.pushBytes || uptime() >= end && othersWait() }
}
