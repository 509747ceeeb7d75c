import Testing
import TidemarkWire

@testable import TidemarkCore

@Suite("The clock by which history is forgotten")
struct AgeClockTests {
    private let day: Int64 = 86_400_000

    @Test("The clock of ages follows the wall clock while that is right")
    func follows() {
        var reading = AgeClock.moved(nil, to: 1000, elapsed: 0)
        #expect(reading == 1000)
        for step in 1...10 as ClosedRange<Int64> {
            reading = AgeClock.moved(reading, to: 1000 + step * 60_000, elapsed: 60_000)
            #expect(reading == 1000 + step * 60_000)
        }
    }

    @Test("A clock that jumps ahead by years makes nothing older than the time that has passed, twice")
    func jump() {
        let jumped = AgeClock.moved(1000, to: 1000 + 3650 * day, elapsed: 60_000)
        #expect(jumped == 1000 + 120_000)
        #expect(AgeClock.moved(jumped, to: .max, elapsed: 0) == jumped)
        #expect(AgeClock.moved(1000, to: 5000, elapsed: .max) == 5000)
        #expect(AgeClock.moved(1000, to: 5000, elapsed: -7) == 1000)
    }

    @Test("After a month of rest it has caught up in a month, and a clock that was set back does not take it along")
    func catchesUp() {
        var (reading, wall) = (Int64(0), 30 * day)
        for _ in 1...30 {
            wall += day
            reading = AgeClock.moved(reading, to: wall, elapsed: day)
        }
        #expect(reading == wall)
        #expect(AgeClock.moved(reading, to: 5, elapsed: day) == reading)
        #expect(AgeClock.present(reading, wall: 5) == 5)
        #expect(AgeClock.present(5, wall: wall) == 5)
    }

    @Test("A poll is no news; a new device is, one that has gone back, and each once in an interval")
    func news() {
        let known = Standing(version: 10, seen: 1000)
        func isNews(_ version: Version?, _ seen: Int64, after known: Standing?) -> Bool {
            Standing(version: version, seen: seen).isNews(after: known, interval: 3600)
        }
        #expect(isNews(nil, 1000, after: nil))
        #expect(!isNews(10, 1001, after: known))
        #expect(!isNews(90, 4599, after: known))
        #expect(isNews(90, 4600, after: known))
        #expect(isNews(9, 1001, after: known))
        #expect(!isNews(nil, 1001, after: known))
        #expect(isNews(1, 1001, after: Standing(version: nil, seen: 1000)))
        // A clock that was set back is taken for a long time, too.
        #expect(isNews(10, -5000, after: known))
        #expect(isNews(10, .min, after: Standing(version: 10, seen: .max)))
    }
}
