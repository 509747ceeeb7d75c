extension Duration {
    /// The whole seconds in it; the outermost number there is where they do not fit. Fractions are dropped.
    package var wholeSeconds: Int64 {
        // Beyond that, `components` traps.
        guard self < .seconds(Int64.max) else { return .max }
        guard self > .seconds(Int64.min) else { return .min }
        return components.seconds
    }
}

extension ClosedRange<Duration> {
    /// The same range in whole seconds.
    package var wholeSeconds: ClosedRange<Int64> { lowerBound.wholeSeconds...upperBound.wholeSeconds }
}
