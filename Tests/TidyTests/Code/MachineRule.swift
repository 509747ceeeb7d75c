import Testing

/// A machine lists its states: `default:` would decide for a state that does not exist yet.
enum MachineRule {
    static func faults(path: String, text: String) -> [Fault] {
        guard isMachine(path) else { return [] }
        let tokens = SwiftText(text).tokens
        return tokens.indices.dropLast().compactMap { index in
            guard tokens[index].text == "default", tokens[index + 1].text == ":" else { return nil }
            // After a comma or an opening bracket it is a label: `counts[key, default: 0]`.
            let before = index > 0 ? tokens[index - 1].text : ""
            guard !["(", "[", ","].contains(before) else { return nil }
            return Fault(path: path, line: tokens[index].line, message: "'default:' in a machine; list the states")
        }
    }

    /// `PullMachine.swift`, and its parts such as `PullMachine+Pages.swift`.
    private static func isMachine(_ path: String) -> Bool {
        guard path.hasPrefix("Sources/TidemarkCore/"), let name = path.split(separator: "/").last else { return false }
        let stem = name.split(whereSeparator: { $0 == "." || $0 == "+" }).first
        return stem?.hasSuffix("Machine") == true
    }
}

@Suite("Machines")
struct MachineRuleTests {
    @Test("No 'default:' in a machine of TidemarkCore")
    func machines() {
        expectNone(Repository.faults(in: ["Sources"], rule: MachineRule.faults))
    }

    @Test(
        "A default is found",
        arguments: ["default:", "default :", "@unknown default:", "case .a: b(); default: c()"])
    func planted(line: String) {
        let text = "switch a {\n    \(line)\n}\n"
        #expect(MachineRule.faults(path: "Sources/TidemarkCore/PullMachine.swift", text: text).map(\.line) == [2])
        #expect(MachineRule.faults(path: "Sources/TidemarkCore/PullMachine+Pages.swift", text: text).count == 1)
    }

    @Test("A label, a comment and a file that is no machine pass")
    func clean() {
        let text = "a[b, default: 0] += 1  // default:\nc(\n    default: 1)\nlet d = \"default:\"\n"
        #expect(MachineRule.faults(path: "Sources/TidemarkCore/PullMachine.swift", text: text).isEmpty)
        #expect(MachineRule.faults(path: "Sources/TidemarkCore/Reconcile.swift", text: "default: a()").isEmpty)
        #expect(MachineRule.faults(path: "Sources/Tidemark/PullMachine.swift", text: "default: a()").isEmpty)
    }
}
