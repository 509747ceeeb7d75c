/// Percent-encoding of names in an address (RFC 3986, 2.1): routers hand them over as they came.
package enum PercentEncoding {
    /// A name as it stands in an address: everything but letters, digits and `-._~` is written as `%20`.
    package static func encoded(_ name: String) -> String {
        var bytes: [UInt8] = []
        for byte in name.utf8 {
            if isPlain(byte) {
                bytes.append(byte)
            } else {
                bytes += [UInt8(ascii: "%"), digit(byte >> 4), digit(byte & 15)]
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// A name of a path.
    package static func decoded(path text: String) throws(Problem) -> String {
        guard let name = decoded(text) else {
            throw Problem(.invalidIdentifier, "A name in the path is not percent-encoded UTF-8.")
        }
        return name
    }

    /// The members of a query in their order. A plus is a plus.
    package static func members(ofQuery query: String) throws(Problem) -> [(name: String, value: String)] {
        var members: [(name: String, value: String)] = []
        for member in query.utf8.split(separator: UInt8(ascii: "&")) {
            let parts = member.split(separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
            guard let name = decoded(Substring(parts[0])), let value = decoded(Substring(parts.last ?? member)) else {
                throw Problem(.malformedRequest, "The query is not percent-encoded UTF-8.")
            }
            members.append((name, parts.count > 1 ? value : ""))
        }
        return members
    }

    /// `nil` for what is no percent-encoded UTF-8.
    private static func decoded(_ text: some StringProtocol) -> String? {
        var bytes: [UInt8] = []
        var rest = text.utf8[text.utf8.startIndex...]
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            guard let high = rest.popFirst().flatMap(value), let low = rest.popFirst().flatMap(value) else {
                return nil
            }
            bytes.append(high << 4 | low)
        }
        return bytes.withUnsafeBytes(isValidUTF8) ? String(decoding: bytes, as: UTF8.self) : nil
    }

    private static func isPlain(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"):
            true
        default: "-._~".utf8.contains(byte)
        }
    }

    private static func digit(_ value: UInt8) -> UInt8 { value < 10 ? 0x30 + value : 0x37 + value }

    private static func value(_ digit: UInt8) -> UInt8? {
        switch digit {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): digit - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): digit - UInt8(ascii: "A") + 10
        default: nil
        }
    }
}
