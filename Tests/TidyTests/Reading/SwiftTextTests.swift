import Testing

@Suite("The scanner that the rules stand on")
struct SwiftTextTests {
    @Test(
        "The text of literals and comments is not code",
        arguments: [
            "let a = \"{ try!\"",
            "let a = #\"{ \" try!\"#",
            "let a = #\"\"\"\"#; let b = #\"\"try! {\"\"#",
            "let a = \"\"\"\n  { \" try!\n  \"\"\"",
            "// { try!",
            "/* { /* try! */ try! */",
            "let a = /{try!/",
            "let a = #/ { try! /#",
            "func `a { try!`() -> Int",
        ])
    func literalsAreNotCode(text: String) {
        let code = SwiftText(text).code.joined(separator: "\n")
        #expect(!code.contains("try!"))
        #expect(!code.contains("{"))
    }

    @Test("The text of an interpolation is code, and so is that behind the literal")
    func interpolationsAreCode() {
        let code = SwiftText(#"let a = "one \(try! b("two)", c: (1))) { three" + four"#).code[0]
        #expect(code.contains("try! b("))
        #expect(code.contains(", c: (1))"))
        #expect(!code.contains("two"))
        #expect(!code.contains("three"))
        #expect(code.hasSuffix("+ four"))
    }

    @Test("Division is not a literal")
    func divisionIsCode() {
        #expect(SwiftText("let a = b / c / d").code[0] == "let a = b / c / d")
        #expect(SwiftText("let a = b.reduce(1, /) + c / d").code[0] == "let a = b.reduce(1, /) + c / d")
    }

    @Test("Lines keep their numbers, and a comment keeps its words")
    func linesKeepTheirNumbers() {
        let text = SwiftText("/* one\ntwo */ three\nfour // five\n")
        #expect(text.lines.count == 3)
        #expect(text.code.map { $0.split(separator: " ") } == [[], ["three"], ["four"]])
        #expect(text.comments[2].hasSuffix("// five"))
        #expect(text.tokens == [.init(text: "three", line: 2), .init(text: "four", line: 3)])
    }

    /// A scanner that lost its way in a literal would leave brackets over, and rules would pass on what it skipped.
    @Test("In every file of the repository the brackets of the code pair up")
    func bracketsPairUp() {
        for file in Repository.swiftFiles(in: ["Sources", "Tests", "Examples", "Benchmarks"]) {
            let signs = SwiftText(file.text).tokens.map(\.text)
            for (open, close) in [("{", "}"), ("(", ")"), ("[", "]")] {
                let (opened, closed) = (signs.count { $0 == open }, signs.count { $0 == close })
                #expect(opened == closed, "\(file.path): \(opened) \(open) and \(closed) \(close)")
            }
        }
    }
}
