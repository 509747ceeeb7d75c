package import TidemarkWire

/// The time by which history grows old (T38). It follows the wall clock, but at most at twice the speed of the time
/// that really passes: a clock that jumps ahead cannot make everything old at once, and one that was right all along is
/// caught up with, also after a server was off for long.
package enum AgeClock {
    /// How many milliseconds it may move for each that has passed.
    private static let catchUp: Int64 = 2

    /// - Parameters:
    ///   - reading: what it showed last; `nil` for a store that nobody wrote to.
    ///   - elapsed: milliseconds that have passed since then, by a clock that nobody sets; 0 where that is not known.
    package static func moved(_ reading: Int64?, to wall: Int64, elapsed: Int64) -> Int64 {
        guard let reading else { return wall }
        let (step, overflow) = max(elapsed, 0).multipliedReportingOverflow(by: catchUp)
        return max(reading, min(wall, overflow ? wall : (Instant(milliseconds: reading) + step).milliseconds))
    }

    /// The moment from which ages are reckoned: the earlier of both clocks, so that nothing is called old too soon.
    package static func present(_ reading: Int64, wall: Int64) -> Int64 { min(reading, wall) }
}

/// A device's standing in a scope, as a store knows it.
package struct Standing: Hashable, Sendable {
    /// The version that its checkpoint holds on to; `nil` for a device that has not shown any yet.
    package var version: Version?
    /// When it was last heard of, in milliseconds since 1970.
    package var seen: Int64
    /// The oldest version that a verdict has named to it since it last showed a checkpoint.
    package var oldest: Version?

    package init(version: Version?, seen: Int64, oldest: Version? = nil) {
        self.version = version
        self.seen = seen
        self.oldest = oldest
    }

    /// The first version of the rows that it may hold without a checkpoint that tells of them.
    package var firstHeld: Version? { oldest ?? version.map { $0 + 1 } }

    /// Whether this is worth a write: a device that is new here, has gone back or holds what was not known of, and
    /// others once in an interval. A poll is not.
    package func isNews(after known: Standing?, interval: Int64) -> Bool {
        guard let known else { return true }
        if oldest != nil { return true }
        if let version {
            guard let before = known.version, version >= before, known.oldest == nil else { return true }
        }
        let (passed, overflow) = seen.subtractingReportingOverflow(known.seen)
        return overflow || passed.magnitude >= interval.magnitude
    }
}
