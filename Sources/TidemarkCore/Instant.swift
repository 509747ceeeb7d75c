import TidemarkWire

/// A moment in milliseconds on whatever clock the driver reads; rules only compare and add.
package struct Instant: Hashable, Comparable, Sendable {
    package var milliseconds: Int64

    package init(milliseconds: Int64) { self.milliseconds = milliseconds }

    package static func < (lhs: Instant, rhs: Instant) -> Bool { lhs.milliseconds < rhs.milliseconds }
    package static func + (lhs: Instant, rhs: Int64) -> Instant {
        Instant(milliseconds: lhs.milliseconds.saturatingAdding(rhs))
    }
    package static func - (lhs: Instant, rhs: Instant) -> Int64 {
        lhs.milliseconds.saturatingSubtracting(rhs.milliseconds)
    }
}

extension Duration {
    /// In whole milliseconds; the outermost number there is where they do not fit.
    package var milliseconds: Int64 {
        // Far beyond that, `components` traps.
        guard self < .milliseconds(Int64.max) else { return .max }
        guard self > .milliseconds(Int64.min) else { return .min }
        let (seconds, attoseconds) = components
        return seconds * 1000 + attoseconds / 1_000_000_000_000_000
    }
}
