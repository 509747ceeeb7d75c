/// SHA-256 (FIPS 180-4) and HMAC (RFC 2104), for what the engine needs without an outside package: the mark that makes
/// an altered checkpoint visible, the fingerprint of an operation's payload, and the names of blobs. Authorisation
/// never rests on it.
package struct SHA256: Sendable {
    private var state = State()
    /// Less than a block.
    private var pending: [UInt8] = []
    private var length: UInt64 = 0

    private static let blockSize = 64

    package init() {}

    package static func digest(_ bytes: [UInt8]) -> [UInt8] {
        var hash = SHA256()
        hash.update(bytes)
        return hash.finish()
    }

    package static func authenticate(_ bytes: [UInt8], key: [UInt8]) -> [UInt8] {
        var block = key.count > blockSize ? digest(key) : key
        block.append(contentsOf: repeatElement(0, count: blockSize - block.count))
        var inner = SHA256()
        inner.update(block.map { $0 ^ 0x36 })
        inner.update(bytes)
        var outer = SHA256()
        outer.update(block.map { $0 ^ 0x5c })
        outer.update(inner.finish())
        return outer.finish()
    }

    package mutating func update(_ bytes: [UInt8]) { bytes.withUnsafeBytes { update($0) } }

    /// Takes in bytes where they are: whole blocks are not copied.
    package mutating func update(_ bytes: UnsafeRawBufferPointer) {
        length &+= UInt64(bytes.count) &* 8
        var rest = bytes[...]
        if !pending.isEmpty {
            let head = rest.prefix(Self.blockSize - pending.count)
            pending += head
            rest = rest.dropFirst(head.count)
            guard pending.count == Self.blockSize else { return }
            pending.withUnsafeBytes { state.compress($0) }
            pending.removeAll(keepingCapacity: true)
        }
        let whole = rest.prefix(rest.count / Self.blockSize * Self.blockSize)
        state.compress(UnsafeRawBufferPointer(rebasing: whole))
        pending += rest.dropFirst(whole.count)
    }

    package consuming func finish() -> [UInt8] {
        // A bit, zeros and the length in bits fill the last block, or two.
        let size = pending.count + 9 <= Self.blockSize ? Self.blockSize : 2 * Self.blockSize
        withUnsafeTemporaryAllocation(byteCount: size, alignment: 8) { last in
            last.initializeMemory(as: UInt8.self, repeating: 0)
            last.copyBytes(from: pending)
            last[pending.count] = 0x80
            last.storeBytes(of: length.bigEndian, toByteOffset: size - 8, as: UInt64.self)
            state.compress(UnsafeRawBufferPointer(last))
        }
        return state.bytes
    }

    private struct State: Sendable {
        private var h: (UInt32, UInt32, UInt32, UInt32, UInt32, UInt32, UInt32, UInt32) = (
            0x6a09_e667, 0xbb67_ae85, 0x3c6e_f372, 0xa54f_f53a, 0x510e_527f, 0x9b05_688c, 0x1f83_d9ab, 0x5be0_cd19
        )

        var bytes: [UInt8] {
            let words = (
                h.0.bigEndian, h.1.bigEndian, h.2.bigEndian, h.3.bigEndian, h.4.bigEndian, h.5.bigEndian,
                h.6.bigEndian, h.7.bigEndian
            )
            return withUnsafeBytes(of: words) { Array($0) }
        }

        /// - Parameter bytes: whole blocks.
        mutating func compress(_ bytes: UnsafeRawBufferPointer) {
            withUnsafeTemporaryAllocation(of: UInt32.self, capacity: 64) { schedule in
                roundConstants.withUnsafeBufferPointer { constants in
                    for start in stride(from: 0, to: bytes.count, by: SHA256.blockSize) {
                        for index in 0..<16 {
                            schedule[index] = UInt32(
                                bigEndian: bytes.loadUnaligned(fromByteOffset: start &+ index &* 4, as: UInt32.self))
                        }
                        mix(schedule, constants)
                    }
                }
            }
        }

        @inline(__always)
        private mutating func mix(
            _ schedule: UnsafeMutableBufferPointer<UInt32>, _ constants: UnsafeBufferPointer<UInt32>
        ) {
            for index in 16..<64 {
                let early = schedule[index &- 15]
                let late = schedule[index &- 2]
                let small = rotate(early, 7) ^ rotate(early, 18) ^ early &>> 3
                let large = rotate(late, 17) ^ rotate(late, 19) ^ late &>> 10
                schedule[index] = schedule[index &- 16] &+ small &+ schedule[index &- 7] &+ large
            }
            var (a, b, c, d, e, f, g, h) = self.h
            // Each round takes the words one place further on: over eight rounds none has to be moved.
            for index in stride(from: 0, to: 64, by: 8) {
                func word(_ place: Int) -> UInt32 { constants[index &+ place] &+ schedule[index &+ place] }
                round(a, b, c, &d, e, f, g, &h, word(0))
                round(h, a, b, &c, d, e, f, &g, word(1))
                round(g, h, a, &b, c, d, e, &f, word(2))
                round(f, g, h, &a, b, c, d, &e, word(3))
                round(e, f, g, &h, a, b, c, &d, word(4))
                round(d, e, f, &g, h, a, b, &c, word(5))
                round(c, d, e, &f, g, h, a, &b, word(6))
                round(b, c, d, &e, f, g, h, &a, word(7))
            }
            self.h = (
                self.h.0 &+ a, self.h.1 &+ b, self.h.2 &+ c, self.h.3 &+ d, self.h.4 &+ e, self.h.5 &+ f,
                self.h.6 &+ g, self.h.7 &+ h
            )
        }

        @inline(__always)
        private func round(
            _ a: UInt32, _ b: UInt32, _ c: UInt32, _ d: inout UInt32, _ e: UInt32, _ f: UInt32, _ g: UInt32,
            _ h: inout UInt32, _ word: UInt32
        ) {
            let choice = g ^ (e & (f ^ g))
            let first = h &+ (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) &+ choice &+ word
            let majority = (a & b) | (c & (a | b))
            d = d &+ first
            h = first &+ (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) &+ majority
        }
    }
}

@inline(__always)
private func rotate(_ word: UInt32, _ count: UInt32) -> UInt32 { word &>> count | word &<< (32 &- count) }

/// The first 32 bits of the fractional parts of the cube roots of the first 64 primes.
private let roundConstants: [UInt32] = [
    0x428a_2f98, 0x7137_4491, 0xb5c0_fbcf, 0xe9b5_dba5, 0x3956_c25b, 0x59f1_11f1, 0x923f_82a4, 0xab1c_5ed5,
    0xd807_aa98, 0x1283_5b01, 0x2431_85be, 0x550c_7dc3, 0x72be_5d74, 0x80de_b1fe, 0x9bdc_06a7, 0xc19b_f174,
    0xe49b_69c1, 0xefbe_4786, 0x0fc1_9dc6, 0x240c_a1cc, 0x2de9_2c6f, 0x4a74_84aa, 0x5cb0_a9dc, 0x76f9_88da,
    0x983e_5152, 0xa831_c66d, 0xb003_27c8, 0xbf59_7fc7, 0xc6e0_0bf3, 0xd5a7_9147, 0x06ca_6351, 0x1429_2967,
    0x27b7_0a85, 0x2e1b_2138, 0x4d2c_6dfc, 0x5338_0d13, 0x650a_7354, 0x766a_0abb, 0x81c2_c92e, 0x9272_2c85,
    0xa2bf_e8a1, 0xa81a_664b, 0xc24b_8b70, 0xc76c_51a3, 0xd192_e819, 0xd699_0624, 0xf40e_3585, 0x106a_a070,
    0x19a4_c116, 0x1e37_6c08, 0x2748_774c, 0x34b0_bcb5, 0x391c_0cb3, 0x4ed8_aa4a, 0x5b9c_ca4f, 0x682e_6ff3,
    0x748f_82ee, 0x78a5_636f, 0x84c8_7814, 0x8cc7_0208, 0x90be_fffa, 0xa450_6ceb, 0xbef9_a3f7, 0xc671_78f2,
]
