import Foundation
import Testing
import TidemarkTesting
import TidemarkWire

@testable import Tidemark

@Suite("A range of the manifest takes few bytes of the file, and comes back as it was (I13)")
struct ManifestCodingTests {
    /// Keys of one kind, in their order.
    private static func keys(_ kind: String, _ count: Int, _ random: inout SplitMix64) -> [[UInt8]] {
        let ids = (0..<count).map { place -> String in
            switch kind {
            case "numbers": return String(place * 3 - 20)
            case "random": return UUID(random(16)).uuidString
            case "ascending":
                let moment: [UInt8] = [0x01, 0x93, 0xF2, 0xC4, 0, UInt8(place >> 8)]
                return UUID(moment + random(10)).uuidString.lowercased()
            default:
                let length = Int(random.next() % 128) + 1
                return String((0..<length).map { _ in "aäb-".randomElement(using: &random) ?? "a" }.prefix(60))
            }
        }
        let keys = Set(ids.compactMap { RecordID($0).map(PackedID.encode) })
        return keys.sorted { $0.lexicographicallyPrecedes($1) }
    }

    private func range(of keys: [[UInt8]]) -> ManifestRange {
        var range = ManifestRange()
        let changes = keys.enumerated().map { ManifestChange(key: $1, hash: UInt64($0) &* 0x9E37_79B9_7F4A_7C15) }
        _ = range.merge(changes[...])
        return range
    }

    @Test(
        "entries come back from its BLOBs, of which a page holds one or two",
        arguments: [
            "numbers", "random", "ascending", "texts",
        ])
    func returns(kind: String) {
        var random = SplitMix64(seed: 11)
        for count in [1, 2, 90, 130, 200, 500, 2000] {
            let keys = Self.keys(kind, count, &random)
            let range = range(of: keys)
            let blobs = range.blobs()
            let read = blobs.map { ManifestRange($0.blob) }
            #expect(read.flatMap(\.entries) == range.entries && read.reduce(0) { $0 + $1.count } == keys.count)
            #expect(zip(read, blobs).allSatisfy { $0.entries.first.map { Array($0.key) } == $1.first })
            let most = blobs.count == 1 ? ManifestCoding.pageBytes : ManifestCoding.halfPageBytes
            #expect(blobs.allSatisfy { $0.blob.count <= most })
        }
    }

    @Test(
        "a key takes what differs from the one before it",
        arguments: zip(
            ["numbers", "random", "ascending"], [11.5, 24.5, 20.0]))
    func bytes(kind: String, most: Double) {
        var random = SplitMix64(seed: 12)
        let keys = Self.keys(kind, 2000, &random)
        let total = range(of: keys).blobs().reduce(0) { $0 + $1.blob.count }
        #expect(Double(total) / Double(keys.count) < most)
    }

    @Test("one that an older version has written is read, and one that is damaged up to the damage")
    func others() {
        var random = SplitMix64(seed: 13)
        let keys = Self.keys("random", 5, &random)
        let entries = range(of: keys).entries
        let old = entries.flatMap { entry in
            [UInt8(entry.key.count)] + entry.key + withUnsafeBytes(of: entry.hash.littleEndian) { Array($0) }
        }
        #expect(ManifestRange(old).entries == entries)
        let blob = range(of: keys).blobs()[0].blob
        for count in 0...blob.count {
            let read = ManifestRange(Array(blob[..<count])).entries
            #expect(read == Array(entries.prefix(read.count)))
        }
        for place in blob.indices {
            var damaged = blob
            damaged[place] = UInt8(truncatingIfNeeded: random.next())
            _ = ManifestRange(damaged).entries
        }
    }
}

extension UUID {
    fileprivate init(_ bytes: [UInt8]) {
        self = bytes.withUnsafeBytes { UUID(uuid: $0.loadUnaligned(as: uuid_t.self)) }
    }
}

extension SplitMix64 {
    fileprivate mutating func callAsFunction(_ count: Int) -> [UInt8] {
        (0..<count).map { _ in UInt8(truncatingIfNeeded: next()) }
    }
}
