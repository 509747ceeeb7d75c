import Testing

@testable import TidemarkWire

@Suite("Bytes that are compared and found")
struct SameBytesTests {
    private func isSame(_ left: [UInt8], _ right: [UInt8]) -> Bool {
        left.withUnsafeBytes { left in right.withUnsafeBytes { left.hasSameBytes(as: $0) } }
    }

    @Test("One other byte is noticed wherever it stands, in runs of every length up to 40", arguments: 0...40)
    func everyPlace(count: Int) {
        let bytes = (0..<count).map { UInt8($0) }
        #expect(isSame(bytes, Array(bytes)))
        #expect(!isSame(bytes, bytes + [0]) && !isSame(bytes + [0], bytes))
        for place in bytes.indices {
            var other = bytes
            other[place] ^= 0x80
            #expect(!isSame(bytes, other))
        }
    }

    @Test("Two spellings of one character are two texts, although Swift calls them equal")
    func spellings() {
        #expect("\u{212b}" == "\u{c5}" && !"\u{212b}".hasSameBytes(as: "\u{c5}"))
        // As many bytes each, and marks in another order.
        let marks = ("a\u{323}\u{302}", "a\u{302}\u{323}")
        #expect(marks.0 == marks.1 && !marks.0.hasSameBytes(as: marks.1))
        #expect("".hasSameBytes(as: "") && "née".hasSameBytes(as: String(Array("née"))))
        let ids = (RecordID(marks.0), RecordID(marks.1))
        #expect(ids.0 != ids.1 && Value.text(marks.0) != Value.text(marks.1))
    }

    @Test("A pattern is found where it stands first, at the edges and behind its own beginning")
    func pattern() {
        func place(_ pattern: String, in text: String) -> Int? {
            Array(text.utf8).withUnsafeBytes { text in
                Array(pattern.utf8).withUnsafeBytes { text.firstIndex(of: $0) }
            }
        }
        #expect(place(#""id":""#, in: #""type":"upsert","entity":"note","id":"a","id":"b""#) == 32)
        #expect(place("abc", in: "ababc") == 2 && place("abc", in: "abc") == 0 && place("abc", in: "xxabc") == 2)
        #expect(place("abc", in: "ab") == nil && place("abc", in: "") == nil && place("abc", in: "abd abx") == nil)
    }
}
