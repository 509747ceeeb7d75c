import Testing

/// A public number says what it counts, or in what it is measured: by a word of its name, or of the first clause of its
/// documentation comment.
enum UnitRule {
    static let units: Set = [
        "attachments", "blobs", "bytes", "changes", "conflicts", "connections", "deletions", "devices", "edits",
        "entities", "exchanges", "failures", "fields", "files", "frames", "headers", "ids", "indexes", "items", "lanes",
        "milliseconds", "notes", "objects", "operations", "pages", "parts", "pings", "reads", "records", "requests",
        "rows", "scopes", "seconds", "steps", "streams", "tables", "triggers", "uploads", "verdicts", "versions",
        "worlds", "writes",
    ]
    /// A comment on a moment or a time begins with one of these, and has to name one of `timeUnits`.
    static let times = ["When ", "How long ", "The time ", "The age ", "The moment "]
    static let timeUnits: Set = ["milliseconds", "seconds"]
    /// What a number is that counts nothing.
    static let kinds: Set = ["fraction", "number", "place", "priority", "status"]

    static func faults(path: String, text: String) -> [Fault] {
        guard path.hasPrefix("Sources/") else { return [] }
        let source = SwiftText(text)
        return PublicDocumentationRule.declarations(in: source).compactMap { declaration in
            guard ["var", "let", "static"].contains(declaration.keyword),
                let name = number(declaredIn: source.code[declaration.index])
            else { return nil }
            let comment = PublicDocumentationRule.documentation(source.lines, at: declaration.index)
            let words = "\(apart(name)) \(firstClause(of: comment))".lowercased().split { !$0.isLetter }
            let isTime = times.contains { comment.hasPrefix($0) }
            guard !words.contains(where: { (isTime ? timeUnits : units.union(kinds)).contains(String($0)) }) else {
                return nil
            }
            return Fault(path: path, line: declaration.index + 1, message: "'\(name)' does not say what it counts")
        }
    }

    /// The name of a property that is a number by its type or by its first value; `nil` where the line has none.
    static func number(declaredIn line: String) -> Substring? {
        line.firstMatch(
            of: /\b(?:var|let) (\w+)(?:: (?:Int|Int64|Double)\??| = -?[0-9][0-9_]*(?: (?:<<|\*) [0-9_]+)*) *(?:$|[{=])/
        )?.1
    }

    /// The words of a name: `firstPage` gives `first page`.
    static func apart(_ name: Substring) -> String {
        name.reduce(into: "") { words, character in words += character.isUppercase ? " \(character)" : "\(character)" }
    }

    static func firstClause(of comment: String) -> Substring {
        comment[..<(comment.firstRange(of: /[.;:](?: |$)/)?.lowerBound ?? comment.endIndex)]
    }
}

@Suite("Units")
struct UnitRuleTests {
    @Test("Every public number says what it counts")
    func numbers() { expectNone(Repository.faults(in: ["Sources"], rule: UnitRule.faults)) }

    static let declarations = [
        "public var size: Int", "public let size: Int64?", "public static let size = 128 << 20",
        "    public private(set) var size: Double = 0.5", "public var size: Int { 1 }", "public var size = 10_000",
        "public static var size: Double? { nil }", "public nonisolated let size: Int64",
    ]

    @Test("A number that does not say what it counts is found", arguments: declarations)
    func planted(declaration: String) {
        for comment in ["", "// Bytes.\n", "/// How large it is.\n", "/// How large it is; few\n/// bytes at best.\n"] {
            let text = "struct A {\n" + comment + declaration
            let line = textLines(of: Array(text.utf8)).count
            #expect(UnitRule.faults(path: "Sources/Tidemark/A.swift", text: text).map(\.line) == [line])
        }
    }

    @Test("One whose comment says so passes", arguments: declarations)
    func said(declaration: String) {
        for comment in [
            "Bytes.", "How many rows there are: all.", "The age, in\n/// milliseconds.", "Its place in the list.",
        ] {
            let text = "struct A {\n/// " + comment + "\n" + declaration
            #expect(UnitRule.faults(path: "Sources/Tidemark/A.swift", text: text).isEmpty)
        }
    }

    @Test("A number that a public protocol requires is held to it too")
    func requirement() {
        let text = "public protocol A {\n/// The size.\nvar size: Int { get }\n/// Rows.\nvar count: Int { get }\n}\n"
        #expect(UnitRule.faults(path: "Sources/Tidemark/A.swift", text: text).map(\.line) == [3])
    }

    @Test(
        "A name that says so passes, and so does what is no public number",
        arguments: [
            "public var sizeBytes: Int", "public var rows = 5", "public let recordsPerPage: Int", "var size: Int",
            "package var size = 5", "public var size: Duration", "public var size: Size = 5", "public var isOld = true",
            "public func size(b: Int = 5) -> Int { 1 }", "public var size: [Int]", "public var size: Int32",
            "public var size: (Int, Int)", "public var size: String { let a = 5; return \"\\(a)\" }",
        ])
    func clean(declaration: String) {
        #expect(UnitRule.faults(path: "Sources/Tidemark/A.swift", text: "struct A {\n" + declaration).isEmpty)
    }
}
