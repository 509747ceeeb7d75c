import Testing

/// What others may call, they must be able to read about.
enum PublicDocumentationRule {
    static func faults(path: String, text: String) -> [Fault] {
        guard path.hasPrefix("Sources/") else { return [] }
        let source = SwiftText(text)
        return source.code.indices.compactMap { index in
            guard let keyword = publicDeclaration(source.code[index]), !isDocumented(source.lines, at: index) else {
                return nil
            }
            return Fault(path: path, line: index + 1, message: "a public \(keyword) has no '///' above it")
        }
    }

    /// What a public function or initializer throws is said in a line of its own.
    static func unsaidErrors(path: String, text: String) -> [Fault] {
        guard path.hasPrefix("Sources/") else { return [] }
        let source = SwiftText(text)
        return source.code.indices.compactMap { index in
            guard let keyword = publicDeclaration(source.code[index]), throwsErrors(keyword, source.code[index...]),
                !comment(source.lines, at: index).contains(where: { $0.hasPrefix("/// - Throws:") })
            else { return nil }
            return Fault(path: path, line: index + 1, message: "a public \(keyword) throws and has no '- Throws:'")
        }
    }

    /// Whether a function throws by what stands between its parameters and its result or body. What a closure among the
    /// parameters or the result throws is another matter, and so is `rethrows`.
    private static func throwsErrors(_ keyword: String, _ lines: ArraySlice<String>) -> Bool {
        guard keyword == "init" || keyword == "func" || lines.first?.contains(" func ") == true else { return false }
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
                return effects.split { !$0.isLetter }.contains("throws")
            default: if depth == 0, isBehindParameters { effects.append(character) }
            }
        }
        return effects.split { !$0.isLetter }.contains("throws")
    }

    /// The keyword of the public declaration that starts on this line, if one does. Extensions and imports are none.
    private static func publicDeclaration(_ line: String) -> String? {
        let declarations: Set = [
            "func", "var", "let", "struct", "enum", "class", "actor", "protocol", "init", "typealias", "static",
            "subscript",
        ]
        let modifiers: Set = [
            "final", "mutating", "nonmutating", "nonisolated", "indirect", "convenience", "required", "override",
            "lazy", "consuming", "borrowing", "isolated", "weak", "unowned", "private", "fileprivate", "internal",
            "package", "prefix", "postfix", "infix", "distributed", "dynamic", "optional",
        ]
        var isPublic = false
        var words = withoutAttributes(line).split(whereSeparator: \.isWhitespace)[...]
        while let word = words.popFirst() {
            let base = String(word.prefix { $0.isLetter })
            if base == "public" || base == "open" {
                isPublic = true
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

    private static func isDocumented(_ lines: [String], at index: Int) -> Bool { !comment(lines, at: index).isEmpty }

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

    @Test("Every public function that throws says what")
    func errors() {
        expectNone(Repository.faults(in: ["Sources"], rule: PublicDocumentationRule.unsaidErrors))
    }

    static let throwing = [
        "public func b() throws {}", "    public init(c: Int) throws(D) {}",
        "public static func b() async throws -> Int {",
        "public nonisolated func b() async throws { try c() }", "public init?(c: Int) throws {}",
        "public func b<C>(\n    _ body: () throws -> C\n) async throws -> C {",
        "public func b(c: (Int) = (1)) throws",
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

    @Test("One that says so passes", arguments: throwing)
    func saidErrors(declaration: String) {
        for lines in ["/// A b.\n///\n/// - Throws: c.\n", "/// - Throws: c,\n///   or d.\n@discardableResult\n"] {
            let text = "struct A {\n" + lines + declaration
            #expect(PublicDocumentationRule.unsaidErrors(path: "Sources/Tidemark/A.swift", text: text).isEmpty)
        }
    }

    @Test(
        "What does not throw by itself, or is not public, passes",
        arguments: [
            "public func b() {}", "public func b(_ c: () throws -> Void) {}", "public func b() -> () throws -> Void {",
            "public func b(_ c: () throws -> Void) rethrows {}", "func b() throws {}", "package init() throws {}",
            "public typealias B = () throws -> Void", "public var b: Int { get throws { 1 } }",
            "public func b() {}\nfunc c() throws {}", "public func b() { try? c() }  // throws nothing",
        ])
    func cleanErrors(declaration: String) {
        let text = "struct A {\n/// A b.\n" + declaration
        #expect(PublicDocumentationRule.unsaidErrors(path: "Sources/Tidemark/A.swift", text: text).isEmpty)
    }

    @Test(
        "What is not a public declaration passes",
        arguments: [
            "public import GRDB", "public extension B {}", "package func b()", "func c(public: Int)",
            "let b = \"\"\"\npublic func c()\n\"\"\"", "// public func b()", "publicly.func()",
        ])
    func clean(text: String) {
        #expect(PublicDocumentationRule.faults(path: "Sources/Tidemark/A.swift", text: text).isEmpty)
    }
}
