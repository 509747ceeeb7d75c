import Testing
import TidemarkTesting
import TidemarkWire

@testable import TidemarkCore

@Suite("Patches of large texts: small for small edits, never wrong (A9)")
struct TextPatchTests {
    private static let words = [
        "tide", "mark", "Größe", "naïve", "e\u{301}", "日本語", "👩‍👩‍👧", "\u{0}", "\"quoted\"", "\n", "{\"a\":1}", "—",
        "the", "of", "and", "ship", "harbour", "𝕏", "\\", "\t",
    ]

    private static func text(_ count: Int, _ generator: inout SplitMix64) -> String {
        (0..<count).map { _ in words.randomElement(using: &generator) ?? "" }.joined(separator: " ")
    }

    private static func edited(_ text: String, edits: Int, _ generator: inout SplitMix64) -> String {
        var scalars = Array(text.unicodeScalars)
        for _ in 0..<edits {
            let place = Int.random(in: 0...scalars.count, using: &generator)
            let end = min(scalars.count, place + Int.random(in: 0...12, using: &generator))
            let insert = Bool.random(using: &generator) ? Self.text(2, &generator) : ""
            scalars.replaceSubrange(place..<end, with: insert.unicodeScalars)
        }
        var result = String.UnicodeScalarView()
        result.append(contentsOf: scalars)
        return String(result)
    }

    private static func size(_ patch: FieldPatch) -> Int {
        var writer = JSONWriter()
        writer.patches([patch])
        return writer.bytes.count
    }

    @Test(
        "a patch that went over the wire makes the new text of the old one, for random edits",
        arguments: 1...150 as ClosedRange<UInt64>)
    func randomEdits(seed: UInt64) throws {
        var generator = SplitMix64(seed: seed)
        let old = Self.text(Int.random(in: 300...3000, using: &generator), &generator)
        let new = Self.edited(old, edits: Int.random(in: 1...40, using: &generator), &generator)
        let (before, after) = (Array(old.utf8), Array(new.utf8))
        guard let patch = TextPatch.make(field: "body", from: before, to: after) else { return }
        #expect(Self.size(patch) < after.count)
        var writer = JSONWriter()
        writer.patches([patch])
        let again = try writer.bytes.withUnsafeBytes { buffer in
            var reader = JSONReader(buffer)
            return try reader.readPatches()
        }
        #expect(again == [patch])
        #expect(TextPatch.apply(patch, to: before) == after)
        for splice in patch.splices { #expect(String(validating: splice.inserted, as: UTF8.self) != nil) }
    }

    @Test("a small edit of a large document takes a hundredth of it", arguments: [10_000, 100_000, 1_000_000])
    func smallEdits(bytes: Int) throws {
        var generator = SplitMix64(seed: 7)
        let old = Self.text(bytes / 6, &generator)
        for edits in [1, 3] {
            let new = Self.edited(old, edits: edits, &generator)
            let patch = try #require(TextPatch.make(field: "body", from: Array(old.utf8), to: Array(new.utf8)))
            #expect(Self.size(patch) * 10 < new.utf8.count)
            #expect(Self.size(patch) < 500)
            #expect(patch.splices.count <= edits)
        }
    }

    @Test("scattered edits, moved and repeated parts keep an order of magnitude")
    func shapes() throws {
        var generator = SplitMix64(seed: 11)
        let lines = (0..<4000).map { "line \($0 % 50): \(Self.text(5, &generator))" }
        let old = Array(lines.joined(separator: "\n").utf8)
        func cost(_ lines: [String]) throws -> Int {
            let new = Array(lines.joined(separator: "\n").utf8)
            let patch = try #require(TextPatch.make(field: "body", from: old, to: new))
            #expect(TextPatch.apply(patch, to: old) == new)
            return Self.size(patch)
        }
        var scattered = lines
        for index in stride(from: 0, to: 4000, by: 80) { scattered[index] += "!" }
        #expect(try cost(scattered) * 10 < old.count)
        #expect(try cost(Array(lines.dropFirst(3))) < 200)
        #expect(try cost(Array(lines.prefix(2000) + ["}", "new"] + lines.dropFirst(2000))) < 200)
        let moved = Array(lines[0..<100] + lines[200..<300] + lines[100..<200] + lines[300...])
        #expect(try cost(moved) * 10 < old.count)
    }

    @Test("a JSON document with a changed number travels as that number")
    func json() throws {
        let rows = (0..<500).map { #"{"id":\#($0),"name":"row \#($0)","done":false,"tags":["a","b"]}"# }
        var changed = rows
        changed[123] = changed[123].replacing("false", with: "true")
        changed[124] = changed[124].replacing("124,", with: "125,")
        let old = Array("[\(rows.joined(separator: ","))]".utf8)
        let new = Array("[\(changed.joined(separator: ","))]".utf8)
        let patch = try #require(TextPatch.make(field: "body", from: old, to: new))
        #expect(TextPatch.apply(patch, to: old) == new)
        #expect(Self.size(patch) < 200)
    }

    @Test("texts that are short, equal in nothing or larger as a patch are sent whole")
    func whole() {
        var generator = SplitMix64(seed: 3)
        let long = Array(Self.text(1000, &generator).utf8)
        #expect(TextPatch.make(field: "f", from: Array("short".utf8), to: long) == nil)
        #expect(TextPatch.make(field: "f", from: long, to: Array("short".utf8)) == nil)
        #expect(TextPatch.make(field: "f", from: long, to: Array(repeating: 0x61, count: 5000)) == nil)
    }

    @Test("texts of one letter, of one line and of noise cost no more than their length", arguments: 0..<4)
    func hardTexts(kind: Int) throws {
        var generator = SplitMix64(seed: 5)
        let count = 300_000
        var old = [UInt8](repeating: 0x61, count: count)
        var new = old
        switch kind {
        case 0: new.removeLast(1000)
        case 1: new = Array(repeatElement(Array("ab".utf8), count: count / 2).joined())
        case 2:
            old = (0..<count).map { _ in UInt8.random(in: 0x20...0x7e, using: &generator) }
            new = (0..<count).map { _ in UInt8.random(in: 0x20...0x7e, using: &generator) }
        default:
            old = Array(repeatElement(Array("the same line\n".utf8), count: count / 14).joined())
            new = old
            for place in stride(from: 5, to: new.count, by: 3000) { new.insert(0x21, at: place) }
        }
        if let patch = TextPatch.make(field: "f", from: old, to: new) {
            #expect(TextPatch.apply(patch, to: old) == new)
        }
    }

    @Test(
        "a hostile patch is refused, and nothing else happens",
        arguments: [
            (-1, 0), (0, -1), (.max, 0), (0, .max), (.max, .max), (.min, .min), (5, 1 << 40), (3000, 1), (2999, 2),
            (1, 0), (0, 1),
        ] as [(Int64, Int64)])
    func hostile(at: Int64, deleted: Int64) {
        let text = Array(String(repeating: "é", count: 1500).utf8)
        let hash = TextPatch.mark(of: text)
        func apply(_ splices: [FieldPatch.Splice]) -> [UInt8]? {
            TextPatch.apply(FieldPatch(field: "f", splices: splices, hash: hash), to: text)
        }
        let splice = FieldPatch.Splice(at: at, deleted: deleted, inserted: [])
        #expect(apply([splice]) == nil)
        #expect(apply([FieldPatch.Splice(at: 4, deleted: 2, inserted: []), splice]) == nil)
        #expect(apply([FieldPatch.Splice(at: 2, deleted: 0, inserted: Array("x".utf8))]) == nil)
        #expect(apply([]) == text)
    }
}
