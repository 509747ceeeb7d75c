/// The form of a temporary id. Both sides know one by its form alone, so no list of them is kept anywhere, and none can
/// be mistaken for an id that a server assigns.
package enum TemporaryShape {
    /// Text keys: this and something random.
    package static let prefix = "local-"

    /// Integer keys: negative numbers of just 62 bits. No counter ever comes there.
    package static let integers: ClosedRange<Int64> = -(1 << 62) + 1 ... -(1 << 61)

    package static func matches(_ text: String) -> Bool {
        if text.utf8.starts(with: prefix.utf8) { return text.utf8.count > prefix.utf8.count }
        return integer(text).map(integers.contains) ?? false
    }

    /// The number that an id spells in canonical decimal.
    package static func integer(_ text: String) -> Int64? {
        Int64(text).flatMap { String($0) == text ? $0 : nil }
    }

    package static func integer(random: UInt64) -> Int64 { -(1 << 61) - Int64(random & (1 << 61 - 1)) }

    package static func text(random: (UInt64, UInt64)) -> String {
        prefix + hex(random.0) + hex(random.1)
    }

    private static func hex(_ word: UInt64) -> String {
        let digits = String(word, radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits
    }
}
