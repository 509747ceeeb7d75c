import Testing

/// Tests, and files of the client and the server, are found by their folder, which is named after its subject.
enum RoomRule {
    /// The targets that have a folder for each subject.
    private static let targets = [
        "Sources/Tidemark", "Sources/TidemarkServer", "Sources/TidemarkSQLite", "Sources/TidemarkPostgres",
        "Tests/ClientTests",
        "Tests/ServerTests", "Tests/EndToEndTests", "Tests/SimulationTests", "Tests/CoreTests", "Tests/WireTests",
        "Tests/ConvergenceTests", "Tests/DiskFaultTests",
    ]

    static func faults(path: String) -> [Fault] {
        let folder = path.split(separator: "/").dropLast().joined(separator: "/")
        guard path.hasSuffix(".swift"), targets.contains(folder) else { return [] }
        return [Fault(path: path, line: 1, message: "lies loose; put it into the folder of its subject")]
    }
}

/// Tests that run in one process without a server of its own wait for what they wait for, and for no length of time.
/// Who has nothing to wait for looks again and again, by `poll(until:)`.
enum SleepRule {
    private static let targets = ["ClientTests", "CoreTests", "WireTests", "ConvergenceTests", "SimulationTests"]

    static func faults(path: String, text: String) -> [Fault] {
        guard targets.contains(where: { path.hasPrefix("Tests/\($0)/") }),
            !path.hasPrefix("Tests/ClientTests/Support/")
        else { return [] }
        return SwiftText(text).code.enumerated().compactMap { index, line in
            guard line.contains(/\b(Task|Thread)\.sleep\b|(?:^|[^.\w])u?sleep\(/) else { return nil }
            return Fault(path: path, line: index + 1, message: "sleeps; wait for what happens, or use poll(until:)")
        }
    }
}

@Suite("Rooms, and tests that do not sleep")
struct RoomRuleTests {
    @Test("No file of the client or the server and no test lies loose")
    func loose() { expectNone(Repository.files.flatMap { RoomRule.faults(path: $0.path) }) }

    @Test("No test of the client, of the core, of the wire or of a world sleeps")
    func sleep() { expectNone(Repository.files.flatMap { SleepRule.faults(path: $0.path, text: $0.text) }) }

    @Test("What lies loose is found")
    func planted() {
        for folder in ["Tests/ClientTests", "Sources/TidemarkServer"] {
            #expect(RoomRule.faults(path: folder + "/A.swift").count == 1)
            #expect(RoomRule.faults(path: folder + "/Push/A.swift").isEmpty)
            #expect(RoomRule.faults(path: folder + "/A.json").isEmpty)
        }
        #expect(RoomRule.faults(path: "Sources/TidemarkCore/A.swift").isEmpty)
    }

    @Test("A sleep is found, and what is only called so passes")
    func plantedSleep() {
        let text = "try await Task.sleep(for: .seconds(1))\nusleep(5)\nlet sleep = 1 // Task.sleep\nclock.sleep(for: x)"
        #expect(SleepRule.faults(path: "Tests/ClientTests/Push/A.swift", text: text).map(\.line) == [1, 2])
        #expect(SleepRule.faults(path: "Tests/SimulationTests/Worlds/A.swift", text: text).count == 2)
        #expect(SleepRule.faults(path: "Tests/ClientTests/Support/A.swift", text: text).isEmpty)
        #expect(SleepRule.faults(path: "Tests/ServerTests/Push/A.swift", text: text).isEmpty)
    }
}
