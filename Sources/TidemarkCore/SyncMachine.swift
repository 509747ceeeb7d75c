/// When one scope syncs, waits, rests or stops. It never touches a socket, a file or a clock: events and the time go
/// in, effects come out, and the driver carries them out and feeds back what happened.
package struct SyncMachine: Hashable, Sendable {
    package enum State: Hashable, Sendable {
        /// In sync as far as is known. Goes to `exchanging` when woken, at the tick or when the user asks.
        case idle
        /// One request is out. Goes to `applying`, `waiting`, `open`, `stopped`, to `bootstrapping` where the scope has
        /// to be filled first, or stays after a repair.
        case exchanging(attempt: Int)
        /// One answer is with the database. Goes to `exchanging` or `idle`, or where a failure leads.
        case applying(attempt: Int)
        /// A push or the question for a snapshot's page is out, while the scope is being filled. Goes to `filling`, or
        /// where a failure leads.
        case bootstrapping(attempt: Int)
        /// Its answer is with the database. Goes to `bootstrapping` until the snapshot has ended, then to `exchanging`,
        /// or where a failure leads.
        case filling(attempt: Int)
        /// Backing off, or asked to by the server. Goes to `exchanging` at `until` or when the user asks.
        case waiting(attempt: Int, until: Instant)
        /// The breaker is open. Goes to `exchanging` at `until` or when the user asks.
        case open(until: Instant)
        /// The app or the operator must act. Goes to `exchanging` when the user asks, and at the tick, for nobody says
        /// when they have.
        /// A nudge is enough where a new token may be the remedy.
        case stopped(FailureClass)
    }

    package enum Event: Hashable, Sendable {
        /// There is something to send.
        case wake
        /// The app says that there may be news, or a token that grants more: whoever stopped for want of one asks anew.
        case nudge
        /// The time of the last `sleep` has come.
        case timer
        /// The user asked: waits and the breaker are passed over.
        case reset
        /// The scope has to be filled from a snapshot before anything can be exchanged.
        case unfilled
        /// An answer came; it is not applied yet.
        case answered
        /// The answer is in the database. `wait`: what a server that wants less asked for, in milliseconds.
        case applied(hasMore: Bool, wait: Int64?)
        /// The exchange or the apply failed. `wait`: what the server asked for, in milliseconds.
        case failed(FailureClass, wait: Int64?)
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
        package var breaker = Breaker.Settings()
        package var tickMilliseconds: Int64 = 30_000
        /// No wait is longer: 30 s in the foreground, none in the background.
        package var longestWaitMilliseconds: Int64 = 30_000
        /// No server keeps a device waiting for longer, whatever it asks for.
        package var longestAskedMilliseconds: Int64 = 15 * 60_000

        package init() {}
    }

    package private(set) var state: State = .idle
    package private(set) var breaker: Breaker
    package var settings: Settings
    /// Woken while busy: once more when this is done.
    private var isWanted = false
    /// Nudged while busy: a refusal of the token that was sent says nothing of the one that there may be now.
    private var isNudged = false
    /// Until then the server wants to hear nothing; only the user's asking ends it.
    private var quietUntil: Instant?
    /// How often the scope had to be filled anew since an exchange last went through.
    private var recoveries = 0
    /// More make no wait longer.
    private static let recoveryLimit = 16

    package init(_ settings: Settings = Settings()) {
        self.settings = settings
        breaker = Breaker(settings.breaker)
    }

    /// Whether a request is out or an answer is being applied.
    package var isBusy: Bool {
        switch state {
        case .exchanging, .applying, .bootstrapping, .filling: true
        case .idle, .waiting, .open, .stopped: false
        }
    }

    /// What it remembers, moments left out, as a text.
    package var outline: String {
        let state: String
        switch self.state {
        case .idle: state = "idle"
        case .exchanging(let attempt): state = "exchanging \(attempt)"
        case .applying(let attempt): state = "applying \(attempt)"
        case .bootstrapping(let attempt): state = "bootstrapping \(attempt)"
        case .filling(let attempt): state = "filling \(attempt)"
        case .waiting(let attempt, _): state = "waiting \(attempt)"
        case .open: state = "open"
        case .stopped(let failure): state = "stopped \(failure)"
        }
        let circuit: String
        switch breaker.state {
        case .closed(let failures): circuit = "closed \(failures)"
        case .open: circuit = "open"
        case .halfOpen: circuit = "half open"
        }
        return "\(state), \(circuit)\(isWanted ? ", wanted" : "")\(isNudged ? ", nudged" : ""), \(recoveries)"
    }

    package mutating func handle(_ event: Event, now: Instant, jitter: UInt64) -> [Effect] {
        switch (state, event) {
        case (.idle, .wake), (.idle, .timer): return exchange(attempt: 0, now: now)
        case (.idle, .reset), (.waiting, .reset), (.open, .reset), (.stopped, .reset):
            breaker.reset()
            quietUntil = nil
            return exchange(attempt: 0, now: now)
        case (.exchanging, .wake), (.applying, .wake), (.exchanging, .reset), (.applying, .reset),
            (.bootstrapping, .wake), (.filling, .wake), (.bootstrapping, .reset), (.filling, .reset):
            isWanted = true
            return []
        case (.idle, .nudge), (.stopped(.unauthenticated), .nudge), (.stopped(.forbidden), .nudge):
            return exchange(attempt: 0, now: now)
        case (.exchanging, .nudge), (.applying, .nudge), (.bootstrapping, .nudge), (.filling, .nudge):
            (isWanted, isNudged) = (true, true)
            return []
        case (.exchanging(let attempt), .answered):
            state = .applying(attempt: attempt)
            return [.apply]
        case (.exchanging(let attempt), .unfilled):
            state = .bootstrapping(attempt: attempt)
            return [.bootstrap]
        case (.bootstrapping(let attempt), .answered):
            state = .filling(attempt: attempt)
            return [.apply]
        case (.applying, .applied(let hasMore, let wait)):
            breaker.succeeded()
            recoveries = 0
            asked(wait, now: now)
            return applied(isMoreToDo: hasMore || isWanted, now: now)
        case (.filling, .applied(let hasMore, let wait)):
            asked(wait, now: now)
            return filled(hasMore: hasMore, now: now)
        case (.exchanging(let attempt), .failed(let failure, let wait)),
            (.applying(let attempt), .failed(let failure, let wait)),
            (.bootstrapping(let attempt), .failed(let failure, let wait)),
            (.filling(let attempt), .failed(let failure, let wait)):
            asked(wait, now: now)
            return failed(failure, attempt: attempt, now: now, jitter: jitter)
        case (.waiting(let attempt, let until), .timer):
            return now >= until ? exchange(attempt: attempt + 1, now: now) : [.sleep(until: until)]
        case (.open(let until), .timer):
            return now >= until ? exchange(attempt: 0, now: now) : [.sleep(until: until)]
        case (.stopped, .timer): return exchange(attempt: 0, now: now)
        case (.waiting, .wake), (.open, .wake), (.stopped, .wake): return []
        case (.waiting, .nudge), (.open, .nudge), (.stopped, .nudge): return []
        // Late or repeated; listed by state, so that a new state must be decided.
        case (.idle, .answered), (.idle, .applied), (.idle, .failed), (.idle, .unfilled),
            (.exchanging, .timer), (.exchanging, .applied),
            (.applying, .timer), (.applying, .answered), (.applying, .unfilled),
            (.bootstrapping, .timer), (.bootstrapping, .applied), (.bootstrapping, .unfilled),
            (.filling, .timer), (.filling, .answered), (.filling, .unfilled),
            (.waiting, .answered), (.waiting, .applied), (.waiting, .failed), (.waiting, .unfilled),
            (.open, .answered), (.open, .applied), (.open, .failed), (.open, .unfilled),
            (.stopped, .answered), (.stopped, .applied), (.stopped, .failed), (.stopped, .unfilled):
            return []
        }
    }

    /// The server wants to hear nothing for so long.
    private mutating func asked(_ wait: Int64?, now: Instant) {
        let wait = min(wait ?? 0, settings.longestAskedMilliseconds)
        quietUntil = wait > 0 ? now + wait : nil
    }

    private mutating func exchange(attempt: Int, now: Instant) -> [Effect] {
        if let quietUntil, now < quietUntil { return rest(until: quietUntil) }
        guard breaker.allowsAttempt(now: now) else {
            let until = breaker.openUntil ?? now
            state = .open(until: until)
            return [.sleep(until: until)]
        }
        (isWanted, isNudged, quietUntil) = (false, false, nil)
        state = .exchanging(attempt: attempt)
        return [.exchange]
    }

    private mutating func applied(isMoreToDo: Bool, now: Instant) -> [Effect] {
        guard !isMoreToDo else { return exchange(attempt: 0, now: now) }
        state = .idle
        return [.sleep(until: max(now + settings.tickMilliseconds, quietUntil ?? now))]
    }

    /// A page of a snapshot is success, but not where one snapshot after the other leads to no exchange.
    private mutating func filled(hasMore: Bool, now: Instant) -> [Effect] {
        if recoveries < 2 { breaker.succeeded() }
        guard hasMore, quietUntil == nil else { return exchange(attempt: 0, now: now) }
        state = .bootstrapping(attempt: 0)
        return [.bootstrap]
    }

    private mutating func rest(until moment: Instant) -> [Effect] {
        // Nothing failed, so the attempt after this wait is a first one.
        state = .waiting(attempt: -1, until: moment)
        return [.sleep(until: moment)]
    }

    private mutating func failed(
        _ failure: FailureClass, attempt: Int, now: Instant, jitter: UInt64
    ) -> [Effect] {
        switch failure {
        case .transient, .server: return backOff(failure, attempt: attempt, now: now, jitter: jitter)
        case .resolve where attempt == 0:
            state = .exchanging(attempt: 1)
            return [.repair, .exchange]
        // The same conflict straight after the repair: something else is wrong, so no hurry.
        case .resolve: return [.repair] + backOff(failure, attempt: attempt, now: now, jitter: jitter)
        case .unauthenticated where isNudged, .forbidden where isNudged: return exchange(attempt: 0, now: now)
        case .unauthenticated, .forbidden, .needsApp:
            state = .stopped(failure)
            let longest = min(settings.tickMilliseconds, settings.longestWaitMilliseconds)
            return [.sleep(until: max(now + longest, quietUntil ?? now))]
        case .bootstrap:
            recoveries = min(recoveries + 1, Self.recoveryLimit)
            guard recoveries > 1 else {
                state = .exchanging(attempt: attempt)
                return [.recover, .exchange]
            }
            // A server that refuses what it has just given is not asked in a hurry.
            return [.recover] + backOff(failure, attempt: recoveries - 2, now: now, jitter: jitter)
        }
    }

    private mutating func backOff(
        _ failure: FailureClass, attempt: Int, now: Instant, jitter: UInt64
    ) -> [Effect] {
        breaker.failed(now: now)
        // What the server asks for is kept even where it is longer than the foreground's limit.
        let asked = quietUntil ?? now
        if let until = breaker.openUntil {
            state = .open(until: max(until, asked))
        } else {
            let delay = settings.backoff.delay(attempt: attempt, class: failure, jitter: jitter)
            state = .waiting(attempt: attempt, until: max(now + min(delay, settings.longestWaitMilliseconds), asked))
        }
        switch state {
        case .open(let until), .waiting(_, let until): return [.sleep(until: until)]
        case .idle, .exchanging, .applying, .bootstrapping, .filling, .stopped: return []
        }
    }
}
