package import TidemarkWire

/// What one hook tells next, and when it tries again (B3): a value without a clock, a store or a network.
///
/// The log is the queue. The machine knows some of the scopes whose head is beyond what was told, a bounded number of
/// them, and of each only the newest head: commits that come while a call runs become one call. Of a scope one call
/// runs at a time, so that its heads are told in order; a scope that fails waits alone.
///
/// ```
///   note ──▶ due ──next──▶ calling ──taken──▶ told ──kept──▶ forgotten
///             ▲               │ failed, refused, postponed
///             └── waiting ◀───┘
/// ```
package struct HookMachine: Sendable {
    /// The bounds of one hook.
    package struct Settings: Hashable, Sendable {
        /// Calls at one time.
        package var callsAtOnce = 8
        /// Scopes that are known to have news, at most; the store knows the others.
        package var knownScopes = 1000
        /// Scopes beside them whose failures are remembered.
        package var rememberedScopes = 10_000
        package var backoff = Backoff()
        /// Failures in a row after which a head is given up; `nil`: never.
        package var retries: Int?
        /// Refusals in a row after which a head is given up.
        package var refusals = 5
        /// Failures in a row, of whatever scopes, after which the receiver counts as away: then one call at a time
        /// finds out whether it is back.
        package var failuresInARow = 8
        /// The longest pause between two such calls, in milliseconds.
        package var longestRest: Int64 = 60_000
        /// The longest wait that a receiver may ask for, in milliseconds.
        package var longestAsked: Int64 = 3_600_000
        /// How long a scope waits whose call is postponed, in milliseconds, unless it is resumed before.
        package var pause: Int64 = 1_000

        package init() {}
    }

    /// News of one scope.
    package struct News: Hashable, Sendable {
        package var scope: Scope
        package var head: Version
        /// The head that was told before; 0: none.
        package var told: Version
        /// When the head was committed, in milliseconds since 1970.
        package var time: Int64
        /// The name of the scope's history up to the head.
        package var epoch: String

        package init(scope: Scope, head: Version, told: Version, time: Int64, epoch: String) {
            (self.scope, self.head, self.told, self.time, self.epoch) = (scope, head, told, time, epoch)
        }
    }

    /// How a call ended.
    package enum Outcome: Hashable, Sendable {
        case taken
        /// Perhaps another time; after so many milliseconds, where the receiver asked for a wait.
        case failed(asked: Int64? = nil)
        /// Very likely never.
        case refused
        /// The receiver wants no more calls at all.
        case gone
    }

    /// The outcome for the news behind a call.
    package enum Consequence: Hashable, Sendable {
        case told
        /// It is tried again after so many milliseconds.
        case retry(after: Int64)
        /// It is not told; the scope's next commit is.
        case givenUp
        /// Nothing is told any more.
        case stopped
    }

    package enum Step: Hashable, Sendable {
        case call(News)
        /// Nothing to do before a moment; without one, before there is news or a call has ended.
        case wait(until: Instant?)
    }

    private enum Stage: Hashable {
        case due
        case calling(Version)
        case waiting(Instant)
        /// Told, and not kept in the store yet.
        case told
    }

    private struct Entry {
        var news: News
        /// When the first head was committed that is known and was not told.
        var since: Int64
        var stage = Stage.due
        var failures = 0
        var refusals = 0
        /// Whether the scope waits because its call was postponed, and not because one has failed.
        var isPostponed = false
        /// Whether the scope went while it was called: where the call fails, there is no other.
        var isForgotten = false
        /// The place among those that are due.
        var turn: UInt64
    }

    /// The wait of a scope that gave its place to another one.
    private struct Wait {
        var until: Instant
        var failures: Int
        var refusals: Int
    }

    package let settings: Settings
    /// Whether the receiver has said that it wants no more.
    package private(set) var isStopped = false
    /// When news is due that was passed over for want of room: then the store has to be looked through.
    package private(set) var lookWanted: Instant?
    private var entries: [Scope: Entry] = [:]
    private var waits: [Scope: Wait] = [:]
    private var unkept: [Scope: Version] = [:]
    private var calls = 0
    /// The scope whose call finds out whether a receiver that was away is back.
    private var probe: Scope?
    /// Failures since a call was answered otherwise.
    private var streak = 0
    private var rest: Instant?
    private var turns: UInt64 = 0

    package init(_ settings: Settings = Settings()) { self.settings = settings }

    /// Scopes that are known to have news that is not told.
    package var behind: Int { entries.values.count { $0.news.head > $0.news.told } }

    /// When the oldest of that news was committed, in milliseconds since 1970.
    package var oldest: Int64? { entries.values.lazy.filter { $0.news.head > $0.news.told }.map(\.since).min() }

    /// Scopes that are called, or would be if there were room for one more call.
    package var due: Int {
        entries.values.count { entry in
            switch entry.stage {
            case .due, .calling: true
            case .waiting, .told: false
            }
        }
    }

    /// Takes what the store has: a scope's head, and what was told of it. What is older than what is known is passed
    /// over: the store may have been read before a call ended.
    package mutating func note(_ news: News) {
        if var entry = entries[news.scope] {
            guard news.head > entry.news.head else { return }
            (entry.news.head, entry.news.time, entry.news.epoch) = (news.head, news.time, news.epoch)
            entry.isForgotten = false
            if entry.stage == .told { (entry.stage, entry.since, entry.turn) = (.due, news.time, nextTurn()) }
            entries[news.scope] = entry
            return
        }
        guard news.head > news.told else { return }
        let wait = waits[news.scope]
        guard entries.count < settings.knownScopes || makeRoom(until: wait?.until) else {
            wantLook(at: wait?.until)
            return
        }
        var entry = Entry(news: news, since: news.time, turn: nextTurn())
        if let wait {
            (entry.stage, entry.failures, entry.refusals) = (.waiting(wait.until), wait.failures, wait.refusals)
            waits[news.scope] = nil
        }
        entries[news.scope] = entry
    }

    /// The whole store is about to be looked through.
    package mutating func beginsLook() { lookWanted = nil }

    /// - Parameter moment: `nil`: at once.
    private mutating func wantLook(at moment: Instant?) {
        let moment = moment ?? Instant(milliseconds: .min)
        lookWanted = min(lookWanted ?? moment, moment)
    }

    /// The one that waits for longest from now on gives way to one that is due, or waits less long: scopes that fail
    /// keep out no others. How long it waits is remembered.
    private mutating func makeRoom(until moment: Instant?) -> Bool {
        let waiting = entries.values.compactMap { entry -> (Instant, Scope)? in
            guard case .waiting(let until) = entry.stage, unkept[entry.news.scope] == nil else { return nil }
            return (until, entry.news.scope)
        }
        guard let (until, scope) = waiting.max(by: { $0.0 < $1.0 }), moment.map({ $0 < until }) ?? true,
            let entry = entries.removeValue(forKey: scope)
        else { return false }
        waits[scope] = Wait(until: until, failures: entry.failures, refusals: entry.refusals)
        if waits.count > settings.rememberedScopes, let first = waits.min(by: { $0.value.until < $1.value.until }) {
            waits[first.key] = nil
        }
        wantLook(at: until)
        return true
    }

    /// The store has nothing to tell of these scopes: they were erased, or somebody else has told them.
    package mutating func forget(_ scopes: some Sequence<Scope>) {
        for scope in scopes {
            waits[scope] = nil
            switch entries[scope]?.stage {
            case .due, .waiting: entries[scope] = nil
            case .calling: entries[scope]?.isForgotten = true
            case .told, nil: break
            }
        }
    }

    /// The scopes that are known: those with news, and those whose newest head was told and is not kept yet.
    package var scopes: Set<Scope> { Set(entries.keys) }

    private mutating func nextTurn() -> UInt64 {
        turns += 1
        return turns
    }

    /// Begins the next call, if there is one to begin.
    package mutating func next(at now: Instant) -> Step {
        guard !isStopped else { return .wait(until: nil) }
        for (scope, entry) in entries {
            guard case .waiting(let until) = entry.stage, until <= now else { continue }
            becomeDue(scope)
        }
        let due = entries.values.filter { $0.stage == .due }.min { $0.turn < $1.turn }
        if due != nil, let rest, rest > now { return .wait(until: rest) }
        // A call that hangs keeps none from finding out.
        if calls < settings.callsAtOnce, !isAway || probe == nil, let news = due?.news {
            if isAway { probe = news.scope }
            entries[news.scope]?.stage = .calling(news.head)
            calls += 1
            return .call(news)
        }
        let moments = entries.values.compactMap { entry -> Instant? in
            if case .waiting(let until) = entry.stage { until } else { nil }
        }
        return .wait(until: due == nil ? moments.min() : nil)
    }

    private mutating func becomeDue(_ scope: Scope) {
        let turn = nextTurn()
        entries[scope]?.stage = .due
        entries[scope]?.turn = turn
        entries[scope]?.isPostponed = false
    }

    /// A call that ``next(at:)`` gave was not made, since an earlier one of its scope has not ended. It says nothing of
    /// the receiver, so it counts as no failure.
    package mutating func postponed(_ scope: Scope, at now: Instant) {
        guard let entry = entries[scope], case .calling = entry.stage else { return }
        calls -= 1
        if probe == scope { probe = nil }
        if entry.isForgotten {
            entries[scope] = nil
            return
        }
        entries[scope]?.stage = .waiting(now + settings.pause)
        entries[scope]?.isPostponed = true
    }

    /// Makes the postponed call of a scope due, after the end of the call that it waited for. Answers whether there is
    /// one.
    package mutating func resumed(_ scope: Scope) -> Bool {
        guard entries[scope]?.isPostponed == true else { return false }
        becomeDue(scope)
        return true
    }

    private var isAway: Bool { streak >= settings.failuresInARow }

    /// A call has ended.
    ///
    /// - Parameter jitter: a random number that the caller drew; any value will do.
    package mutating func ended(
        _ scope: Scope, _ outcome: Outcome, at now: Instant, jitter: UInt64
    ) -> Consequence? {
        guard var entry = entries[scope], case .calling(let head) = entry.stage else { return nil }
        var isLeft = false
        defer { entries[scope] = isLeft ? nil : entry }
        calls -= 1
        if probe == scope { probe = nil }
        heard(outcome, now, jitter)
        if entry.isForgotten {
            entry.news.head = head
            isLeft = outcome != .taken
            if isLeft, outcome != .gone { return nil }
        }
        switch outcome {
        case .taken:
            told(head, &entry)
            return .told
        case .gone:
            isStopped = true
            entry.stage = .due
            return .stopped
        case .failed(let asked):
            (entry.failures, entry.refusals) = (entry.failures + 1, 0)
            if let retries = settings.retries, entry.failures > retries {
                told(head, &entry)
                return .givenUp
            }
            return wait(&entry, asked, now, jitter)
        case .refused:
            (entry.failures, entry.refusals) = (entry.failures + 1, entry.refusals + 1)
            if entry.refusals >= settings.refusals {
                told(head, &entry)
                return .givenUp
            }
            return wait(&entry, nil, now, jitter)
        }
    }

    private mutating func heard(_ outcome: Outcome, _ now: Instant, _ jitter: UInt64) {
        switch outcome {
        case .taken, .gone:
            (streak, rest) = (0, nil)
            return
        // A receiver that refuses everything is misconfigured for now: the heads of all scopes are not given up for it.
        case .failed, .refused: streak += 1
        }
        guard isAway else { return }
        let failures = streak - settings.failuresInARow + 1
        rest =
            now
            + settings.backoff.delay(
                failures: failures, class: .transient, jitter: jitter, longest: settings.longestRest)
    }

    private mutating func told(_ head: Version, _ entry: inout Entry) {
        (entry.failures, entry.refusals) = (0, 0)
        entry.news.told = head
        unkept[entry.news.scope] = head
        if entry.news.head > head {
            (entry.stage, entry.since, entry.turn) = (.due, entry.news.time, nextTurn())
        } else {
            entry.stage = .told
        }
    }

    private func wait(_ entry: inout Entry, _ asked: Int64?, _ now: Instant, _ jitter: UInt64) -> Consequence {
        let delay = max(
            settings.backoff.delay(failures: min(entry.failures, 64), class: .transient, jitter: jitter),
            min(asked ?? 0, settings.longestAsked))
        entry.stage = .waiting(now + delay)
        return .retry(after: delay)
    }

    /// Heads that were told, or given up, and that the store does not keep yet.
    package func toKeep() -> [Scope: Version] { unkept }

    /// The store has kept this.
    package mutating func kept(_ heads: [Scope: Version]) {
        for (scope, head) in heads where unkept[scope] == head {
            unkept[scope] = nil
            if entries[scope]?.stage == .told { entries[scope] = nil }
        }
    }
}
