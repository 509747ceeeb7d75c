import Foundation
import TidemarkWire

extension FuzzTarget {
    static let json = [
        FuzzTarget("json") { input in
            let ours = Tree.read(input)
            try compareWithFoundation(input, ours)
            guard case .success(let tree) = ours else {
                return try hold(!Tree.isSkipped(input), "what is refused is passed over")
            }
            try hold(Tree.isSkipped(input), "what is read is not passed over")
            var writer = JSONWriter()
            tree.write(to: &writer)
            let again = try readBack(writer.bytes) { reader throws(JSONError) in try Tree(from: &reader) }
            try hold(again == tree, "a document is read back otherwise than it was written")
        },
        FuzzTarget("value") { input in
            guard let value = read(input, { reader throws(JSONError) in try reader.readValue() }) else { return }
            var writer = JSONWriter()
            writer.value(value)
            let again = try readBack(writer.bytes) { reader throws(JSONError) in try reader.readValue() }
            try hold(again == value, "\(value) comes back as \(again)")
            var second = JSONWriter()
            second.value(again)
            try hold(second.bytes == writer.bytes, "\(value) has two spellings")
        },
        FuzzTarget("object") { input in
            guard let object = read(input, { reader throws(JSONError) in try DataObject(from: &reader) }) else {
                return
            }
            let stored = try DataObject(stored: object.bytes)
            try hold(stored.fields == object.fields, "the table of fields is another one")
            let again = try readBack(object.bytes) { reader throws(JSONError) in try DataObject(from: &reader) }
            try hold(again == object, "what is canonical is respelled")
            let lookup = object.lookup
            for field in object.fields {
                try hold(lookup[object.name(field)] == object.value(field), "a field is not found by its name")
                try hold(object.decoded(field) != nil, "a value is not read back")
                let name = DataObject.canonical(object.nameString(field))
                try hold(name.elementsEqual(object.name(field)), "a name has two spellings")
            }
            try hold(object.overlaid(with: object) == object, "a record over itself is another one")
            try hold(object.sorted().sorted() == object.sorted(), "what is sorted is sorted again")
            try hold(object.sorted().fields.count == object.fields.count, "sorting loses fields")
        },
    ]
}

/// Foundation reads the same document, or refuses it too.
private func compareWithFoundation(_ input: UnsafeRawBufferPointer, _ ours: Result<Tree, JSONError>) throws {
    // It takes UTF-16 and UTF-32, which it knows by their zeros and marks.
    guard !input.contains(0), ![0xef, 0xfe, 0xff].contains(input.first) else { return }
    let theirs = try? JSONSerialization.jsonObject(with: Data(input), options: .fragmentsAllowed)
    switch (ours, theirs) {
    case (.success(let tree), let theirs?): try hold(tree.matches(theirs), "Foundation reads another document")
    case (.success, nil): throw BrokenProperty(description: "Foundation refuses what was read")
    case (.failure(let error), _?):
        // It goes deeper, rounds integers that do not fit, and lets some lists end with a comma.
        let isStricter = [.tooDeep, .invalidNumber].contains(error.reason) || endsWithComma(input)
        try hold(isStricter, "Foundation reads what is refused: \(error.reason.rawValue)")
    case (.failure, nil): break
    }
}

private func endsWithComma(_ input: UnsafeRawBufferPointer) -> Bool {
    let dense = input.filter { $0 > 0x20 }
    return zip(dense, dense.dropFirst()).contains { $0 == UInt8(ascii: ",") && "]}".utf8.contains($1) }
}
