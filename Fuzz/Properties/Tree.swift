import Foundation
package import TidemarkWire

/// A whole document, as the reader finds it step by step.
package indirect enum Tree: Hashable, Sendable {
    case object([Member])
    case array([Tree])
    case text([UInt8])
    case integer(Int64)
    /// The bits, since a sign of zero counts.
    case real(UInt64)
    case bool(Bool)
    case null

    package struct Member: Hashable, Sendable {
        package var name: [UInt8]
        package var value: Tree
    }
}

extension Tree {
    /// The document, or why it is none.
    package static func read(_ input: UnsafeRawBufferPointer) -> Result<Tree, JSONError> {
        var reader = JSONReader(input)
        return Result { () throws(JSONError) in
            let tree = try Tree(from: &reader)
            try reader.finish()
            return tree
        }
    }

    /// Passing over a document takes and refuses what reading it does.
    package static func isSkipped(_ input: UnsafeRawBufferPointer) -> Bool {
        TidemarkFuzzing.read(input, { reader throws(JSONError) in try reader.skip() }) != nil
    }

    init(from reader: inout JSONReader) throws(JSONError) {
        switch reader.peek() {
        case UInt8(ascii: "{"):
            var members: [Member] = []
            try reader.enterObject()
            while let name = try reader.nextMember() {
                let bytes = reader.unescaped(name)
                members.append(Member(name: bytes, value: try Tree(from: &reader)))
            }
            self = .object(members)
        case UInt8(ascii: "["):
            var elements: [Tree] = []
            try reader.enterArray()
            while try reader.nextElement() { elements.append(try Tree(from: &reader)) }
            self = .array(elements)
        case UInt8(ascii: "\""): self = .text(reader.unescaped(try reader.readText()))
        case UInt8(ascii: "t"), UInt8(ascii: "f"): self = .bool(try reader.readBool())
        case UInt8(ascii: "n"):
            try reader.readNull()
            self = .null
        default:
            switch try reader.readNumber() {
            case .integer(let value): self = .integer(value)
            case .real(let value): self = .real(value.bitPattern)
            }
        }
    }

    package func write(to writer: inout JSONWriter) {
        switch self {
        case .object(let members):
            writer.raw("{")
            for (index, member) in members.enumerated() {
                if index > 0 { writer.raw(",") }
                member.name.withUnsafeBytes { writer.string(utf8: $0) }
                writer.raw(":")
                member.value.write(to: &writer)
            }
            writer.raw("}")
        case .array(let elements):
            writer.raw("[")
            for (index, element) in elements.enumerated() {
                if index > 0 { writer.raw(",") }
                element.write(to: &writer)
            }
            writer.raw("]")
        case .text(let bytes): bytes.withUnsafeBytes { writer.string(utf8: $0) }
        case .integer(let value): writer.integer(value)
        case .real(let bits): writer.value(real: Double(bitPattern: bits))
        case .bool(let value): writer.bool(value)
        case .null: writer.raw("null")
        }
    }

    /// Whether Foundation's document is this one. Of names that it takes for the same it keeps one.
    func matches(_ other: Any) -> Bool {
        switch self {
        case .object(let members):
            guard let object = other as? [String: Any] else { return false }
            guard object.count == members.count else { return object.count < members.count }
            return members.allSatisfy { member in
                object[String(decoding: member.name, as: UTF8.self)].map(member.value.matches) ?? false
            }
        case .array(let elements):
            guard let array = other as? [Any], array.count == elements.count else { return false }
            return zip(elements, array).allSatisfy { $0.matches($1) }
        case .text(let bytes): return (other as? String)?.utf8.elementsEqual(bytes) ?? false
        case .integer(let value): return (other as? NSNumber)?.int64Value == value
        case .real(let bits):
            // Some of its versions go by decimals, which round otherwise in the last digits.
            let (ours, theirs) = (Double(bitPattern: bits), (other as? NSNumber)?.doubleValue ?? .nan)
            return abs(ours - theirs) <= abs(ours) * 1e-12
        case .bool(let value): return (other as? NSNumber)?.boolValue == value
        case .null: return other is NSNull
        }
    }
}
