import Testing

/// The outbox's table is read and written in one folder, `Sources/Tidemark/Store/Outbox`: everybody else asks `Outbox`.
enum StoreRule {
    static let table = "tidemark_operation"
    static let home = "Sources/Tidemark/Store/Outbox/"

    static func faults(path: String, text: String) -> [Fault] {
        guard path.hasPrefix("Sources/Tidemark/"), !path.hasPrefix(home) else { return [] }
        return text.split(separator: "\n", omittingEmptySubsequences: false).enumerated().compactMap { index, line in
            guard line.contains(table) else { return nil }
            return Fault(path: path, line: index + 1, message: "'\(table)' is named outside of \(home)")
        }
    }
}

@Suite("The outbox's table in one place")
struct StoreRuleTests {
    @Test("Only its own folder names the outbox's table")
    func oneHome() {
        expectNone(Repository.faults(in: ["Sources"], rule: StoreRule.faults))
    }

    @Test("A statement elsewhere is found, at its line")
    func planted() {
        let text = "let sql =\n    \"SELECT 1 FROM tidemark_operation\"\n"
        #expect(StoreRule.faults(path: "Sources/Tidemark/Store/A.swift", text: text).map(\.line) == [2])
        #expect(StoreRule.faults(path: "Sources/Tidemark/Store/Outbox/A.swift", text: text).isEmpty)
        #expect(StoreRule.faults(path: "Sources/TidemarkTesting/A.swift", text: text).isEmpty)
    }
}
