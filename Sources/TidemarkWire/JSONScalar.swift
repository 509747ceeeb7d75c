#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// A column's value as it stands in a document: text and bytes are still where they were, so that a reader can bind
/// them to a statement without making a `String` of each.
package enum JSONScalar {
    case null
    case integer(Int64)
    case real(Double)
    case text(JSONReader.Text)
    case blob([UInt8])
}

extension JSONReader {
    /// Reads a column's value (Protocol.md). Booleans, arrays and plain objects are none.
    package mutating func readScalar() throws(JSONError) -> JSONScalar {
        switch peek() {
        case UInt8(ascii: "\""): return .text(try readText())
        case UInt8(ascii: "n"):
            try readNull()
            return .null
        case UInt8(ascii: "{"): return try readTagged()
        default:
            switch try readNumber() {
            case .integer(let value): return .integer(value)
            case .real(let value): return .real(value)
            }
        }
    }

    package mutating func readValue() throws(JSONError) -> Value { value(try readScalar()) }

    /// A value that was read, by itself.
    package func value(_ scalar: JSONScalar) -> Value {
        switch scalar {
        case .null: .null
        case .integer(let value): .integer(value)
        case .real(let value): .real(value)
        case .text(let text): .text(string(text))
        case .blob(let bytes): .blob(bytes)
        }
    }

    private mutating func readTagged() throws(JSONError) -> JSONScalar {
        let start = index
        try enterObject()
        guard let name = try nextMember() else { throw JSONError(.wrongType, at: start) }
        let scalar: JSONScalar
        if matches(name, "$int") {
            let text = try readString()
            guard let value = Int64(text), String(value) == text else { throw JSONError(.invalidNumber, at: start) }
            scalar = .integer(value)
        } else if matches(name, "$real") {
            switch try readString() {
            case "inf": scalar = .real(.infinity)
            case "-inf": scalar = .real(-.infinity)
            default: throw JSONError(.invalidNumber, at: start)
            }
        } else if matches(name, "$blob") {
            guard let data = Data(base64Encoded: try readString()) else { throw JSONError(.invalidString, at: start) }
            scalar = .blob([UInt8](data))
        } else {
            throw JSONError(string(name).utf8.first == UInt8(ascii: "$") ? .reservedMember : .wrongType, at: start)
        }
        guard try nextMember() == nil else { throw JSONError(.reservedMember, at: start) }
        return scalar
    }
}
