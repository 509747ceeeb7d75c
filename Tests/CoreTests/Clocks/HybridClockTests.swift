import Testing

@testable import TidemarkCore

@Suite("A hybrid logical clock")
struct HybridClockTests {
    @Test("gives out stamps that grow, whatever the wall clock does, and stays near it")
    func ticks() {
        var clock = HybridClock()
        var last = EditStamp.zero
        for now in [1000, 1000, 1000, 900, 5, 1001, 1001, 2000] as [Int64] {
            let stamp = clock.tick(at: now)
            #expect(stamp > last)
            last = stamp
        }
        #expect(last == EditStamp(milliseconds: 2000))
        #expect(clock.tick(at: 1500).milliseconds == 2000)
    }

    @Test("is later than what it has heard of")
    func receives() {
        var clock = HybridClock()
        clock.receive(EditStamp(milliseconds: 9000))
        #expect(clock.tick(at: 10) > EditStamp(milliseconds: 9000))
        clock.receive(EditStamp(milliseconds: 20))
        #expect(clock.last > EditStamp(milliseconds: 9000))
    }

    @Test("writes stamps as text that sorts byte by byte and comes back")
    func text() {
        let stamps = [
            EditStamp.zero, EditStamp(packed: 1), EditStamp(milliseconds: 1),
            EditStamp(milliseconds: 1_763_706_704_123),
            EditStamp(milliseconds: 1_763_706_704_123).next, EditStamp(milliseconds: .max), EditStamp(packed: .max),
        ]
        for stamp in stamps {
            #expect(stamp.text.utf8.count == 16)
            #expect(EditStamp(text: stamp.text) == stamp)
        }
        let texts = stamps.map(\.text)
        #expect(texts == texts.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) })
        for text in [
            "", "0", "0198F2A3B4C50001", "-198f2a3b4c50001", "+198f2a3b4c50001", "ffffffffffffffff", "0198f2a3b4c5000g",
        ] {
            #expect(EditStamp(text: text) == nil)
        }
    }

    @Test("is believed between the device's last sync and the server's now")
    func clamped() {
        let now: Int64 = 5000
        let in2099 = EditStamp(milliseconds: 4_070_908_800_000).clamped(from: 1000, to: now)
        #expect(in2099.milliseconds == now)
        #expect(in2099 < EditStamp(milliseconds: now + 1))
        #expect(EditStamp(milliseconds: 3).clamped(from: 1000, to: now) == EditStamp(milliseconds: 1000))
        #expect(EditStamp(milliseconds: 3000).clamped(from: 1000, to: now) == EditStamp(milliseconds: 3000))
        // One that claims to have synced in the future gains nothing by it.
        #expect(EditStamp(milliseconds: 3).clamped(from: 9000, to: now).milliseconds == now)
        #expect(EditStamp(milliseconds: 3).clamped(from: nil, to: now) == EditStamp(milliseconds: 3))
    }

    @Test("ends at the last stamp there is instead of passing it")
    func bounds() {
        #expect(EditStamp(packed: -5) == .zero)
        #expect(EditStamp(packed: .max).next == EditStamp(packed: .max))
        #expect(EditStamp(milliseconds: -1) == .zero)
        #expect(EditStamp(milliseconds: .max).packed > 0)
    }
}
