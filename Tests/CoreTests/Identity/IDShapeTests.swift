import Testing
import TidemarkTesting
import TidemarkWire

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
        var dice = SplitMix64(seed: seed)
        func roll() -> UInt64 {
            let number = dice.next()
            // All ones and all zeros now and then: the counter runs over.
            return number >> 61 == 0 ? .max : number >> 61 == 1 ? 0 : number
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

    @Test("An assigned id is made of its record's whole name alone, and has the form of the temporary one")
    func assigned() throws {
        let (number, text) = (RecordID("-2305843009213693959"), RecordID("local-1"))
        let name = ["ada", "device", "order"]
        func make(_ id: RecordID?, _ owner: [String], _ attempt: Int = 0) throws -> String {
            let id = AssignedID.make(for: try #require(id), of: owner, attempt: attempt)
            return try #require(id).text
        }
        // Computed with another SHA-256: changed, it would part records from their ids in every store.
        #expect(try make(number, name) == "8412724122781162")
        #expect(try make(text, name) == "20bcbb47-5e0c-8d2b-b6b1-cedae1506b44")
        var all: Set<String> = []
        for owner in [name, ["ad", "adevice", "order"], ["ada", "device", "orders"], ["", "ada", "device", "order"]] {
            for id in [number, text] { for attempt in 0..<3 { all.insert(try make(id, owner, attempt)) } }
        }
        #expect(all.count == 24)
        #expect(all.allSatisfy { AssignedID.matches($0) && !TemporaryShape.matches($0) })
        for other in [
            "", "1", "77", "4503599627370495", "9007199254740992", "04503599627370496", "t1",
            "01981e3c-0000-7000-8000-000000000001", "01981E3C-0000-8000-8000-00000000000A",
        ] {
            #expect(!AssignedID.matches(other), "\(other)")
        }
        #expect(AssignedID.matches("4503599627370496") && AssignedID.matches("9007199254740991"))
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
