/// The parts of a unique index that no pragma tells: its expressions, and the condition of a partial one, read off the
/// statement that made it.
///
/// SQLite lets both name columns without their table only, and call nothing that depends on more than the row. So they
/// can be spliced into a query on any table that has columns of those names.
struct IndexText: Hashable, Sendable {
    /// The indexed terms in their order, without ASC and DESC.
    private(set) var terms: [String] = []
    /// The condition that rows have to fulfil to be in the index; `nil` where all are.
    private(set) var condition: String?

    /// - Parameter statement: `CREATE UNIQUE INDEX … ON table(term, …) [WHERE condition]`, as `sqlite_master` has it.
    init(_ statement: String) {
        var scanner = Scanner(rest: Array(statement.utf8)[...])
        var (depth, term) = (0, "")
        while let token = scanner.next() {
            switch token {
            case "(" where depth == 0: depth = 1
            case ")" where depth == 1:
                terms.append(Self.withoutOrder(term))
                condition = Self.condition(scanner.all())
                return
            case "," where depth == 1:
                terms.append(Self.withoutOrder(term))
                term = ""
            default:
                if token == "(" { depth += 1 }
                if token == ")" { depth -= 1 }
                if depth > 0 { term += token }
            }
        }
    }

    private static func withoutOrder(_ term: String) -> String {
        let term = term.trimmed
        for order in [" ASC", " DESC", ")ASC", ")DESC"] where term.uppercased().hasSuffix(order) {
            return String(term.dropLast(order.count - 1)).trimmed
        }
        return term
    }

    private static func condition(_ text: String) -> String? {
        let text = text.trimmed
        return text.uppercased().hasPrefix("WHERE") ? String(text.dropFirst(5)).trimmed : nil
    }

    /// Splits SQL into texts and names in quotes, and single characters. A comment is one space.
    private struct Scanner {
        var rest: ArraySlice<UInt8>

        mutating func next() -> String? {
            guard let first = rest.first else { return nil }
            if rest.starts(with: "--".utf8) {
                _ = popFirst(rest.firstIndex(of: UInt8(ascii: "\n")).map { $0 - rest.startIndex + 1 } ?? rest.count)
                return " "
            }
            if rest.starts(with: "/*".utf8) {
                var length = 2
                while length < rest.count, !rest.dropFirst(length).starts(with: "*/".utf8) { length += 1 }
                _ = popFirst(length + 2)
                return " "
            }
            switch first {
            case UInt8(ascii: "'"), UInt8(ascii: "\""), UInt8(ascii: "`"): return quoted(until: first)
            case UInt8(ascii: "["): return quoted(until: UInt8(ascii: "]"))
            case 0x09, 0x0a, 0x0c, 0x0d:
                _ = popFirst(1)
                return " "
            default: return popFirst(first < 0x80 ? 1 : rest.prefix { $0 >= 0x80 }.count)
            }
        }

        /// A doubled quote ends one text and begins the next, which comes to the same.
        private mutating func quoted(until end: UInt8) -> String {
            popFirst((rest.dropFirst().firstIndex(of: end).map { $0 - rest.startIndex } ?? rest.count - 1) + 1)
        }

        private mutating func popFirst(_ length: Int) -> String {
            defer { rest = rest.dropFirst(length) }
            return String(decoding: rest.prefix(length), as: UTF8.self)
        }

        mutating func all() -> String {
            var text = ""
            while let token = next() { text += token }
            return text
        }
    }
}

extension String {
    fileprivate var trimmed: String {
        let start = drop { $0 == " " }
        return String(start.reversed().drop { $0 == " " }.reversed())
    }
}
