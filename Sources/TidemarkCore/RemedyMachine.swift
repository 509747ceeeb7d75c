package import TidemarkWire

/// What the operator's remedies have come to on a device, in one scope (W108). It is a value in the device's file,
/// written in the transaction that brings an effect about, so that each remedy is carried out once, whatever is lost,
/// repeated or killed.
package struct RemedyMachine: Hashable, Sendable {
    package enum State: Hashable, Sendable {
        /// Nothing is asked of the device.
        case none
        /// It asks and sends at most once in so many milliseconds, between two moments of its clock.
        case slowed(interval: Int64, since: Int64, until: Int64)
        /// The scope is to be filled anew.
        case refillDue
        /// It is being filled anew.
        case refilling
        /// The tables are to be compared. `begun`: how often that was begun, and the process did not come to its end.
        case verifyDue(begun: Int)
        /// It syncs no more.
        case stopped(message: String)
    }

    package enum Event: Hashable, Sendable {
        /// An answer carried a remedy.
        case heard(NumberedRemedy)
        /// The server knows of no remedy for this device: its store was put back, or has forgotten the device.
        case forgotten
        /// The scope begins to be filled anew.
        case refillBegan
        /// The scope is filled.
        case filled
        /// The comparison begins.
        case verifyBegan
        /// The comparison could not end this time, and is begun anew another time.
        case verifyPutOff
        /// The comparison has ended.
        case verified(differing: Int64, repaired: Int64)
        /// The comparison will not end: with the code of what stands in the way.
        case verifyFailed(code: String)
    }

    package private(set) var state: State
    /// The number of the last remedy that was heard.
    package private(set) var number: Int64
    /// Its outcome; `nil` while it is under way, and before the first.
    package private(set) var outcome: RemedyOutcome?

    /// - Parameter state: as a file has kept it.
    package init(_ state: State = .none, number: Int64 = -1, outcome: RemedyOutcome? = nil) {
        (self.state, self.number, self.outcome) = (state, number, outcome)
    }

    /// A slowing ends by itself after so many milliseconds: nobody has to remember it.
    package static let longestSlowing: Int64 = 86_400_000
    /// Comparisons that ended with their process, after which no other is begun.
    package static let verifyLimit = 3

    /// - Parameter now: in milliseconds since 1970.
    package mutating func handle(_ event: Event, now: Int64) {
        switch (state, event) {
        case (_, .heard(let heard)):
            // An answer that is late, or a second copy of one, tells nothing new.
            guard heard.number > number else { return }
            take(heard, now: now)
        case (_, .forgotten): self = RemedyMachine()
        case (.refillDue, .refillBegan): state = .refilling
        case (.refilling, .filled): end(.done)
        case (.verifyDue(let begun), .verifyBegan):
            if begun < Self.verifyLimit { state = .verifyDue(begun: begun + 1) } else { end(.failed, "interrupted") }
        case (.verifyDue(let begun), .verifyPutOff): state = .verifyDue(begun: max(0, begun - 1))
        case (.verifyDue, .verified(let differing, let repaired)):
            end(.done)
            outcome?.differing = differing
            outcome?.repaired = repaired
        case (.verifyDue, .verifyFailed(let code)): end(.failed, code)
        // Another remedy has come meanwhile; listed by state, so that a new state must be decided.
        case (.none, .refillBegan), (.none, .filled), (.none, .verifyBegan), (.none, .verifyPutOff),
            (.none, .verified), (.none, .verifyFailed),
            (.slowed, .refillBegan), (.slowed, .filled), (.slowed, .verifyBegan), (.slowed, .verifyPutOff),
            (.slowed, .verified), (.slowed, .verifyFailed),
            (.stopped, .refillBegan), (.stopped, .filled), (.stopped, .verifyBegan), (.stopped, .verifyPutOff),
            (.stopped, .verified), (.stopped, .verifyFailed),
            (.refillDue, .filled), (.refillDue, .verifyBegan), (.refillDue, .verifyPutOff), (.refillDue, .verified),
            (.refillDue, .verifyFailed),
            (.refilling, .refillBegan), (.refilling, .verifyBegan), (.refilling, .verifyPutOff),
            (.refilling, .verified), (.refilling, .verifyFailed),
            (.verifyDue, .refillBegan), (.verifyDue, .filled):
            return
        }
    }

    /// The milliseconds that lie between two rounds at least; 0 where nothing is asked.
    ///
    /// - Parameter now: in milliseconds since 1970. A clock that was set back to before the slowing ends it.
    package func interval(now: Int64) -> Int64 {
        guard case .slowed(let interval, let since, let until) = state, (since..<max(since, until)).contains(now) else {
            return 0
        }
        return interval
    }

    /// The operator's message, where the scope is stopped.
    package var stop: String? { if case .stopped(let message) = state { message } else { nil } }

    /// Whether a comparison is asked for.
    package var wantsVerify: Bool { if case .verifyDue = state { true } else { false } }

    private mutating func take(_ heard: NumberedRemedy, now: Int64) {
        (number, outcome) = (heard.number, nil)
        switch heard.remedy {
        case .slowDown(let asked):
            let interval = min(max(asked, Remedy.intervals.lowerBound), Remedy.intervals.upperBound).wholeSeconds * 1000
            let until = now.saturatingAdding(Self.longestSlowing)
            end(.done, as: .slowed(interval: interval, since: now, until: until))
        case .refill: state = .refillDue
        case .verify: state = .verifyDue(begun: 0)
        case .stop(let message): end(.done, as: .stopped(message: message))
        case .clear: end(.done)
        // Nobody knows whether an unknown remedy ends the one before, so that one goes on.
        case nil: end(.refused, "unknown_remedy", as: state)
        }
    }

    private mutating func end(_ result: RemedyOutcome.Result, _ code: String? = nil, as next: State = .none) {
        state = next
        outcome = RemedyOutcome(number, result, code: code)
    }
}
