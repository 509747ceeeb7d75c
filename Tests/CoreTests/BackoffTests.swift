import Testing

@testable import TidemarkCore

@Suite("Back-off (B10, B11)")
struct BackoffTests {
    @Test("waits double from one second and end at a quarter of an hour")
    func doubling() {
        let waits = (0..<12).map { Backoff().delay(attempt: $0, class: .transient, jitter: 0) }
        #expect(waits.prefix(5) == [1_000, 2_000, 4_000, 8_000, 16_000])
        #expect(waits.last == 900_000)
    }

    @Test("no attempt, however high, overflows", arguments: [-1, 0, 39, 40, 41, 63, 64, .max - 8])
    func extremes(attempt: Int) {
        let wait = Backoff().delay(attempt: attempt, class: .transient, jitter: 0)
        #expect((1...900_000).contains(wait))
    }

    @Test("jitter adds up to a second", arguments: [0, 1, 999, 1_000, 1_001, .max] as [UInt64])
    func jitter(random: UInt64) {
        #expect((1_000...2_000).contains(Backoff().delay(attempt: 0, class: .transient, jitter: random)))
    }

    @Test("a server that failed is left alone for longer")
    func server() {
        #expect(Backoff().delay(attempt: 0, class: .server, jitter: 0) == 8_000)
    }

    @Test(
        "every status has its class",
        arguments: [
            (400, .needsApp), (401, .unauthenticated), (403, .needsApp), (404, .needsApp), (408, .transient),
            (409, .resolve), (410, .bootstrap), (413, .needsApp), (425, .transient), (429, .transient), (500, .server),
            (502, .transient), (503, .transient), (504, .transient), (302, .transient), (511, .server),
        ] as [(Int, FailureClass)])
    func classes(status: Int, expected: FailureClass) {
        #expect(FailureClass(status: status) == expected)
    }
}
