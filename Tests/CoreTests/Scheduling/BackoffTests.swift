import Testing

@testable import TidemarkCore

@Suite("Back-off (B10, B11, B12)")
struct BackoffTests {
    private func delay(
        _ failures: Int, _ failure: FailureClass = .transient, jitter: UInt64 = 0, shortest: Int64 = 0,
        longest: Int64 = .max
    ) -> Int64 {
        Backoff().delay(failures: failures, class: failure, jitter: jitter, shortest: shortest, longest: longest)
    }

    @Test("waits double from one second and end at a quarter of an hour")
    func doubling() {
        #expect((1...5).map { delay($0) } == [1_000, 2_000, 4_000, 8_000, 16_000])
        // Up to 5 minutes are added at random.
        #expect(delay(12) == 600_000)
    }

    @Test("no number of failures, however high, overflows", arguments: [0, 1, 40, 41, 42, 63, 64, 65, .max - 8])
    func extremes(failures: Int) {
        for longest in [0, 1, 30_000, Int64.max] {
            #expect((0...min(longest, 900_000)).contains(delay(failures, jitter: .max, longest: longest)))
        }
    }

    @Test(
        "jitter adds up to a second, and up to as much again to a longer wait",
        arguments: [0, 1, 999, 1_000, 1_001, .max])
    func jitter(random: UInt64) {
        #expect((1_000...2_000).contains(delay(1, jitter: random)))
        #expect((64_000...128_000).contains(delay(7, jitter: random)))
        #expect((600_000...900_000).contains(delay(20, jitter: random)))
        // What is added has its place below the longest wait.
        #expect((20_000...30_000).contains(delay(20, jitter: random, longest: 30_000)))
        #expect(Set((0..<9).map { delay(20, jitter: $0 * 77_777, longest: 30_000) }).count == 9)
    }

    @Test("a server that failed is left alone for longer, and never for a shorter time")
    func server() {
        #expect(delay(1, .server) == 8_000)
        for failures in 1...20 {
            for (shortest, longest) in [(0, 30_000), (30_000, 30_000), (30_000, 900_000)] as [(Int64, Int64)] {
                let lost = delay(failures, shortest: shortest, longest: longest)
                #expect(delay(failures, .server, shortest: shortest, longest: longest) >= lost)
            }
        }
    }

    @Test("a cool-down makes a wait longer and never shorter")
    func coolDown() {
        #expect(delay(5, shortest: 30_000) == 30_000)
        #expect(delay(8, shortest: 30_000) == 128_000)
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
