public import TidemarkCore

/// How eagerly the engine works. The defaults suit an app in the foreground.
public struct SyncConfiguration: Hashable, Sendable {
    /// How often a scope is pulled although nothing called for it.
    public var tick: Duration = .seconds(30)
    /// How often writes of other connections and processes are looked for; own writes are noticed at once.
    public var pollInterval: Duration = .seconds(1)
    /// Waits between failed attempts.
    public var backoff = Backoff()
    /// No wait is longer, unless the server asks for it. Raise it in the background.
    public var longestWait: Duration = .seconds(30)
    /// Failures in a row after which a scope rests.
    public var breakerFailureLimit = 5
    /// How long it rests then.
    public var breakerCoolDown: Duration = .seconds(30)
    /// Rows on a page; the size moves in this range with the network's speed.
    public var pageRange: ClosedRange<Int> = 50...5000
    /// Rows on the first page.
    public var firstPage = 500
    /// Operations in one request.
    public var operationLimit = 1000
    /// How long finished operations are kept.
    public var finishedRetention: Duration = .seconds(7 * 24 * 3600)

    /// The defaults.
    public init() {}

    var machine: SyncMachine.Settings {
        var settings = SyncMachine.Settings()
        settings.backoff = backoff
        settings.breaker.failureLimit = breakerFailureLimit
        settings.breaker.coolDownMilliseconds = breakerCoolDown.milliseconds
        settings.tickMilliseconds = tick.milliseconds
        settings.longestWaitMilliseconds = longestWait.milliseconds
        return settings
    }

    var paging: PageSizing.Settings {
        var settings = PageSizing.Settings()
        settings.range = pageRange
        settings.start = firstPage
        return settings
    }
}

extension Duration {
    var milliseconds: Int64 { components.seconds * 1000 + components.attoseconds / 1_000_000_000_000_000 }
}
