import Testing

/// The ways around the compiler, the clock and the dice.
///
/// Wire and Core have none of them. Elsewhere in Sources the ways around the compiler need a comment that says
/// "because", on the line or on the two above it, and only the command prints.
enum EscapeRule {
    static let aroundTheCompiler = [
        "@unchecked Sendable", "nonisolated(unsafe)", "try!", "as!", "fatalError(",
    ]
    static let onlyFromOutside = ["Task.detached", "Date()", ".random(", "UUID()"]
    static let output = "print("

    static func faults(path: String, text: String) -> [Fault] {
        guard path.hasPrefix("Sources/") else { return [] }
        let source = SwiftText(text)
        let isPure = path.hasPrefix("Sources/TidemarkWire/") || path.hasPrefix("Sources/TidemarkCore/")
        return source.code.indices.flatMap { index in
            var found: [String] = []
            if isPure || !saysBecause(source, at: index) {
                found += aroundTheCompiler.filter { contains($0, in: source.code[index]) }
            }
            if isPure {
                found += onlyFromOutside.filter { contains($0, in: source.code[index]) }
            }
            if !path.hasPrefix("Sources/TidemarkCommand/"), contains(output, in: source.code[index]) {
                found.append(output)
            }
            return found.map { Fault(path: path, line: index + 1, message: message($0, isPure: isPure)) }
        }
    }

    private static func message(_ way: String, isPure: Bool) -> String {
        if isPure { return "'\(way)' has no place in Wire and Core" }
        return way == output ? "only the command prints" : "'\(way)' needs a comment that says because"
    }

    private static func saysBecause(_ source: SwiftText, at index: Int) -> Bool {
        source.comments[max(0, index - 2)...index].contains { $0.contains("because") }
    }

    /// Whether the code holds the text as words of its own: `print(` is neither `footprint(` nor a method `.print(`.
    private static func contains(_ text: String, in code: String) -> Bool {
        let bytes = Array(code.utf8)
        let wanted = Array(text.utf8)
        guard bytes.count >= wanted.count else { return false }
        return (0...(bytes.count - wanted.count)).contains { start in
            guard bytes[start...].starts(with: wanted) else { return false }
            guard start > 0, wanted[0].isNameByte else { return true }
            let before = bytes[start - 1]
            return !before.isNameByte && !(text == output && before == UInt8(ascii: "."))
        }
    }
}

@Suite("Ways around")
struct EscapeRuleTests {
    static let all = EscapeRule.aroundTheCompiler + EscapeRule.onlyFromOutside + [EscapeRule.output]

    @Test("Nothing goes around the compiler, the clock or the dice without saying why")
    func escapes() {
        expectNone(Repository.faults(in: ["Sources"], rule: EscapeRule.faults))
    }

    @Test("In Wire and Core every way around is found, with or without a because", arguments: all)
    func plantedBelow(way: String) {
        let text = "// because\nlet a = b(\(way))  // because\n"
        #expect(EscapeRule.faults(path: "Sources/TidemarkWire/A.swift", text: text).map(\.line) == [2])
        #expect(EscapeRule.faults(path: "Sources/TidemarkCore/B/A.swift", text: text).map(\.line) == [2])
    }

    @Test("Elsewhere a way around the compiler needs a because nearby", arguments: EscapeRule.aroundTheCompiler)
    func plantedAbove(way: String) {
        let bare = "// because\n\n\nlet a = \(way)\n// because"
        #expect(EscapeRule.faults(path: "Sources/Tidemark/A.swift", text: bare).map(\.line) == [4])
        let above = "// because it is\n// so\nlet a = \(way)\n"
        #expect(EscapeRule.faults(path: "Sources/Tidemark/A.swift", text: above).isEmpty)
        let beside = "let a = \(way)  // because\n"
        #expect(EscapeRule.faults(path: "Sources/Tidemark/A.swift", text: beside).isEmpty)
    }

    @Test("Only the command prints, because or not")
    func plantedPrint() {
        let text = "print(1)  // because\n"
        #expect(EscapeRule.faults(path: "Sources/TidemarkServer/A.swift", text: text).map(\.line) == [1])
        #expect(EscapeRule.faults(path: "Sources/TidemarkCommand/A.swift", text: text).isEmpty)
        #expect(EscapeRule.faults(path: "Tests/CoreTests/A.swift", text: text).isEmpty)
    }

    @Test("Look-alikes pass, and so do words in comments and literals")
    func clean() {
        let text = """
            // try! as! fatalError( UUID() Date()
            let a = "try! \\(footprint(1)) UUID()" + myUUID() + UUID(b) + LocalDate() + c.print(d)
            let random = try? e as? F
            """
        #expect(EscapeRule.faults(path: "Sources/TidemarkCore/A.swift", text: text).isEmpty)
    }
}
