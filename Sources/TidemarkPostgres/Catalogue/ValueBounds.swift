/// How much a column holds, as the catalogue says it.
struct ColumnWidth: Hashable, Sendable {
    /// The type without its length.
    let type: String
    /// PostgreSQL's `atttypmod`: -1 for a type without a length.
    let modifier: Int

    /// A `varchar(n)` or `char(n)`, in characters.
    var characters: Int? {
        ["character varying", "character"].contains(type) && modifier >= 4 ? modifier - 4 : nil
    }

    /// Digits before the point of a `numeric(p, s)`. A negative scale, and one beyond the precision, are PostgreSQL's
    /// to reckon with.
    var digitsBeforePoint: Int? {
        guard type == "numeric", modifier >= 4 else { return nil }
        let (precision, scale) = ((modifier - 4) >> 16 & 0xffff, (modifier - 4) & 0x7ff)
        return scale <= precision ? precision - scale : nil
    }

    var integers: ClosedRange<Int64>? {
        switch type {
        case "smallint": Int64(Int16.min)...Int64(Int16.max)
        case "integer": Int64(Int32.min)...Int64(Int32.max)
        default: nil
        }
    }
}

/// The bounds of a value, which are checked before PostgreSQL reads it: eight bytes may spell a number of a hundred
/// thousand digits, and a document may be nested deeper than its reader's stack. The length of a record has another
/// limit (`recordBytes`).
enum ValueBounds {
    /// Digits of a `numeric` before the point, and as many behind it, written out without an exponent.
    static let numericDigits = 1000
    /// Levels of arrays and objects in a `json` or `jsonb`.
    static let jsonLevels = 100
    /// Bytes by which the numbers of a `jsonb` may grow where they are written out without exponents.
    static let jsonGrowth = 64 << 10
    /// Bytes of a number of another type, a time, a UUID or a label, however they are spelled.
    static let spellingBytes = 128

    /// The flaw of a text that is to go into a column, as a sentence; `nil` where PostgreSQL may read it.
    static func flaw(of text: String, in column: AttachedColumn, _ width: ColumnWidth?) -> String? {
        let name = "The column \(column.name)"
        if text.utf8.contains(0) { return "\(name) holds no text with a NUL (U+0000) in it." }
        switch column.form {
        case .integer: return integer(text, name, width)
        case .real, .flag: return spelling(text, name)
        case .instant, .moment: return spelling(text, name) ?? date(text, name, years: 294_276)
        case .day: return spelling(text, name) ?? date(text, name, years: 5_874_897)
        case .blob: return nil
        case .text:
            switch column.kind {
            case "text", "varchar", "bpchar", "citext": return characters(text, name, width)
            case "numeric": return numeric(text, name, width)
            case "json": return json(text, name, growth: nil)
            case "jsonb": return json(text, name, growth: jsonGrowth)
            case "uuid": return uuid(text, name)
            case "numbers", "jsonpath": return numbers(text, name)
            case "array", "xml", "tsvector", "tsquery", "bit", "varbit", "path", "polygon", "other":
                return nil
            default: return spelling(text, name)
            }
        }
    }

    private static func spelling(_ text: String, _ name: String) -> String? {
        let count = text.utf8.count
        guard count > spellingBytes else { return nil }
        return "\(name) takes spellings of \(spellingBytes) bytes, and the value has \(count)."
    }

    private static func integer(_ text: String, _ name: String, _ width: ColumnWidth?) -> String? {
        guard let value = Int64(text) else { return "\(name) holds whole numbers of 64 bits, and the value is none." }
        guard let range = width?.integers, !range.contains(value) else { return nil }
        return "\(name) holds whole numbers from \(range.lowerBound) to \(range.upperBound)."
    }

    /// Spaces at the end are cut by PostgreSQL.
    private static func characters(_ text: String, _ name: String, _ width: ColumnWidth?) -> String? {
        guard let limit = width?.characters, text.utf8.count > limit else { return nil }
        let end = text.unicodeScalars.lastIndex { $0 != " " }
        let count = end.map { text.unicodeScalars[...$0].count } ?? 0
        return count > limit ? "\(name) holds \(limit) characters, and the value has \(count)." : nil
    }

    private static func uuid(_ text: String, _ name: String) -> String? {
        if let flaw = spelling(text, name) { return flaw }
        var digits = Substring(text)
        if digits.first == "{", digits.last == "}" { digits = digits.dropFirst().dropLast() }
        let hex = digits.utf8.filter { $0 != UInt8(ascii: "-") }
        let isUUID =
            hex.count == 32
            && hex.allSatisfy {
                (0x30...0x39).contains($0) || (0x61...0x66).contains($0) || (0x41...0x46).contains($0)
            }
        return isUUID ? nil : "\(name) holds UUIDs of 32 hexadecimal digits, and the value is none."
    }

    /// A date that begins with its year, as devices spell them; others PostgreSQL reads by itself.
    private static func date(_ text: String, _ name: String, years: Int) -> String? {
        let parts = text.prefix { $0.isASCII && ($0.isNumber || $0 == "-") }
            .split(separator: "-", maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count == 3, parts[0].count >= 4 else { return nil }
        guard let year = Int(parts[0]), (1...years).contains(year) else {
            return "\(name) holds years from 1 to \(years)."
        }
        guard let month = Int(parts[1]), (1...12).contains(month), let day = Int(parts[2]), (1...31).contains(day)
        else { return "\(name) holds months from 1 to 12 and days from 1 to 31." }
        return nil
    }

    private static func numeric(_ text: String, _ name: String, _ width: ColumnWidth?) -> String? {
        if isNoNumber(text) { return nil }
        guard let digits = Digits(text.utf8) else { return "\(name) holds decimal numbers, and the value is none." }
        if let flaw = tooMany(digits, name) { return flaw }
        guard let limit = width?.digitsBeforePoint, digits.before > limit else { return nil }
        return "\(name) holds \(limit) digits before the point, and the value has \(digits.before)."
    }

    /// Whether a text is one of the values that a `numeric` holds beside numbers.
    private static func isNoNumber(_ text: String) -> Bool {
        guard text.utf8.count <= "-infinity".utf8.count else { return false }
        let word = text.lowercased().drop { $0 == "+" || $0 == "-" }
        return ["nan", "inf", "infinity"].contains(word)
    }

    private static func tooMany(_ digits: Digits, _ name: String) -> String? {
        guard max(digits.before, digits.after) > numericDigits || digits.length > 2 * numericDigits else { return nil }
        return "\(name) takes numbers of \(numericDigits) digits before the point and \(numericDigits) behind it."
    }

    /// Whether it is a document at all is PostgreSQL's to say.
    private static func json(_ text: String, _ name: String, growth limit: Int?) -> String? {
        let bytes = Array(text.utf8)
        var (depth, growth, index) = (0, 0, 0)
        while index < bytes.count {
            switch bytes[index] {
            case UInt8(ascii: "\""): index = endOfString(bytes, from: index)
            case UInt8(ascii: "{"), UInt8(ascii: "["):
                depth += 1
                guard depth <= jsonLevels else { return "\(name) holds documents of \(jsonLevels) levels." }
            case UInt8(ascii: "}"), UInt8(ascii: "]"): depth -= 1
            case UInt8(ascii: "-"), 0x30...0x39:
                let number = bytes[index...].prefix(while: isPartOfNumber)
                index = number.endIndex - 1
                guard let limit else { break }
                if let flaw = tooMuch(number, &growth, limit, name) { return flaw }
            default: break
            }
            index += 1
        }
        return nil
    }

    private static func tooMuch(
        _ number: ArraySlice<UInt8>, _ growth: inout Int, _ limit: Int, _ name: String
    ) -> String? {
        guard let digits = Digits(number) else { return nil }
        if let flaw = tooMany(digits, name) { return flaw }
        growth += max(0, digits.before + digits.after - number.count)
        guard growth > limit else { return nil }
        return "\(name) holds values whose numbers grow by \(limit) bytes without their exponents."
    }

    /// The numbers of an array, a range or a row, wherever they stand in its text.
    private static func numbers(_ text: String, _ name: String) -> String? {
        var growth = 0
        for number in Array(text.utf8).split(whereSeparator: { !isPartOfNumber($0) }) {
            if let flaw = tooMuch(number, &growth, jsonGrowth, name) { return flaw }
        }
        return nil
    }

    /// The index of the quote that ends a string, or the last one.
    private static func endOfString(_ bytes: [UInt8], from start: Int) -> Int {
        var index = start + 1
        while index < bytes.count, bytes[index] != UInt8(ascii: "\"") {
            index += bytes[index] == UInt8(ascii: "\\") ? 2 : 1
        }
        return min(index, bytes.count - 1)
    }

    private static func isPartOfNumber(_ byte: UInt8) -> Bool {
        (0x30...0x39).contains(byte) || "+-.eE".utf8.contains(byte)
    }
}

/// How many digits a decimal number has where it is written out without its exponent.
struct Digits: Hashable, Sendable {
    /// Digits before the point, without zeros in front.
    let before: Int
    /// Digits behind the point, with zeros at the end: a `numeric` keeps them.
    let after: Int
    /// Digits as the number is spelled, with all zeros and without the exponent.
    let length: Int

    /// An exponent that is larger than any that counts.
    private static let exponentLimit = 1_000_000

    /// `nil` for what is no decimal number.
    init?(_ text: some Collection<UInt8>) {
        var rest = text[...]
        if let sign = rest.first, sign == UInt8(ascii: "-") || sign == UInt8(ascii: "+") { rest = rest.dropFirst() }
        let whole = Self.digits(&rest)
        var fraction = rest[rest.endIndex...]
        if rest.first == UInt8(ascii: ".") {
            rest = rest.dropFirst()
            fraction = Self.digits(&rest)
        }
        length = whole.count + fraction.count
        guard length > 0 else { return nil }
        var exponent = 0
        if let mark = rest.first, mark | 0x20 == UInt8(ascii: "e") {
            rest = rest.dropFirst()
            let isNegative = rest.first == UInt8(ascii: "-")
            if isNegative || rest.first == UInt8(ascii: "+") { rest = rest.dropFirst() }
            let digits = Self.digits(&rest)
            guard !digits.isEmpty else { return nil }
            for digit in digits { exponent = min(Self.exponentLimit, exponent * 10 + Int(digit) - 0x30) }
            if isNegative { exponent = -exponent }
        }
        guard rest.isEmpty else { return nil }
        let zero = UInt8(ascii: "0")
        let leading = whole.prefix { $0 == zero }.count
        let isFractionOnly = leading == whole.count
        let zeros = leading + (isFractionOnly ? fraction.prefix { $0 == zero }.count : 0)
        before = zeros == length ? 0 : max(0, whole.count - zeros + exponent)
        after = max(0, fraction.count - exponent)
    }

    private static func digits<Bytes: Collection<UInt8>>(_ rest: inout Bytes) -> Bytes
    where Bytes.SubSequence == Bytes {
        let digits = rest.prefix { (0x30...0x39).contains($0) }
        rest = rest[digits.endIndex...]
        return digits
    }
}
