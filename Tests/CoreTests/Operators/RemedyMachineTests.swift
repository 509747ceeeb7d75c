import Testing
import TidemarkWire

@testable import TidemarkCore

/// What a device does about its operator's remedies, and how often (W108).
@Suite("The machine of remedies")
struct RemedyMachineTests {
    private func machine(_ events: RemedyMachine.Event..., at now: Int64 = 1_000) -> RemedyMachine {
        var machine = RemedyMachine()
        for event in events { machine.handle(event, now: now) }
        return machine
    }

    private func heard(_ number: Int64, _ remedy: Remedy?) -> RemedyMachine.Event {
        .heard(NumberedRemedy(number: number, remedy: remedy))
    }

    @Test("A remedy that comes again, or late, is not carried out again")
    func once() {
        var machine = machine(heard(7, .refill), .refillBegan, .filled)
        let done = machine
        #expect(machine.state == .none && machine.outcome == RemedyOutcome(7, .done))
        for late in [heard(7, .refill), heard(6, .stop(message: "m")), heard(0, .verify)] {
            machine.handle(late, now: 2_000)
            #expect(machine == done)
        }
        machine.handle(heard(8, .refill), now: 3_000)
        #expect(machine.state == .refillDue && machine.outcome == nil)
    }

    @Test("A refill is done when the scope is filled, and not before")
    func refill() {
        #expect(machine(heard(1, .refill), .filled).state == .refillDue)
        #expect(machine(heard(1, .refill), .refillBegan).outcome == nil)
        #expect(machine(heard(1, .refill), .refillBegan, .filled).outcome?.result == .done)
    }

    @Test("A slowing ends with its day, with a clock that is set back before it, and with the next remedy")
    func slowed() {
        let machine = machine(heard(1, .slowDown(interval: .seconds(600))))
        #expect(machine.outcome?.result == .done)
        let end = 1_000 + RemedyMachine.longestSlowing
        #expect([999, 1_000, end - 1, end].map { machine.interval(now: $0) } == [0, 600_000, 600_000, 0])
        for interval in [Duration.seconds(Int64.max), .seconds(1e19), .seconds(86_401)] {
            let long = self.machine(heard(1, .slowDown(interval: interval)))
            #expect(long.interval(now: 1_000) == 86_400_000)
        }
        let partial = self.machine(heard(1, .slowDown(interval: .milliseconds(1_999))))
        #expect(partial.interval(now: 1_000) == 1_000)
        #expect(self.machine(heard(1, .slowDown(interval: .seconds(600))), heard(2, .clear)).interval(now: 1_000) == 0)
        #expect(self.machine(heard(1, .slowDown(interval: .seconds(1))), at: .max).interval(now: .max) == 0)
    }

    @Test(
        "A stop goes on until another remedy comes",
        arguments: [Remedy.clear, .refill, .verify, .slowDown(interval: .seconds(9))])
    func stopped(remedy: Remedy) {
        var machine = machine(heard(1, .stop(message: "m")))
        #expect(machine.stop == "m" && machine.outcome?.result == .done)
        for event in Self.own { machine.handle(event, now: .max) }
        #expect(machine.stop == "m")
        machine.handle(heard(2, remedy), now: 0)
        #expect(machine.stop == nil)
    }

    @Test("A server that knows of no remedy ends what was asked, and may ask the same again")
    func forgotten() {
        var machine = machine(heard(7, .stop(message: "m")), .forgotten)
        #expect(machine == RemedyMachine())
        machine.handle(heard(7, .stop(message: "m")), now: 0)
        #expect(machine.stop == "m")
    }

    @Test("A kind that is not known is refused, and what was asked before goes on")
    func unknown() {
        let machine = machine(heard(1, .stop(message: "m")), heard(2, nil))
        #expect(machine.stop == "m")
        #expect(machine.outcome == RemedyOutcome(2, .refused, code: "unknown_remedy"))
    }

    @Test("A comparison says what it found, and one that ends its process each time is given up")
    func verify() {
        var done = machine(heard(1, .verify), .verifyBegan, .verified(differing: 3, repaired: 2))
        #expect(done.outcome?.differing == 3 && done.outcome?.repaired == 2 && !done.wantsVerify)
        done.handle(.verifyBegan, now: 0)
        #expect(!done.wantsVerify)
        var killed = machine(heard(1, .verify))
        for _ in 1...RemedyMachine.verifyLimit {
            killed.handle(.verifyBegan, now: 0)
            #expect(killed.wantsVerify)
        }
        killed.handle(.verifyBegan, now: 0)
        #expect(killed.outcome == RemedyOutcome(1, .failed, code: "interrupted") && !killed.wantsVerify)
        // A network that goes away is no process that ends.
        var put = machine(heard(1, .verify))
        for _ in 1...9 {
            put.handle(.verifyBegan, now: 0)
            put.handle(.verifyPutOff, now: 0)
        }
        #expect(put.wantsVerify)
        #expect(machine(heard(1, .verify), .verifyFailed(code: "c")).outcome == RemedyOutcome(1, .failed, code: "c"))
    }

    private static let own: [RemedyMachine.Event] = [
        .refillBegan, .filled, .verifyBegan, .verifyPutOff, .verified(differing: 1, repaired: 1),
        .verifyFailed(code: "c"),
    ]

    @Test("From every state each remedy is taken, and has an outcome once it is carried out")
    func everyState() {
        let remedies: [Remedy?] = [
            .slowDown(interval: .seconds(1)), .refill, .verify, .stop(message: "m"), .clear, nil,
        ]
        for first in remedies {
            for events in Self.own.map({ [$0] }) + [[]] {
                for second in remedies {
                    var machine = machine(heard(1, first))
                    for event in events { machine.handle(event, now: 0) }
                    machine.handle(heard(2, second), now: 0)
                    #expect(machine.number == 2)
                    for event in [.refillBegan, .filled, .verified(differing: 0, repaired: 0)] as [RemedyMachine.Event]
                    {
                        machine.handle(event, now: 0)
                    }
                    #expect(machine.outcome?.number == 2, "\(String(describing: first)) \(String(describing: second))")
                }
            }
        }
    }
}

/// How the operator's word slows a scope down, or stops it.
@Suite("The pace of a scope that is slowed down or stopped")
struct SlowedMachineTests {
    private let start = Instant(milliseconds: 1_000)

    private func machine(slow: Int64, _ events: SyncMachine.Event...) -> SyncMachine {
        var machine = SyncMachine()
        machine.slow(to: slow)
        for event in events { _ = machine.handle(event, now: start, jitter: 0) }
        return machine
    }

    @Test("The next round waits, whatever wants it but the user; the pages of one follow each other")
    func rounds() {
        var machine = machine(slow: 600_000, .wake, .wake, .answered)
        #expect(machine.handle(.applied(hasMore: true, wait: nil), now: start, jitter: 0) == [.exchange])
        _ = machine.handle(.wake, now: start, jitter: 0)
        _ = machine.handle(.answered, now: start, jitter: 0)
        let rest = machine.handle(.applied(hasMore: false, wait: nil), now: start, jitter: 0)
        #expect(rest == [.sleep(until: start + 600_000)])
        for event in [SyncMachine.Event.wake, .nudge, .timer] {
            var woken = machine
            #expect(woken.handle(event, now: start + 30_000, jitter: 0) == [.sleep(until: start + 600_000)], "\(event)")
            #expect(woken.handle(.timer, now: start + 600_000, jitter: 0) == [.exchange])
        }
        #expect(machine.handle(.reset, now: start + 1, jitter: 0) == [.exchange])
    }

    @Test("So does the next attempt after a failure, and none where nothing is asked any more")
    func failures() {
        var failing = machine(slow: 600_000, .wake)
        let rest = failing.handle(.failed(.transient, wait: nil), now: start, jitter: 0)
        #expect(rest == [.sleep(until: start + 600_000)])
        #expect(failing.handle(.nudge, now: start + 1, jitter: 0) == [.sleep(until: start + 600_000)])
        failing.slow(to: 0)
        _ = failing.handle(.timer, now: start + 600_000, jitter: 0)
        let again = failing.handle(.failed(.transient, wait: nil), now: start + 600_000, jitter: 0)
        #expect(again == [.sleep(until: start + 602_000)])
    }

    @Test("A round that is wanted meanwhile goes as soon as it may, ahead of the tick")
    func wanted() {
        var machine = machine(slow: 1_000, .wake, .answered, .wake)
        let rest = machine.handle(.applied(hasMore: false, wait: nil), now: start, jitter: 0)
        #expect(rest == [.sleep(until: start + 1_000)])
    }

    @Test("A scope that is stopped asks once an hour, and at once when the app or the user asks; an edit is no reason")
    func halted() {
        var machine = machine(slow: 0, .wake)
        let stop = machine.handle(.failed(.halted, wait: nil), now: start, jitter: 0)
        #expect(stop == [.sleep(until: start + 3_600_000)])
        #expect(machine.failures == 0)
        #expect(machine.handle(.wake, now: start, jitter: 0) == [])
        #expect(machine.handle(.timer, now: start + 10, jitter: 0) == [.sleep(until: start + 3_600_000)])
        // The app comes to the screen.
        #expect(machine.use(SyncMachine.Settings(), now: start + 10) == [.sleep(until: start + 3_600_000)])
        for event in [SyncMachine.Event.nudge, .reset] {
            var asked = machine
            #expect(asked.handle(event, now: start + 20, jitter: 0) == [.exchange])
        }
        #expect(machine.handle(.timer, now: start + 3_600_000, jitter: 0) == [.exchange])
    }
}
