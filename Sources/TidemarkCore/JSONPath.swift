package import TidemarkWire

/// A path into a JSON document, as far as references need it: `$.order`, `$.items[*].order_id`, `$[0]`.
package struct JSONPath: Hashable, Sendable {
    private enum Step: Hashable, Sendable {
        case member([UInt8])
        case element(Int)
        case everyElement
    }

    private var steps: [Step] = []

    /// One document has so many places that a path finds, at most; more stay as they are.
    private static let foundLimit = 100_000

    /// `nil` where the text is no such path.
    package init?(_ text: String) {
        var rest = Array(text.utf8)[...]
        guard rest.popFirst() == UInt8(ascii: "$") else { return nil }
        while let first = rest.popFirst() {
            switch first {
            case UInt8(ascii: "."):
                let name = rest.prefix { $0 != UInt8(ascii: ".") && $0 != UInt8(ascii: "[") }
                guard !name.isEmpty else { return nil }
                steps.append(.member(Array(name)))
                rest = rest.dropFirst(name.count)
            case UInt8(ascii: "["):
                guard let end = rest.firstIndex(of: UInt8(ascii: "]")) else { return nil }
                let inner = String(decoding: rest[..<end], as: UTF8.self)
                if inner == "*" {
                    steps.append(.everyElement)
                } else if let index = Int(inner), index >= 0, String(index) == inner {
                    steps.append(.element(index))
                } else {
                    return nil
                }
                rest = rest[(end + 1)...]
            default: return nil
            }
        }
    }

    /// The document with other ids in the places that the path finds; `nil` where none of them changes, or where the
    /// text is no JSON document. Everything else stays byte by byte.
    package func replacing(in document: [UInt8], _ replacement: (IDValue) throws -> IDValue?) rethrows -> [UInt8]? {
        let found = find(in: document)
        var result: [UInt8] = []
        var copied = 0
        for place in found {
            guard let new = try replacement(place.value), new != place.value else { continue }
            result += document[copied..<place.range.lowerBound]
            var writer = JSONWriter()
            switch new {
            case .text(let text): writer.string(text)
            case .integer(let integer): writer.integer(integer)
            }
            result += writer.bytes
            copied = place.range.upperBound
        }
        return copied == 0 ? nil : result + document[copied...]
    }

    // MARK: Finding

    private struct Found {
        var range: Range<Int>
        var value: IDValue
    }

    private func find(in document: [UInt8]) -> [Found] {
        document.withUnsafeBytes { buffer in
            var reader = JSONReader(buffer)
            var found: [Found] = []
            do throws(JSONError) {
                try find(steps[...], &reader, &found)
                try reader.finish()
            } catch { return [] }
            return found
        }
    }

    private func find(
        _ steps: ArraySlice<Step>, _ reader: inout JSONReader, _ found: inout [Found]
    ) throws(JSONError) {
        let first = reader.peek()
        switch steps.first {
        case nil: try take(&reader, &found)
        case .member(let wanted) where first == UInt8(ascii: "{"):
            try reader.enterObject()
            while let name = try reader.nextMember() {
                if reader.string(name).utf8.elementsEqual(wanted) {
                    try find(steps.dropFirst(), &reader, &found)
                } else {
                    try reader.skip()
                }
            }
        case .element(let wanted) where first == UInt8(ascii: "["):
            var index = 0
            try reader.enterArray()
            while try reader.nextElement() {
                if index == wanted { try find(steps.dropFirst(), &reader, &found) } else { try reader.skip() }
                index += 1
            }
        case .everyElement where first == UInt8(ascii: "["):
            try reader.enterArray()
            while try reader.nextElement() { try find(steps.dropFirst(), &reader, &found) }
        case .member, .element, .everyElement: try reader.skip()
        }
    }

    private func take(_ reader: inout JSONReader, _ found: inout [Found]) throws(JSONError) {
        let first = reader.peek()
        let isText = first == UInt8(ascii: "\"")
        let range = try reader.skip()
        guard found.count < Self.foundLimit else { return }
        let spelled = String(decoding: reader.bytes[range], as: UTF8.self)
        if isText {
            var again = JSONReader(UnsafeRawBufferPointer(rebasing: reader.bytes[range]))
            found.append(Found(range: range, value: .text(try again.readString())))
        } else if let integer = TemporaryShape.integer(spelled) {
            found.append(Found(range: range, value: .integer(integer)))
        }
    }
}

/// An id as a field or a document holds it.
package enum IDValue: Hashable, Sendable {
    case text(String)
    case integer(Int64)

    /// `nil`: no id can be such a value.
    package init?(_ value: Value) {
        switch value {
        case .text(let text): self = .text(text)
        case .integer(let integer): self = .integer(integer)
        case .null, .real, .blob: return nil
        }
    }

    /// The id's spelling on the wire.
    package var text: String {
        switch self {
        case .text(let text): text
        case .integer(let integer): String(integer)
        }
    }

    package var value: Value {
        switch self {
        case .text(let text): .text(text)
        case .integer(let integer): .integer(integer)
        }
    }

    /// Another id in the same kind of value: a number stays a number where the id spells one.
    package func replaced(by id: RecordID) -> IDValue {
        switch self {
        case .text: .text(id.text)
        case .integer: TemporaryShape.integer(id.text).map(IDValue.integer) ?? .text(id.text)
        }
    }
}
