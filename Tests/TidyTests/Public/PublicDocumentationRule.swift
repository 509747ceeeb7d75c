import Testing

/// What others may call, they must be able to read about.
enum PublicDocumentationRule {
    /// A public declaration, by the index of the line on which it begins.
    struct Declaration {
        let index: Int
        let keyword: String
    }

    static func faults(path: String, text: String) -> [Fault] {
        guard path.hasPrefix("Sources/") else { return [] }
        let source = SwiftText(text)
        return declarations(in: source).filter { comment(source.lines, at: $0.index).isEmpty }.map {
            Fault(path: path, line: $0.index + 1, message: "a public \($0.keyword) has no '///' above it")
        }
    }

    /// A public function, initializer or getter says in a line of its own what it throws.
    static func unsaidErrors(path: String, text: String) -> [Fault] {
        guard path.hasPrefix("Sources/") else { return [] }
        let source = SwiftText(text)
        return declarations(in: source).filter { declaration in
            throwsErrors(declaration.keyword, source.code[declaration.index...])
                && !comment(source.lines, at: declaration.index).contains { $0.hasPrefix("/// - Throws:") }
        }.map {
            Fault(path: path, line: $0.index + 1, message: "a public \($0.keyword) throws and has no '- Throws:'")
        }
    }

    // MARK: Errors

    private static func throwsErrors(_ keyword: String, _ lines: ArraySlice<String>) -> Bool {
        switch keyword {
        case "func", "init": callThrows(lines)
        case "static" where lines.first?.contains(" func ") == true: callThrows(lines)
        case "var", "static", "subscript": getterThrows(lines)
        default: false
        }
    }

    /// Whether a function throws by what stands directly behind its parameters. What a closure among the parameters or
    /// the result throws is another matter, and so is `rethrows`.
    private static func callThrows(_ lines: ArraySlice<String>) -> Bool {
        var depth = 0
        var effects = ""
        var isBehindParameters = false
        for character in lines.joined(separator: " ") {
            switch character {
            case "(": depth += 1
            case ")":
                depth -= 1
                if depth == 0 { isBehindParameters = true }
            case "{" where depth == 0, "-" where depth == 0, "=" where depth == 0 && isBehindParameters:
                guard isBehindParameters else { continue }
                return isThrowing(effects)
            default: if depth == 0, isBehindParameters { effects.append(character) }
            }
        }
        return isThrowing(effects)
    }

    /// A requirement has no body, so that the next one may stand behind its effects.
    private static func isThrowing(_ effects: String) -> Bool {
        effects.split { !$0.isLetter }.prefix { $0 == "async" || $0 == "throws" }.contains("throws")
    }

    /// Whether a property's getter throws: `{ get async throws }` of a requirement, or the same with a body behind it.
    private static func getterThrows(_ lines: ArraySlice<String>) -> Bool {
        guard let brace = lines.first?.firstIndex(of: "{"), let line = lines.first else { return false }
        let accessors = "\(line[brace...].dropFirst()) \(lines.dropFirst().first ?? "")"
        let words = accessors.prefix { $0 != "{" && $0 != "}" }.split { !$0.isLetter }
        return words.first == "get" && words.contains("throws")
    }

    // MARK: Declarations

    /// The public declarations of a file, in their order. Requirements of a public protocol, and members of a public
    /// extension, are public without the word.
    static func declarations(in source: SwiftText) -> [Declaration] {
        let bare = linesInPublicBraces(source.code)
        return source.code.indices.compactMap { index in
            publicDeclaration(source.code[index], isBare: bare.contains(index)).map {
                Declaration(index: index, keyword: $0)
            }
        }
    }

    /// The lines that stand directly inside the braces of a public protocol or extension.
    private static func linesInPublicBraces(_ code: [String]) -> Set<Int> {
        var lines: Set<Int> = []
        var depth = 0
        var home: Int?
        for (index, line) in code.enumerated() {
            if depth == home { lines.insert(index) }
            let words = withoutAttributes(line).split(whereSeparator: \.isWhitespace).prefix(2)
            if words == ["public", "protocol"] || words == ["public", "extension"] { home = depth + 1 }
            for character in line {
                if character == "{" { depth += 1 }
                if character == "}" {
                    if depth == home { home = nil }
                    depth -= 1
                }
            }
        }
        return lines
    }

    /// The keyword of the public declaration that starts on this line, if one does. Extensions and imports are none.
    ///
    /// - Parameter isBare: whether it needs no word to be public.
    private static func publicDeclaration(_ line: String, isBare: Bool) -> String? {
        let declarations: Set = [
            "func", "var", "let", "struct", "enum", "class", "actor", "protocol", "init", "typealias", "static",
            "subscript", "associatedtype",
        ]
        let hidden: Set<Substring> = ["private", "fileprivate", "internal", "package"]
        let modifiers: Set = [
            "final", "mutating", "nonmutating", "nonisolated", "indirect", "convenience", "required", "override",
            "lazy", "consuming", "borrowing", "isolated", "weak", "unowned", "private", "fileprivate", "internal",
            "package", "prefix", "postfix", "infix", "distributed", "dynamic", "optional",
        ]
        var isPublic = isBare
        var words = withoutAttributes(line).split(whereSeparator: \.isWhitespace)[...]
        while let word = words.popFirst() {
            let base = String(word.prefix { $0.isLetter })
            if base == "public" || base == "open" {
                isPublic = true
            } else if hidden.contains(word) {
                isPublic = false
            } else if declarations.contains(base) {
                return isPublic ? base : nil
            } else if !modifiers.contains(base) {
                return nil
            }
        }
        return nil
    }

    /// The line from behind its leading attributes: `@available(macOS 15, *) @inlinable public …` gives `public …`.
    private static func withoutAttributes(_ line: String) -> Substring {
        var rest = line.trimmedOfSpace()
        while rest.first == "@" {
            rest = rest.dropFirst().drop { $0.isLetter || $0.isNumber || $0 == "_" || $0 == "." }
            if rest.first == "(" {
                var depth = 0
                let end = rest.firstIndex { character in
                    if character == "(" { depth += 1 }
                    if character == ")" { depth -= 1 }
                    return depth == 0
                }
                rest = end.map { rest[$0...].dropFirst() } ?? ""
            }
            rest = rest.drop { $0.isWhitespace }
        }
        return rest
    }

    // MARK: Comments

    /// The documentation comment above a declaration, as one line.
    static func documentation(_ lines: [String], at index: Int) -> String {
        comment(lines, at: index).reversed().map { $0.dropFirst(3).drop { $0 == " " } }.joined(separator: " ")
    }

    /// The lines of the documentation comment above a declaration, the last first; attributes may stand between.
    private static func comment(_ lines: [String], at index: Int) -> [Substring] {
        var comment: [Substring] = []
        for line in lines[..<index].reversed() {
            let text = line.trimmedOfSpace()
            if text.hasPrefix("///") {
                comment.append(text)
            } else if !comment.isEmpty || !text.hasPrefix("@") && !text.hasPrefix("// swift-format-ignore") {
                break
            }
        }
        return comment
    }
}

@Suite("Public documentation")
struct PublicDocumentationRuleTests {
    @Test("Every public declaration has a documentation comment")
    func documentation() {
        expectNone(Repository.faults(in: ["Sources"], rule: PublicDocumentationRule.faults))
    }

    static let declarations = [
        "public struct B {}", "public static let b = 1", "    public init(c: Int) {}", "public private(set) var b = 1",
        "public nonisolated func b()", "@inlinable public func b()", "public final class B {}", "open class B {}",
        "public init?(c: Int)", "public indirect enum B {}", "@available(macOS 15, *) public typealias B = C",
        "nonisolated(nonsending) public func b() async", "public subscript(c: Int) -> Int { 1 }", "public actor B {}",
    ]

    @Test("A public declaration without words is found", arguments: declarations)
    func planted(declaration: String) {
        let above = ["", "// not documentation\n", "/// far away\n\n", "let c = 1  /// beside\n", "@frozen\n"]
        for lines in above {
            let text = "struct A {\n" + lines + declaration
            let line = textLines(of: Array(text.utf8)).count
            #expect(PublicDocumentationRule.faults(path: "Sources/Tidemark/A.swift", text: text).map(\.line) == [line])
        }
    }

    @Test("A documented one passes, attributes between or not", arguments: declarations)
    func documented(declaration: String) {
        for lines in ["/// A b.\n", "    /// A b.\n    ///\n@discardableResult\n@available(macOS 15, *)\n"] {
            let text = "struct A {\n" + lines + declaration
            #expect(PublicDocumentationRule.faults(path: "Sources/Tidemark/A.swift", text: text).isEmpty)
        }
    }

    static let requirements = [
        "func b()", "    static func b(c: Int)", "mutating func b()", "var b: Int { get }", "init?(c: Int)",
        "subscript(c: Int) -> Int { get }", "associatedtype B", "@available(macOS 15, *) func b()",
    ]
    static let publicBraces = ["public protocol A {", "@objc public protocol A: B,\n    C\n{", "public extension A {"]

    @Test("A requirement of a public protocol without words is found", arguments: requirements)
    func plantedRequirement(requirement: String) {
        for opening in Self.publicBraces {
            let text = "/// An a.\n" + opening + "\n/// A d.\nfunc d() { if e {} }\n\n" + requirement
            let line = textLines(of: Array(text.utf8)).count
            let faults = PublicDocumentationRule.faults(path: "Sources/Tidemark/A.swift", text: text + "\n}\n")
            #expect(faults.map(\.line) == [line])
        }
    }

    @Test(
        "A declaration in other braces passes, and so does a hidden one",
        arguments: [
            "package protocol A {\nfunc b()\n}", "protocol A {\nfunc b()\n}", "extension A {\nfunc b() {}\n}",
            "public protocol A {}\nextension A {\nfunc b()\n}", "public protocol A {\n/// A b.\nfunc b(\nc: Int)\n}",
            "public extension A {\nprivate func b() {}\n}", "public struct A {\nfunc b() {}\n}",
            "public protocol A {\n/// A b.\nfunc b()\n}\nfunc c() {}",
        ])
    func cleanRequirement(text: String) {
        #expect(PublicDocumentationRule.faults(path: "Sources/Tidemark/A.swift", text: "/// An a.\n" + text).isEmpty)
    }

    @Test("Every public function or getter that throws says what")
    func errors() {
        expectNone(Repository.faults(in: ["Sources"], rule: PublicDocumentationRule.unsaidErrors))
    }

    static let throwing = [
        "public func b() throws {}", "    public init(c: Int) throws(D) {}",
        "public static func b() async throws -> Int {",
        "public nonisolated func b() async throws { try c() }", "public init?(c: Int) throws {}",
        "public func b<C>(\n    _ body: () throws -> C\n) async throws -> C {",
        "public func b(c: (Int) = (1)) throws", "public var b: Int { get throws { 1 } }",
        "public static var b: Int {\n    get async throws {",
    ]

    @Test("A function that throws and does not say what is found", arguments: throwing)
    func plantedErrors(declaration: String) {
        for lines in ["", "/// A b.\n", "/// Throws.\n@discardableResult\n", "/// - Throws: c.\n\n/// A b.\n"] {
            let line = lines.count { $0 == "\n" } + 2
            let text = "struct A {\n" + lines + declaration
            let faults = PublicDocumentationRule.unsaidErrors(path: "Sources/Tidemark/A.swift", text: text)
            #expect(faults.map(\.line) == [line])
        }
    }

    static let throwingRequirements = [
        "func b() throws", "static func b() async throws -> Int", "init(c: Int) throws(D)",
        "func b<C>(\n    _ body: () throws -> C\n) throws -> C", "var b: Int { get throws }",
        "static var b: Int { get async throws }",
    ]

    @Test("A requirement that throws and does not say what is found", arguments: throwingRequirements)
    func plantedRequirementErrors(requirement: String) {
        for opening in Self.publicBraces {
            let text = opening + "\n/// A d.\nfunc d()\n/// A b.\n" + requirement + "\n}\n"
            let faults = PublicDocumentationRule.unsaidErrors(path: "Sources/Tidemark/A.swift", text: text)
            #expect(faults.map(\.line) == [textLines(of: Array(opening.utf8)).count + 4])
        }
    }

    @Test("A requirement that says so passes, and one before it that throws nothing", arguments: throwingRequirements)
    func saidRequirementErrors(requirement: String) {
        let said = "\n/// A b.\n///\n/// - Throws: c.\n" + requirement + "\n}"
        for quiet in ["func d()", "func d() -> Int", "var d: Int { get }", "func d(_ e: () throws -> Int)"] {
            let text = "public protocol A {\n/// A d.\n" + quiet + said
            #expect(PublicDocumentationRule.unsaidErrors(path: "Sources/Tidemark/A.swift", text: text).isEmpty)
        }
    }

    @Test("One that says so passes", arguments: throwing)
    func saidErrors(declaration: String) {
        for lines in ["/// A b.\n///\n/// - Throws: c.\n", "/// - Throws: c,\n///   or d.\n@discardableResult\n"] {
            let text = "struct A {\n" + lines + declaration
            #expect(PublicDocumentationRule.unsaidErrors(path: "Sources/Tidemark/A.swift", text: text).isEmpty)
        }
    }

    @Test(
        "A function that does not throw by itself, or is not public, passes",
        arguments: [
            "public func b() {}", "public func b(_ c: () throws -> Void) {}", "public func b() -> () throws -> Void {",
            "public func b(_ c: () throws -> Void) rethrows {}", "func b() throws {}", "package init() throws {}",
            "public typealias B = () throws -> Void", "public var b: Int { get { 1 } }",
            "public var b: Int { try? c }\npublic var c: Int", "var b: Int { get throws { 1 } }",
            "public func b() {}\nfunc c() throws {}", "public func b() { try? c() }  // throws nothing",
        ])
    func cleanErrors(declaration: String) {
        let text = "struct A {\n/// A b.\n" + declaration
        #expect(PublicDocumentationRule.unsaidErrors(path: "Sources/Tidemark/A.swift", text: text).isEmpty)
    }

    @Test(
        "A line that is not a public declaration passes",
        arguments: [
            "public import GRDB", "public extension B {}", "package func b()", "func c(public: Int)",
            "let b = \"\"\"\npublic func c()\n\"\"\"", "// public func b()", "publicly.func()",
        ])
    func clean(text: String) {
        #expect(PublicDocumentationRule.faults(path: "Sources/Tidemark/A.swift", text: text).isEmpty)
    }
}
