import Testing

/// Wherever an app or a server's host meets a moment it is a `Date`, and a time is a `Duration`: no number. That goes
/// for properties, parameters, results, and what comes with an enumeration's cases.
extension UnitRule {
    /// Behind the seam of a server's store, moments are numbers in milliseconds since 1970, under these names.
    private static let seam: [(place: String, names: Set<String>)] = [
        (
            "Sources/TidemarkServer/Store/",
            [
                "ageClock", "devicesBefore", "erasedAt", "lanesBefore", "lastTime", "moment", "scanned", "time",
                "written",
            ]
        ),
        ("Sources/TidemarkServer/Store/DeviceNames.swift", ["seen"]),
        ("Sources/TidemarkSQLite/", ["ageClock", "moment"]),
        ("Sources/TidemarkPostgres/", ["ageClock", "moment"]),
        ("Sources/TidemarkTesting/Store/", ["ageClock", "moment"]),
    ]

    private static let numbers: Set = [
        "ClosedRange<Double>", "ClosedRange<Int64>", "ClosedRange<Int>", "Double", "Int", "Int64", "TimeInterval",
        "UInt64",
    ]
    /// A number whose name has one of these words is a moment or a time, unless another word says what it counts.
    private static let timeWords: Set = [
        "age", "ages", "clock", "deadline", "delay", "duration", "hours", "interval", "intervals", "lifetime",
        "milliseconds", "minutes", "moment", "retention", "seconds", "time", "timeout", "wall",
    ]
    /// So is a number whose name ends with one of these: `lastModifiedAt`, `seenBefore`.
    private static let lastWords: Set = ["after", "at", "before", "since", "until"]
    private static let counts = units.subtracting(timeUnits).union(kinds)

    static func timeFaults(path: String, text: String) -> [Fault] {
        guard path.hasPrefix("Sources/") else { return [] }
        let source = SwiftText(text)
        let known = seam.filter { path.hasPrefix($0.place) }.reduce(into: Set<String>()) { $0.formUnion($1.names) }
        let declarations = PublicDocumentationRule.declarations(in: source) + enumCases(in: source)
        return declarations.sorted { $0.index < $1.index }.flatMap { declaration in
            timeNumbers(of: declaration, in: source).filter { !known.contains($0) }.map {
                Fault(
                    path: path, line: declaration.index + 1,
                    message: "'\($0)' is a number: a moment is a Date, a time a Duration")
            }
        }
    }

    /// The moments and times that are numbers in a declaration, by name.
    private static func timeNumbers(
        of declaration: PublicDocumentationRule.Declaration, in source: SwiftText
    ) -> [String] {
        let comment = PublicDocumentationRule.documentation(source.lines, at: declaration.index)
        let line = source.code[declaration.index]
        switch declaration.keyword {
        case "static" where !line.contains(" func "), "var", "let":
            return property(line, comment).map { [$0] } ?? []
        case "func", "init", "static", "subscript", "case":
            return call(signature(source.code[declaration.index...]), comment)
        default: return []
        }
    }

    // MARK: Properties

    private static func property(_ line: String, _ comment: String) -> String? {
        let other = line.firstMatch(
            of: /\b(?:var|let) (\w+): (?:UInt64|TimeInterval|ClosedRange<(?:Int64|Int|Double)>)\?? *(?:$|[{=])/)?.1
        guard let name = number(declaredIn: line) ?? other else { return nil }
        let clause = words(firstClause(of: comment))
        let isCounted = !counts.isDisjoint(with: clause + words(apart(name)))
        let isSaid = !isCounted && times.contains { comment.hasPrefix($0) }
        return isSaid || !timeUnits.isDisjoint(with: clause) || saysTime(name) ? String(name) : nil
    }

    private static func saysTime(_ name: Substring) -> Bool {
        let words = words(apart(name))
        if let last = words.last, lastWords.contains(last), kinds.isDisjoint(with: words) { return true }
        return !timeWords.isDisjoint(with: words) && counts.isDisjoint(with: words)
    }

    private static func words(_ text: some StringProtocol) -> [String] {
        text.lowercased().split { !$0.isLetter }.map { String($0) }
    }

    // MARK: Functions

    private static func call(_ signature: String, _ comment: String) -> [String] {
        let (parts, rest) = parameters(of: signature)
        var names = parts.compactMap { parameter($0, comment) }
        let isNumber = rest.contains(/→ *(?:Int64|Int|UInt64|Double|TimeInterval)\?? *(?:$|\{|where )/)
        if isNumber, let name = signature.firstMatch(of: /\bfunc (\w+)/)?.1 {
            let isCounted = !counts.isDisjoint(with: words(firstClause(of: comment)))
            let isSaid = !isCounted && times.contains { comment.hasPrefix($0) }
            if isSaid || saysTime(name) { names.append(String(name)) }
        }
        return names
    }

    /// A declaration's lines up to the one that closes its parentheses.
    private static func signature(_ lines: ArraySlice<String>) -> String {
        var (text, depth) = ("", 0)
        for line in lines {
            text += line + " "
            for character in line { depth += character == "(" ? 1 : character == ")" ? -1 : 0 }
            if depth <= 0 { break }
        }
        return text
    }

    /// The parameters as they stand there, and what is behind them; an arrow is one sign, and closes nothing.
    private static func parameters(of signature: String) -> (parts: [String], rest: Substring) {
        let text = signature.replacing("->", with: "→").replacing("<<", with: " ")
        guard let start = text.firstIndex(of: "(") else { return ([], "") }
        var (parts, depth, index) = ([""], 1, text.index(after: start))
        while index < text.endIndex {
            let character = text[index]
            text.formIndex(after: &index)
            if "([<{".contains(character) { depth += 1 }
            if ")]>}".contains(character) { depth -= 1 }
            if depth == 0 { break }
            if depth == 1, character == "," { parts.append("") } else { parts[parts.count - 1].append(character) }
        }
        return (parts, text[index...])
    }

    /// The name of a parameter that is a moment or a time by its name, its label or its comment, and a number.
    private static func parameter(_ text: String, _ comment: String) -> String? {
        let halves = text.split(separator: ":", maxSplits: 1)
        guard halves.count == 2 else { return nil }
        let names = halves[0].split(separator: " ")
        let type = halves[1].prefix { $0 != "=" }.split(separator: " ")
        guard let name = names.last, let label = names.first, let number = type.last, type.count < 3,
            numbers.contains(String(number.prefix { $0 != "?" }))
        else { return nil }
        let isCounted = !counts.isDisjoint(with: words(apart(name)))
        let isTime =
            saysTime(name) || !isCounted && saysTime(label)
            || !timeUnits.isDisjoint(with: words(sentence(on: name, in: comment)))
        return isTime ? String(name) : nil
    }

    /// Returns the sentence of a comment that tells of a parameter; empty where there is none.
    private static func sentence(on name: Substring, in comment: String) -> Substring {
        for start in ["- Parameter \(name): ", "- \(name): "] {
            guard let range = comment.firstRange(of: start) else { continue }
            let rest = comment[range.upperBound...]
            return rest[..<(rest.firstRange(of: " - ")?.lowerBound ?? rest.endIndex)]
        }
        return ""
    }

    // MARK: Enumerations

    /// The cases of public enumerations, which are public without the word.
    private static func enumCases(in source: SwiftText) -> [PublicDocumentationRule.Declaration] {
        var cases: [PublicDocumentationRule.Declaration] = []
        var (depth, homes): (Int, [Int]) = (0, [])
        for (index, line) in source.code.enumerated() {
            let words = line.split(whereSeparator: \.isWhitespace)
            if depth == homes.last, words.first == "case" || words.prefix(2) == ["indirect", "case"] {
                cases.append(PublicDocumentationRule.Declaration(index: index, keyword: "case"))
            }
            if words.first == "public", words.prefix(3).contains("enum") { homes.append(depth + 1) }
            for character in line {
                if character == "{" { depth += 1 }
                guard character == "}" else { continue }
                if depth == homes.last { homes.removeLast() }
                depth -= 1
            }
        }
        return cases
    }
}

@Suite("Moments and times")
struct UnitRuleTimeTests {
    @Test("No public moment or time is a number, but behind the store's seam")
    func tree() { expectNone(Repository.faults(in: ["Sources"], rule: UnitRule.timeFaults)) }

    @Test(
        "A property, a parameter, a result or a case that is one is found",
        arguments: [
            "public var lastModifiedAt: Int64", "public let timeout: Double?", "public var interval = 5",
            "public static let ages: ClosedRange<Int64> = 1...5", "public var pauseSeconds: TimeInterval { 1 }",
            "/// When it was asked.\npublic var asked: Int64", "/// Its length, in seconds.\npublic var length: Int",
            "public func wait(for delay: Int64)", "public func sweep(before limit: Int64) async throws -> Bool",
            "public init(\n    rows: Int = 1 << 5,\n    maxAge: Int? = nil\n) {", "public func moment() -> Int64 {",
            "public static func b<C>(c: C, seconds: Double) throws -> C {", "public init?(retention: inout Int)",
            "/// A b.\n///\n/// - Parameter c: in milliseconds.\npublic func b(c: Int64)",
            "/// A b.\n///\n/// - Parameters:\n///   - c: rows.\n///   - d: in seconds.\npublic func b(c: Int, d: Int)",
            "/// How long it took.\npublic func b() -> Int64?", "public enum B {\n    case c(seconds: Int64)",
            "public indirect enum B {\n    case c\n    case d(Int, deadline: Int64)",
            "public protocol B {\n    func c(at moment: Int64)",
        ])
    func planted(declaration: String) {
        let faults = UnitRule.timeFaults(path: "Sources/Tidemark/A.swift", text: "struct A {\n" + declaration + "\n}\n")
        #expect(faults.count == 1, "\(faults)")
    }

    @Test(
        "A Date, a Duration, a count, and a declaration that is not public pass",
        arguments: [
            "public var lastModifiedAt: Date", "public func wait(for delay: Duration = .seconds(5)) -> Duration",
            "var timeout: Int", "package func wait(seconds: Int) -> Int64", "public var callsAtOnce: Int",
            "public func scopes(after scope: Scope?, limit: Int) -> [Scope]", "public var timedOutRequests: Int",
            "/// How long a text may be, in bytes.\npublic var length: Int", "public func insert(at place: Int)",
            "public func b(_ c: (Int64) -> Int64, now: Date) -> Int", "public enum B {\n    case c(every: Duration)",
            "enum B {\n    case c(seconds: Int64)", "public struct B {}\nextension B {\n    func c(moment: Int64) {}",
            "/// Rows that came within the time.\npublic func b() -> Int",
        ])
    func clean(declaration: String) {
        let text = "struct A {\n" + declaration + "\n}\n"
        #expect(UnitRule.timeFaults(path: "Sources/Tidemark/A.swift", text: text).isEmpty)
    }

    @Test("Behind the store's seam its own names pass, and no others")
    func seam() {
        let text = """
            public protocol A {
                func b(at moment: Int64)
                /// When it was seen.
                var seen: Int64 { get }
            }
            """
        for (path, faults) in [("Store/Log.swift", 1), ("Store/DeviceNames.swift", 0), ("Retention/Log.swift", 2)] {
            let found = UnitRule.timeFaults(path: "Sources/TidemarkServer/\(path)", text: text)
            #expect(found.count == faults, "\(path)")
        }
    }
}
