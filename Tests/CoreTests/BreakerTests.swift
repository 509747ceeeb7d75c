import Testing

@testable import TidemarkCore

@Suite("Breaker (B12)")
struct BreakerTests {
    private let start = Instant(milliseconds: 0)

    private func tripped() -> Breaker {
        var breaker = Breaker()
        for _ in 0..<5 { breaker.failed(now: start) }
        return breaker
    }

    @Test("it opens after five failures in a row, and not after four and a success")
    func opens() {
        var breaker = Breaker()
        for _ in 0..<4 { breaker.failed(now: start) }
        #expect(breaker.openUntil == nil)
        breaker.succeeded()
        for _ in 0..<4 { breaker.failed(now: start) }
        #expect(breaker.openUntil == nil)
        breaker.failed(now: start)
        #expect(breaker.openUntil == start + 30_000)
    }

    @Test("it lets one attempt through after the cool-down; its failure opens it again, its success closes it")
    func halfOpen() {
        var breaker = tripped()
        let early = breaker.allowsAttempt(now: start + 29_999)
        let due = breaker.allowsAttempt(now: start + 30_000)
        #expect(!early && due)
        var failing = breaker
        failing.failed(now: start + 30_001)
        #expect(failing.openUntil == start + 60_001)
        breaker.succeeded()
        #expect(breaker.state == .closed(failures: 0))
    }

    @Test("the user's wish closes it")
    func reset() {
        var breaker = tripped()
        breaker.reset()
        let isAllowed = breaker.allowsAttempt(now: start)
        #expect(isAllowed)
    }
}
