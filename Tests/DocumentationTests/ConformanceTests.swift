import Foundation
import Testing

@Suite("The conformance table names tests that exist")
struct ConformanceTests {
    private static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    /// The names that the table writes as `Suite` or `Suite.function` and no source has.
    private static func missing(in table: String, from sources: [String]) -> [String] {
        table.matches(of: /`([A-Z][A-Za-z]*Tests)(?:\.([a-z][A-Za-z0-9]*))?`/).compactMap { match in
            let suite = sources.filter { $0.contains("struct \(match.1) ") || $0.contains("extension \(match.1) ") }
            let exists = match.2.map { name in suite.contains { $0.contains("func \(name)(") } } ?? !suite.isEmpty
            return exists ? nil : String(match.0)
        }
    }

    /// Suites whose name another one has, too: the table would not say which of them it means.
    private static func doubled(in sources: [String]) -> [String] {
        let names = sources.flatMap { $0.matches(of: /\bstruct ([A-Z][A-Za-z]*Tests)\b/).map { String($0.1) } }
        return Dictionary(grouping: names) { $0 }.filter { $0.value.count > 1 }.keys.sorted()
    }

    /// All test sources but this one, which plants names of its own.
    private static func sources() throws -> [String] {
        let folder = root.appending(path: "Tests")
        let files = FileManager.default.enumerator(at: folder, includingPropertiesForKeys: nil)?.allObjects ?? []
        let own = URL(filePath: #filePath).lastPathComponent
        return try files.compactMap { $0 as? URL }
            .filter { $0.pathExtension == "swift" && $0.lastPathComponent != own }
            .map { try String(contentsOf: $0, encoding: .utf8) }
    }

    @Test("Every test that it names is in the tree")
    func names() throws {
        let table = try String(contentsOf: Self.root.appending(path: "Documentation/Conformance.md"), encoding: .utf8)
        let sources = try Self.sources()
        #expect(sources.count > 20)
        #expect(Self.missing(in: table, from: sources) == [])
    }

    @Test("No two suites have one name")
    func suites() throws { #expect(Self.doubled(in: try Self.sources()) == []) }

    @Test("Every requirement has its row")
    func rows() throws {
        let table = try String(contentsOf: Self.root.appending(path: "Documentation/Conformance.md"), encoding: .utf8)
        for number in 1...21 { #expect(table.contains("| A\(number) |"), "A\(number)") }
        for number in 1...13 { #expect(table.contains("| B\(number) |"), "B\(number)") }
        for number in 1...12 { #expect(table.contains("| I\(number) |"), "I\(number)") }
        for number in 1...10 { #expect(table.contains("| F\(number) |"), "F\(number)") }
        let traps = Set(table.matches(of: /\bT(\d+)\b/).compactMap { Int($0.1) })
        #expect(traps.isSuperset(of: 1...40))
    }

    @Test("The rules of the wire are numbered in their order, each once")
    func rules() throws {
        let page = try String(contentsOf: Self.root.appending(path: "Documentation/Protocol.md"), encoding: .utf8)
        let numbers = page.matches(of: /\*\*W(\d+)\*\*/).compactMap { Int($0.1) }
        #expect(numbers.count > 60)
        #expect(numbers == Array(1...numbers.count))
    }

    @Test("A name that no test has is noticed")
    func plantedFault() {
        let sources = ["struct PushTests { func replay() {} }"]
        #expect(Self.missing(in: "`PushTests`, `PushTests.replay`", from: sources) == [])
        #expect(
            Self.missing(in: "`PushTests.reply`, `PullTests`", from: sources) == ["`PushTests.reply`", "`PullTests`"])
        #expect(Self.missing(in: "`PushTest`, `PusTests`", from: sources) == ["`PusTests`"])
        #expect(Self.doubled(in: sources) == [])
        #expect(Self.doubled(in: sources + ["@Suite struct PushTests: Sendable {}"]) == ["PushTests"])
    }
}
