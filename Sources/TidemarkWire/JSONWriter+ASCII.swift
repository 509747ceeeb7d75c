extension JSONWriter {
    /// Writes a string in ASCII, other letters as `\u00e9`, so that it may stand in a header.
    package mutating func asciiString(_ text: String) {
        var plain = JSONWriter(capacity: text.utf8.count + 2)
        plain.string(text)
        for unit in String(decoding: plain.bytes, as: UTF8.self).utf16 {
            if (0x20...0x7e).contains(unit) {
                raw(byte: UInt8(truncatingIfNeeded: unit))
            } else {
                let digits = String(unit, radix: 16)
                raw("\\u")
                raw(repeatElement(UInt8(ascii: "0"), count: 4 - digits.utf8.count))
                raw(digits.utf8)
            }
        }
    }
}
