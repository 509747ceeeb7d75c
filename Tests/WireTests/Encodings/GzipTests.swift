import Testing

@testable import TidemarkGzip

@Suite("gzip")
struct GzipTests {
    private let text = Array(String(repeating: "delta sync ", count: 5000).utf8)

    @Test("returns what went in, smaller")
    func roundTrip() throws {
        let packed = Gzip.compress(text)
        #expect(packed.count < text.count / 10)
        #expect(try Gzip.decompress(packed, limit: text.count) == text)
        #expect(try Gzip.decompress(Gzip.compress([]), limit: 0) == [])
    }

    @Test("stops at the limit instead of filling memory")
    func bomb() {
        let packed = Gzip.compress([UInt8](repeating: 0, count: 50_000_000))
        #expect(throws: Gzip.Failure.tooLarge(limit: 1000)) { try Gzip.decompress(packed, limit: 1000) }
    }

    @Test("refuses what was cut, altered or prolonged")
    func corrupt() {
        let packed = Gzip.compress(text)
        for count in [0, 1, 10, packed.count / 2, packed.count - 1] {
            #expect(throws: Gzip.Failure.corrupt) { try Gzip.decompress(Array(packed.prefix(count)), limit: 1 << 20) }
        }
        var altered = packed
        altered[packed.count - 6] ^= 1
        #expect(throws: Gzip.Failure.corrupt) { try Gzip.decompress(altered, limit: 1 << 20) }
        #expect(throws: Gzip.Failure.corrupt) { try Gzip.decompress(packed + packed, limit: 1 << 20) }
    }
}
