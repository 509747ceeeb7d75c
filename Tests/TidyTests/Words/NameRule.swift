import Testing

/// A name says what a thing is: no drawers, no dates.
enum NameRule {
    static let banned = ["New", "Utils", "Helpers", "Common", "Misc", "V2"]

    /// Looks at each folder and at the file's own name, whole or as its last word: `StringUtils.swift`.
    static func faults(path: String, text: String) -> [Fault] {
        guard path.hasPrefix("Sources/") || path.hasPrefix("Documentation/") else { return [] }
        for component in path.split(separator: "/") {
            for part in component.split(whereSeparator: { !$0.isLetter && !$0.isNumber }) {
                let word = banned.first { part.lowercased() == $0.lowercased() || part.hasSuffix($0) }
                guard let word else { continue }
                return [Fault(path: path, line: 1, message: "'\(component)' is named after a drawer: \(word)")]
            }
        }
        return []
    }
}

@Suite("Names")
struct NameRuleTests {
    @Test("No file or folder is named New, Utils, Helpers, Common, Misc or V2")
    func names() {
        expectNone(Repository.files.flatMap { NameRule.faults(path: $0.path, text: $0.text) })
    }

    @Test(
        "A drawer is found",
        arguments: [
            "Sources/Tidemark/Utils/A.swift", "Sources/TidemarkCore/StringUtils.swift", "Sources/TidemarkNew/A.swift",
            "Sources/Tidemark/Outbox+Helpers.swift", "Sources/Common/A.swift", "Documentation/misc.md",
            "Documentation/Protocol-V2.md",
        ])
    func planted(path: String) {
        #expect(NameRule.faults(path: path, text: "").count == 1)
    }

    @Test(
        "Names that say something pass",
        arguments: [
            "Sources/TidemarkCore/Renew.swift", "Sources/TidemarkSQLite/CommonTable.swift",
            "Sources/Tidemark/Newest.swift", "Documentation/Protocol.md", "Tests/CoreTests/Helpers.swift",
        ])
    func clean(path: String) {
        #expect(NameRule.faults(path: path, text: "").isEmpty)
    }
}
