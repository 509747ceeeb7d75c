import Testing

/// `Documentation/Machines.md` names a test for a cell of the record's machine that no world comes to. The test names
/// the cell itself, by the trait `.records`, and fails where it does not come to it.
enum RecordCellRule {
    private static let page = "Documentation/Machines.md"

    /// Lines of the list, as the page would have them.
    static func claims(in text: String) -> Set<String> {
        var found: Set<String> = []
        for claim in text.matches(of: /\.records\(\s*([^)]+)\)/) {
            let suite = text[..<claim.range.lowerBound].matches(of: /struct (\w+)/).last
            guard let suite, let test = text[claim.range.upperBound...].firstMatch(of: /func (\w+)\(/) else { continue }
            for cell in claim.1.matches(of: /"([^"]+)"/) { found.insert("- `\(cell.1)`: `\(suite.1).\(test.1)`") }
        }
        return found
    }

    static func faults(page text: String, claims: Set<String>) -> [Fault] {
        var missing = claims
        var faults: [Fault] = []
        for (index, line) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated()
        where line.wholeMatch(of: /- `[^`]+`: `\w+\.\w+`/) != nil && missing.remove(String(line)) == nil {
            faults.append(Fault(path: page, line: index + 1, message: "names a test that does not say so"))
        }
        return faults + missing.sorted().map { Fault(path: page, line: 1, message: "does not list \($0)") }
    }
}

@Suite("Cells of the record's machine, and the tests that come to them")
struct RecordCellRuleTests {
    @Test("Machines.md names the test of each cell, and the test names the cell")
    func named() throws {
        let tests = Repository.files.filter { $0.path.hasPrefix("Tests/ClientTests/") && $0.path.hasSuffix(".swift") }
        let page = try #require(Repository.files.first { $0.path == "Documentation/Machines.md" })
        let claims = tests.reduce(into: Set<String>()) { $0.formUnion(RecordCellRule.claims(in: $1.text)) }
        #expect(!claims.isEmpty)
        expectNone(RecordCellRule.faults(page: page.text, claims: claims))
    }

    @Test("A cell without its test, and a test without its cell, are found")
    func planted() {
        let claims = RecordCellRule.claims(
            in: """
                struct ATests {
                    @Test("a", .records("base absent, row", "C8 editIsKept"))
                    func a() {}
                """)
        #expect(claims == ["- `base absent, row`: `ATests.a`", "- `C8 editIsKept`: `ATests.a`"])
        let page = "- `base absent, row`: `ATests.a`\n- `base absent, row`: `BTests.b`\n- `C1 x`: cannot be"
        #expect(RecordCellRule.faults(page: page, claims: claims).map(\.line) == [2, 1])
    }
}
