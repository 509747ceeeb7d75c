import Testing

/// What fits on a screen and in a head: lines, functions and files have an upper size.
enum SizeRule {
    static let mostLinesInFile = 400
    static let mostLinesInFunction = 70
    static let mostCharactersInLine = 120
    static let mostLinesInReadme = 150
    /// McCabe's number, where a switch counts as one branch, however many cases it has.
    static let mostBranches = 15

    static func fileFaults(path: String, text: String) -> [Fault] {
        lengthFaults(path: path, text: text, most: mostLinesInFile)
    }

    static func readmeFaults(path: String, text: String) -> [Fault] {
        lengthFaults(path: path, text: text, most: mostLinesInReadme)
    }

    static func lineFaults(path: String, text: String) -> [Fault] {
        textLines(of: Array(text.utf8)).enumerated().compactMap { index, line in
            guard line.count > mostCharactersInLine else { return nil }
            let message = "a line has \(line.count) characters, more than \(mostCharactersInLine)"
            return Fault(path: path, line: index + 1, message: message)
        }
    }

    /// A function counts from its keyword to its closing brace, signature included.
    static func functionFaults(path: String, text: String) -> [Fault] {
        let tokens = SwiftText(text).tokens
        return tokens.indices.compactMap { index in
            guard declaresFunction(tokens, at: index), let last = lastLine(ofFunctionAt: index, in: tokens) else {
                return nil
            }
            let first = tokens[index].line
            let length = last - first + 1
            guard length > mostLinesInFunction else { return nil }
            let message = "a function has \(length) lines, more than \(mostLinesInFunction)"
            return Fault(path: path, line: first, message: message)
        }
    }

    /// A function that is declared in another counts for both.
    static func branchFaults(path: String, text: String) -> [Fault] {
        let text = SwiftText(text)
        let tokens = text.tokens
        let branches = tokens.indices.filter { isBranch(tokens, at: $0) }.map { tokens[$0].line }
        let choices = text.code.enumerated().flatMap { index, line in
            // Of `?` only the operator stands between spaces.
            (" " + line).split(separator: " ").filter { $0 == "?" }.map { _ in index + 1 }
        }
        return tokens.indices.compactMap { index in
            guard declaresFunction(tokens, at: index), let last = lastLine(ofFunctionAt: index, in: tokens) else {
                return nil
            }
            let first = tokens[index].line
            let number = 1 + (branches + choices).count { first...last ~= $0 }
            guard number > mostBranches else { return nil }
            let message = "a function has \(number) ways through it, more than \(mostBranches)"
            return Fault(path: path, line: first, message: message)
        }
    }

    /// The words are labels of arguments too: `sleep(for: wait)`, `init(for file: URL)`.
    private static func isBranch(_ tokens: [SwiftText.Token], at index: Int) -> Bool {
        guard ["if", "guard", "while", "for", "catch", "switch"].contains(tokens[index].text) else { return false }
        let before = index > 0 ? tokens[index - 1].text : ""
        let after = index + 1 < tokens.count ? tokens[index + 1].text : ""
        return !["#", "(", ",", "."].contains(before) && after != ":"
    }

    private static func lengthFaults(path: String, text: String, most: Int) -> [Fault] {
        let count = textLines(of: Array(text.utf8)).count
        guard count > most else { return [] }
        return [Fault(path: path, line: most + 1, message: "the file has \(count) lines, more than \(most)")]
    }

    private static func declaresFunction(_ tokens: [SwiftText.Token], at index: Int) -> Bool {
        let before = index > 0 ? tokens[index - 1].text : ""
        let after = index + 1 < tokens.count ? tokens[index + 1].text : ""
        switch tokens[index].text {
        case "func": return true
        case "deinit": return after == "{"
        case "init": return before != "." && ["(", "<", "?", "!"].contains(after)
        case "subscript": return before != "." && ["(", "<"].contains(after)
        default: return false
        }
    }

    /// Nil for a requirement of a protocol, which has no body: the next declaration comes before a brace.
    private static func lastLine(ofFunctionAt index: Int, in tokens: [SwiftText.Token]) -> Int? {
        let declarations: Set = [
            "func", "init", "deinit", "subscript", "var", "let", "case", "struct", "enum", "class", "protocol",
            "extension", "typealias", "associatedtype", "import", "}",
        ]
        var brackets = 0
        var braces = 0
        for token in tokens[(index + 1)...] {
            switch token.text {
            case "(", "[": brackets += 1
            case ")", "]": brackets -= 1
            case "{" where braces > 0 || brackets == 0: braces += 1
            case "}" where braces > 0:
                braces -= 1
                if braces == 0 { return token.line }
            case _ where braces == 0 && brackets == 0 && declarations.contains(token.text): return nil
            default: break
            }
        }
        return nil
    }
}

@Suite("Sizes")
struct SizeTests {
    static let folders = ["Sources", "Tests", "Fuzz", "Examples", "Benchmarks", "Mutants", "Simulator"]

    @Test("A Swift file has at most 400 lines")
    func files() {
        expectNone(Repository.faults(in: Self.folders, rule: SizeRule.fileFaults))
    }

    @Test("A function has at most 70 lines")
    func functions() {
        expectNone(Repository.faults(in: Self.folders, rule: SizeRule.functionFaults))
    }

    @Test("A function has at most 15 ways through it, a switch counting as one")
    func branches() {
        expectNone(Repository.faults(in: Self.folders, rule: SizeRule.branchFaults))
    }

    @Test("A line has at most 120 characters")
    func lines() {
        expectNone(Repository.faults(in: Self.folders, rule: SizeRule.lineFaults))
    }

    @Test("README.md has at most 150 lines")
    func readme() {
        let readme = Repository.files.filter { $0.path == "README.md" }
        expectNone(readme.flatMap { SizeRule.readmeFaults(path: $0.path, text: $0.text) })
    }

    @Test("A file that is a line too long is found, at its first line too many")
    func plantedFile() {
        let most = String(repeating: "let a = 1\n", count: 400)
        #expect(SizeRule.fileFaults(path: "A.swift", text: most).isEmpty)
        #expect(SizeRule.fileFaults(path: "A.swift", text: most + "}\n").map(\.line) == [401])
    }

    @Test("A readme that is a line too long is found")
    func plantedReadme() {
        let most = String(repeating: "words\n", count: 150)
        #expect(SizeRule.readmeFaults(path: "README.md", text: most).isEmpty)
        #expect(SizeRule.readmeFaults(path: "README.md", text: most + "more").map(\.line) == [151])
    }

    @Test("A line that is a character too long is found, and characters are counted, not bytes")
    func plantedLine() {
        let most = String(repeating: "é", count: 120)
        #expect(SizeRule.lineFaults(path: "A.swift", text: "\n" + most + "\n").isEmpty)
        #expect(SizeRule.lineFaults(path: "A.swift", text: "\n" + most + "é\n").map(\.line) == [2])
    }

    @Test(
        "A function that is a line too long is found",
        arguments: [
            "func a(b: () -> Void = {}) -> some View where B: C", "init?(b: [Int])", "deinit",
            "subscript(b: Int) -> Int", "@Test func `not { a brace`() async throws(D)",
            "static func < (b: A, c: A) -> Bool",
        ])
    func plantedFunction(signature: String) {
        func text(lines: Int) -> String {
            let body = String(repeating: "    if b { c(\"}\") }\n", count: lines - 2)
            return "struct A {\n\(signature) {\n\(body)}\n}\n"
        }
        #expect(SizeRule.functionFaults(path: "A.swift", text: text(lines: 70)).isEmpty)
        #expect(SizeRule.functionFaults(path: "A.swift", text: text(lines: 71)).map(\.line) == [2])
    }

    @Test("A function with one way too many is found, and labels, conditions of the compiler and optionals are none")
    func plantedBranch() {
        func text(ways: Int) -> String {
            let body = String(repeating: "    if a?.b == nil { c(for: d) }\n", count: ways - 4)
            return """
                func e(for f: Int?) {
                #if DEBUG
                #endif
                switch f { case 1: g(); case 2: h(); default: i() }
                j(f == nil ? 1 : 2)
                for k in l { m() }
                \(body)}
                """
        }
        #expect(SizeRule.branchFaults(path: "A.swift", text: text(ways: 15)).isEmpty)
        #expect(SizeRule.branchFaults(path: "A.swift", text: text(ways: 16)).map(\.line) == [1])
    }

    @Test("Requirements of a protocol and calls of init are not functions with a body")
    func requirements() {
        let long = String(repeating: "    a()\n", count: 80)
        let text = """
            protocol A {
                func b(c: Int) -> Int
                init(d: Int)
            }
            let e = {
                A.init(d: 1)
            \(long)}
            """
        #expect(SizeRule.functionFaults(path: "A.swift", text: text).isEmpty)
    }
}
