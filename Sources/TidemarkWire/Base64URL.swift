/// Base64 in the alphabet of URLs and without padding (RFC 4648 section 5): how opaque tokens are spelled.
package enum Base64URL {
    private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)

    package static func encode(_ bytes: [UInt8]) -> String {
        let digitCount = (bytes.count * 8 + 5) / 6
        return String(unsafeUninitializedCapacity: digitCount) { digits in
            var (pending, bits, place) = (0, 0, 0)
            for byte in bytes {
                pending = pending << 8 | Int(byte)
                bits += 8
                while bits >= 6 {
                    bits -= 6
                    digits[place] = alphabet[pending >> bits & 63]
                    place += 1
                }
                pending &= (1 << bits) - 1
            }
            if bits > 0 { digits[place] = alphabet[pending << (6 - bits)] }
            return digitCount
        }
    }

    /// Takes the one spelling that ``encode(_:)`` gives, so that no two texts are the same token.
    package static func decode(_ text: String) -> [UInt8]? {
        var (bytes, pending, bits): ([UInt8], Int, Int) = ([], 0, 0)
        bytes.reserveCapacity(text.utf8.count * 3 / 4)
        for digit in text.utf8 {
            guard let value = value(of: digit) else { return nil }
            pending = pending << 6 | value
            bits += 6
            guard bits >= 8 else { continue }
            bits -= 8
            bytes.append(UInt8(truncatingIfNeeded: pending >> bits))
            pending &= (1 << bits) - 1
        }
        // The bits that are left of the last digit are padding and have to be zero; a whole digit would be one too
        // many.
        return bits < 6 && pending == 0 ? bytes : nil
    }

    private static func value(of digit: UInt8) -> Int? {
        switch digit {
        case 0x41...0x5a: Int(digit) - 0x41
        case 0x61...0x7a: Int(digit) - 0x61 + 26
        case 0x30...0x39: Int(digit) - 0x30 + 52
        case UInt8(ascii: "-"): 62
        case UInt8(ascii: "_"): 63
        default: nil
        }
    }
}
