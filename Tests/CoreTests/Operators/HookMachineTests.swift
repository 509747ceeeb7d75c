import Testing
import TidemarkWire

@testable import TidemarkCore

@Suite("The order in which a hook tells heads")
struct HookMachineTests {
    private static let start = Instant(milliseconds: 1_000_000)

    private func machine(_ set: (inout HookMachine.Settings) -> Void = { _ in }) -> HookMachine {
        var settings = HookMachine.Settings()
        settings.backoff.jitterMilliseconds = 0
        set(&settings)
        return HookMachine(settings)
    }

    private func news(_ scope: Scope, _ head: Version, told: Version = 0) -> HookMachine.News {
        HookMachine.News(scope: scope, head: head, told: told, time: head * 10, epoch: "e\(head)")
    }

    @Test("Commits that come while a call runs become one call, with the newest head, behind it")
    func coalesced() {
        var machine = machine()
        machine.note(news("a", 1))
        #expect(machine.next(at: Self.start) == .call(news("a", 1)))
        for head in Int64(2)...5 { machine.note(news("a", head)) }
        #expect(machine.next(at: Self.start) == .wait(until: nil))
        #expect(machine.ended("a", .taken, at: Self.start, jitter: 0) == .told)
        #expect(machine.next(at: Self.start) == .call(news("a", 5, told: 1)))
        #expect(machine.ended("a", .taken, at: Self.start, jitter: 0) == .told)
        #expect(machine.next(at: Self.start) == .wait(until: nil))
        #expect(machine.toKeep() == ["a": 5])
    }

    @Test("A head that was read from the store before a call ended is not told again")
    func staleRead() {
        var machine = machine()
        machine.note(news("a", 3))
        _ = machine.next(at: Self.start)
        _ = machine.ended("a", .taken, at: Self.start, jitter: 0)
        machine.note(news("a", 3))
        machine.note(news("a", 2))
        #expect(machine.next(at: Self.start) == .wait(until: nil))
        machine.kept(["a": 3])
        machine.note(news("a", 3, told: 3))
        #expect(machine.next(at: Self.start) == .wait(until: nil))
        #expect(machine.behind == 0)
    }

    @Test("An older head that the store kept does not let go of a newer one")
    func keptLate() {
        var machine = machine()
        machine.note(news("a", 1))
        _ = machine.next(at: Self.start)
        _ = machine.ended("a", .taken, at: Self.start, jitter: 0)
        let first = machine.toKeep()
        machine.note(news("a", 2, told: 0))
        _ = machine.next(at: Self.start)
        _ = machine.ended("a", .taken, at: Self.start, jitter: 0)
        machine.kept(first)
        #expect(machine.toKeep() == ["a": 2])
    }

    @Test("A scope that fails waits alone, longer each time, and tells its newest head then")
    func failing() {
        var machine = machine()
        machine.note(news("a", 1))
        machine.note(news("b", 1))
        #expect(machine.next(at: Self.start) == .call(news("a", 1)))
        #expect(machine.next(at: Self.start) == .call(news("b", 1)))
        #expect(machine.ended("a", .failed(), at: Self.start, jitter: 0) == .retry(after: 1_000))
        #expect(machine.ended("b", .taken, at: Self.start, jitter: 0) == .told)
        machine.note(news("b", 2))
        #expect(machine.next(at: Self.start) == .call(news("b", 2, told: 1)))
        #expect(machine.next(at: Self.start) == .wait(until: Self.start + 1_000))
        machine.note(news("a", 4))
        #expect(machine.next(at: Self.start + 999) == .wait(until: Self.start + 1_000))
        #expect(machine.next(at: Self.start + 1_000) == .call(news("a", 4)))
        #expect(machine.ended("a", .failed(), at: Self.start + 1_000, jitter: 0) == .retry(after: 2_000))
    }

    @Test(
        "A hook waits as long as its receiver asks, within a bound, or for its own wait where that is longer",
        arguments: [(0, 30_000, 30_000), (0, 86_400_000, 60_000), (4, 1_000, 16_000)] as [(Int, Int64, Int64)])
    func asked(failures: Int, asked: Int64, waited: Int64) {
        var machine = machine { $0.longestAsked = 60_000 }
        machine.note(news("a", 1))
        var now = Self.start
        for _ in 0..<failures {
            #expect(machine.next(at: now) == .call(news("a", 1)))
            _ = machine.ended("a", .failed(), at: now, jitter: 0)
            now = now + 3_600_000
        }
        #expect(machine.next(at: now) == .call(news("a", 1)))
        #expect(machine.ended("a", .failed(asked: asked), at: now, jitter: 0) == .retry(after: waited))
    }

    @Test("A head that is refused five times, or has failed too often, is given up, and the next one is told")
    func givenUp() {
        for (outcome, calls) in [(HookMachine.Outcome.refused, 5), (.failed(), 3)] {
            var machine = machine { $0.retries = outcome == .refused ? nil : 2 }
            machine.note(news("a", 1))
            var now = Self.start
            for call in 1...calls {
                #expect(machine.next(at: now) == .call(news("a", 1)))
                let consequence = machine.ended("a", outcome, at: now, jitter: 0)
                #expect((consequence == .givenUp) == (call == calls))
                now = now + 3_600_000
            }
            #expect(machine.toKeep() == ["a": 1])
            machine.note(news("a", 2))
            #expect(machine.next(at: now) == .call(news("a", 2, told: 1)))
        }
    }

    @Test("A receiver that is gone is called no more, and nothing counts as told")
    func gone() {
        var machine = machine()
        machine.note(news("a", 1))
        machine.note(news("b", 1))
        _ = machine.next(at: Self.start)
        #expect(machine.ended("a", .gone, at: Self.start, jitter: 0) == .stopped)
        #expect(machine.next(at: Self.start + 86_400_000) == .wait(until: nil))
        #expect(machine.toKeep().isEmpty)
        #expect(machine.isStopped)
    }

    @Test("Calls at one time and known scopes are bounded; what was passed over asks for a look")
    func bounded() {
        var machine = machine { ($0.callsAtOnce, $0.knownScopes) = (2, 3) }
        for scope in ["a", "b", "c"] as [Scope] { machine.note(news(scope, 1)) }
        #expect(machine.lookWanted == nil)
        machine.note(news("d", 1))
        #expect(machine.lookWanted == Instant(milliseconds: .min))
        machine.beginsLook()
        #expect(machine.next(at: Self.start) == .call(news("a", 1)))
        #expect(machine.next(at: Self.start) == .call(news("b", 1)))
        #expect(machine.next(at: Self.start) == .wait(until: nil))
        // One that fails gives way to one that is due.
        _ = machine.ended("a", .failed(), at: Self.start, jitter: 0)
        machine.note(news("d", 1))
        #expect(machine.lookWanted == Self.start + 1_000)
        #expect(machine.next(at: Self.start) == .call(news("c", 1)))
        _ = machine.ended("b", .taken, at: Self.start, jitter: 0)
        #expect(machine.next(at: Self.start) == .call(news("d", 1)))
    }

    @Test("The oldest news is as old as the first head that was not told, whatever came since")
    func oldest() {
        var machine = machine()
        #expect(machine.oldest == nil)
        for head: Version in [3, 7] { machine.note(news("a", head)) }
        machine.note(news("b", 5))
        #expect(machine.oldest == 30)
        for scope in ["a", "b"] as [Scope] {
            _ = machine.next(at: Self.start)
            _ = machine.ended(scope, .taken, at: Self.start, jitter: 0)
        }
        #expect(machine.oldest == nil)
        machine.note(news("a", 9))
        #expect(machine.oldest == 90)
    }

    @Test("A scope that gave its place to another one waits on, and its failures count")
    func evicted() {
        var machine = machine { ($0.knownScopes, $0.retries) = (1, 1) }
        machine.note(news("a", 1))
        _ = machine.next(at: Self.start)
        #expect(machine.ended("a", .failed(), at: Self.start, jitter: 0) == .retry(after: 1_000))
        machine.note(news("b", 1))
        #expect(machine.next(at: Self.start) == .call(news("b", 1)))
        _ = machine.ended("b", .taken, at: Self.start, jitter: 0)
        machine.kept(machine.toKeep())
        // The next look finds it again.
        machine.note(news("a", 1))
        #expect(machine.next(at: Self.start + 999) == .wait(until: Self.start + 1_000))
        #expect(machine.next(at: Self.start + 1_000) == .call(news("a", 1)))
        #expect(machine.ended("a", .failed(), at: Self.start + 1_000, jitter: 0) == .givenUp)
    }

    @Test("Of scopes that fail, one that waits longer does not take the place of one that waits less long")
    func evictedInOrder() {
        var machine = machine { ($0.knownScopes, $0.callsAtOnce, $0.rememberedScopes) = (1, 1, 1) }
        let now = Self.start
        for scope in ["a", "b"] as [Scope] {
            machine.note(news(scope, 1))
            _ = machine.next(at: now)
            _ = machine.ended(scope, .failed(asked: scope == "a" ? 5_000 : 2_000), at: now, jitter: 0)
        }
        machine.beginsLook()
        machine.note(news("a", 1))
        #expect(machine.lookWanted == now + 5_000)
        #expect(machine.next(at: now) == .wait(until: now + 2_000))
        // Of the two that gave way one is remembered: the other one's failures are forgotten, and it is due.
        for scope in ["c", "b"] as [Scope] {
            machine.note(news(scope, 1))
            #expect(machine.next(at: now + 2_000) == .call(news(scope, 1)))
            let retries = machine.ended(scope, scope == "c" ? .taken : .failed(), at: now + 2_000, jitter: 0)
            #expect(retries == (scope == "c" ? .told : .retry(after: 1_000)))
            machine.kept(machine.toKeep())
        }
    }

    @Test("An erased scope is not told, also where a call of it fails")
    func erased() {
        var machine = machine()
        for scope in ["due", "calling", "taken"] as [Scope] { machine.note(news(scope, 1)) }
        for scope in ["due", "calling", "taken"] as [Scope] {
            #expect(machine.next(at: Self.start) == .call(news(scope, 1)))
        }
        _ = machine.ended("due", .failed(), at: Self.start, jitter: 0)
        machine.forget(["due", "calling", "taken"])
        #expect(machine.ended("calling", .failed(), at: Self.start, jitter: 0) == nil)
        #expect(machine.ended("taken", .taken, at: Self.start, jitter: 0) == .told)
        #expect(machine.next(at: Self.start + 3_600_000) == .wait(until: nil))
        #expect(machine.behind == 0)
        // A place is free again.
        machine.note(news("next", 1))
        #expect(machine.next(at: Self.start) == .call(news("next", 1)))
    }

    @Test("A receiver that is away is asked by one call at a time, with growing pauses, and by all once it is back")
    func away() {
        var machine = machine { ($0.callsAtOnce, $0.failuresInARow, $0.longestRest) = (2, 2, 3_000) }
        for scope in ["a", "b", "c", "d", "e"] as [Scope] { machine.note(news(scope, 1)) }
        for scope in ["a", "b"] as [Scope] { #expect(machine.next(at: Self.start) == .call(news(scope, 1))) }
        for scope in ["a", "b"] as [Scope] { _ = machine.ended(scope, .failed(), at: Self.start, jitter: 0) }
        #expect(machine.next(at: Self.start) == .wait(until: Self.start + 1_000))
        #expect(machine.next(at: Self.start + 1_000) == .call(news("c", 1)))
        #expect(machine.next(at: Self.start + 1_000) == .wait(until: nil))
        _ = machine.ended("c", .failed(), at: Self.start + 1_000, jitter: 0)
        #expect(machine.next(at: Self.start + 1_000) == .wait(until: Self.start + 3_000))
        #expect(machine.next(at: Self.start + 3_000) == .call(news("d", 1)))
        _ = machine.ended("d", .taken, at: Self.start + 3_000, jitter: 0)
        #expect(machine.next(at: Self.start + 3_000) == .call(news("e", 1)))
        guard case .call = machine.next(at: Self.start + 3_000) else {
            Issue.record("one call at a time")
            return
        }
    }

    @Test("One that refuses everything counts as away, and costs one head at a time")
    func refusesAll() {
        var machine = machine { ($0.callsAtOnce, $0.failuresInARow) = (4, 4) }
        for scope in ["a", "b", "c", "d", "e", "f"] as [Scope] { machine.note(news(scope, 1)) }
        for scope in ["a", "b", "c", "d"] as [Scope] {
            #expect(machine.next(at: Self.start) == .call(news(scope, 1)))
            _ = machine.ended(scope, .refused, at: Self.start, jitter: 0)
        }
        #expect(machine.next(at: Self.start) == .wait(until: Self.start + 1_000))
        guard case .call = machine.next(at: Self.start + 1_000) else {
            Issue.record("it is asked whether it is back")
            return
        }
        #expect(machine.next(at: Self.start + 1_000) == .wait(until: nil))
    }

    @Test("A call that hangs keeps none from finding out whether the receiver is back")
    func hanging() {
        var machine = machine { ($0.callsAtOnce, $0.failuresInARow) = (3, 2) }
        for scope in ["a", "b", "c", "d"] as [Scope] { machine.note(news(scope, 1)) }
        for scope in ["a", "b", "c"] as [Scope] { #expect(machine.next(at: Self.start) == .call(news(scope, 1))) }
        for scope in ["b", "c"] as [Scope] { _ = machine.ended(scope, .failed(), at: Self.start, jitter: 0) }
        #expect(machine.next(at: Self.start + 60_000) == .call(news("d", 1)))
    }

    @Test("A call that is postponed is no failure: it holds up no other scope, and is due once it is resumed")
    func postponed() {
        var machine = machine { ($0.callsAtOnce, $0.failuresInARow, $0.retries) = (1, 8, 0) }
        machine.note(news("a", 1))
        var now = Self.start
        for _ in 0..<8 {
            #expect(machine.next(at: now) == .call(news("a", 1)))
            machine.postponed("a", at: now)
            #expect(machine.next(at: now) == .wait(until: now + 1_000))
            now = now + 1_000
        }
        machine.note(news("b", 1))
        #expect(machine.next(at: now) == .call(news("b", 1)))
        #expect(machine.ended("b", .taken, at: now, jitter: 0) == .told)
        #expect(machine.next(at: now) == .call(news("a", 1)))
        machine.postponed("a", at: now)
        let isDue = machine.resumed("a")
        #expect(isDue)
        #expect(machine.next(at: now) == .call(news("a", 1)))
        let isDueAgain = machine.resumed("a")
        #expect(!isDueAgain)
        #expect(machine.ended("a", .failed(), at: now, jitter: 0) == .givenUp)
    }

    @Test("A call that is postponed lets another one find out whether the receiver is back, and an erased scope go")
    func postponedProbe() {
        var machine = machine { ($0.callsAtOnce, $0.failuresInARow) = (2, 1) }
        for scope in ["a", "b"] as [Scope] { machine.note(news(scope, 1)) }
        #expect(machine.next(at: Self.start) == .call(news("a", 1)))
        _ = machine.ended("a", .failed(), at: Self.start, jitter: 0)
        let now = Self.start + 1_000
        #expect(machine.next(at: now) == .call(news("b", 1)))
        #expect(machine.next(at: now) == .wait(until: nil))
        machine.forget(["b"])
        machine.postponed("b", at: now)
        #expect(machine.next(at: now) == .call(news("a", 1)))
        #expect(machine.behind == 1)
    }

    @Test("Scopes take turns: one that always has news keeps out no other")
    func turns() {
        var machine = machine { $0.callsAtOnce = 1 }
        machine.note(news("a", 1))
        _ = machine.next(at: Self.start)
        machine.note(news("a", 2))
        machine.note(news("b", 1))
        _ = machine.ended("a", .taken, at: Self.start, jitter: 0)
        #expect(machine.next(at: Self.start) == .call(news("b", 1)))
    }

    @Test(
        "A status is taken, failed, refused or gone",
        arguments: [
            (200, .taken), (204, .taken), (301, .refused), (307, .refused), (400, .refused), (401, .refused),
            (404, .refused), (408, .failed(asked: 7)), (410, .gone), (425, .failed(asked: 7)),
            (429, .failed(asked: 7)), (500, .failed(asked: 7)), (503, .failed(asked: 7)), (100, .failed()),
        ] as [(Int, HookMachine.Outcome)])
    func statuses(status: Int, outcome: HookMachine.Outcome) {
        #expect(HookMachine.Outcome(status: status, asked: 7) == outcome)
    }
}
