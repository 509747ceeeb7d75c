#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Writes the one canonical spelling of each value, so that equal values have equal bytes.
package struct JSONWriter {
    package private(set) var bytes: [UInt8] = []

    package init(capacity: Int = 0) { bytes.reserveCapacity(capacity) }

    package mutating func raw(_ word: StaticString) {
        bytes.append(contentsOf: UnsafeBufferPointer(start: word.utf8Start, count: word.utf8CodeUnitCount))
    }

    package mutating func raw(_ slice: some Sequence<UInt8>) { bytes.append(contentsOf: slice) }
    package mutating func raw(_ slice: UnsafeRawBufferPointer) { bytes.append(contentsOf: slice) }
    package mutating func raw(byte: UInt8) { bytes.append(byte) }

    package mutating func integer(_ value: Int64) {
        // Digits go in backwards and are turned round: no String, no allocation.
        let start = bytes.count
        var rest = value.magnitude
        repeat {
            bytes.append(0x30 + UInt8(truncatingIfNeeded: rest % 10))
            rest /= 10
        } while rest > 0
        if value < 0 { bytes.append(UInt8(ascii: "-")) }
        bytes[start...].reverse()
    }

    package mutating func bool(_ value: Bool) {
        if value { raw("true") } else { raw("false") }
    }

    package mutating func string(_ value: String) {
        var value = value
        value.withUTF8 { string(utf8: UnsafeRawBufferPointer($0)) }
    }

    /// Writes a string from bytes that are known to be UTF-8.
    package mutating func string(utf8: UnsafeRawBufferPointer) {
        bytes.append(UInt8(ascii: "\""))
        var pending = 0
        for index in 0..<utf8.count {
            let byte = utf8[index]
            if byte >= 0x20, byte != UInt8(ascii: "\""), byte != UInt8(ascii: "\\") { continue }
            bytes.append(contentsOf: UnsafeRawBufferPointer(rebasing: utf8[pending..<index]))
            escape(byte)
            pending = index + 1
        }
        bytes.append(contentsOf: UnsafeRawBufferPointer(rebasing: utf8[pending...]))
        bytes.append(UInt8(ascii: "\""))
    }

    /// Writes a string as it was read: one without escapes has the canonical spelling already.
    package mutating func text(_ text: JSONReader.Text, of reader: JSONReader) {
        guard text.hasEscapes else {
            bytes.append(UInt8(ascii: "\""))
            bytes.append(contentsOf: UnsafeRawBufferPointer(rebasing: reader.bytes[text.range]))
            return bytes.append(UInt8(ascii: "\""))
        }
        reader.unescaped(text).withUnsafeBytes { string(utf8: $0) }
    }

    private mutating func escape(_ byte: UInt8) {
        switch byte {
        case UInt8(ascii: "\""): raw("\\\"")
        case UInt8(ascii: "\\"): raw("\\\\")
        case 0x0a: raw("\\n")
        case 0x0d: raw("\\r")
        case 0x09: raw("\\t")
        default:
            raw("\\u00")
            let digits: StaticString = "0123456789abcdef"
            bytes.append(digits.utf8Start[Int(byte >> 4)])
            bytes.append(digits.utf8Start[Int(byte & 15)])
        }
    }

    // MARK: Values (Protocol.md)

    /// The largest integer that every JSON reader keeps exact.
    package static let plainIntegerLimit: Int64 = 1 << 53 - 1

    package mutating func value(_ value: Value) {
        switch value {
        case .null: raw("null")
        case .integer(let integer): self.value(integer: integer)
        case .real(let real): self.value(real: real)
        case .text(let text): string(text)
        case .blob(let blob): blob.withUnsafeBytes { self.value(blob: $0) }
        }
    }

    package mutating func value(integer: Int64) {
        if integer.magnitude <= Self.plainIntegerLimit.magnitude {
            self.integer(integer)
        } else {
            raw("{\"$int\":\"")
            self.integer(integer)
            raw("\"}")
        }
    }

    package mutating func value(real: Double) {
        guard real.isFinite else {
            if real.isNaN { raw("null") } else { raw(real > 0 ? "{\"$real\":\"inf\"}" : "{\"$real\":\"-inf\"}") }
            return
        }
        // The shortest digits that give the same bits; the exponent without `+` and leading zeros.
        var inExponent = false
        for byte in real.description.utf8 {
            if inExponent, byte == UInt8(ascii: "+") { continue }
            if inExponent, byte == UInt8(ascii: "0"),
                !(bytes.last.map { (0x31...0x39).contains($0) || $0 == 0x30 } ?? false)
            {
                continue
            }
            if byte == UInt8(ascii: "e") { inExponent = true }
            bytes.append(byte)
        }
    }

    package mutating func value(blob: UnsafeRawBufferPointer) {
        raw("{\"$blob\":\"")
        raw(Data(blob).base64EncodedString().utf8)
        raw("\"}")
    }
}
