/// One column's value, with the five types of SQLite. The same value comes back from the wire, type and all.
public enum Value: Hashable, Sendable {
    /// No value.
    case null
    /// A 64-bit integer.
    case integer(Int64)
    /// A double; never NaN, which SQLite stores as NULL.
    case real(Double)
    /// Text in UTF-8.
    case text(String)
    /// Bytes.
    case blob([UInt8])
}

extension Value {
    /// Compares bits and bytes: `1` is not `1.0`, `-0.0` is not `0.0`, and `"é"` in two spellings is two texts.
    public static func == (lhs: Value, rhs: Value) -> Bool {
        switch (lhs, rhs) {
        case (.null, .null): true
        case (.integer(let left), .integer(let right)): left == right
        case (.real(let left), .real(let right)): left.bitPattern == right.bitPattern
        case (.text(let left), .text(let right)): left.hasSameBytes(as: right)
        case (.blob(let left), .blob(let right)): left == right
        case (.null, _), (.integer, _), (.real, _), (.text, _), (.blob, _): false
        }
    }

    /// Hashes bits and bytes, in step with `==`.
    public func hash(into hasher: inout Hasher) {
        switch self {
        case .null: hasher.combine(0)
        case .integer(let value): hasher.combine(value)
        case .real(let value): hasher.combine(value.bitPattern)
        case .text(var value):
            value.withUTF8 { hasher.combine(bytes: .init($0)) }
            hasher.combine(UInt8.max)  // because several in a row must not run together; no UTF-8 has it
        case .blob(let value): hasher.combine(value)
        }
    }
}

extension Value: CustomStringConvertible {
    /// The value as a person reads it, on one line and not too long: `NULL`, a number, up to 60 characters of a text in
    /// quotes, or how many bytes a BLOB has.
    public var description: String {
        switch self {
        case .null: "NULL"
        case .integer(let value): "\(value)"
        case .real(let value): "\(value)"
        case .text(let value): "'\(value.prefix(60).replacing("\n", with: " "))'"
        case .blob(let value): "\(value.count) bytes"
        }
    }
}

extension Value: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral, ExpressibleByFloatLiteral,
    ExpressibleByNilLiteral
{
    /// Makes a text.
    public init(stringLiteral value: String) { self = .text(value) }
    /// Makes an integer.
    public init(integerLiteral value: Int64) { self = .integer(value) }
    /// Makes a real.
    public init(floatLiteral value: Double) { self = .real(value) }
    /// Makes NULL.
    public init(nilLiteral: ()) { self = .null }
}
