import Testing

@testable import TidemarkCore

@Suite("When a stream of nudges is opened anew (B3)")
struct ReconnectionTests {
    private var reconnection = Reconnection(Backoff(), longest: 30_000)

    @Test("One that has worked and ends in order is opened within a second, at a moment of its own")
    mutating func ended() {
        let waits = (0..<50 as Range<UInt64>).map {
            reconnection.wait(after: nil, lasted: Reconnection.stable, jitter: $0 &* 0x9e37_79b9_7f4a_7c15)
        }
        #expect(waits.allSatisfy { (0...1_000).contains($0) })
        #expect(Set(waits).count > 30)
        #expect(reconnection.failures == 0)
    }

    @Test(
        "One that ends at once, again and again, is opened after growing waits",
        arguments: [nil, FailureClass.transient])
    mutating func growing(failure: FailureClass?) {
        let waits = (0..<8).map { _ in reconnection.wait(after: failure, lasted: 10, jitter: 0) }
        #expect(waits == [1_000, 2_000, 4_000, 8_000, 16_000, 20_000, 20_000, 20_000])
        // Once one has worked, the waits begin anew.
        #expect(reconnection.wait(after: .transient, lasted: Reconnection.stable, jitter: 0) == 1_000)
    }

    @Test("A wait that the server asks for is kept, also where it is longer than any other")
    mutating func asked() {
        #expect(reconnection.wait(after: .transient, lasted: 0, asked: 120_000, jitter: 0) == 120_000)
        #expect(reconnection.wait(after: nil, lasted: .max, asked: 5_000, jitter: 0) == 5_000)
    }

    @Test("A server that has no streams is asked again after the longest wait")
    mutating func none() {
        #expect(reconnection.wait(after: .needsApp, lasted: 0, jitter: 0) == 900_000)
    }

    @Test("No number of failures, and no jitter, overflows", arguments: [0, 1, .max])
    mutating func extremes(jitter: UInt64) {
        for _ in 0..<200 {
            #expect((0...30_000).contains(reconnection.wait(after: .server, lasted: 0, jitter: jitter)))
        }
    }
}
