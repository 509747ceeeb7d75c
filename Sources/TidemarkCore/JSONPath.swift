package import TidemarkWire

/// A path into a JSON document, as far as references need it: `$.order`, `$.items[*].order_id`, `$[0]`.
package struct JSONPath: Hashable, Sendable {
    fileprivate enum Step: Hashable, Sendable {
        case member([UInt8])
        case element(Int)
        case everyElement
    }

    fileprivate var steps: [Step] = []

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
        try JSONPaths([self]).replacing(in: document) { _, value in try replacement(value) }
    }
}

/// Paths into one document, which are looked for in one pass: what that costs follows the document's size.
package struct JSONPaths: Hashable, Sendable {
    private struct Seeker {
        /// The path's place in the list.
        var path: Int
        var steps: ArraySlice<JSONPath.Step>
    }

    private let paths: [JSONPath]

    package init(_ paths: [JSONPath]) { self.paths = paths }

    /// The document with other ids in the places that the paths find; `nil` where none of them changes, or where the
    /// text is no JSON document. A place that two paths find is the first one's. Everything else stays byte by byte.
    ///
    /// - Parameter replacement: what takes the place of a value that the path of this number finds.
    package func replacing(
        in document: [UInt8], _ replacement: (_ path: Int, IDValue) throws -> IDValue?
    ) rethrows -> [UInt8]? {
        var result: [UInt8] = []
        var copied = 0
        try document.withUnsafeBytes { buffer in
            guard JSONReader(buffer).isWhole else { return }
            var reader = JSONReader(buffer)
            let seekers = paths.indices.map { Seeker(path: $0, steps: paths[$0].steps[...]) }
            try find(seekers, &reader) { path, value, range in
                guard let new = try replacement(path, value), new != value else { return }
                result += document[copied..<range.lowerBound]
                var writer = JSONWriter()
                switch new {
                case .text(let text): writer.string(text)
                case .integer(let integer): writer.integer(integer)
                }
                result += writer.bytes
                copied = range.upperBound
            }
        }
        return copied == 0 ? nil : result + document[copied...]
    }

    /// Visits what the seekers find. The document is known to be whole, so that nothing is left unfound.
    private func find(
        _ seekers: [Seeker], _ reader: inout JSONReader, _ visit: (Int, IDValue, Range<Int>) throws -> Void
    ) rethrows {
        switch reader.peek() {
        case UInt8(ascii: "{"):
            guard (try? reader.enterObject()) != nil else { return }
            while let name = (try? reader.nextMember()) ?? nil {
                let label = name.hasEscapes ? Array(reader.string(name).utf8) : nil
                try descend(seekers, &reader, visit) { step, bytes in
                    guard case .member(let wanted) = step else { return false }
                    return label.map { $0 == wanted } ?? bytes[name.range].elementsEqual(wanted)
                }
            }
        case UInt8(ascii: "["):
            guard (try? reader.enterArray()) != nil else { return }
            var index = 0
            while (try? reader.nextElement()) ?? false {
                try descend(seekers, &reader, visit) { step, _ in
                    switch step {
                    case .everyElement: true
                    case .element(let wanted): wanted == index
                    case .member: false
                    }
                }
                index += 1
            }
        default:
            let isText = reader.peek() == UInt8(ascii: "\"")
            guard let range = try? reader.skip(), let finder = seekers.first(where: { $0.steps.isEmpty }) else {
                return
            }
            if isText {
                var again = JSONReader(UnsafeRawBufferPointer(rebasing: reader.bytes[range]))
                guard let text = try? again.readString() else { return }
                try visit(finder.path, .text(text), range)
            } else if let integer = TemporaryShape.integer(String(decoding: reader.bytes[range], as: UTF8.self)) {
                try visit(finder.path, .integer(integer), range)
            }
        }
    }

    /// Goes on with those of the seekers whose next step leads here.
    private func descend(
        _ seekers: [Seeker], _ reader: inout JSONReader, _ visit: (Int, IDValue, Range<Int>) throws -> Void,
        leads: (JSONPath.Step, UnsafeRawBufferPointer) -> Bool
    ) rethrows {
        let bytes = reader.bytes
        let next = seekers.compactMap { seeker -> Seeker? in
            guard let step = seeker.steps.first, leads(step, bytes) else { return nil }
            return Seeker(path: seeker.path, steps: seeker.steps.dropFirst())
        }
        if next.isEmpty { _ = try? reader.skip() } else { try find(next, &reader, visit) }
    }
}

extension JSONReader {
    /// Whether the bytes are one JSON document from beginning to end.
    fileprivate var isWhole: Bool {
        var reader = self
        return (try? reader.skip()) != nil && (try? reader.finish()) != nil
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
