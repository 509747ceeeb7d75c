import Foundation

/// Makes inputs out of others: bits turned, pieces cut, doubled, moved and exchanged. Its whole future is its seed.
package struct Mutator: RandomNumberGenerator {
    private var state: UInt64
    private let pool: [[UInt8]]

    /// Numbers, words and bytes at which readers have gone wrong before.
    private static let pieces: [[UInt8]] =
        [
            "9223372036854775807", "-9223372036854775808", "9223372036854775808", "1e400", "-0", "0.0", "null", "{}",
            "[]",
            "\"\"", "\\ud800", "\\u0000", "\"a\":", ",", "é", "e\u{301}", "\u{212a}", "{\"$int\":\"", "[[[[[[[[[[[[",
        ].map { Array($0.utf8) } + [
            [0xed, 0xa0, 0x80], [0xc0, 0x80], [0xf4, 0x90, 0x80, 0x80], [0xff], [0],
            [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f],
            [0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 1],
        ]

    /// - Parameter pool: what mutations begin with and take pieces from; not empty.
    package init(seed: UInt64, pool: [[UInt8]]) {
        state = seed
        self.pool = pool
    }

    package mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
        return mixed ^ (mixed >> 31)
    }

    /// One of the pool, changed one to four times.
    package mutating func input() -> [UInt8] {
        var bytes = pool.randomElement(using: &self) ?? []
        for _ in 0...below(4) { mutate(&bytes) }
        return bytes
    }

    package mutating func below(_ count: Int) -> Int { count > 0 ? Int(next() % UInt64(count)) : 0 }

    /// One of a list that is not empty.
    package mutating func any<T>(_ list: [T]) -> T { list[below(list.count)] }

    package mutating func mutate(_ bytes: inout [UInt8]) {
        let place = below(bytes.count + 1)
        let end = min(bytes.count, place + below(16))
        switch below(8) {
        case 0 where place < bytes.count: bytes[place] ^= 1 << UInt8(below(8))
        case 1 where place < bytes.count: bytes[place] = UInt8(truncatingIfNeeded: next())
        case 2: bytes.removeSubrange(place..<end)
        case 3: bytes.insert(contentsOf: bytes[place..<end], at: below(bytes.count + 1))
        case 4: bytes.replaceSubrange(place..<end, with: Self.pieces.randomElement(using: &self) ?? [])
        case 5: bytes.insert(contentsOf: Self.pieces.randomElement(using: &self) ?? [], at: place)
        case 6:
            let other = pool.randomElement(using: &self) ?? []
            let start = below(other.count + 1)
            bytes.replaceSubrange(place..<end, with: other[start..<min(other.count, start + below(64))])
        default: if below(8) == 0 { bytes.removeSubrange(place...) }
        }
    }
}

/// The inputs that stand in the repository: valid ones by hand, and every one that was ever found to be a fault.
package enum Corpus {
    private static let folder = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .appending(path: "Corpus")

    package static func inputs(of target: FuzzTarget) throws -> [(name: String, bytes: [UInt8])] {
        let files = try FileManager.default.contentsOfDirectory(
            at: folder.appending(path: target.name), includingPropertiesForKeys: nil)
        return try files.sorted { $0.path < $1.path }.map { ($0.lastPathComponent, Array(try Data(contentsOf: $0))) }
    }

    /// What the bodies of requests can be mutated with.
    package static func requests() throws -> [[UInt8]] {
        try FuzzTarget.all.filter { ["request", "json"].contains($0.name) }.flatMap { try inputs(of: $0).map(\.bytes) }
    }
}

extension FuzzTarget {
    /// How many mutations are tried: some, or as many as `TIDEMARK_FUZZ_INPUTS` says, of all targets together.
    private static let wanted = ProcessInfo.processInfo.environment["TIDEMARK_FUZZ_INPUTS"].flatMap { Int($0) }

    /// Holds the property against the corpus.
    package func replay() throws {
        for (file, bytes) in try Corpus.inputs(of: self) { try check(bytes, "\(name)/\(file)") }
    }

    /// Holds the property against mutations of the corpus, the same ones in every run.
    package func mutate(count: Int) throws {
        var mutator = Mutator(seed: 1, pool: try Corpus.inputs(of: self).map(\.bytes))
        for _ in 0..<(Self.wanted.map { $0 / Self.all.count } ?? count) { try check(mutator.input(), name) }
    }

    private func check(_ bytes: [UInt8], _ place: String) throws {
        do { try bytes.withUnsafeBytes(check) } catch {
            throw BrokenProperty(description: "\(place): \(error), for \(Data(bytes).base64EncodedString())")
        }
    }
}
