import Testing

@testable import TidemarkCore

@Suite("The pace of nudges (B3)")
struct NudgePaceTests {
    /// The times at which a stream writes that always has something to tell.
    private func writes(_ count: Int) -> [Int64] {
        var (pace, now, times) = (NudgePace(at: Instant(milliseconds: 5_000)), Instant(milliseconds: 5_000), [Int64]())
        for _ in 0..<count {
            times.append(now.milliseconds - 5_000)
            now = now + pace.rest(at: now)
        }
        return times
    }

    @Test("the first ten nudges do not wait")
    func burst() {
        #expect(writes(11) == Array(repeating: 0, count: 10) + [100])
    }

    @Test("a connection that always has something to tell writes ten times a second")
    func sustained() throws {
        let times = writes(200)
        #expect(zip(times.dropFirst(), times).dropFirst(20).allSatisfy { $0 - $1 == 100 })
        #expect(try #require(times.last) >= 18_900)
    }

    @Test("an edit every 150 ms never waits")
    func calm() {
        var pace = NudgePace(at: Instant(milliseconds: 0))
        #expect((0..<500).allSatisfy { pace.rest(at: Instant(milliseconds: $0 * 150)) == 0 })
    }

    @Test("a clock that goes back makes nobody wait for longer")
    func clock() {
        var pace = NudgePace(at: Instant(milliseconds: 1_000_000))
        #expect((0..<40).allSatisfy { pace.rest(at: Instant(milliseconds: 1_000 - $0)) <= 100 })
    }
}
