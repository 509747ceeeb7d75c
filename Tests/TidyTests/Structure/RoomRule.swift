import Testing

/// Tests, and files of the client and the server, are found by their folder, which is named after its subject.
enum RoomRule {
    /// The targets that have a folder for each subject.
    private static let targets = [
        "Sources/Tidemark", "Sources/TidemarkServer", "Sources/TidemarkSQLite", "Sources/TidemarkPostgres",
        "Tests/ClientTests", "Tests/ServerTests", "Tests/EndToEndTests", "Tests/SimulationTests", "Tests/CoreTests",
        "Tests/WireTests", "Tests/ConvergenceTests", "Tests/DiskFaultTests", "Tests/DocumentationTests",
        "Tests/TidyTests", "Tests/BlackBox",
    ]

    /// The launcher starts the programs of all folders, so that it lies in none of them.
    private static let exceptions = ["Tests/BlackBox/__main__.py"]

    static func faults(path: String) -> [Fault] {
        let folder = path.split(separator: "/").dropLast().joined(separator: "/")
        guard targets.contains(folder), !exceptions.contains(path) else { return [] }
        guard [".swift", ".py"].contains(where: path.hasSuffix) else { return [] }
        return [Fault(path: path, line: 1, message: "lies loose; put it into the folder of its subject")]
    }
}

@Suite("Folders of subjects")
struct RoomRuleTests {
    @Test("No file of the client, of the server or of the tests lies loose")
    func loose() { expectNone(Repository.files.flatMap { RoomRule.faults(path: $0.path) }) }

    @Test("A loose file is found")
    func planted() {
        for folder in ["Tests/ClientTests", "Sources/TidemarkServer"] {
            #expect(RoomRule.faults(path: folder + "/A.swift").count == 1)
            #expect(RoomRule.faults(path: folder + "/Push/A.swift").isEmpty)
            #expect(RoomRule.faults(path: folder + "/A.json").isEmpty)
        }
        #expect(RoomRule.faults(path: "Sources/TidemarkCore/A.swift").isEmpty)
        #expect(RoomRule.faults(path: "Tests/BlackBox/drain.py").count == 1)
        #expect(RoomRule.faults(path: "Tests/BlackBox/torture/drain.py").isEmpty)
        #expect(RoomRule.faults(path: "Tests/BlackBox/__main__.py").isEmpty)
    }
}
