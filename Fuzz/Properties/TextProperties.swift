import TidemarkCore
import TidemarkWire

extension FuzzTarget {
    static let texts = [
        FuzzTarget("patch") { input in
            let (first, second) = input.halves
            // As it comes from the wire, whatever text it meets.
            if let patches = read(second, { reader throws(JSONError) in try reader.readPatches() }) {
                for patch in patches {
                    guard let new = TextPatch.apply(patch, to: Array(first)) else { continue }
                    try hold(TextPatch.mark(of: new) == patch.hash, "a text was taken that is not the maker's")
                }
            }
            try apply(first, second)
            try difference(first, second)
        },
        FuzzTarget("path") { input in
            let (first, second) = input.halves
            guard let path = JSONPath(first.text) else { return }
            let document = Array(second)
            try hold(path.replacing(in: document) { _ in nil } == nil, "a document changes without a replacement")
            try hold(path.replacing(in: document) { $0 } == nil, "a document changes for the same values")
            var count = 0
            let replaced = path.replacing(in: document) { value in
                count += 1
                return .text(value.text + "\u{0}\"x")
            }
            guard let replaced else { return try hold(count == 0, "a place that was found is not replaced") }
            try hold(Tree.isSkipped(second), "places were found in what is no document")
            try hold(replaced.withUnsafeBytes(Tree.isSkipped), "what was a document is none any more")
            var again = 0
            _ = path.replacing(in: replaced) { _ in
                again += 1
                return nil
            }
            try hold(again == count, "\(count) places were found, and then \(again)")
        },
    ]
}

/// A patch with the right mark, so that its splices are all that can be wrong: never a trap, and text stays text.
private func apply(_ first: UnsafeRawBufferPointer, _ second: UnsafeRawBufferPointer) throws {
    let old = Array(first.text.utf8)
    var reader = ByteReader(Array(second))
    var splices: [FieldPatch.Splice] = []
    while let at = reader.integer(), let deleted = reader.integer(), let inserted = reader.run() {
        let text = Array(String(decoding: inserted, as: UTF8.self).utf8)
        splices.append(FieldPatch.Splice(at: at, deleted: deleted, inserted: text))
    }
    guard let target = reference(splices, old) else {
        let patch = FieldPatch(field: "f", splices: splices, hash: TextPatch.mark(of: old))
        return try hold(TextPatch.apply(patch, to: old).map { $0 == old } ?? true, "a patch that does not fit is taken")
    }
    let patch = FieldPatch(field: "f", splices: splices, hash: TextPatch.mark(of: target))
    guard let new = TextPatch.apply(patch, to: old) else { return }
    try hold(new == target, "a patch makes another text")
    try hold(new.withUnsafeBytes(isValidUTF8), "a patch makes what is no text")
}

/// The same by hand; `nil` where a splice is out of place.
private func reference(_ splices: [FieldPatch.Splice], _ old: [UInt8]) -> [UInt8]? {
    var (new, position) = ([UInt8](), Int64(0))
    for splice in splices {
        let end = splice.at.addingReportingOverflow(splice.deleted)
        guard splice.at >= position, splice.deleted >= 0, !end.overflow, end.partialValue <= old.count else {
            return nil
        }
        new += old[Int(position)..<Int(splice.at)] + splice.inserted
        position = end.partialValue
    }
    return new + old[Int(position)...]
}

/// The difference of two texts makes the one out of the other, whatever they share.
private func difference(_ first: UnsafeRawBufferPointer, _ second: UnsafeRawBufferPointer) throws {
    let (old, new) = (long(first.text), long(second.text))
    let spliced = Array(old.prefix(old.count / 3)) + new.prefix(40) + old.suffix(old.count / 3)
    for target in [new, Array(String(decoding: spliced, as: UTF8.self).utf8), old + new, new + old] {
        guard let patch = TextPatch.make(field: "f", from: old, to: target) else { continue }
        try hold(TextPatch.apply(patch, to: old) == target, "a difference does not make its target")
        for splice in patch.splices {
            try hold(splice.inserted.withUnsafeBytes(isValidUTF8), "a splice is no text")
        }
    }
}

/// Long enough that patches are made of it; every line is another one.
private func long(_ text: String) -> [UInt8] {
    guard !text.isEmpty else { return [] }
    var bytes: [UInt8] = []
    var line = 0
    while bytes.count < 3000 {
        bytes += Array("\(line * 7919) \(text)\n".utf8)
        line += 1
    }
    return bytes
}
