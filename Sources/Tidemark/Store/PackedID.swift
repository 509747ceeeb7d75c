import TidemarkWire

/// A record's id as the manifest and the history keep it: shorter than its text, in an order of its own that every
/// range of the manifest shares.
///
/// The first byte says the form. Integers and UUIDs, which most keys are, take 9 and 17 bytes; ids that come in
/// ascending order stay in ascending order, so that a bootstrap writes each range once.
enum PackedID {
    private static let text: UInt8 = 1
    private static let lowerUUID: UInt8 = 2
    private static let upperUUID: UInt8 = 3
    private static let integer: UInt8 = 4

    static func encode(_ id: RecordID) -> [UInt8] {
        var text = id.text
        return text.withUTF8 { encode(UnsafeRawBufferPointer($0)) }
    }

    static func encode(_ id: UnsafeRawBufferPointer) -> [UInt8] {
        if let number = number(id) { return encode(number) }
        if let uuid = uuid(id) { return uuid }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(id.count + 1)
        bytes.append(text)
        bytes.append(contentsOf: id)
        return bytes
    }

    /// The id's text; `nil` where the bytes are none of the forms above, as in a file that was damaged.
    static func decode(_ bytes: ArraySlice<UInt8>) -> RecordID? {
        let body = bytes.dropFirst()
        switch bytes.first {
        case text: return RecordID(String(decoding: body, as: UTF8.self))
        case lowerUUID where body.count == 16: return RecordID(spelled(body, "0123456789abcdef"))
        case upperUUID where body.count == 16: return RecordID(spelled(body, "0123456789ABCDEF"))
        case integer where body.count == 8:
            let bits = body.reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
            return RecordID(String(Int64(bitPattern: bits ^ signBit)))
        default: return nil
        }
    }

    // MARK: Integers

    private static let signBit: UInt64 = 1 << 63

    private static func encode(_ number: Int64) -> [UInt8] {
        let bits = UInt64(bitPattern: number) ^ signBit
        return [UInt8](unsafeUninitializedCapacity: 9) { bytes, count in
            bytes[0] = integer
            for index in 0..<8 { bytes[index + 1] = UInt8(truncatingIfNeeded: bits >> (56 - 8 * UInt64(index))) }
            count = 9
        }
    }

    /// The number that the text spells as the wire does: no sign but a minus, no leading zero.
    static func number(_ id: UnsafeRawBufferPointer) -> Int64? {
        guard (1...20).contains(id.count) else { return nil }
        var number: Int64 = 0
        let isNegative = id[0] == UInt8(ascii: "-")
        let digits = isNegative ? UnsafeRawBufferPointer(rebasing: id.dropFirst()) : id
        guard let first = digits.first, first != UInt8(ascii: "0") || (digits.count == 1 && !isNegative) else {
            return nil
        }
        for byte in digits {
            guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) else { return nil }
            let digit = Int64(byte - UInt8(ascii: "0"))
            let (tenfold, isTooLarge) = number.multipliedReportingOverflow(by: 10)
            let (sum, isOver) = tenfold.addingReportingOverflow(isNegative ? -digit : digit)
            guard !isTooLarge, !isOver else { return nil }
            number = sum
        }
        return number
    }

    // MARK: UUIDs

    private static func isHyphen(at index: Int) -> Bool { index == 8 || index == 13 || index == 18 || index == 23 }

    /// `nil` where the text is no UUID, or mixes upper and lower case.
    static func uuid(_ id: UnsafeRawBufferPointer) -> [UInt8]? {
        guard id.count == 36 else { return nil }
        var bytes: [UInt8] = [lowerUUID]
        bytes.reserveCapacity(17)
        var (hasLower, hasUpper, half): (Bool, Bool, UInt8?) = (false, false, nil)
        for (index, byte) in id.enumerated() {
            if isHyphen(at: index) {
                guard byte == UInt8(ascii: "-") else { return nil }
                continue
            }
            let digit: UInt8
            switch byte {
            case UInt8(ascii: "0")...UInt8(ascii: "9"): digit = byte - UInt8(ascii: "0")
            case UInt8(ascii: "a")...UInt8(ascii: "f"): (digit, hasLower) = (byte - UInt8(ascii: "a") + 10, true)
            case UInt8(ascii: "A")...UInt8(ascii: "F"): (digit, hasUpper) = (byte - UInt8(ascii: "A") + 10, true)
            default: return nil
            }
            if let high = half {
                bytes.append(high << 4 | digit)
                half = nil
            } else {
                half = digit
            }
        }
        guard !(hasLower && hasUpper) else { return nil }
        if hasUpper { bytes[0] = upperUUID }
        return bytes
    }

    private static func spelled(_ bytes: ArraySlice<UInt8>, _ digits: String) -> String {
        let digits = Array(digits.utf8)
        var text: [UInt8] = []
        text.reserveCapacity(36)
        for byte in bytes {
            if isHyphen(at: text.count) { text.append(UInt8(ascii: "-")) }
            text.append(digits[Int(byte >> 4)])
            text.append(digits[Int(byte & 15)])
        }
        return String(decoding: text, as: UTF8.self)
    }
}
