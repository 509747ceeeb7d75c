/// UUIDs of version 7 (RFC 9562): the milliseconds since 1970 first, so that ids made later sort behind earlier ones.
/// Within one generator each is above the last, whatever the clock does: the 74 bits behind the time are drawn anew for
/// a new millisecond and counted up, by random steps, within one.
package struct UUIDv7: Hashable, Sendable {
    private var milliseconds: UInt64 = 0
    private var high: UInt64 = 0
    private var low: UInt64 = 0

    private static let highMask: UInt64 = 0xfff
    private static let lowMask: UInt64 = 0x3fff_ffff_ffff_ffff
    private static let timeMask: UInt64 = 0xffff_ffff_ffff

    package init() {}

    /// The next one's 16 bytes. Moment and random bits are the caller's.
    package mutating func next(at moment: Int64, random: (UInt64, UInt64)) -> [UInt8] {
        let now = UInt64(max(moment, 0)) & Self.timeMask
        if now > milliseconds {
            begin(now, random)
        } else {
            low += 1 + random.0 & 0xffff_ffff
            high += low >> 62
            low &= Self.lowMask
            // The counter is used up, which takes more ids than a millisecond has room for: the next millisecond is
            // taken early.
            if high > Self.highMask { begin((milliseconds + 1) & Self.timeMask, random) }
        }
        return bytes
    }

    /// The counter's top bit begins as 0, so that there is room to count.
    private mutating func begin(_ moment: UInt64, _ random: (UInt64, UInt64)) {
        milliseconds = moment
        high = random.0 >> 32 & Self.highMask >> 1
        low = random.1 & Self.lowMask
    }

    private var bytes: [UInt8] {
        let first = milliseconds << 16 | 0x7000 | high
        let second = 0x8000_0000_0000_0000 | low
        return [first, second].flatMap { word in
            stride(from: UInt64(56), through: 0, by: -8).map { UInt8(truncatingIfNeeded: word >> $0) }
        }
    }

    /// The usual spelling, in lower case: `0193488b-5c1e-7d3a-8f00-2b6c1d9e4a77`.
    package static func text(_ bytes: [UInt8]) -> String {
        var text = ""
        for (index, byte) in bytes.enumerated() {
            if [4, 6, 8, 10].contains(index) { text += "-" }
            text += String(byte >> 4, radix: 16) + String(byte & 15, radix: 16)
        }
        return text
    }
}
