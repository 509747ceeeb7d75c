/// Checks UTF-8 as RFC 3629 defines it: no overlong forms, no surrogates, nothing above U+10FFFF.
package func isValidUTF8(_ bytes: UnsafeRawBufferPointer) -> Bool {
    var index = 0
    let count = bytes.count
    while index < count {
        let lead = bytes[index]
        if lead < 0x80 {
            index += 1
            continue
        }
        let length: Int
        let second: ClosedRange<UInt8>
        switch lead {
        case 0xc2...0xdf: (length, second) = (2, 0x80...0xbf)
        case 0xe0: (length, second) = (3, 0xa0...0xbf)
        case 0xe1...0xec, 0xee...0xef: (length, second) = (3, 0x80...0xbf)
        case 0xed: (length, second) = (3, 0x80...0x9f)
        case 0xf0: (length, second) = (4, 0x90...0xbf)
        case 0xf1...0xf3: (length, second) = (4, 0x80...0xbf)
        case 0xf4: (length, second) = (4, 0x80...0x8f)
        default: return false
        }
        guard index + length <= count, second.contains(bytes[index + 1]) else { return false }
        for offset in 2..<max(length, 2) where bytes[index + offset] & 0xc0 != 0x80 { return false }
        index += length
    }
    return true
}
