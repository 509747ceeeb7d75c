public import Foundation
import TidemarkCore
package import TidemarkWire

/// The server's engine: it takes operations into a log and gives out what changed.
///
/// A server has no state of its own beside its store, so any number of them may share one; each may be used from any
/// task. Making one does nothing; ``sweepContinuously()`` keeps the log small until its task is cancelled; a
/// Hummingbird application does so by naming the engine among its services.
///
/// ```swift
/// let sync = SyncServer(store: try SQLiteStore(path: "sync.sqlite"), entities: [.state("todo"), .events("audit")])
/// try await sync.commit(to: "workspace:123") { changes in
///     changes.upsert("todo", id: "t1", ["title": "Written on the server"])
/// }
/// ```
public final class SyncServer: Sendable {
    let store: any ChangeStore
    /// The limits in force.
    public let limits: Limits
    let configuration: Configuration
    private let rules: [EntityKey: [EntityRule]]
    package let declarations: Declarations
    /// Changes when, and only when, a declaration does; travels on every answer.
    package let declarationsFingerprint: String
    /// The names of sub-scopes that are declared.
    let subscopes: Set<String>
    /// Scopes to whose attached tables those of other scopes refer: as many as the operator has attached, at most.
    let referredScopes = Guarded<Set<Scope>>([])
    /// The waiters on this node, by the scopes that they wait for.
    let nudges = Nudges()
    /// The hooks, each with the scopes that it has not looked at yet.
    let hooks: [(hook: CommitHook, names: HookNames)]
    /// Streams of nudges that are being opened: each reads the heads of up to `streamScopes` scopes.
    let openings: FairGate
    /// Memory for pushes that are worked on. Small ones have a part of their own, so that they wait for no large one.
    let (largeWork, smallWork): (FairGate, FairGate)
    /// The rates at which callers have asked lately.
    let rates: Rates
    /// Pages of changes that others may be about to pull too.
    let keptPages: KeptPages
    /// The blobs that are on their way.
    let transfers: BlobTransfers
    /// The blobs whose bytes have all come, and are read back.
    let completions = BlobCompletions()
    /// The snapshots whose pages shared caches may keep; `nil` where none may.
    let sharedHandles: Guarded<SharedHandles>?

    /// Streams that are opened at one time, one of each caller.
    private static let openingsAtOnce = 4
    /// Requests that may wait for their turn; those beyond are refused for now.
    private static let waitingRequests = 10_000

    /// The settings of a host.
    public struct Configuration: Sendable {
        /// How long a superseded row is kept for readers in mid-scan, at most (`windowBytes`).
        public var window: Duration = .seconds(15 * 60)
        /// How often superseded rows are swept.
        public var sweepInterval: Duration = .seconds(60)
        /// Rows that one sweep removes, at most.
        public var sweepLimit = 10_000
        /// How long deletions are kept at least, and longer for devices that have not got them yet; `nil`: for ever.
        public var retention: Duration? = .seconds(90 * 86_400)
        /// Whether events go with the deletions of their time. Else they stay for ever, also those that grew older
        /// before this was set.
        public var expiresEvents = false
        /// A device that is not heard of for so long is forgotten, and nothing waits for it any more.
        public var deviceRetention: Duration = .seconds(90 * 86_400)
        /// How long the marks of lanes are kept that nobody uses: an operation from before is not taken twice.
        public var laneRetention: Duration = .seconds(366 * 86_400)
        /// How often old history is looked for.
        public var compactionInterval: Duration = .seconds(60 * 60)
        /// How often a store is asked for what other programs have written to the operator's own tables.
        public var captureInterval: Duration = .milliseconds(250)
        /// Rows of such tables that one transaction takes over, at most.
        public var captureLimit = 1000
        /// Lets shared caches keep snapshot pages, under addresses that need no token and expire (W91): how long
        /// somebody who has lost access may go on reading at most. From one second to one hour; what is beyond counts
        /// as that. `nil`: each page asks who reads it. It needs `sharedPageRoutes(context:)` of TidemarkHummingbird.
        public var sharedPageDelay: Duration?
        /// Refused edits of one scope that are kept for the operator, the newest ones.
        public var rejectionLimit = 1000
        /// How often a stream of nudges without news says that it is there, and asks whether it may go on.
        public var streamComment: Duration = .seconds(15)
        /// What is told of each commit, behind it: for push notifications (B3). Each has a name of its own. It needs
        /// ``SyncServer/callHooksContinuously()``, and a store in SQLite or PostgreSQL.
        public var hooks: [CommitHook] = []
        /// Hears what became of each call of a hook, on any thread: for logs and counters.
        public var onHookEvent: @Sendable (HookEvent) -> Void = { _ in }
        package var hookTimes = HookRunner.Times()
        /// The clock; asked on any thread.
        public var now: @Sendable () -> Date = { Date() }
        /// The clock as the log has it: in milliseconds since 1970.
        package func moment() -> Int64 { now().milliseconds }
        /// Time that only grows, by which work is bounded.
        package var uptime: @Sendable () -> Duration = {
            [clock = ContinuousClock(), start = ContinuousClock().now] in clock.now - start
        }
        /// Does what takes long on a thread that serves nobody else.
        package var offload: @Sendable (@escaping @Sendable () -> Void) -> Void = { ParsingThreads.run($0) }
        /// Begins a work that outlives the request which asked for it. Only a simulation has a way of its own.
        package var begin: @Sendable (@escaping @Sendable () async -> Void) -> Void = { work in Task { await work() } }
        /// A body is taken in pieces of so many bytes, at most. Only a simulation has others.
        package var blobPieceBytes = BlobPart.pieceBytes
        /// The defaults.
        public init() {}
    }

    /// Makes an engine over a store.
    ///
    /// - Parameters:
    ///   - store: where the log is kept.
    ///   - entities: what is known of the entities; others get the defaults. A sub-scope's name that is malformed is a
    ///     programming error and stops the program.
    ///   - isStrict: refuse entities that are not declared.
    ///   - limits: what a request may hold.
    ///   - configuration: windows, hooks and the clock. Two hooks of one name are a programming error and stop the
    ///     program.
    ///   - rules: the operator's own rules; those of one entity are asked in the order in which they stand here.
    public init(
        store: any ChangeStore, entities: [EntityDeclaration] = [], isStrict: Bool = false, limits: Limits = Limits(),
        configuration: Configuration = Configuration(), rules: [EntityRule] = []
    ) {
        self.store = store
        self.rules = Dictionary(grouping: rules) { EntityKey($0.entity) }
        self.limits = limits
        self.configuration = configuration
        openings = FairGate(capacity: Self.openingsAtOnce, share: 1, waitingLimit: max(1, limits.streams))
        let small = limits.workBytes / 4
        smallWork = FairGate(capacity: small, share: small / 2, waitingLimit: Self.waitingRequests)
        let large = limits.workBytes - small
        largeWork = FairGate(capacity: large, share: large / 2, waitingLimit: Self.waitingRequests)
        rates = Rates(limits)
        keptPages = KeptPages(limit: limits.keptPageBytes)
        transfers = BlobTransfers(limit: limits.blobTransfers)
        sharedHandles = configuration.sharedPageDelay.map { delay in
            Guarded(SharedHandles(delay: delay.milliseconds, window: configuration.window.milliseconds))
        }
        precondition(
            Set(configuration.hooks.map(\.name)).count == configuration.hooks.count, "each hook has a name of its own")
        hooks = configuration.hooks.map { ($0, HookNames()) }
        subscopes = Set(entities.compactMap(\.subscope))
        precondition(subscopes.allSatisfy(Identifier.isSubscope), "a sub-scope's name is \(Identifier.subscopeHint)")
        declarations = Declarations(isStrict: isStrict, entities: entities)
        declarationsFingerprint = SHA256.digest(declarations.body()).prefix(8)
            .map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
    }

    /// The rules that an edit is held to; `nil` where there are none.
    func ruling(on entity: String, in scope: Scope, by caller: EntityRule.Caller, isCommit: Bool = false) -> Ruling? {
        let rules = rules[EntityKey(entity)]?.filter { !isCommit || $0.includesCommits } ?? []
        return rules.isEmpty ? nil : Ruling(rules: rules, scope: scope, caller: caller)
    }

    /// The declaration that holds for an entity; `nil` where a strict server does not know it.
    func declaration(of entity: String) -> EntityDeclaration? {
        declarations[entity] ?? (declarations.isStrict ? nil : EntityDeclaration(entity))
    }
}
