/// How eagerly an engine works under an app's conditions, and what a change of them calls for (E6). Events and waits
/// of each scope are ``SyncMachine``'s.
package struct SyncScheduler: Hashable, Sendable {
    /// The state of the app and its device, as the platform tells it.
    package struct Conditions: Hashable, Sendable {
        package var isInForeground = true
        package var isOnline = true
        /// Whether each byte costs the user money.
        package var isMetered = false
        package var isLowPower = false

        package init() {}
    }

    /// The settings of an engine that the conditions change.
    package struct Settings: Hashable, Sendable {
        package var tickMilliseconds: Int64
        package var longestWaitMilliseconds: Int64
        package var receivesNudges: Bool

        package init(tickMilliseconds: Int64, longestWaitMilliseconds: Int64, receivesNudges: Bool) {
            self.tickMilliseconds = tickMilliseconds
            self.longestWaitMilliseconds = longestWaitMilliseconds
            self.receivesNudges = receivesNudges
        }
    }

    package enum Effect: Hashable, Sendable {
        /// The settings are others.
        case adapt
        /// Every scope is pulled at once, also one that waits after a failure.
        case pull
    }

    package private(set) var conditions = Conditions()

    /// The least time between ticks, and the least bound of waits, of an app out of sight, and of one without a
    /// network: the platform may be wrong about that, so that it is tried all the same.
    private static let restMilliseconds: Int64 = 15 * 60_000
    /// The time between ticks is so many times as long where power or bytes are dear.
    private static let sparing: Int64 = 4

    package init() {}

    /// An app that comes into sight, or to a network, asks what is new; one that has no network does when it has.
    package mutating func note(_ new: Conditions) -> [Effect] {
        guard new != conditions else { return [] }
        let isBack = new.isOnline && !conditions.isOnline
        let appears = new.isInForeground && !conditions.isInForeground
        conditions = new
        return new.isOnline && (isBack || appears) ? [.adapt, .pull] : [.adapt]
    }

    /// The settings under the present conditions; never more eager ones than the app's own.
    package func adapted(_ base: Settings) -> Settings {
        var settings = base
        settings.receivesNudges = base.receivesNudges && conditions.isInForeground && conditions.isOnline
        if conditions.isMetered || conditions.isLowPower {
            let (tick, isBeyond) = base.tickMilliseconds.multipliedReportingOverflow(by: Self.sparing)
            settings.tickMilliseconds = isBeyond ? .max : tick
        }
        if !conditions.isInForeground || !conditions.isOnline {
            settings.tickMilliseconds = max(settings.tickMilliseconds, Self.restMilliseconds)
            settings.longestWaitMilliseconds = max(base.longestWaitMilliseconds, Self.restMilliseconds)
        }
        return settings
    }
}
