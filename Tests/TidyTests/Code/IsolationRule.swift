import Testing

/// Code that is handed in says where it is run, and what many may hold says who may use it.
enum IsolationRule {
    /// Words for where code runs.
    static let places: Set = ["actor", "executor", "queue", "task", "tasks", "thread", "threads", "writer"]
    /// Words for who may use something.
    static let users = ["any task", "several tasks", "one task", "any thread", "one thread", "@mainactor", "sendable"]

    /// The documentation of a closure that is kept says where it is called.
    static func unsaidPlaces(path: String, text: String) -> [Fault] {
        let message = "keeps a closure and does not say where it is called"
        return faults(path: path, text: text, message: message) { source, declaration in
            let words = comment(of: declaration, in: source).split { !$0.isLetter }.map { String($0) }
            return keepsClosure(signature(source.code[declaration.index...])) && places.isDisjoint(with: words)
        }
    }

    /// The documentation of a public class or protocol says who may use it, unless that is the main actor's.
    static func unsaidUsers(path: String, text: String) -> [Fault] {
        faults(path: path, text: text, message: "does not say who may use it") { source, declaration in
            let said = comment(of: declaration, in: source)
            return ["class", "protocol"].contains(declaration.keyword) && !isOnMainActor(declaration, in: source)
                && !users.contains { said.contains($0) }
        }
    }

    private static func faults(
        path: String, text: String, message: String,
        where isFault: (SwiftText, PublicDocumentationRule.Declaration) -> Bool
    ) -> [Fault] {
        guard path.hasPrefix("Sources/") else { return [] }
        let source = SwiftText(text)
        return PublicDocumentationRule.declarations(in: source).filter { isFault(source, $0) }.map {
            Fault(path: path, line: $0.index + 1, message: "a public \($0.keyword) \(message)")
        }
    }

    private static func comment(of declaration: PublicDocumentationRule.Declaration, in source: SwiftText) -> String {
        PublicDocumentationRule.documentation(source.lines, at: declaration.index).lowercased()
    }

    /// A declaration up to the end of its parameters.
    private static func signature(_ lines: ArraySlice<String>) -> String {
        var signature = ""
        for line in lines {
            signature += line + " "
            if signature.count(where: { $0 == "(" }) == signature.count(where: { $0 == ")" }) { break }
        }
        return signature
    }

    /// Whether a parameter outlives the call, or a property or the name of a type stands for a function. A function in
    /// parentheses is optional, or one of several.
    private static func keepsClosure(_ signature: String) -> Bool {
        signature.contains("@escaping") || signature.contains("(@Sendable")
            || signature.contains(/\b(?:var|let) \w+: [^={]*->|\btypealias .*->/)
    }

    private static func isOnMainActor(
        _ declaration: PublicDocumentationRule.Declaration, in source: SwiftText
    ) -> Bool {
        let attributes = source.code[..<declaration.index].reversed().prefix { $0.trimmedOfSpace().hasPrefix("@") }
        return source.code[declaration.index].contains("@MainActor")
            || attributes.contains { $0.contains("@MainActor") }
    }
}

@Suite("Isolation")
struct IsolationRuleTests {
    @Test("Every public closure that is kept says where it is called")
    func places() { expectNone(Repository.faults(in: ["Sources"], rule: IsolationRule.unsaidPlaces)) }

    static let closures = [
        "public var b: @Sendable () -> Void", "public let b: (@Sendable (Int) async throws -> Int)?",
        "public init(b: @escaping () -> Void) {", "    public static func b(c: @escaping @Sendable () -> Int) {",
        "public func b(\n    c: Int,\n    d: @escaping () -> Void\n) {", "public typealias B = @Sendable (Int) -> Void",
        "public func b(c: (@Sendable () -> Void)? = nil) {", "public var b: @Sendable () -> Int = { 1 }",
    ]

    @Test("A closure without a place is found", arguments: closures)
    func plantedPlaces(declaration: String) {
        for comment in ["", "/// Hears of everything.\n", "// Called on any thread.\n", "/// Called on a thread.\n\n"] {
            let line = comment.count { $0 == "\n" } + 2
            let text = "struct A {\n" + comment + declaration
            #expect(IsolationRule.unsaidPlaces(path: "Sources/Tidemark/A.swift", text: text).map(\.line) == [line])
        }
    }

    @Test("One that says where it is called passes", arguments: closures)
    func saidPlaces(declaration: String) {
        for comment in ["Called on any thread.", "Runs on the\n/// writer's queue.", "Asked in the request's task."] {
            let text = "struct A {\n/// " + comment + "\n" + declaration
            #expect(IsolationRule.unsaidPlaces(path: "Sources/Tidemark/A.swift", text: text).isEmpty)
        }
    }

    @Test(
        "A closure that does not outlive its call passes, and so does one that others cannot hand in",
        arguments: [
            "public func b(_ c: () throws -> Void) rethrows {", "public func b() -> () -> Void {", "public var b: Int",
            "func b(c: @escaping () -> Void) {", "package var b: () -> Void", "public var b = 5 // () -> Void",
            "public func b() {}\nfunc c(d: @escaping () -> Void) {}", "public var b: Int { c.map { d -> Int in d } }",
        ])
    func cleanPlaces(declaration: String) {
        #expect(IsolationRule.unsaidPlaces(path: "Sources/Tidemark/A.swift", text: declaration).isEmpty)
    }

    @Test("A public protocol's requirement that takes a closure is held to it too")
    func requirement() {
        let text =
            "public protocol A {\n/// A b.\nfunc b(c: @escaping () -> Void)\n/// Called on any thread.\n"
            + "func d(e: @escaping () -> Void)\n}\n"
        #expect(IsolationRule.unsaidPlaces(path: "Sources/Tidemark/A.swift", text: text).map(\.line) == [3])
    }

    @Test("Every public class and protocol says who may use it")
    func users() { expectNone(Repository.faults(in: ["Sources"], rule: IsolationRule.unsaidUsers)) }

    @Test(
        "One that does not say it is found",
        arguments: ["public final class B: Sendable {", "public protocol B: Sendable {}", "open class B {"])
    func plantedUsers(declaration: String) {
        for comment in ["", "/// A b.\n", "// From any task.\n", "/// Has a task of its own.\n@frozen\n"] {
            let line = comment.count { $0 == "\n" } + 1
            let faults = IsolationRule.unsaidUsers(path: "Sources/Tidemark/A.swift", text: comment + declaration)
            #expect(faults.map(\.line) == [line])
        }
    }

    @Test(
        "One that says it passes, and so does what isolates itself",
        arguments: [
            "/// It may be used from any\n/// task.\npublic final class B: Sendable {", "public actor B {",
            "/// A b.\n@MainActor\n@Observable public final class B {", "@MainActor public final class B {",
            "/// Used on one thread.\npublic protocol B {", "/// Several tasks use it.\npublic protocol B {}",
            "public struct B {", "final class B {}", "package protocol B {}",
        ])
    func cleanUsers(text: String) {
        #expect(IsolationRule.unsaidUsers(path: "Sources/Tidemark/A.swift", text: text).isEmpty)
    }
}
