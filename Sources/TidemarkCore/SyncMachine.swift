/// When one scope syncs, waits, rests or stops. It never touches a socket, a file or a clock: events and the time go
/// in, effects come out, and the driver carries them out and feeds back what happened.
package struct SyncMachine: Hashable, Sendable {
    package enum State: Hashable, Sendable {
        /// In sync as far as is known. Goes to `exchanging` when woken, at the tick or when the user asks.
        case idle
        /// One request is out. Goes to `applying`, `waiting`, `stopped`, to `bootstrapping` where the scope has to be
        /// filled first, or stays after a repair.
        case exchanging
        /// One answer is with the database; the next request may be out already. Goes to `exchanging` or `idle`, or
        /// where a failure leads.
        case applying
        /// A push or the question for a snapshot's page is out, while the scope is being filled. Goes to `filling`, or
        /// where a failure leads.
        case bootstrapping
        /// Its answer is with the database; the question for the next page may be out. Goes to `bootstrapping` until
        /// the snapshot has ended, then to `exchanging`, or where a failure leads.
        case filling
        /// Backing off, or asked to by the server. Goes to `exchanging` then, when nudged, or when the user asks.
        case waiting(until: Instant)
        /// The app or the operator must act. Goes to `exchanging` when nudged or when the user asks, and at `until`,
        /// because the device is not told when they have.
        case stopped(FailureClass, until: Instant)
    }

    package enum Event: Hashable, Sendable {
        /// There is something to send.
        case wake
        /// The app says that there may be news, a network again, or a token that grants more. Ends a wait after a
        /// failure, but none that the server asked for.
        case nudge
        /// The time of the last `sleep` has come.
        case timer
        /// The user asked, or the app was started: every wait is passed over.
        case reset
        /// The scope has to be filled from a snapshot before anything can be exchanged.
        case unfilled
        /// An answer came; it is not applied yet.
        case answered
        /// The answer is in the database. `wait`: what a server that wants less asked for, in milliseconds.
        case applied(hasMore: Bool, wait: Int64?)
        /// The exchange or the apply failed. `wait`: what the server asked for, in milliseconds.
        case failed(FailureClass, wait: Int64?)
        /// The caller cancelled the request midway, or the app has interrupted its file: nothing has failed, and the
        /// outcome is unknown.
        case abandoned
    }

    package enum Effect: Hashable, Sendable {
        /// Seal what is pending, send it, and ask for the next page.
        case exchange
        /// Push what is pending, or ask for the snapshot's next page.
        case bootstrap
        /// Put the answer into the database.
        case apply
        /// Give unanswered operations new numbers in a new lane, before the next exchange.
        case repair
        /// The server cannot go on from where this device stands: note that the scope is filled anew, and put the
        /// outbox in order, before the next request.
        case recover
        /// Come back with `timer` then.
        case sleep(until: Instant)
    }

    package struct Settings: Hashable, Sendable {
        package var backoff = Backoff()
        /// Failures in a row after which the breaker is open (B12): no wait is shorter than its cool-down then, or than
        /// two thirds of the longest wait where that is less.
        package var failureLimit = 5
        package var coolDownMilliseconds: Int64 = 30_000
        package var tickMilliseconds: Int64 = 30_000
        /// No wait is longer, in the foreground, unless the server asks for it.
        package var longestWaitMilliseconds: Int64 = 30_000
        /// No server keeps a device waiting for longer, whatever it asks for.
        package var longestAskedMilliseconds: Int64 = 15 * 60_000
        /// How long a scope that the operator has stopped waits before it asks whether that is over.
        package var haltMilliseconds: Int64 = 60 * 60_000

        package init() {}
    }

    package private(set) var state: State = .idle
    /// Failures since an exchange or a page of a snapshot last went through. The app's start, its nudge and the user's
    /// asking try at once, and leave the number as it is: where that fails, the next wait is the longer one.
    package private(set) var failures: Int
    package private(set) var settings: Settings
    /// Woken while busy: once more when this is done.
    private var isWanted = false
    /// Nudged while busy: a refusal of the token that was sent says nothing of the one that there may be now.
    private var isNudged = false
    /// Until then the server wants to hear nothing; only the user's asking ends it.
    private var quietUntil: Instant?
    /// Milliseconds that lie between two rounds at least, since the operator wants it; 0 where he does not.
    private var slowness: Int64 = 0
    /// How often the scope had to be filled anew since an exchange last went through.
    private var recoveries = 0
    /// Whether operations were given new numbers since an exchange last went through.
    private var isRepaired = false
    /// More make no wait longer.
    private static let limit = 64

    /// - Parameter failures: those before the app was last stopped.
    package init(_ settings: Settings = Settings(), failures: Int = 0) {
        self.settings = settings
        self.failures = min(max(failures, 0), Self.limit)
    }

    /// Whether a request is out or an answer is being applied.
    package var isBusy: Bool {
        switch state {
        case .exchanging, .applying, .bootstrapping, .filling: true
        case .idle, .waiting, .stopped: false
        }
    }

    /// The machine's state without its moments, as a text.
    package var outline: String {
        let state: String
        switch self.state {
        case .idle: state = "idle"
        case .exchanging: state = "exchanging"
        case .applying: state = "applying"
        case .bootstrapping: state = "bootstrapping"
        case .filling: state = "filling"
        case .waiting: state = "waiting"
        case .stopped(let failure, _): state = "stopped \(failure)"
        }
        let flags = [
            isWanted ? "wanted" : "", isNudged ? "nudged" : "", isRepaired ? "repaired" : "",
            slowness > 0 ? "slow" : "",
        ]
        return "\(state) \(failures) \(flags.joined()) \(recoveries)"
    }

    package mutating func handle(_ event: Event, now: Instant, jitter: UInt64) -> [Effect] {
        switch (state, event) {
        case (.idle, .wake), (.idle, .nudge), (.idle, .timer), (.waiting, .nudge), (.stopped, .nudge):
            return exchange(now: now)
        case (.idle, .reset), (.waiting, .reset), (.stopped, .reset):
            quietUntil = nil
            return exchange(now: now)
        case (.exchanging, .wake), (.applying, .wake), (.exchanging, .reset), (.applying, .reset),
            (.bootstrapping, .wake), (.filling, .wake), (.bootstrapping, .reset), (.filling, .reset):
            isWanted = true
            return []
        case (.exchanging, .nudge), (.applying, .nudge), (.bootstrapping, .nudge), (.filling, .nudge):
            (isWanted, isNudged) = (true, true)
            return []
        case (.exchanging, .answered):
            state = .applying
            return [.apply]
        case (.exchanging, .unfilled):
            state = .bootstrapping
            return [.bootstrap]
        case (.bootstrapping, .answered):
            state = .filling
            return [.apply]
        case (.applying, .applied(let hasMore, let wait)):
            (failures, recoveries, isRepaired) = (0, 0, false)
            asked(wait, now: now)
            return applied(isMoreToDo: hasMore || isWanted && slowness == 0, now: now)
        case (.filling, .applied(let hasMore, let wait)):
            asked(wait, now: now)
            return filled(hasMore: hasMore, now: now)
        case (.exchanging, .failed(let failure, let wait)), (.applying, .failed(let failure, let wait)),
            (.bootstrapping, .failed(let failure, let wait)), (.filling, .failed(let failure, let wait)):
            asked(wait, now: now)
            return failed(failure, now: now, jitter: jitter)
        case (.exchanging, .abandoned), (.applying, .abandoned), (.bootstrapping, .abandoned), (.filling, .abandoned):
            return rest(until: max(now, quietUntil ?? now))
        case (.waiting(let until), .timer), (.stopped(_, let until), .timer):
            return now >= until ? exchange(now: now) : [.sleep(until: until)]
        case (.waiting, .wake), (.stopped, .wake): return []
        // Late or repeated; listed by state, so that a new state must be decided.
        case (.idle, .answered), (.idle, .applied), (.idle, .failed), (.idle, .unfilled), (.idle, .abandoned),
            (.waiting, .abandoned), (.stopped, .abandoned),
            (.exchanging, .timer), (.exchanging, .applied),
            (.applying, .timer), (.applying, .answered), (.applying, .unfilled),
            (.bootstrapping, .timer), (.bootstrapping, .applied), (.bootstrapping, .unfilled),
            (.filling, .timer), (.filling, .answered), (.filling, .unfilled),
            (.waiting, .answered), (.waiting, .applied), (.waiting, .failed), (.waiting, .unfilled),
            (.stopped, .answered), (.stopped, .applied), (.stopped, .failed), (.stopped, .unfilled):
            return []
        }
    }

    /// Goes over to other settings (B7). A wait that is longer than they allow ends sooner; what the server asked for
    /// is kept, and what is under way goes on.
    package mutating func use(_ settings: Settings, now: Instant) -> [Effect] {
        self.settings = settings
        func bounded(_ until: Instant) -> Instant {
            max(min(until, now + settings.longestWaitMilliseconds), quietUntil ?? now)
        }
        switch state {
        case .idle: return [.sleep(until: max(now + settings.tickMilliseconds, quietUntil ?? now))]
        case .waiting(let until): return rest(until: bounded(until))
        case .stopped(.halted, let until): return [.sleep(until: until)]
        case .stopped(let failure, let until):
            state = .stopped(failure, until: bounded(until))
            return [.sleep(until: bounded(until))]
        case .exchanging, .applying, .bootstrapping, .filling: return []
        }
    }

    /// Goes over to so many milliseconds between two rounds at least; 0: as many as ever. The pages of one round follow
    /// each other as ever, and the user's asking is no round that waits.
    package mutating func slow(to milliseconds: Int64) { slowness = max(0, milliseconds) }

    /// Whether the server wants to hear nothing yet, or the operator has slowed the scope down.
    package func isQuiet(now: Instant) -> Bool { quietUntil.map { now < $0 } ?? false }

    /// A round has ended: where the operator wants it, the next one waits.
    private mutating func rested(now: Instant) {
        if slowness > 0 { quietUntil = max(quietUntil ?? now, now + slowness) }
    }

    /// The server wants to hear nothing for so long.
    private mutating func asked(_ wait: Int64?, now: Instant) {
        let wait = min(wait ?? 0, settings.longestAskedMilliseconds)
        quietUntil = wait > 0 ? now + wait : nil
    }

    private mutating func exchange(now: Instant) -> [Effect] {
        if let quietUntil, now < quietUntil { return rest(until: quietUntil) }
        (isWanted, isNudged, quietUntil) = (false, false, nil)
        state = .exchanging
        return [.exchange]
    }

    private mutating func applied(isMoreToDo: Bool, now: Instant) -> [Effect] {
        guard !isMoreToDo else { return exchange(now: now) }
        rested(now: now)
        state = .idle
        // Edits and nudges that came meanwhile go as soon as they may.
        let tick = isWanted ? 0 : settings.tickMilliseconds
        return [.sleep(until: max(now + tick, quietUntil ?? now))]
    }

    /// A page of a snapshot is success, but not where one snapshot after the other leads to no exchange.
    private mutating func filled(hasMore: Bool, now: Instant) -> [Effect] {
        if recoveries < 2 { failures = 0 }
        guard hasMore, quietUntil == nil else { return exchange(now: now) }
        state = .bootstrapping
        return [.bootstrap]
    }

    private mutating func rest(until moment: Instant) -> [Effect] {
        state = .waiting(until: moment)
        return [.sleep(until: moment)]
    }

    private mutating func failed(_ failure: FailureClass, now: Instant, jitter: UInt64) -> [Effect] {
        switch failure {
        case .transient, .server: return rest(until: backOff(failure, now: now, jitter: jitter))
        case .resolve where !isRepaired:
            isRepaired = true
            state = .exchanging
            return [.repair, .exchange]
        // The same conflict after the repair: something else is wrong, so no hurry.
        case .resolve: return [.repair] + rest(until: backOff(failure, now: now, jitter: jitter))
        case .unauthenticated where isNudged, .forbidden where isNudged, .halted where isNudged:
            return exchange(now: now)
        case .unauthenticated, .forbidden, .needsApp:
            let until = backOff(failure, now: now, jitter: jitter)
            state = .stopped(failure, until: until)
            return [.sleep(until: until)]
        case .halted:
            (failures, recoveries, isRepaired) = (0, 0, false)
            state = .stopped(failure, until: now + settings.haltMilliseconds)
            return [.sleep(until: now + settings.haltMilliseconds)]
        case .bootstrap:
            recoveries = min(recoveries + 1, Self.limit)
            guard recoveries > 1 else {
                state = .exchanging
                return [.recover, .exchange]
            }
            // A server that refuses what it has just given is not asked in a hurry.
            return [.recover] + rest(until: backOff(failure, now: now, jitter: jitter))
        }
    }

    /// Returns the moment of the next attempt. The wait that the server asks for is kept even where it is longer than
    /// any other.
    private mutating func backOff(_ failure: FailureClass, now: Instant, jitter: UInt64) -> Instant {
        failures = min(failures + 1, Self.limit)
        rested(now: now)
        let delay = settings.backoff.delay(
            failures: failures, class: failure, jitter: jitter,
            shortest: failures < settings.failureLimit ? 0 : settings.coolDownMilliseconds,
            longest: settings.longestWaitMilliseconds)
        return max(now + delay, quietUntil ?? now)
    }
}
