import Testing

/// A comment, or a test's title, names in parentheses where a rule comes from: a rule of the protocol (W), a guarantee
/// (I), or a line of the conformance tables. Each of these numbers is written down.
enum CitationRule {
    /// The pages that number what they say.
    private static let pages = [
        "Documentation/Protocol.md", "Documentation/Reliability.md", "Documentation/Conformance.md",
    ]

    /// Every number of those pages.
    static func known() -> Set<String> {
        Repository.files.filter { pages.contains($0.path) }.reduce(into: []) { $0.formUnion(numbers(in: $1.text)) }
    }

    /// The numbers of a page: each is at the head of an item, or in the first cell of a table's row.
    static func numbers(in page: String) -> Set<String> {
        var found: Set<String> = []
        for line in page.split(separator: "\n") {
            if let item = line.prefixMatch(of: /- [*][*]([A-Z][0-9]+)[*][*]/) { found.insert(String(item.1)) }
            guard let cell = line.prefixMatch(of: /[|] ([A-Z][0-9]+(?:, [A-Z][0-9]+)*) [|]/) else { continue }
            for number in cell.1.matches(of: /[A-Z][0-9]+/) { found.insert(String(number.output)) }
        }
        return found
    }

    static func faults(path: String, text: String, known: Set<String>) -> [Fault] {
        var faults: [Fault] = []
        for (index, line) in textLines(of: Array(text.utf8)).enumerated() where mayCite(line) {
            for citation in line.matches(of: /(?:^|[ "])[(]([A-Z][0-9]+(?:(?:, |; |–| and )[A-Z][0-9]+)*)[)]/) {
                for number in citation.1.matches(of: /[A-Z][0-9]+/) where !known.contains(String(number.output)) {
                    faults.append(Fault(path: path, line: index + 1, message: "no page has \(number.output)"))
                }
            }
        }
        return faults
    }

    private static let parenthesis = UInt8(ascii: "(")
    private static let capitals = UInt8(ascii: "A")...UInt8(ascii: "Z")
    private static let digits = UInt8(ascii: "0")...UInt8(ascii: "9")

    /// Whether a capital and a digit follow a parenthesis. A regular expression takes its time, and few lines do so.
    private static func mayCite(_ line: String) -> Bool {
        let bytes = Array(line.utf8)
        return bytes.indices.dropLast(2).contains { place in
            bytes[place] == parenthesis && capitals.contains(bytes[place + 1]) && digits.contains(bytes[place + 2])
        }
    }
}

@Suite("Rules that are cited are written down")
struct CitationRuleTests {
    @Test("Each number in parentheses, in comments and titles, is one of Protocol, Reliability or Conformance")
    func cited() {
        let known = CitationRule.known()
        for letter in "WIABCDEFT" { #expect(known.contains("\(letter)1"), "\(letter)") }
        expectNone(
            Repository.files.filter { $0.path.hasSuffix(".swift") }
                .flatMap { CitationRule.faults(path: $0.path, text: $0.text, known: known) })
    }

    /// The numbers are put in, so that this file obeys its own rule.
    @Test("A number that no page has is found")
    func planted() {
        let known = CitationRule.numbers(
            in: "- **W1** Bodies.\n| I1 | Kept. |\n| T34, T36 | Traps. |\n- W2 is cited.\n| a | I2 |")
        #expect(known == ["W1", "I1", "T34", "T36"])
        let lines = [
            "/// It holds (W\(1)).", "/// It holds (W\(2)).", "@Test(\"it holds (I\(1), I\(2))\")",
            "// (T\(34)–T\(37)) and (T\(36); W\(1))", "call(W\(2)); x = [W\(2)]",
        ]
        let faults = CitationRule.faults(path: "a.swift", text: lines.joined(separator: "\n"), known: known)
        #expect(faults.map(\.line) == [2, 3, 4])
    }
}
