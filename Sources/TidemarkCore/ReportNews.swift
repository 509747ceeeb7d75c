package import TidemarkWire

/// When a device's report is worth telling: seldom, so that a device which works as it should tells one and no more.
extension DeviceReport {
    /// A count as it is told: rounded down to 1, 2 or 5 times a power of ten.
    package static func rounded(_ count: Int64) -> Int64 {
        guard count > 0 else { return 0 }
        var power: Int64 = 1
        while count / power >= 10 { power *= 10 }
        let digit = count / power
        return (digit >= 5 ? 5 : digit >= 2 ? 2 : 1) * power
    }

    /// Beginnings of the ages that count as different ones: a minute, an hour, a day, a week.
    private static let ageSteps: [Duration] = [.seconds(60), .seconds(3600), .seconds(86_400), .seconds(604_800)]

    /// Whether it says something that another one did not. An age grows by itself.
    package func isNews(after known: DeviceReport?) -> Bool {
        guard var known else { return true }
        let isOlder = Self.step(oldest) != Self.step(known.oldest)
        known.oldest = oldest
        return isOlder || self != known
    }

    private static func step(_ age: Duration?) -> Int? { age.map { age in ageSteps.count { $0 <= age } } }
}
