/// Splits a Swift file into code and comments, byte by byte and in place: what is not code is a space in `code`, what
/// is not a comment is a space in `comments`, and both keep the file's line breaks.
///
/// Text in string and regular-expression literals belongs to neither; code in `\( )` is code; a name in backticks
/// becomes underscores, because it may hold anything.
struct SwiftScanner {
    private(set) var code: [UInt8]
    private(set) var comments: [UInt8]
    private let bytes: [UInt8]
    private var position = 0

    init(_ text: String) {
        bytes = Array(text.utf8)
        let blank = bytes.map { $0 == .newline ? $0 : .space }
        code = blank
        comments = blank
        scanCode(insideInterpolation: false)
    }

    private mutating func scanCode(insideInterpolation: Bool) {
        var depth = 0
        while position < bytes.count {
            if skipComment() || skipLiteral() || skipBacktickedName() { continue }
            let byte = bytes[position]
            if insideInterpolation, byte == .closeParenthesis {
                if depth == 0 { return }
                depth -= 1
            } else if byte == .openParenthesis {
                depth += 1
            }
            code[position] = byte
            position += 1
        }
    }

    // MARK: Comments

    private mutating func skipComment() -> Bool {
        if isNext("//") {
            while position < bytes.count, bytes[position] != .newline { keepComment() }
            return true
        }
        guard isNext("/*") else { return false }
        var depth = 0
        repeat {
            if isNext("/*") {
                depth += 1
                keepComment()
            } else if isNext("*/") {
                depth -= 1
                keepComment()
            }
            keepComment()
        } while depth > 0 && position < bytes.count
        return true
    }

    private mutating func keepComment() {
        guard position < bytes.count else { return }
        comments[position] = bytes[position]
        position += 1
    }

    // MARK: Literals

    private mutating func skipLiteral() -> Bool {
        var hashes = 0
        while byte(at: position + hashes) == .hash { hashes += 1 }
        switch byte(at: position + hashes) {
        case .quote:
            position += hashes
            skipString(hashes: hashes)
            return true
        case .slash where hashes > 0:
            position += hashes + 1
            skipExtendedRegex(hashes: hashes)
            return true
        case .slash:
            return skipBareRegex()
        default:
            return false
        }
    }

    private mutating func skipString(hashes: Int) {
        // A literal of several lines has nothing behind its opening quotes; `#""""#` is one line that holds two quotes.
        let quotes = isNext("\"\"\"\n") ? 3 : 1
        let end = String(repeating: "\"", count: quotes) + String(repeating: "#", count: hashes)
        let escape = "\\" + String(repeating: "#", count: hashes)
        position += quotes
        while position < bytes.count {
            if isNext(end) {
                position += end.utf8.count
                return
            } else if isNext(escape + "(") {
                position += escape.utf8.count + 1
                scanCode(insideInterpolation: true)
                position += 1
            } else if isNext(escape) {
                position += escape.utf8.count + 1
            } else if quotes == 1, bytes[position] == .newline {
                return  // not valid Swift; the next line starts afresh
            } else {
                position += 1
            }
        }
    }

    private mutating func skipExtendedRegex(hashes: Int) {
        let end = "/" + String(repeating: "#", count: hashes)
        while position < bytes.count, !isNext(end) { position += 1 }
        position += end.utf8.count
    }

    /// `/…/` is a literal where no left operand stands before it and it ends on its line.
    private mutating func skipBareRegex() -> Bool {
        var before = position - 1
        while before >= 0, bytes[before] == .space { before -= 1 }
        guard before >= 0, "(,=:[{!&|?;".utf8.contains(bytes[before]) else { return false }
        guard let first = byte(at: position + 1), !" \t\n),".utf8.contains(first) else { return false }
        var end = position + 1
        while let next = byte(at: end), next != .newline {
            if next == .slash {
                position = end + 1
                return true
            }
            end += next == .backslash ? 2 : 1
        }
        return false
    }

    private mutating func skipBacktickedName() -> Bool {
        guard bytes[position] == .backtick else { return false }
        var end = position + 1
        while let next = byte(at: end), next != .backtick, next != .newline { end += 1 }
        for place in position...min(end, bytes.count - 1) where bytes[place] != .newline { code[place] = .underscore }
        position = end + 1
        return true
    }

    // MARK: Looking ahead

    private func byte(at index: Int) -> UInt8? {
        index < bytes.count ? bytes[index] : nil
    }

    private func isNext(_ text: String) -> Bool {
        bytes[position...].starts(with: text.utf8)
    }
}

extension UInt8 {
    static let newline = UInt8(ascii: "\n")
    static let space = UInt8(ascii: " ")
    static let hash = UInt8(ascii: "#")
    static let quote = UInt8(ascii: "\"")
    static let slash = UInt8(ascii: "/")
    static let backslash = UInt8(ascii: "\\")
    static let backtick = UInt8(ascii: "`")
    static let underscore = UInt8(ascii: "_")
    static let openParenthesis = UInt8(ascii: "(")
    static let closeParenthesis = UInt8(ascii: ")")

    /// Whether the byte can stand in a Swift name; every byte beyond ASCII can.
    var isNameByte: Bool {
        switch self {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"): true
        case UInt8(ascii: "0")...UInt8(ascii: "9"), .underscore: true
        default: self >= 0x80
        }
    }
}
