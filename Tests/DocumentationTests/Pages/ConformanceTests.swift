import Foundation
import Testing

@Suite("The conformance table names tests that exist")
struct ConformanceTests {
    private static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent()

    /// The names that the table writes as `Suite` or `Suite.function` and no source has.
    private static func missing(in table: String, from sources: [String]) -> [String] {
        table.matches(of: /`([A-Z][A-Za-z0-9]*Tests)(?:\.([a-z][A-Za-z0-9]*))?`/).compactMap { match in
            let suite = sources.filter { $0.contains("struct \(match.1) ") || $0.contains("extension \(match.1) ") }
            let exists = match.2.map { name in suite.contains { $0.contains("func \(name)(") } } ?? !suite.isEmpty
            return exists ? nil : String(match.0)
        }
    }

    /// Whole suites that are named as if they were one test: nobody knows which of its tests fails with the row.
    private static func wholeSuites(in page: String) -> [String] {
        page.matches(of: /`[A-Z][A-Za-z0-9]*Tests`/).map { String($0.0) }
    }

    /// The numbers of all requirements and guarantees: A1 to A21 and so on.
    private static let numbers: [String] = [("A", 21), ("B", 13), ("C", 5), ("D", 4), ("E", 8), ("F", 13), ("I", 14)]
        .flatMap { letter, last in (1...last).map { "\(letter)\($0)" } }

    /// The numbers that have no row, or more than one.
    private static func withoutRow(in page: String) -> [String] {
        let rows = page.split(separator: "\n")
        return numbers.filter { number in rows.count(where: { $0.hasPrefix("| \(number) |") }) != 1 }
    }

    /// The rows of requirements and guarantees that name no single test and do not begin with "Not there yet". A row of
    /// which only a part is absent says "not there yet" behind that part, and has to name tests for the rest.
    private static func withoutTest(in page: String) -> [String] {
        page.split(separator: "\n").compactMap { row in
            guard let number = row.prefixMatch(of: /\| ([A-FI]\d+) \|/) else { return nil }
            let isShown = row.contains(/`[A-Z][A-Za-z0-9]*Tests\.[a-z][A-Za-z0-9]*`/)
            return isShown || row.hasPrefix("| \(number.1) | Not there yet") ? nil : String(number.1)
        }
    }

    /// Suites whose name another one has, too: the table would not say which of them it means.
    private static func doubled(in sources: [String]) -> [String] {
        let names = sources.flatMap { $0.matches(of: /\bstruct ([A-Z][A-Za-z0-9]*Tests)\b/).map { String($0.1) } }
        return Dictionary(grouping: names) { $0 }.filter { $0.value.count > 1 }.keys.sorted()
    }

    private static func page() throws -> String {
        try String(contentsOf: root.appending(path: "Documentation/Conformance.md"), encoding: .utf8)
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
        let sources = try Self.sources()
        #expect(sources.count > 20)
        #expect(Self.missing(in: try Self.page(), from: sources) == [])
    }

    @Test("Tests are named one by one, no suite as a whole")
    func oneByOne() throws { #expect(Self.wholeSuites(in: try Self.page()) == []) }

    @Test("No two suites have one name")
    func suites() throws { #expect(Self.doubled(in: try Self.sources()) == []) }

    @Test("Every requirement and every guarantee has one row")
    func rows() throws {
        let page = try Self.page()
        #expect(Self.withoutRow(in: page) == [])
        let traps = Set(page.matches(of: /\bT(\d+)\b/).compactMap { Int($0.1) })
        #expect(traps.isSuperset(of: 1...40))
    }

    @Test("Each row names a test, or says that all of it is absent")
    func shown() throws { #expect(Self.withoutTest(in: try Self.page()) == []) }

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

    @Test("A suite that is named as a whole is noticed")
    func plantedSuite() {
        // Single tests, and programs that are no suites, pass.
        #expect(Self.wholeSuites(in: "| A1 | Deltas | `PullTests.pages`, `make mutants`, `Tests/a.py` | |") == [])
        #expect(
            Self.wholeSuites(in: "| A1 | Deltas | `PullTests.pages`, `PushTests` | |\nRates: `UTF8Tests`.")
                == ["`PushTests`", "`UTF8Tests`"])
    }

    @Test("A requirement without a row, and a row without a test, are noticed")
    func plantedRow() {
        let rows = Self.numbers.map { "| \($0) | Deltas | `PullTests.pages` | |" }
        #expect(rows.count == 78)
        let page = rows.joined(separator: "\n")
        #expect(Self.withoutRow(in: page) == [])
        #expect(Self.withoutRow(in: page.replacing("| I14 |", with: "| I15 |")) == ["I14"])
        #expect(Self.withoutRow(in: page + "\n" + rows[0]) == ["A1"])
        #expect(Self.withoutTest(in: page) == [])
        #expect(Self.withoutTest(in: "| F3 | Not there yet: a view of the fleet | | |") == [])
        // Who says that a part is absent has to show the rest; a whole suite or a program shows nothing.
        #expect(Self.withoutTest(in: "| A20 | Bytes. Metrics: not there yet | | |") == ["A20"])
        #expect(Self.withoutTest(in: "| F12 | Turns | | |\n| F13 | Keys | | |") == ["F12", "F13"])
        #expect(Self.withoutTest(in: "| I14 | `Tests/BlackBox/attacks/neighbours.py`, `FairTurnTests` |") == ["I14"])
    }
}
