import Foundation
import Testing

@Suite("The conformance table names tests that exist")
struct ConformanceTests {
    private static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    /// The names that the table writes as `Suite` or `Suite.function` and no source has.
    private static func missing(in table: String, from sources: [String]) -> [String] {
        table.matches(of: /`([A-Z][A-Za-z]*Tests)(?:\.([a-z][A-Za-z0-9]*))?`/).compactMap { match in
            let exists = sources.contains { source in
                source.contains("struct \(match.1)")
                    && (match.2.map { source.contains("func \($0)(") } ?? true)
            }
            return exists ? nil : String(match.0)
        }
    }

    @Test("Every test that it names is in the tree")
    func names() throws {
        let table = try String(contentsOf: Self.root.appending(path: "Documentation/Conformance.md"), encoding: .utf8)
        let folder = Self.root.appending(path: "Tests")
        let files = FileManager.default.enumerator(at: folder, includingPropertiesForKeys: nil)?.allObjects ?? []
        let sources = try files.compactMap { $0 as? URL }.filter { $0.pathExtension == "swift" }
            .map { try String(contentsOf: $0, encoding: .utf8) }
        #expect(sources.count > 20)
        #expect(Self.missing(in: table, from: sources) == [])
    }

    @Test("Every requirement has its row")
    func rows() throws {
        let table = try String(contentsOf: Self.root.appending(path: "Documentation/Conformance.md"), encoding: .utf8)
        for number in 1...21 { #expect(table.contains("| A\(number) |"), "A\(number)") }
        for number in 1...13 { #expect(table.contains("| B\(number) |"), "B\(number)") }
        for number in 1...12 { #expect(table.contains("| I\(number) |"), "I\(number)") }
    }

    @Test("A name that no test has is noticed")
    func plantedFault() {
        let sources = ["struct PushTests { func replay() {} }"]
        #expect(Self.missing(in: "`PushTests`, `PushTests.replay`", from: sources) == [])
        #expect(
            Self.missing(in: "`PushTests.reply`, `PullTests`", from: sources) == ["`PushTests.reply`", "`PullTests`"])
    }
}
