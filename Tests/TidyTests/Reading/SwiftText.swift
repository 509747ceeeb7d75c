/// A Swift file as the rules read it: as written, as code alone, and as comments alone, line by line.
struct SwiftText {
    struct Token: Equatable {
        let text: String
        let line: Int
    }

    let lines: [String]
    let code: [String]
    let comments: [String]

    init(_ text: String) {
        let scanner = SwiftScanner(text)
        lines = textLines(of: Array(text.utf8))
        code = textLines(of: scanner.code)
        comments = textLines(of: scanner.comments)
    }

    /// The code as names and single signs, with the line (from 1) that each stands on.
    var tokens: [Token] {
        code.enumerated().flatMap { index, line in
            Self.tokens(of: line, number: index + 1)
        }
    }

    private static func tokens(of line: String, number: Int) -> [Token] {
        var tokens: [Token] = []
        var rest = Array(line.utf8)[...]
        while let first = rest.first {
            let length = first.isNameByte ? rest.prefix(while: \.isNameByte).count : 1
            let text = String(decoding: rest.prefix(length), as: UTF8.self)
            if first != .space, first != UInt8(ascii: "\t") {
                tokens.append(Token(text: text, line: number))
            }
            rest = rest.dropFirst(length)
        }
        return tokens
    }
}

/// The lines of a text; a line break at its end opens no further line.
func textLines(of bytes: [UInt8]) -> [String] {
    var lines = bytes.split(separator: .newline, omittingEmptySubsequences: false)
    if lines.last?.isEmpty == true { lines.removeLast() }
    return lines.map { String(decoding: $0, as: UTF8.self) }
}

extension String {
    func trimmedOfSpace() -> Substring {
        drop { $0.isWhitespace }
    }
}
