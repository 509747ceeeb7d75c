import Testing

/// A connection prepares each statement once, by its name: of two under one name the second would run the first.
@Suite("Statements of the PostgreSQL store")
struct StatementNameTests {
    /// The name that a piece of text behind `Statement(` begins with; `nil` for one without a name.
    private func name(_ rest: Substring) -> String? {
        let rest = rest.drop(while: \.isWhitespace)
        guard rest.first == "\"" else { return nil }
        let name = rest.dropFirst().prefix { $0 != "\"" }
        // What is counted in the name, such as the depth of a savepoint, is counted in the statement.
        return name.isEmpty || name.contains("\\(") ? nil : String(name)
    }

    private func names(in text: String) -> [String] {
        text.split(separator: "Statement(", omittingEmptySubsequences: false).dropFirst().compactMap(name)
    }

    @Test("No two have one name")
    func unique() {
        let names = Repository.swiftFiles(in: ["Sources/TidemarkPostgres"]).flatMap { self.names(in: $0.text) }
        #expect(names.count > 50)
        var seen: Set<String> = []
        #expect(names.filter { !seen.insert($0).inserted } == [])
    }

    @Test("A name that is given twice is found")
    func planted() {
        #expect(names(in: #"Statement("a", "SELECT") Statement("#) == ["a"])
        #expect(names(in: "Statement(\n    \"a\", x) + Statement(\"\", y) + Statement(\"b\", z)") == ["a", "b"])
    }
}
