import Testing

/// What is in the repository works on every machine, so it names no folder of a particular one.
enum MachinePathRule {
    /// Written in parts, so that this file obeys its own rule.
    static let folders = ["work", "home", "Users"].map { "/" + $0 + "/" }

    static func faults(path: String, text: String) -> [Fault] {
        guard !path.hasPrefix(".github/") else { return [] }
        return textLines(of: Array(text.utf8)).enumerated().flatMap { index, line in
            folders.filter { startsPath($0, in: line) }.map { folder in
                Fault(path: path, line: index + 1, message: "a path of one machine: \(folder)")
            }
        }
    }

    /// Whether an absolute path starts with the folder: inside a longer path or an address it does not count.
    private static func startsPath(_ folder: String, in line: String) -> Bool {
        let bytes = Array(line.utf8)
        let wanted = Array(folder.utf8)
        guard bytes.count >= wanted.count else { return false }
        return (0...(bytes.count - wanted.count)).contains { start in
            guard bytes[start...].starts(with: wanted) else { return false }
            guard start > 0 else { return true }
            let before = bytes[start - 1]
            return !before.isNameByte && !".-~*})".utf8.contains(before)
        }
    }
}

@Suite("Paths of one machine")
struct MachinePathRuleTests {
    @Test("No file names a folder of a developer's machine")
    func paths() {
        expectNone(Repository.files.flatMap { MachinePathRule.faults(path: $0.path, text: $0.text) })
    }

    @Test("A machine's path is found", arguments: MachinePathRule.folders)
    func planted(folder: String) {
        for before in ["", "cd ", "let a = \"", "file://", "A="] {
            let line = before + folder + "ada"
            #expect(MachinePathRule.faults(path: "Scripts/a", text: "one\n\(line)\n").map(\.line) == [2])
        }
    }

    @Test("Addresses, relative paths and the workflows pass", arguments: MachinePathRule.folders)
    func clean(folder: String) {
        for before in ["https://example.com", "a", "..", "${PWD}", "~"] {
            #expect(MachinePathRule.faults(path: "README.md", text: before + folder + "ada").isEmpty)
        }
        #expect(MachinePathRule.faults(path: ".github/workflows/ci.yml", text: folder).isEmpty)
    }
}
