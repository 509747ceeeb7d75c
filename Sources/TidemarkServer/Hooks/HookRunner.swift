import Foundation
import TidemarkCore
import TidemarkWire

/// Calls one hook: on one node at a time, the one that holds the right to (B3). It looks into the store behind the
/// commits, which only leave it the names of their scopes.
///
/// ```
///   commit here, hint of another node ──▶ names ──▶ what the store says was not told ──▶ machine ──▶ calls
///   now and then ──▶ a look through all scopes ────────────────▲                            │
///                                     store ◀── heads that were told, gathered ◀────────────┘
/// ```
package actor HookRunner {
    /// Scopes that one read asks for.
    private static let readStep = 500
    /// Calls that were left to themselves and have not ended, at most: with more no other one begins.
    private static let leftCalls = 64

    private let hook: CommitHook
    private let names: HookNames
    private let store: any HookStore
    private let times: Times
    private let now: @Sendable () -> Int64
    private let uptime: @Sendable () -> Duration
    private let report: @Sendable (HookEvent) -> Void
    /// The runner's name among those that ask for the right to call.
    private let holder = String(UInt64.random(in: .min ... .max), radix: 36)

    private var machine: HookMachine
    private var leadsUntil: Instant?
    private var hasBegun = false
    /// Where a look through all scopes goes on; `nil`: there is none under way.
    private var place: Place?
    private var nextLook: Instant
    /// Whether something has asked for another look while one is under way.
    private var looksAgain = false
    /// Whether the names that came go before the next page of a look.
    private var takesNames = false
    private var isReading = false
    private var isKeeping = false
    /// Heads that the store has kept, perhaps behind what the read under way sees.
    private var kept: [Scope: Version] = [:]
    private var alarm: Instant?
    /// Scopes with a call that has not ended, also of an earlier time in which this node called.
    private var running: Set<Scope> = []
    private var troubles: [Work: Trouble] = [:]

    private enum Place {
        case start
        case behind(Scope)
    }

    /// The calls of the store that a runner makes.
    private enum Work: String {
        case lead, look, read, keep
    }

    private struct Trouble {
        var since: Instant
        /// When it is told next.
        var told: Instant
    }

    /// - Parameters:
    ///   - now: milliseconds since 1970.
    ///   - uptime: a time that nobody sets back.
    ///   - report: is told what became of each call.
    init(
        _ hook: CommitHook, _ names: HookNames, _ store: any HookStore, times: Times,
        now: @escaping @Sendable () -> Int64, uptime: @escaping @Sendable () -> Duration,
        report: @escaping @Sendable (HookEvent) -> Void
    ) {
        (self.hook, self.names, self.store, self.times) = (hook, names, store, times)
        (self.now, self.uptime, self.report) = (now, uptime, report)
        machine = Self.machine(of: hook)
        nextLook = Instant(milliseconds: uptime().milliseconds)
    }

    private static func machine(of hook: CommitHook) -> HookMachine {
        var settings = hook.settings
        settings.retries = hook.retries
        return HookMachine(settings)
    }

    private var instant: Instant { Instant(milliseconds: uptime().milliseconds) }

    /// Calls the hook whenever this node may, until it is cancelled or the receiver wants no more.
    func run() async throws {
        while !machine.isStopped {
            if await takesLead() { await lead() }
            try await Task.sleep(for: times.leadStep)
        }
    }

    // MARK: The right to call

    /// Whether the right to call was to be had. It ends by this node's clock before it does by the store's.
    private func takesLead() async -> Bool {
        let asked = instant
        let holds = try? await tried(.lead) { try await store.holdHook(hook.name, as: holder, for: times.lead) }
        guard let holds else { return false }
        guard holds else {
            leadsUntil = nil
            return false
        }
        leadsUntil = asked + times.lead.milliseconds
        return true
    }

    private var leads: Bool { leadsUntil.map { $0 > instant } ?? false }

    private func keepLead() async {
        while leads, !Task.isCancelled {
            try? await Task.sleep(for: times.leadStep)
            _ = await takesLead()
        }
        names.wake()
    }

    private func lead() async {
        machine = Self.machine(of: hook)
        (place, nextLook, alarm) = (nil, instant, nil)
        (isReading, isKeeping, kept) = (false, false, [:])
        (looksAgain, takesNames) = (false, false)
        noteStanding()
        let wakes = names.wakes()
        await withDiscardingTaskGroup { group in
            group.addTask { await self.keepLead() }
            for await _ in wakes {
                guard leads, !machine.isStopped else { break }
                if let step = reading() { group.addTask { await step() } }
                var step = nextStep()
                while case .call(let news) = step {
                    if begins(news.scope) { group.addTask { await self.call(news) } }
                    step = nextStep()
                }
                if !isKeeping, !machine.toKeep().isEmpty {
                    isKeeping = true
                    group.addTask { await self.keepSoon() }
                }
                guard case .wait(let until) = step, let moment = alarm(before: until) else { continue }
                group.addTask { await self.ring(at: moment) }
            }
            group.cancelAll()
        }
        leadsUntil = nil
        names.standing.withLock { $0 = nil }
        // Not a part of what may be cancelled here: the next leader begins where this one has ended.
        await Task {
            await keep()
            try? await store.releaseHook(hook.name, as: holder)
        }.value
    }

    /// The next moment to wake at, where none is set that comes before it.
    private func alarm(before until: Instant?) -> Instant? {
        let look = place == nil ? nextLook : nil
        guard let moment = [until, look].compactMap(\.self).min(), alarm.map({ moment < $0 }) ?? true else {
            return nil
        }
        alarm = moment
        return moment
    }

    private func ring(at moment: Instant) async {
        try? await Task.sleep(for: .milliseconds(max(1, moment - instant)))
        if alarm == moment { alarm = nil }
        names.wake()
    }

    // MARK: What was not told

    /// The next read of the store, where there is something to read and it is time. Names and pages of a look take
    /// turns: a look through many scopes keeps out none that was just committed to.
    private func reading() -> (@Sendable () async -> Void)? {
        guard !isReading else { return nil }
        if place == nil, nextLook <= instant {
            (place, looksAgain) = (.start, false)
            machine.beginsLook()
        }
        let hasRoom = machine.due <= machine.settings.knownScopes / 2
        // Before the hook has begun all that there is would count as news.
        if let place, hasRoom, !takesNames || names.isEmpty || !hasBegun {
            (isReading, takesNames) = (true, true)
            return { await self.readPage(place) }
        }
        guard hasBegun else { return nil }
        takesNames = false
        let (scopes, isAll) = names.take()
        if isAll { lookAgain() }
        guard !scopes.isEmpty else { return nil }
        isReading = true
        return { await self.read(scopes) }
    }

    /// Looks through all scopes soon; where a look is under way, again behind it.
    private func lookAgain() {
        looksAgain = true
        if place == nil { nextLook = min(nextLook, instant + times.lookAgain.milliseconds) }
    }

    private func read(_ scopes: Set<Scope>) async {
        let sorted = scopes.sorted()
        for start in stride(from: 0, to: sorted.count, by: Self.readStep) {
            let step = Array(sorted[start..<min(start + Self.readStep, sorted.count)])
            do {
                let untold = try await tried(.read) {
                    try await store.untold(to: hook.name, of: step, after: nil, limit: step.count)
                }
                for news in untold { machine.note(news) }
                machine.forget(Set(step).subtracting(untold.map(\.scope)))
            } catch { lookAgain() }
        }
        await endRead()
    }

    private func readPage(_ from: Place) async {
        do {
            let after: Scope? = if case .behind(let scope) = from { scope } else { nil }
            let page = try await tried(.look) {
                try await begin()
                return try await store.untold(to: hook.name, of: nil, after: after, limit: Self.readStep)
            }
            for news in page where hook.includes(news.scope) { machine.note(news) }
            let last = page.count >= Self.readStep ? page.last?.scope : nil
            forget(behind: after, to: last, notOn: page)
            if let last {
                place = .behind(last)
            } else {
                place = nil
                nextLook = instant + times.look.milliseconds
                if let wanted = machine.lookWanted {
                    nextLook = min(nextLook, max(wanted, instant + times.lookAgain.milliseconds))
                }
                if looksAgain { lookAgain() }
            }
        } catch {
            place = nil
            nextLook = instant + times.lookAgain.milliseconds
        }
        await endRead()
    }

    /// Of the scopes that are known, those that a page of a look should show and does not have gone since: they were
    /// erased, or somebody else has told them.
    private func forget(behind first: Scope?, to last: Scope?, notOn page: [HookMachine.News]) {
        let shown = Set(page.map(\.scope))
        let gone = machine.scopes.filter { scope in
            let isBehind = first.map { $0 < scope } ?? true
            let isBefore = last.map { scope <= $0 } ?? true
            return isBehind && isBefore && !shown.contains(scope)
        }
        machine.forget(gone)
    }

    /// The read counts as under way for a moment longer: what comes meanwhile is read together.
    private func endRead() async {
        noteStanding()
        names.wake()
        try? await Task.sleep(for: times.read)
        isReading = false
        forget()
        names.wake()
    }

    /// Lets go of what is kept. A read that began before it was kept must have ended: it would tell it again.
    private func forget() {
        guard !isReading else { return }
        machine.kept(kept)
        kept = [:]
    }

    private func begin() async throws {
        guard !hasBegun else { return }
        switch hook.start {
        case .start: try await store.beginHookAtStart(hook.name)
        case .now: while try await store.beginHook(hook.name, limit: Self.readStep) {}
        }
        hasBegun = true
    }

    // MARK: Calls

    private func call(_ news: HookMachine.News) async {
        let (changes, time) = (news.head - news.told, Date(milliseconds: news.time))
        let notice = CommitNotice(scope: news.scope, head: news.head, epoch: news.epoch, changes: changes, time: time)
        let ended = await HookCall.outcome(of: hook, notice, patience: times.patience) {
            await self.hasEnded(notice.scope)
        }
        guard let (outcome, reason) = ended else { return }
        // A call that this node cut off says nothing of the receiver; another node, or the next start, calls again.
        guard outcome == .taken || !Task.isCancelled else { return }
        let consequence = machine.ended(news.scope, outcome, at: instant, jitter: .random(in: 0 ... .max))
        noteStanding()
        guard let consequence else { return }
        let kind: HookEvent.Kind =
            switch consequence {
            case .told: .told
            case .retry(let wait): .failed(retryAfter: .milliseconds(wait))
            case .givenUp: .givenUp
            case .stopped: .stopped
            }
        report(
            HookEvent(
                hook: hook.name, notice: notice, kind: kind, reason: reason,
                lag: .milliseconds(max(0, now().saturatingSubtracting(news.time))), behind: machine.behind))
        names.wake()
    }

    private var isFull: Bool { running.count >= machine.settings.callsAtOnce + Self.leftCalls }

    /// The next step. While too many calls have not ended, it is to wait until one of them has.
    private func nextStep() -> HookMachine.Step { isFull ? .wait(until: nil) : machine.next(at: instant) }

    /// Whether a call of the scope may begin. None begins before the last one has ended, also where that was left to
    /// itself: its heads come in order.
    private func begins(_ scope: Scope) -> Bool {
        if running.insert(scope).inserted { return true }
        machine.postponed(scope, at: instant)
        noteStanding()
        return false
    }

    private func hasEnded(_ scope: Scope) {
        let wasFull = isFull
        running.remove(scope)
        if machine.resumed(scope) || wasFull { names.wake() }
    }

    /// Is called wherever what the machine knows has changed, and not at each wake: it counts all that is known.
    private func noteStanding() {
        names.standing.withLock { $0 = HookStanding(behind: machine.behind, oldest: machine.oldest) }
    }

    private func keepSoon() async {
        try? await Task.sleep(for: times.keep)
        if !(await keep()) { try? await Task.sleep(for: times.lookAgain) }
        isKeeping = false
        names.wake()
    }

    /// Keeps what was told, and answers whether that was done.
    @discardableResult
    private func keep() async -> Bool {
        let heads = machine.toKeep().filter { kept[$0.key] != $0.value }
        guard !heads.isEmpty else { return true }
        do { try await tried(.keep) { try await store.keepTold(heads, to: hook.name) } } catch { return false }
        kept.merge(heads) { max($0, $1) }
        forget()
        return true
    }

    // MARK: A store that fails

    /// Does something with the store. Where it has failed for a while that is told, and then now and then.
    private func tried<Result: Sendable>(
        _ work: Work, _ body: () async throws -> Result
    ) async throws -> Result {
        do {
            let result = try await body()
            troubles[work] = nil
            return result
        } catch {
            if !Task.isCancelled, !(error is CancellationError) { note(error, of: work) }
            throw error
        }
    }

    private func note(_ error: any Error, of work: Work) {
        let now = instant
        var trouble = troubles[work] ?? Trouble(since: now, told: now + times.silence.milliseconds)
        if trouble.told <= now {
            trouble.told = now + times.look.milliseconds
            let reason = (error as? StoreUnavailable)?.description ?? "\(type(of: error))"
            report(
                HookEvent(
                    hook: hook.name, notice: nil, kind: .unavailable, reason: "\(work.rawValue): \(reason)",
                    lag: .milliseconds(now - trouble.since), behind: machine.behind))
        }
        troubles[work] = trouble
    }
}
