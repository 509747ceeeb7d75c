import TidemarkWire

/// The cost of one push so far, inside the transaction that carries it out, and whether the push has come to its end
/// (I14).
///
/// Everybody who pushes shares one writer, so a request is ended before others wait too long: behind an operation or a
/// group, never within one.
final class Cost {
    private let limits: Limits
    private let uptime: () -> Duration
    private let start: Duration
    private let othersWait: () -> Bool
    private let delaysOthers: Bool
    private var lookups = 0
    private var bytes = 0

    /// For how long a push holds up writes that are done already, and wait for the same commit.
    private static let briefTime = Duration.milliseconds(50)

    /// - Parameters:
    ///   - othersWait: whether anybody waits for the writer, or for the memory that this push holds.
    ///   - delaysOthers: whether writes that are done wait for the same commit.
    init(
        _ limits: Limits, uptime: @escaping () -> Duration, delaysOthers: Bool, othersWait: @escaping () -> Bool
    ) {
        self.limits = limits
        self.uptime = uptime
        self.delaysOthers = delaysOthers
        self.othersWait = othersWait
        start = uptime()
    }

    /// Counts one lookup of a row that no operation names as its own.
    func lookUp() { lookups += 1 }

    /// Counts bytes that go into the log, or are kept beside it.
    func write(_ count: Int) { bytes += count }

    var isSpent: Bool {
        if lookups >= limits.pushLookups || bytes >= limits.pushBytes { return true }
        let time = uptime() - start
        return delaysOthers && time >= min(Self.briefTime, limits.pushTime) || time >= limits.pushTime && othersWait()
    }
}
