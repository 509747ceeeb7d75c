/// SipHash-2-4 (Aumasson and Bernstein, 2012) with 64 bits, under the key of its published test vectors, the bytes 00
/// to 0f: well mixed, short to write in any language, and quick on the few bytes of a cell.
///
/// A value of this type is a hash in progress: a copy goes on from where the original stood, so that what many cells
/// have in common is hashed once.
package struct SipHash: Hashable, Sendable {
    private var a: UInt64
    private var b: UInt64
    private var c: UInt64
    private var d: UInt64
    /// Bytes that do not fill a word yet, the first one lowest.
    private var tail: UInt64 = 0
    private var tailBits: UInt64 = 0
    private var length: UInt64 = 0

    package init() {
        let (low, high): (UInt64, UInt64) = (0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908)
        a = low ^ 0x736f_6d65_7073_6575
        b = high ^ 0x646f_7261_6e64_6f6d
        c = low ^ 0x6c79_6765_6e65_7261
        d = high ^ 0x7465_6462_7974_6573
    }

    package mutating func update(_ bytes: UnsafeRawBufferPointer) {
        let count = bytes.count
        var index = 0
        length &+= UInt64(count)
        while tailBits > 0, index < count {
            append(bytes[index])
            index += 1
        }
        while count &- index >= 8 {
            absorb(UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self)))
            index &+= 8
        }
        while index < count {
            append(bytes[index])
            index += 1
        }
    }

    package mutating func update(_ bytes: some Collection<UInt8>) {
        let isDone: Void? = bytes.withContiguousStorageIfAvailable { update(UnsafeRawBufferPointer($0)) }
        if isDone == nil { for byte in bytes { update(byte: byte) } }
    }

    package mutating func update(byte: UInt8) {
        length &+= 1
        append(byte)
    }

    package consuming func finish() -> UInt64 {
        absorb(tail | length << 56)
        c ^= 0xff
        for _ in 0..<4 { round() }
        return a ^ b ^ c ^ d
    }

    private mutating func append(_ byte: UInt8) {
        tail |= UInt64(byte) << tailBits
        tailBits &+= 8
        guard tailBits == 64 else { return }
        let word = tail
        (tail, tailBits) = (0, 0)
        absorb(word)
    }

    private mutating func absorb(_ word: UInt64) {
        d ^= word
        round()
        round()
        a ^= word
    }

    private mutating func round() {
        a &+= b
        b = rotated(b, 13) ^ a
        a = rotated(a, 32)
        c &+= d
        d = rotated(d, 16) ^ c
        a &+= d
        d = rotated(d, 21) ^ a
        c &+= b
        b = rotated(b, 17) ^ c
        c = rotated(c, 32)
    }

    private func rotated(_ word: UInt64, _ count: UInt64) -> UInt64 { word &<< count | word &>> (64 &- count) }
}
