import TidemarkCore

/// How eagerly the engine works. The defaults suit an app in the foreground, on a phone as on a desktop;
/// ``background`` suits the short time that a system grants to an app that is not on screen.
public struct SyncConfiguration: Hashable, Sendable {
    /// How long to wait after `n` failures in a row: `w + random(0, min(max(jitter, w), maximum − w))`, where `w` is
    /// `min(base·2^(n − 1), ⅔·maximum)` (B10).
    ///
    /// A wait is spread by as much again, within its bounds, because devices that lost a server at one moment would
    /// else come back to it at one moment.
    public struct Backoff: Hashable, Sendable {
        /// The first wait.
        public var base: Duration
        /// No wait is longer, with what is added at random.
        public var maximum: Duration
        /// Up to this much is added at random, or up to as much as the wait where that is more. A third of the longest
        /// wait is kept for it.
        public var jitter: Duration

        var rule: TidemarkCore.Backoff {
            var rule = TidemarkCore.Backoff()
            rule.baseMilliseconds = base.milliseconds
            rule.maximumMilliseconds = maximum.milliseconds
            rule.jitterMilliseconds = jitter.milliseconds
            return rule
        }

        /// Makes a backoff; without arguments, the default one.
        public init(
            base: Duration = .seconds(1), maximum: Duration = .seconds(15 * 60), jitter: Duration = .seconds(1)
        ) {
            self.base = base
            self.maximum = maximum
            self.jitter = jitter
        }
    }

    /// How often a scope is pulled although nothing called for it.
    public var tick: Duration = .seconds(30)
    /// Whether a running engine keeps a stream of nudges open, by which it hears at once of what changes elsewhere,
    /// where its transport can (``StreamingTransport``). It asks at every tick all the same.
    public var receivesNudges = true
    /// How often writes of other connections and processes are looked for; own writes are noticed at once.
    public var pollInterval: Duration = .seconds(1)
    /// Waits between failed attempts.
    public var backoff = Backoff()
    /// No wait is longer, with what is added at random, unless the server asks for it. Raise it in the background.
    public var longestWait: Duration = .seconds(30)
    /// Exchanges that fail in a row, after which a scope rests.
    public var breakerFailureLimit = 5
    /// How long it rests then at least, up to two thirds of ``longestWait``; ``backoff`` may be longer.
    public var breakerCoolDown: Duration = .seconds(30)
    /// Rows on a page; the size moves in this range with the network's speed.
    public var pageRange: ClosedRange<Int>
    /// Rows on the first page.
    public var firstPage: Int
    /// Rows on a page of a snapshot, with which an empty or outdated device is filled; the same rule, larger pages.
    public var snapshotRange: ClosedRange<Int> = 1000...5000
    /// Rows on a snapshot's first page.
    public var firstSnapshotPage = 1000
    /// Operations in one request; fewer where a server, or the network, has cut one.
    public var operationLimit: Int
    /// After how long without a sync critical tables come first (A18): those that the operator has declared with a
    /// priority before others. Then what has changed in them is asked for behind the first page of a longer delta.
    public var criticalFirstAfter: Duration = .seconds(24 * 3600)
    /// The app's version, for the operator's list of devices; that of the main bundle, if not given. It
    /// is told in up to 64 bytes; a longer one is not.
    public var appVersion: String? = bundleVersion
    /// Whether the device tells its server how it stands: how many edits wait and for how long, how many are refused
    /// and how many rows quarantined, the versions of app and library, and the code of a failure. No row, name or text
    /// of the app's is in it. It goes with an exchange when it has changed.
    public var sendsReports = true
    /// How long finished operations are kept.
    public var finishedRetention: Duration = .seconds(7 * 24 * 3600)
    /// How many finished operations are worth a compressed block; simulated devices, which make few, take fewer.
    package var leastHistoryBlock = 64
    /// Whether the next request goes while an answer is being applied. A script of a simulated world, which counts its
    /// messages, says whether.
    package var sendsEarly = true
    /// Whether it is the command line's engine, which declares nothing: the file stays whose it was.
    package var isCommand = false

    /// The defaults: ``mobile`` on phones, tablets, watches and television sets, ``desktop`` elsewhere.
    public init() { self = isMobilePlatform ? .mobile : .desktop }

    private init(pages: ClosedRange<Int>, operations: Int) {
        pageRange = pages
        firstPage = pages.lowerBound
        operationLimit = operations
    }

    /// A device on a mobile network, in the foreground: pages of 50–100 rows, so that screens fill step by step.
    public static let mobile = SyncConfiguration(pages: 50...100, operations: 100)

    /// A computer on a good network: pages of 500–1000 rows, for fewer round trips.
    public static let desktop = SyncConfiguration(pages: 500...1000, operations: 1000)

    /// An app that is not on screen: pages of 100–500 rows, no stream of nudges, and waits that grow to between 10 and
    /// 15 minutes.
    public static let background: SyncConfiguration = {
        var configuration = SyncConfiguration(pages: 100...500, operations: 500)
        configuration.tick = .seconds(15 * 60)
        configuration.receivesNudges = false
        configuration.longestWait = .seconds(15 * 60)
        return configuration
    }()

    var machine: SyncMachine.Settings {
        var settings = SyncMachine.Settings()
        settings.backoff = backoff.rule
        settings.failureLimit = breakerFailureLimit
        settings.coolDownMilliseconds = breakerCoolDown.milliseconds
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

    /// Operations in a request are found as rows on a page are; only that it was cut tells that they were too many.
    var batching: PageSizing.Settings {
        var settings = PageSizing.Settings()
        settings.range = 1...max(1, operationLimit)
        settings.start = operationLimit
        (settings.targetMilliseconds, settings.targetBytes) = (.max, .max)
        return settings
    }

    var snapshotPaging: PageSizing.Settings {
        var settings = PageSizing.Settings()
        settings.range = snapshotRange
        settings.start = firstSnapshotPage
        return settings
    }
}
