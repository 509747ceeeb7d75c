import Testing

/// What a merge leaves in a file where two sides have changed the same lines.
enum MergeRule {
    private static let marks = ["<<<<<<< ", ">>>>>>> "]

    static func faults(path: String, text: String) -> [Fault] {
        text.split(separator: "\n", omittingEmptySubsequences: false).enumerated()
            .filter { line in marks.contains { line.element.hasPrefix($0) } }
            .map { Fault(path: path, line: $0.offset + 1, message: "a merge was not resolved here") }
    }
}

@Suite("Merges are resolved")
struct MergeRuleTests {
    @Test("No file holds the marks of a merge")
    func marks() {
        #expect(Repository.files.flatMap { MergeRule.faults(path: $0.path, text: $0.text) } == [])
        #expect(MergeRule.faults(path: "a.md", text: "a\n\("<<<<<<") HEAD\n").isEmpty)
        #expect(MergeRule.faults(path: "a.md", text: "a\n\("<<<<<<<") HEAD\n").map(\.line) == [2])
    }
}
