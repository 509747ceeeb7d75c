/// A pull parser over borrowed bytes: it scans a document once, allocates for nothing but the texts and reals that it
/// gives out, and checks every index.
///
/// The buffer must outlive the reader; callers use it inside one `withUnsafeBytes`.
package struct JSONReader {
    package static let depthLimit = 64

    package let bytes: UnsafeRawBufferPointer
    package private(set) var index = 0
    private var depth = 0
    /// Whether the innermost container has not given its first member yet.
    private var isFresh = true

    package init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

    /// Reads on from a place in the same buffer, so that the places of what is found stay comparable.
    package init(_ bytes: UnsafeRawBufferPointer, at index: Int) {
        self.bytes = bytes
        self.index = index
    }

    /// A string as it stands in the document, between its quotes.
    package struct Text: Hashable, Sendable {
        package var range: Range<Int>
        package var hasEscapes: Bool
    }

    package enum Number: Hashable, Sendable {
        case integer(Int64)
        case real(Double)
    }

    // MARK: Containers

    package mutating func enterObject() throws(JSONError) { try enter(UInt8(ascii: "{")) }
    package mutating func enterArray() throws(JSONError) { try enter(UInt8(ascii: "[")) }

    /// The name of the next member, its colon passed; `nil` once the object is closed.
    package mutating func nextMember() throws(JSONError) -> Text? {
        guard try advance(closing: UInt8(ascii: "}")) else { return nil }
        let name = try readText()
        skipWhitespace()
        try expect(UInt8(ascii: ":"))
        return name
    }

    /// Whether another element follows; `false` once the array is closed.
    package mutating func nextElement() throws(JSONError) -> Bool {
        try advance(closing: UInt8(ascii: "]"))
    }

    /// Checks that nothing but white space is left.
    package mutating func finish() throws(JSONError) {
        skipWhitespace()
        guard index == bytes.count else { throw JSONError(.trailingBytes, at: index) }
    }

    // MARK: Values

    /// The first byte of the next value, without consuming it; 0 at the end.
    package mutating func peek() -> UInt8 {
        skipWhitespace()
        return index < bytes.count ? bytes[index] : 0
    }

    package mutating func readText() throws(JSONError) -> Text {
        skipWhitespace()
        try expect(UInt8(ascii: "\""), orWrongType: true)
        let start = index
        var hasEscapes = false
        var isASCII = true
        while index < bytes.count {
            let byte = bytes[index]
            if byte == UInt8(ascii: "\"") {
                let text = Text(range: start..<index, hasEscapes: hasEscapes)
                guard isASCII || isValidUTF8(UnsafeRawBufferPointer(rebasing: bytes[text.range])) else {
                    throw JSONError(.invalidUTF8, at: start)
                }
                index += 1
                isFresh = false
                return text
            }
            if byte == UInt8(ascii: "\\") {
                hasEscapes = true
                index += 1
                try skipEscape()
                continue
            }
            if byte < 0x20 { throw JSONError(.invalidString, at: index) }
            if byte >= 0x80 { isASCII = false }
            index += 1
        }
        throw JSONError(.unexpectedEnd, at: index)
    }

    package mutating func readString() throws(JSONError) -> String { string(try readText()) }

    package mutating func readInteger() throws(JSONError) -> Int64 {
        skipWhitespace()
        let start = index
        guard case .integer(let value) = try readNumber() else { throw JSONError(.wrongType, at: start) }
        return value
    }

    package mutating func readBool() throws(JSONError) -> Bool {
        switch peek() {
        case UInt8(ascii: "t"):
            try expectWord("true")
            return true
        case UInt8(ascii: "f"):
            try expectWord("false")
            return false
        default: throw JSONError(.wrongType, at: index)
        }
    }

    package mutating func readNull() throws(JSONError) { try expectWord("null") }

    /// A number: an integer where it has neither point nor exponent, else a real.
    package mutating func readNumber() throws(JSONError) -> Number {
        skipWhitespace()
        let start = index
        var isReal = false
        if current == UInt8(ascii: "-") { index += 1 }
        let first = current
        guard try skipDigits() == 1 || first != UInt8(ascii: "0") else { throw JSONError(.invalidNumber, at: start) }
        if current == UInt8(ascii: ".") {
            isReal = true
            index += 1
            _ = try skipDigits()
        }
        if current | 0x20 == UInt8(ascii: "e") {
            isReal = true
            index += 1
            if current == UInt8(ascii: "+") || current == UInt8(ascii: "-") { index += 1 }
            _ = try skipDigits()
        }
        isFresh = false
        if !isReal { return .integer(try integer(in: start..<index)) }
        let text = String(decoding: bytes[start..<index], as: UTF8.self)
        guard let value = Double(text), value.isFinite else { throw JSONError(.invalidNumber, at: start) }
        return .real(value)
    }

    /// Passes over the next value, whatever it is, and tells where it stood.
    @discardableResult
    package mutating func skip() throws(JSONError) -> Range<Int> {
        let first = peek()
        let start = index
        switch first {
        case UInt8(ascii: "{"):
            try enterObject()
            while try nextMember() != nil { try skip() }
        case UInt8(ascii: "["):
            try enterArray()
            while try nextElement() { try skip() }
        case UInt8(ascii: "\""): _ = try readText()
        case UInt8(ascii: "t"), UInt8(ascii: "f"): _ = try readBool()
        case UInt8(ascii: "n"): try readNull()
        default: _ = try readNumber()
        }
        return start..<index
    }
}

// MARK: - Steps

extension JSONReader {
    private var current: UInt8 { index < bytes.count ? bytes[index] : 0 }

    private mutating func skipWhitespace() {
        while index < bytes.count {
            switch bytes[index] {
            case 0x20, 0x0a, 0x0d, 0x09: index += 1
            default: return
            }
        }
    }

    private mutating func enter(_ opening: UInt8) throws(JSONError) {
        skipWhitespace()
        try expect(opening, orWrongType: true)
        depth += 1
        guard depth <= Self.depthLimit else { throw JSONError(.tooDeep, at: index) }
        isFresh = true
    }

    private mutating func advance(closing: UInt8) throws(JSONError) -> Bool {
        skipWhitespace()
        guard index < bytes.count else { throw JSONError(.unexpectedEnd, at: index) }
        if bytes[index] == closing {
            index += 1
            depth -= 1
            isFresh = false
            return false
        }
        if isFresh {
            isFresh = false
        } else {
            try expect(UInt8(ascii: ","))
        }
        return true
    }

    private mutating func expect(_ byte: UInt8, orWrongType: Bool = false) throws(JSONError) {
        guard index < bytes.count else { throw JSONError(.unexpectedEnd, at: index) }
        guard bytes[index] == byte else {
            throw JSONError(orWrongType ? .wrongType : .unexpectedCharacter, at: index)
        }
        index += 1
    }

    private mutating func expectWord(_ word: StaticString) throws(JSONError) {
        skipWhitespace()
        let count = word.utf8CodeUnitCount
        guard index + count <= bytes.count else { throw JSONError(.unexpectedEnd, at: index) }
        for offset in 0..<count where bytes[index + offset] != word.utf8Start[offset] {
            throw JSONError(.wrongType, at: index)
        }
        index += count
        isFresh = false
    }

    private mutating func skipDigits() throws(JSONError) -> Int {
        let start = index
        while index < bytes.count, (0x30...0x39).contains(bytes[index]) { index += 1 }
        guard index > start else { throw JSONError(index < bytes.count ? .wrongType : .unexpectedEnd, at: index) }
        return index - start
    }

    private func integer(in range: Range<Int>) throws(JSONError) -> Int64 {
        let isNegative = bytes[range.lowerBound] == UInt8(ascii: "-")
        var value: Int64 = 0
        for position in (isNegative ? range.lowerBound + 1 : range.lowerBound)..<range.upperBound {
            let digit = Int64(bytes[position] &- 0x30)
            let (tenfold, overflow) = value.multipliedReportingOverflow(by: 10)
            let (next, carry) =
                isNegative
                ? tenfold.subtractingReportingOverflow(digit) : tenfold.addingReportingOverflow(digit)
            guard !overflow, !carry else { throw JSONError(.invalidNumber, at: range.lowerBound) }
            value = next
        }
        return value
    }

    private mutating func skipEscape() throws(JSONError) {
        let start = index
        switch current {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"), UInt8(ascii: "b"), UInt8(ascii: "f"),
            UInt8(ascii: "n"), UInt8(ascii: "r"), UInt8(ascii: "t"):
            index += 1
        case UInt8(ascii: "u"):
            let unit = try hexUnit(at: index + 1)
            index += 5
            if (0xdc00...0xdfff).contains(unit) { throw JSONError(.invalidString, at: start) }
            guard (0xd800...0xdbff).contains(unit) else { return }
            guard current == UInt8(ascii: "\\"), index + 1 < bytes.count, bytes[index + 1] == UInt8(ascii: "u"),
                (0xdc00...0xdfff).contains(try hexUnit(at: index + 2))
            else { throw JSONError(.invalidString, at: start) }
            index += 6
        default: throw JSONError(.invalidString, at: start)
        }
    }

    fileprivate func hexUnit(at position: Int) throws(JSONError) -> UInt32 {
        guard position + 4 <= bytes.count else { throw JSONError(.unexpectedEnd, at: bytes.count) }
        var unit: UInt32 = 0
        for byte in bytes[position..<(position + 4)] {
            guard let digit = hexDigit(byte) else { throw JSONError(.invalidString, at: position) }
            unit = unit << 4 | digit
        }
        return unit
    }
}

private func hexDigit(_ byte: UInt8) -> UInt32? {
    switch byte {
    case 0x30...0x39: UInt32(byte - 0x30)
    case 0x41...0x46: UInt32(byte - 0x41 + 10)
    case 0x61...0x66: UInt32(byte - 0x61 + 10)
    default: nil
    }
}

// MARK: - Looking at a string

extension JSONReader {
    /// Compares without decoding; a name written with escapes is decoded first.
    package func matches(_ text: Text, _ word: StaticString) -> Bool {
        guard text.hasEscapes else {
            return text.range.count == word.utf8CodeUnitCount
                && zip(bytes[text.range], UnsafeBufferPointer(start: word.utf8Start, count: word.utf8CodeUnitCount))
                    .allSatisfy { $0 == $1 }
        }
        return string(text) == word.description
    }

    /// Whether the string's first byte, once its escapes are resolved, is that one.
    package func begins(_ text: Text, with byte: UInt8) -> Bool {
        (text.hasEscapes ? unescaped(text).first : bytes[text.range].first) == byte
    }

    package func string(_ text: Text) -> String {
        if !text.hasEscapes { return String(decoding: bytes[text.range], as: UTF8.self) }
        return String(decoding: unescaped(text), as: UTF8.self)
    }

    /// The string's bytes with its escapes resolved. The reader has checked them, so nothing can fail here.
    package func unescaped(_ text: Text) -> [UInt8] {
        var result: [UInt8] = []
        result.reserveCapacity(text.range.count)
        var position = text.range.lowerBound
        while position < text.range.upperBound {
            let byte = bytes[position]
            position += 1
            guard byte == UInt8(ascii: "\\"), position < text.range.upperBound else {
                result.append(byte)
                continue
            }
            let escape = bytes[position]
            position += 1
            switch escape {
            case UInt8(ascii: "b"): result.append(0x08)
            case UInt8(ascii: "f"): result.append(0x0c)
            case UInt8(ascii: "n"): result.append(0x0a)
            case UInt8(ascii: "r"): result.append(0x0d)
            case UInt8(ascii: "t"): result.append(0x09)
            case UInt8(ascii: "u"): position = appendScalar(at: position, to: &result)
            default: result.append(escape)
            }
        }
        return result
    }

    private func appendScalar(at position: Int, to result: inout [UInt8]) -> Int {
        guard let high = try? hexUnit(at: position) else { return position }
        var end = position + 4
        var code = high
        if (0xd800...0xdbff).contains(high), let low = try? hexUnit(at: end + 2) {
            code = 0x10000 + ((high - 0xd800) << 10) + (low &- 0xdc00)
            end += 6
        }
        if let scalar = Unicode.Scalar(code) { result.append(contentsOf: String(Character(scalar)).utf8) }
        return end
    }
}
