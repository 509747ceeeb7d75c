import Testing

/// What an app is given it can make for a preview or a test, and what it compares can grow: a public struct of public
/// properties has a public initializer, and the code of an error is no enum, which no later version could add to.
enum PublicShapeRule {
    /// Structs that functions of other names make, and the simulation's dice, which nobody but it throws.
    static let madeOtherwise: Set = ["Choices", "SyncedTable", "SyncedTable.Attachment", "SyncedTable.DocumentID"]

    static func faults(path: String, text: String) -> [Fault] {
        guard path.hasPrefix("Sources/") else { return [] }
        let types = types(in: SwiftText(text).code)
        return types.filter(\.isPublic).flatMap { type in
            var messages = unlisted(in: type).map { "'\($0)' is not in 'all'" }
            if isClosedCode(type) { messages.append("\(type.name) is an enum, to which no later version can add") }
            if isResult(type), !types.contains(where: { $0.name == type.name && $0.hasPublicInitializer }) {
                messages.append("\(type.name) has no public initializer")
            }
            return messages.map { Fault(path: path, line: type.line, message: $0) }
        }
    }

    private static func isClosedCode(_ type: DeclaredType) -> Bool {
        type.keyword == "enum" && type.members.contains { $0.contains(/\bcase \w/) }
            && (type.name.contains(/(?:Code|Reason)$/) || type.members.first?.contains(/^[^{]*\bError\b/) == true)
    }

    private static func isResult(_ type: DeclaredType) -> Bool {
        type.keyword == "struct" && !madeOtherwise.contains(type.name)
            && type.members.contains { $0.contains(/^ *public (?:\w+\(set\) )?(?:let|var) \w+[^{]*$/) }
    }

    /// The constants of a code that its list `all` lacks.
    private static func unlisted(in type: DeclaredType) -> [Substring] {
        let isList = { (line: String) in line.contains(/\bstatic let all\b/) }
        guard type.keyword == "struct", let start = type.members.firstIndex(where: isList) else { return [] }
        let list = type.members[start...].joined(separator: " ").prefix { $0 != "}" }
        let own = type.name.split(separator: ".").last ?? ""
        return type.members.compactMap { member in
            guard let found = member.firstMatch(of: /\bpublic static let (\w+) = (\w+)\(/),
                found.2 == own || found.2 == "Self"
            else { return nil }
            return list.split { !($0.isLetter || $0.isNumber || $0 == ".") }.contains(".\(found.1)") ? nil : found.1
        }
    }
}

/// A type or an extension of one, with the lines that stand directly inside its braces behind the rest of its own.
private struct DeclaredType {
    let keyword: Substring
    /// The name, behind those of the types around it.
    let name: String
    let isPublic: Bool
    let line: Int
    var members: [String]

    var hasPublicInitializer: Bool { members.contains { $0.contains(/\bpublic (?:\w+ )*init\b/) } }
}

extension PublicShapeRule {
    private static func types(in code: [String]) -> [DeclaredType] {
        var found: [DeclaredType] = []
        // What each open brace belongs to.
        var open: [Int?] = []
        var next: Int?
        for (index, line) in code.enumerated() {
            if let type = open.last.flatMap({ $0 }) { found[type].members.append(line) }
            if let match = line.firstMatch(of: /^ *((?:\w+ )*)(struct|enum|class|actor|extension) ([\w.]+)(.*)/) {
                let around = open.compactMap(\.self).last.map { "\(found[$0].name)." } ?? ""
                next = found.count
                found.append(
                    DeclaredType(
                        keyword: match.2, name: around + match.3, isPublic: match.1.contains("public "),
                        line: index + 1, members: [String(match.4)]))
            }
            for character in line {
                if character == "{" {
                    open.append(next)
                    next = nil
                } else if character == "}" {
                    _ = open.popLast()
                }
            }
        }
        return found
    }
}

@Suite("Public shape")
struct PublicShapeRuleTests {
    @Test("Public structs can be made, and codes can grow")
    func shapes() { expectNone(Repository.faults(in: ["Sources"], rule: PublicShapeRule.faults)) }

    private func lines(_ text: String) -> [Int] {
        PublicShapeRule.faults(path: "Sources/Tidemark/A.swift", text: text).map(\.line)
    }

    @Test(
        "A closed code is found",
        arguments: [
            "public enum Code: String { case a }", "public enum Code: String {\n    case a\n}",
            "public enum StopReason {\n    /// A.\n    case a, b\n}",
            "public indirect enum Full: Error {\n case a(Int)\n}",
        ])
    func closed(text: String) {
        #expect(lines("struct A {}\n" + text) == [2])
        #expect(lines("public struct A {\n" + text + "\n}") == [2])
    }

    @Test("A result that nobody else can make is found")
    func unmade() {
        #expect(lines("public struct A {\n    public var b = 0\n}") == [1])
        #expect(lines("extension A {\n    public struct B {\n        public let c: Int\n        init() {}\n}}") == [2])
        let nested = "public struct A {\n    public var b: B\n    public struct B {\n        public init() {}\n    }\n}"
        #expect(lines(nested) == [1])
    }

    @Test("A constant that its list lacks is found")
    func unlisted() {
        let code = "public struct Code {\n    public static let a = Code(1)\n    public static let ab = Code(2)\n"
        #expect(lines(code + "    public static let all: [Code] = [.ab]\n}") == [1])
        #expect(lines(code + "    public static let all: [Code] = [\n        .a,\n        .ab,\n    ]\n}").isEmpty)
    }

    @Test("Structs that can be made, types that only count here, and enums of other kinds pass")
    func clean() {
        let text = """
            public enum Code {
                public static let a = "a"
                var b: Int { switch self { case .c: 1 } }
            }
            public enum Activity { case idle }
            enum Reason: Error { case a }
            public struct A {
                public var b: Int
                public init?(b: Int) {}
            }
            public struct B {
                public let c: Int
            }
            extension B {
                public init() {}
            }
            public struct C {
                public var d: Int { 1 }
                let e: Int
            }
            struct D { public var e: Int }
            """
        #expect(lines(text).isEmpty)
        #expect(PublicShapeRule.faults(path: "Tests/A.swift", text: "public enum Code { case a }").isEmpty)
    }
}
