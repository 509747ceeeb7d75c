/// The words of an SQL text, as far as is needed to see which tables it writes to: names with their quotes taken off,
/// keywords, and whatever else stands between.
struct SQLWords {
    private struct Word {
        var text: String
        /// Whether it stood in quotes, so that it is a name and no keyword.
        var isQuoted: Bool

        func isKeyword(_ keyword: String) -> Bool { !isQuoted && text.isSameName(as: keyword) }
    }

    private var words: [Word] = []

    init(_ sql: String) {
        let bytes = Array(sql.utf8)
        var index = 0
        while index < bytes.count {
            switch bytes[index] {
            case UInt8(ascii: "-") where bytes[index...].starts(with: "--".utf8):
                index = bytes[index...].firstIndex(of: UInt8(ascii: "\n")) ?? bytes.count
            case UInt8(ascii: "/") where bytes[index...].starts(with: "/*".utf8):
                index += 2
                while index < bytes.count, !bytes[index...].starts(with: "*/".utf8) { index += 1 }
                index += 2
            case UInt8(ascii: "["): index = quoted(bytes, from: index, to: UInt8(ascii: "]"), isDoubled: false)
            // SQLite takes a text for a name where only a name can stand.
            case UInt8(ascii: "\""), UInt8(ascii: "`"), UInt8(ascii: "'"):
                index = quoted(bytes, from: index, to: bytes[index], isDoubled: true)
            case let byte where Self.isWord(byte):
                let end = bytes[index...].firstIndex { !Self.isWord($0) } ?? bytes.count
                words.append(Word(text: String(decoding: bytes[index..<end], as: UTF8.self), isQuoted: false))
                index = end
            case UInt8(ascii: " "), UInt8(ascii: "\n"), UInt8(ascii: "\t"), UInt8(ascii: "\r"), 0x0c: index += 1
            case let byte:
                words.append(Word(text: String(UnicodeScalar(byte)), isQuoted: false))
                index += 1
            }
        }
    }

    /// Takes in a name in quotes, and returns the place behind it.
    private mutating func quoted(_ bytes: [UInt8], from start: Int, to end: UInt8, isDoubled: Bool) -> Int {
        var name: [UInt8] = []
        var index = start + 1
        while index < bytes.count {
            if bytes[index] == end {
                guard isDoubled, index + 1 < bytes.count, bytes[index + 1] == end else { break }
                index += 1
            }
            name.append(bytes[index])
            index += 1
        }
        words.append(Word(text: String(decoding: name, as: UTF8.self), isQuoted: true))
        return index + 1
    }

    private static func isWord(_ byte: UInt8) -> Bool {
        byte >= 0x80 || (0x30...0x39).contains(byte) || (0x41...0x5a).contains(byte) || (0x61...0x7a).contains(byte)
            || byte == UInt8(ascii: "_") || byte == UInt8(ascii: "$")
    }

    /// The names that stand where a statement names the table it writes to.
    var writtenTables: Set<SQLName> {
        var tables: Set<SQLName> = []
        for (index, word) in words.enumerated() {
            var next = index + 1
            if word.isKeyword("update") {
                guard next < words.count, !words[next].isKeyword("of"), !words[next].isKeyword("on") else { continue }
                // UPDATE OR IGNORE t
                if words[next].isKeyword("or") { next += 2 }
            } else if !word.isKeyword("into"),
                !(word.isKeyword("from") && index > 0 && words[index - 1].isKeyword("delete"))
            {
                continue
            }
            if next < words.count { tables.insert(SQLName(words[next].text)) }
        }
        return tables
    }
}
