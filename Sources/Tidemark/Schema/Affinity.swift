import TidemarkWire

/// SQLite's column affinities, by the rules of its manual ("Datatypes", 3.1).
enum Affinity: Hashable, Sendable {
    case integer, text, blob, real, numeric

    init(declaredType: String) {
        let type = declaredType.uppercased()
        if type.contains("INT") {
            self = .integer
        } else if type.contains("CHAR") || type.contains("CLOB") || type.contains("TEXT") {
            self = .text
        } else if type.contains("BLOB") || type.isEmpty {
            self = .blob
        } else if type.contains("REAL") || type.contains("FLOA") || type.contains("DOUB") {
            self = .real
        } else {
            self = .numeric
        }
    }

    /// A type that has this affinity; what the column was declared with is not kept.
    var standardType: String {
        switch self {
        case .integer: "INTEGER"
        case .text: "TEXT"
        case .blob: "BLOB"
        case .real: "REAL"
        case .numeric: "NUMERIC"
        }
    }
}

// MARK: - What a column keeps

extension Affinity {
    /// Returns the value that a new row gets from a default that is NULL, a plain integer or a plain text; `nil` for
    /// any other default, which SQLite has to work out.
    func plainDefault(_ expression: String) -> Cell? {
        if expression.uppercased() == "NULL" { return .null }
        if let value = Int64(expression) {
            return switch self {
            case .integer, .numeric, .blob: .integer(value)
            case .real: .real(Double(value))
            case .text: .text(Array(String(value).utf8))
            }
        }
        let inner = expression.dropFirst().dropLast()
        guard expression.utf8.count >= 2, expression.hasPrefix("'"), expression.hasSuffix("'"),
            !inner.utf8.contains(where: { [0x27, 0x00].contains($0) })
        else { return nil }
        let text = Cell.text(Array(inner.utf8))
        return keeps(text) ? text : nil
    }

    /// Whether a column of this affinity holds a value as it is.
    func keeps(_ cell: Cell) -> Bool {
        switch (cell, self) {
        case (.null, _), (.blob, _), (_, .blob), (.integer, .integer), (.integer, .numeric), (.text, .text): true
        case (.integer, .real), (.integer, .text), (.real, .text): false
        case (.real(let bits), .real): !Double(bitPattern: bits).isNaN
        case (.real(let bits), _): Int64(exactly: Double(bitPattern: bits)) == nil
        case (.text(let bytes), _): !Self.isNumber(bytes)
        }
    }

    /// Whether SQLite reads a text as a number, with blanks around it ("Datatypes", 3).
    private static func isNumber(_ bytes: [UInt8]) -> Bool {
        let blanks: Set<UInt8> = [0x20, 0x09, 0x0a, 0x0b, 0x0c, 0x0d]
        let number = bytes.drop { blanks.contains($0) }.reversed().drop { blanks.contains($0) }.reversed()
        let isPlain = number.allSatisfy { (0x30...0x39).contains($0) || "+-.eE".utf8.contains($0) }
        return isPlain && Double(String(decoding: Array(number), as: UTF8.self)) != nil
    }

    /// Whether a column of this affinity holds such a value as it is ("Datatypes", 3): `1` in a REAL column becomes
    /// `1.0`, and text in a NUMERIC one may become a number.
    func keeps(_ scalar: JSONScalar) -> Bool {
        switch (scalar, self) {
        case (.null, _), (.blob, _), (_, .blob): true
        case (.integer, .integer), (.integer, .numeric): true
        case (.real, .real), (.text, .text): true
        case (.integer, .real), (.integer, .text), (.real, _), (.text, _): false
        }
    }
}
