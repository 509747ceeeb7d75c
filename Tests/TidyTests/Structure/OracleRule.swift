import Testing

/// The oracle judges by a model of its own. If it knew the records' machine, a fault of the machine would be a fault of
/// the oracle, and no world would find it.
enum OracleRule {
    static let home = "Sources/TidemarkTesting/Simulation/Oracle/"
    static let machines = ["RecordMachine", "RecordMachines", "RecordAudit", "RecordCell", "RecordCoverage"]

    static func faults(path: String, text: String) -> [Fault] {
        guard path.hasPrefix(home) else { return [] }
        return SwiftText(text).tokens.compactMap { token in
            guard machines.contains(token.text) else { return nil }
            return Fault(path: path, line: token.line, message: "the oracle knows '\(token.text)'")
        }
    }
}

@Suite("The oracle has a model of its own")
struct OracleRuleTests {
    @Test("No file of the oracle names the records' machine")
    func independent() { expectNone(Repository.faults(in: ["Sources"], rule: OracleRule.faults)) }

    @Test("A name of it is found, at its line")
    func planted() {
        let text = "let a = 1\nlet machine = RecordMachine()  // RecordAudit\n"
        #expect(OracleRule.faults(path: OracleRule.home + "Oracle.swift", text: text).map(\.line) == [2])
        #expect(OracleRule.faults(path: "Sources/TidemarkTesting/Simulation/World.swift", text: text).isEmpty)
    }
}
