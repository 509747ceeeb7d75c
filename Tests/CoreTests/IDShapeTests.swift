import Testing

@testable import TidemarkCore

@Suite("New ids")
struct IDShapeTests {
    @Test("The bits stand where RFC 9562 puts them")
    func layout() {
        var generator = UUIDv7()
        let bytes = generator.next(at: 0x017f_22e2_79b0, random: (0xffff_ffff_ffff_ffff, 0))
        #expect(UUIDv7.text(bytes) == "017f22e2-79b0-77ff-8000-000000000000")
        var other = UUIDv7()
        #expect(
            UUIDv7.text(other.next(at: 0x017f_22e2_79b0, random: (0, .max))) == "017f22e2-79b0-7000-bfff-ffffffffffff")
    }

    @Test("Each is above the last, whatever clock and dice do", arguments: [0, 1, 2, 3] as [UInt64])
    func monotonic(seed: UInt64) {
        var generator = UUIDv7()
        var dice = seed
        func roll() -> UInt64 {
            dice = dice &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            // All ones and all zeros now and then: the counter runs over.
            return dice >> 61 == 0 ? .max : dice >> 61 == 1 ? 0 : dice
        }
        var last: [UInt8] = []
        for step in 0..<20_000 {
            let moment: Int64 = step % 5000 == 4999 ? -7 : 1_000_000 + Int64(step / 900) - Int64(roll() % 3)
            let next = generator.next(at: moment, random: (roll(), roll()))
            #expect(last.lexicographicallyPrecedes(next), "step \(step)")
            #expect(next[6] >> 4 == 7 && next[8] >> 6 == 2)
            last = next
        }
    }

    @Test("A temporary id is known by its shape, at both ends of its range")
    func temporary() {
        for random in [0, 1, .max, 1 << 61, 0x1234_5678_9abc_def0] as [UInt64] {
            #expect(TemporaryShape.integers.contains(TemporaryShape.integer(random: random)))
            #expect(TemporaryShape.matches(String(TemporaryShape.integer(random: random))))
            #expect(TemporaryShape.matches(TemporaryShape.text(random: (random, ~random))))
        }
        #expect(TemporaryShape.text(random: (1, 2)) == "local-00000000000000010000000000000002")
        for other in [
            "local-", "Local-1", "t1", "-1", "-4", "5", "0", "-02305843009213693952", "", "-4611686018427387904",
        ] {
            #expect(!TemporaryShape.matches(other), "\(other)")
        }
        #expect(TemporaryShape.matches("local-1"))
        #expect(TemporaryShape.integer("-2305843009213693952") == -(1 << 61))
    }
}
