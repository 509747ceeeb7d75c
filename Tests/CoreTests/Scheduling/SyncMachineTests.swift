import Testing

@testable import TidemarkCore

@Suite("Sync machine")
struct SyncMachineTests {
    private let start = Instant(milliseconds: 1_000)

    /// A machine behind a reference, so that an expectation can ask it.
    private final class Driver {
        var machine = SyncMachine()
        var state: SyncMachine.State { machine.state }

        func handle(_ event: SyncMachine.Event, now: Instant, jitter: UInt64) -> [SyncMachine.Effect] {
            machine.handle(event, now: now, jitter: jitter)
        }
    }

    private func machine(_ events: SyncMachine.Event...) -> Driver {
        let driver = Driver()
        for event in events { _ = driver.handle(event, now: start, jitter: 0) }
        return driver
    }

    @Test("one round: wake, answer, apply, rest until the tick")
    func round() {
        let machine = machine()
        #expect(machine.handle(.wake, now: start, jitter: 0) == [.exchange])
        #expect(machine.handle(.answered, now: start, jitter: 0) == [.apply])
        #expect(machine.handle(.applied(hasMore: true, wait: nil), now: start, jitter: 0) == [.exchange])
        _ = machine.handle(.answered, now: start, jitter: 0)
        let effects = machine.handle(.applied(hasMore: false, wait: nil), now: start, jitter: 0)
        #expect(effects == [.sleep(until: start + 30_000)])
        #expect(machine.handle(.timer, now: start + 30_000, jitter: 0) == [.exchange])
    }

    @Test("a wake in mid-exchange is not lost")
    func wanted() {
        let machine = machine(.wake, .wake, .answered)
        #expect(machine.handle(.applied(hasMore: false, wait: nil), now: start, jitter: 0) == [.exchange])
    }

    @Test("a failure waits, longer each time, and never longer than the foreground's limit")
    func waits() {
        let machine = machine(.wake)
        #expect(machine.handle(.failed(.transient, wait: nil), now: start, jitter: 0) == [.sleep(until: start + 1_000)])
        #expect(machine.handle(.timer, now: start + 500, jitter: 0) == [.sleep(until: start + 1_000)])
        #expect(machine.handle(.timer, now: start + 1_000, jitter: 0) == [.exchange])
        let again = machine.handle(.failed(.transient, wait: nil), now: start + 1_000, jitter: 0)
        #expect(again == [.sleep(until: start + 3_000)])
        #expect(machine.handle(.wake, now: start + 1_001, jitter: 0).isEmpty)
        #expect(machine.handle(.reset, now: start + 1_001, jitter: 0) == [.exchange])
    }

    @Test("under other settings a wait ends sooner where it is too long for them, but none that the server asked for")
    func otherSettings() {
        var background = SyncMachine.Settings()
        (background.longestWaitMilliseconds, background.tickMilliseconds) = (900_000, 900_000)
        func failing(_ failure: FailureClass, wait: Int64? = nil) -> SyncMachine {
            var machine = SyncMachine(background, failures: 12)
            _ = machine.handle(.wake, now: start, jitter: 0)
            _ = machine.handle(.failed(failure, wait: wait), now: start, jitter: 0)
            return machine
        }
        for failure in [FailureClass.transient, .unauthenticated] {
            var machine = failing(failure)
            let waits = machine.state
            let same = machine.use(background, now: start + 1_000)
            #expect(same == [.sleep(until: waits.until ?? start)])
            #expect(machine.state == waits)
            let sooner = machine.use(SyncMachine.Settings(), now: start + 1_000)
            #expect(sooner == [.sleep(until: start + 31_000)])
            let due = machine.handle(.timer, now: start + 31_000, jitter: 0)
            #expect(due == [.exchange])
        }
        var asked = failing(.transient, wait: 600_000)
        let kept = asked.use(SyncMachine.Settings(), now: start + 1_000)
        #expect(kept == [.sleep(until: start + 600_000)])
        var idle = SyncMachine()
        let tick = idle.use(background, now: start)
        #expect(tick == [.sleep(until: start + 900_000)])
        var busy = SyncMachine()
        _ = busy.handle(.wake, now: start, jitter: 0)
        let nothing = busy.use(background, now: start)
        #expect(nothing.isEmpty)
        #expect(busy.settings == background)
    }

    @Test("a wait that the server asks for is kept")
    func retryAfter() {
        let machine = machine(.wake)
        let failed = machine.handle(.failed(.transient, wait: 90_000), now: start, jitter: 0)
        #expect(failed == [.sleep(until: start + 90_000)])
        let busy = self.machine(.wake, .answered)
        let asked = busy.handle(.applied(hasMore: true, wait: 5_000), now: start, jitter: 0)
        #expect(asked == [.sleep(until: start + 5_000)])
        #expect(busy.handle(.timer, now: start + 5_000, jitter: 0) == [.exchange])
        #expect(busy.state == .exchanging)
    }

    @Test("a wait that the server asks for holds for all other reasons to call, but not for the user")
    func quiet() {
        let machine = machine(.wake, .answered)
        let done = machine.handle(.applied(hasMore: false, wait: 60_000), now: start, jitter: 0)
        #expect(done == [.sleep(until: start + 60_000)])
        #expect(machine.handle(.wake, now: start + 1, jitter: 0) == [.sleep(until: start + 60_000)])
        #expect(machine.state == .waiting(until: start + 60_000))
        #expect(machine.handle(.reset, now: start + 2, jitter: 0) == [.exchange])
        #expect(machine.handle(.answered, now: start + 3, jitter: 0) == [.apply])
        let calm = machine.handle(.applied(hasMore: false, wait: nil), now: start + 4, jitter: 0)
        #expect(calm == [.sleep(until: start + 4 + 30_000)])
        #expect(machine.handle(.wake, now: start + 5, jitter: 0) == [.exchange])
    }

    @Test("no server asks for longer than a quarter of an hour")
    func askedTooMuch() {
        for wait in [901_000, Int64.max] {
            let failing = machine(.wake)
            let failed = failing.handle(.failed(.transient, wait: wait), now: start, jitter: 0)
            #expect(failed == [.sleep(until: start + 900_000)])
            let busy = machine(.wake, .answered)
            let asked = busy.handle(.applied(hasMore: true, wait: wait), now: start, jitter: 0)
            #expect(asked == [.sleep(until: start + 900_000)])
        }
    }

    @Test("a gap is repaired at once, but not twice in a row")
    func repair() {
        let machine = machine(.wake)
        #expect(machine.handle(.failed(.resolve, wait: nil), now: start, jitter: 0) == [.repair, .exchange])
        let again = machine.handle(.failed(.resolve, wait: nil), now: start, jitter: 0)
        #expect(again.first == .repair)
        #expect(!again.contains(.exchange))
    }

    @Test("a scope that has to be filled is: page by page, and then exchanged")
    func bootstrap() {
        let machine = machine(.wake)
        #expect(machine.handle(.unfilled, now: start, jitter: 0) == [.bootstrap])
        #expect(machine.handle(.answered, now: start, jitter: 0) == [.apply])
        #expect(machine.handle(.applied(hasMore: true, wait: nil), now: start, jitter: 0) == [.bootstrap])
        #expect(machine.state == .bootstrapping)
        _ = machine.handle(.answered, now: start, jitter: 0)
        #expect(
            machine.handle(.applied(hasMore: true, wait: 700), now: start, jitter: 0) == [.sleep(until: start + 700)])
        #expect(machine.handle(.timer, now: start + 700, jitter: 0) == [.exchange])
        _ = machine.handle(.unfilled, now: start, jitter: 0)
        _ = machine.handle(.answered, now: start, jitter: 0)
        #expect(machine.handle(.applied(hasMore: false, wait: nil), now: start, jitter: 0) == [.exchange])
    }

    @Test("a failure while the scope is filled waits like any other, and the filling goes on after it")
    func bootstrapFails() {
        let machine = machine(.wake, .unfilled)
        let failed = machine.handle(.failed(.transient, wait: nil), now: start, jitter: 0)
        #expect(failed == [.sleep(until: start + 1_000)])
        #expect(machine.handle(.timer, now: start + 1_000, jitter: 0) == [.exchange])
        #expect(machine.handle(.unfilled, now: start, jitter: 0) == [.bootstrap])
        #expect(machine.state == .bootstrapping)
    }

    @Test("an expired checkpoint is recovered from at once; one snapshot after the other that leads nowhere backs off")
    func recover() {
        let machine = machine(.wake)
        #expect(machine.handle(.failed(.bootstrap, wait: nil), now: start, jitter: 0) == [.recover, .exchange])
        var now = start
        for _ in 0..<20 {
            // The snapshot comes to its end each time, and the next exchange is refused again.
            if machine.state == .exchanging {
                _ = machine.handle(.unfilled, now: now, jitter: 0)
                _ = machine.handle(.answered, now: now, jitter: 0)
                #expect(machine.handle(.applied(hasMore: false, wait: nil), now: now, jitter: 0) == [.exchange])
            }
            let effects = machine.handle(.failed(.bootstrap, wait: nil), now: now, jitter: 0)
            #expect(effects.first == .recover)
            guard case .sleep(let until) = effects.last else {
                Issue.record("refused again and again, and no wait")
                return
            }
            now = until
            #expect(machine.handle(.timer, now: now, jitter: 0) == [.exchange])
        }
        #expect(now - start >= 19 * 1_000)
        // Once an exchange has gone through, the next loss is another one.
        _ = machine.handle(.answered, now: now, jitter: 0)
        _ = machine.handle(.applied(hasMore: true, wait: nil), now: now, jitter: 0)
        #expect(machine.handle(.failed(.bootstrap, wait: nil), now: now, jitter: 0) == [.recover, .exchange])
    }

    @Test(
        "an error that needs the app stops the engine until the user asks, and is tried again after growing waits",
        arguments: [FailureClass.needsApp, .unauthenticated, .forbidden])
    func stops(failure: FailureClass) {
        let failed = machine(.wake)
        #expect(failed.handle(.failed(failure, wait: nil), now: start, jitter: 0) == [.sleep(until: start + 1_000)])
        #expect(failed.state == .stopped(failure, until: start + 1_000))
        #expect(failed.handle(.wake, now: start, jitter: 0).isEmpty)
        #expect(failed.handle(.timer, now: start + 1_000, jitter: 0) == [.exchange])
        let again = failed.handle(.failed(failure, wait: nil), now: start + 1_000, jitter: 0)
        #expect(again == [.sleep(until: start + 3_000)])
        #expect(machine(.wake, .failed(failure, wait: nil)).handle(.reset, now: start, jitter: 0) == [.exchange])
    }

    @Test("a nudge, as after a sign-in or when the network is back, ends every wait but one that the server asked for")
    func nudged() {
        for failure in FailureClass.allCases {
            let machine = machine(.wake, .failed(failure, wait: nil))
            guard !machine.machine.isBusy else { continue }
            #expect(machine.handle(.nudge, now: start, jitter: 0) == [.exchange], "\(failure)")
            let asked = self.machine(.wake, .failed(failure, wait: 60_000))
            #expect(asked.handle(.nudge, now: start, jitter: 0) == [.sleep(until: start + 60_000)], "\(failure)")
        }
        #expect(machine().handle(.nudge, now: start, jitter: 0) == [.exchange])
    }

    @Test("an exchange that was given up has not failed")
    func abandoned() {
        let machine = machine(.wake)
        #expect(machine.handle(.abandoned, now: start, jitter: 0) == [.sleep(until: start)])
        #expect(machine.machine.failures == 0)
        #expect(machine.handle(.timer, now: start, jitter: 0) == [.exchange])
    }

    @Test("an app that asks has the engine try at once, and where that fails the next wait is the longer one")
    func resumed() {
        for event in [SyncMachine.Event.reset, .nudge] {
            let machine = machine(.wake, .failed(.transient, wait: nil))
            for wait: Int64 in [2_000, 4_000, 8_000] {
                #expect(machine.handle(event, now: start, jitter: 0) == [.exchange])
                let failed = machine.handle(.failed(.transient, wait: nil), now: start, jitter: 0)
                #expect(failed == [.sleep(until: start + wait)])
            }
        }
        var started = SyncMachine(failures: 3)
        #expect(started.handle(.reset, now: start, jitter: 0) == [.exchange])
        let failed = started.handle(.failed(.transient, wait: nil), now: start, jitter: 0)
        #expect(failed == [.sleep(until: start + 8_000)])
    }

    @Test("a nudge while the old token is being refused has the new one tried at once, and only once")
    func nudgedWhileBusy() {
        for failure in [FailureClass.unauthenticated, .forbidden] {
            let machine = machine(.wake, .nudge)
            #expect(machine.handle(.failed(failure, wait: nil), now: start, jitter: 0) == [.exchange])
            let again = machine.handle(.failed(failure, wait: nil), now: start, jitter: 0)
            #expect(again == [.sleep(until: start + 1_000)])
            #expect(machine.state == .stopped(failure, until: start + 1_000))
        }
    }

    @Test("every state that can be reached leads on: to an exchange, by the timer or by the user")
    func everyStateLeadsOn() {
        let events: [SyncMachine.Event] =
            [
                .wake, .nudge, .timer, .reset, .unfilled, .answered, .abandoned, .applied(hasMore: true, wait: nil),
                .applied(hasMore: false, wait: 3),
            ]
            + FailureClass.allCases.map { .failed($0, wait: nil) }
        var seen: Set<SyncMachine> = []
        var waiting = [(SyncMachine(), start)]
        while let (machine, now) = waiting.popLast() {
            guard seen.count < 5_000, seen.insert(machine).inserted else { continue }
            if !machine.isBusy {
                var asked = machine
                let effects = asked.handle(.reset, now: now, jitter: 0)
                #expect(effects == [.exchange], "\(machine.state)")
            }
            for event in events {
                var next = machine
                let effects = next.handle(event, now: now, jitter: 0)
                // One that comes to rest says when it wants to be called: a wait without a timer would be one for ever.
                if next.state != machine.state, !next.isBusy {
                    let isAwaited = effects.contains { if case .sleep(let until) = $0 { until >= now } else { false } }
                    #expect(isAwaited, "\(machine.state) \(event)")
                }
                waiting.append((next, now + 20_000))
            }
        }
        #expect(seen.count > 50)
    }
}

extension SyncMachine.State {
    fileprivate var until: Instant? {
        switch self {
        case .waiting(let until), .stopped(_, let until): until
        case .idle, .exchanging, .applying, .bootstrapping, .filling: nil
        }
    }
}
