/// A moment in milliseconds on whatever clock the driver reads; rules only compare and add.
package struct Instant: Hashable, Comparable, Sendable {
    package var milliseconds: Int64

    package init(milliseconds: Int64) { self.milliseconds = milliseconds }

    package static func < (lhs: Instant, rhs: Instant) -> Bool { lhs.milliseconds < rhs.milliseconds }
    package static func + (lhs: Instant, rhs: Int64) -> Instant {
        let (sum, overflow) = lhs.milliseconds.addingReportingOverflow(rhs)
        return Instant(milliseconds: overflow ? .max : sum)
    }
    package static func - (lhs: Instant, rhs: Instant) -> Int64 { lhs.milliseconds - rhs.milliseconds }
}

extension Duration {
    /// In whole milliseconds; the largest number there is where it does not fit.
    package var milliseconds: Int64 {
        let (seconds, attoseconds) = components
        let (whole, overflow) = seconds.multipliedReportingOverflow(by: 1000)
        return overflow ? .max : whole.addingReportingOverflow(attoseconds / 1_000_000_000_000_000).partialValue
    }
}
