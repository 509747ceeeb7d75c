/// Variable-length integers (LEB128) and length-prefixed bytes: the compact form of what the server keeps or hands out
/// as opaque.
package struct ByteWriter {
    package private(set) var bytes: [UInt8] = []

    package init() {}

    package mutating func integer(_ value: Int64) {
        var rest = UInt64(bitPattern: value)
        while rest >= 0x80 {
            bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        bytes.append(UInt8(truncatingIfNeeded: rest))
    }

    package mutating func run(_ run: some Collection<UInt8>) {
        integer(Int64(run.count))
        bytes.append(contentsOf: run)
    }
}

/// Reads what ``ByteWriter`` wrote; every step answers `nil` rather than pass the end.
package struct ByteReader {
    private var rest: ArraySlice<UInt8>

    package init(_ bytes: some Collection<UInt8>) { rest = Array(bytes)[...] }

    package var isAtEnd: Bool { rest.isEmpty }

    package mutating func integer() -> Int64? {
        var value: UInt64 = 0
        for shift in stride(from: UInt64(0), to: 64, by: 7) {
            guard let byte = rest.popFirst() else { return nil }
            value |= UInt64(byte & 0x7f) << shift
            if byte < 0x80 { return Int64(bitPattern: value) }
        }
        return nil
    }

    package mutating func run() -> ArraySlice<UInt8>? { integer().flatMap { Int(exactly: $0) }.flatMap { bytes($0) } }

    package mutating func bytes(_ count: Int) -> ArraySlice<UInt8>? {
        guard count >= 0, count <= rest.count else { return nil }
        defer { rest = rest.dropFirst(count) }
        return rest.prefix(count)
    }
}
