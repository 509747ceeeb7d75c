import Foundation
import Testing
import TidemarkWire

@testable import TidemarkCore

/// What a peer, a file or somebody's settings name may be any number.
@Suite("Moments and times that no clock shows")
struct InstantTests {
    @Test("A time in milliseconds is the outermost number where it does not fit")
    func milliseconds() {
        #expect(Duration.milliseconds(1_500).milliseconds == 1_500 && Duration.zero.milliseconds == 0)
        #expect(Duration.microseconds(1_999).milliseconds == 1 && Duration.microseconds(-1_999).milliseconds == -1)
        for time in [Duration.seconds(Int64.max), .seconds(1e19), .milliseconds(Int64.max)] {
            #expect(time.milliseconds == .max && (Duration.zero - time).milliseconds <= -Int64.max)
        }
        #expect(Duration.seconds(Int64.min).milliseconds == .min && Duration.seconds(-1e19).milliseconds == .min)
        #expect(Duration.milliseconds(Int64.max - 1).milliseconds == .max - 1)
        #expect(Duration.milliseconds(Int64.min + 1).milliseconds == .min + 1)
    }

    @Test("So is a time in seconds, whose fraction is dropped")
    func wholeSeconds() {
        #expect(Duration.milliseconds(1_999).wholeSeconds == 1 && Duration.milliseconds(-1_999).wholeSeconds == -1)
        #expect(Duration.seconds(1e19).wholeSeconds == .max && Duration.seconds(-1e19).wholeSeconds == .min)
        #expect(Duration.seconds(Int64.max).wholeSeconds == .max && Duration.seconds(Int64.min).wholeSeconds == .min)
    }

    @Test("So is a date", arguments: [1e300, .infinity, 1e17])
    func dates(seconds: Double) {
        #expect(Date(timeIntervalSince1970: seconds).milliseconds == .max)
        #expect(Date(timeIntervalSince1970: -seconds).milliseconds == .min)
    }

    @Test("Sums and differences end where numbers do")
    func sums() {
        #expect(Int64.max.saturatingAdding(1) == .max && Int64.min.saturatingAdding(-1) == .min)
        #expect(Int64.max.saturatingSubtracting(-1) == .max && Int64.min.saturatingSubtracting(1) == .min)
        #expect(Int64.zero.saturatingSubtracting(.min) == .max && Int64(-2).saturatingSubtracting(.max) == .min)
        #expect(Int64(5).saturatingAdding(-7) == -2 && Int64(5).saturatingSubtracting(7) == -2)
        let (first, last) = (Instant(milliseconds: .min), Instant(milliseconds: .max))
        #expect(last + 1 == last && first + -1 == first && last - first == .max && first - last == .min)
    }

    @Test("A wait of any length has an end", arguments: [0, 1, .max] as [Int64])
    func waits(longest: Int64) {
        var backoff = Backoff()
        (backoff.maximumMilliseconds, backoff.jitterMilliseconds) = (longest, .max)
        for base in [0, 1, .max] as [Int64] {
            backoff.baseMilliseconds = base
            let delay = backoff.delay(failures: 64, class: .server, jitter: .max)
            #expect((0...longest).contains(delay))
            var reconnection = Reconnection(backoff, longest: longest)
            #expect(reconnection.wait(after: nil, lasted: .max, jitter: .max) >= 0)
        }
    }

    @Test("Deletes are counted within a window of any length", arguments: [.min, -1, 0, .max] as [Int64])
    func tallies(window: Int64) {
        var tally = DeleteTally(stored: [])
        for moment in [.min, 0, .max] as [Int64] {
            tally.add(at: moment, within: window)
            #expect((tally.count(at: moment, within: window) > 0) == (window > 0))
        }
        let late = GrowthTally(stored: GrowthTally(stored: [], at: .min).stored, at: .max)
        #expect(late.rows == 0)
    }
}
