/// Stops asking a server that fails again and again, and tries once after a cool-down (B12).
package struct Breaker: Hashable, Sendable {
    package enum State: Hashable, Sendable {
        /// Attempts are allowed. Goes to `open` after too many failures in a row.
        case closed(failures: Int)
        /// No attempt before `until`. Goes to `halfOpen` then, or to `closed` when the user asks.
        case open(until: Instant)
        /// One attempt is under way. Goes to `closed` or back to `open`.
        case halfOpen
    }

    package struct Settings: Hashable, Sendable {
        package var failureLimit = 5
        package var coolDownMilliseconds: Int64 = 30_000

        package init() {}
    }

    package private(set) var state: State = .closed(failures: 0)
    package var settings: Settings

    package init(_ settings: Settings = Settings()) { self.settings = settings }

    /// Whether an attempt may be made now; an open breaker whose time has come lets one through.
    package mutating func allowsAttempt(now: Instant) -> Bool {
        switch state {
        case .closed, .halfOpen: return true
        case .open(let until):
            guard now >= until else { return false }
            state = .halfOpen
            return true
        }
    }

    package mutating func succeeded() { state = .closed(failures: 0) }
    package mutating func reset() { state = .closed(failures: 0) }

    package mutating func failed(now: Instant) {
        switch state {
        case .closed(let failures) where failures + 1 < settings.failureLimit:
            state = .closed(failures: failures + 1)
        case .closed, .halfOpen, .open:
            state = .open(until: now + settings.coolDownMilliseconds)
        }
    }

    /// The end of the cool-down while the breaker is open.
    package var openUntil: Instant? {
        switch state {
        case .open(let until): until
        case .closed, .halfOpen: nil
        }
    }
}
