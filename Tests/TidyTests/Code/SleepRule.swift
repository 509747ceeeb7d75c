import Testing

/// A test waits for an event, and for no length of time. Where no event tells of it, the test looks again and again
/// with `poll(until:)`. A clock of the tests may declare a `sleep(for:)`, and hand it on to another one.
enum SleepRule {
    private static let targets = [
        "ClientTests", "CoreTests", "WireTests", "ConvergenceTests", "SimulationTests", "ServerTests", "EndToEndTests",
        "DiskFaultTests", "PostgresCluster",
    ]

    /// A file whose tests sleep, in how many places, and the cause.
    struct Exception {
        let file: String
        let sleeps: Int
        let because: String
    }

    static let exceptions = [
        Exception(file: "ClientTests/Support/Polling.swift", sleeps: 1, because: "it is poll(until:)"),
        Exception(
            file: "ClientTests/Support/TestClock.swift", sleeps: 2,
            because: "whoever holds a lock waits on a thread, not in a task; a wait never ends, on purpose"),
        Exception(file: "ServerTests/Support/Polling.swift", sleeps: 1, because: "it is poll(until:)"),
        Exception(file: "EndToEndTests/Support/Polling.swift", sleeps: 1, because: "it is poll(until:)"),
        Exception(
            file: "EndToEndTests/Support/Socket.swift", sleeps: 1,
            because: "a socket is written to for as long as the other side takes it, and says what is left"),
        Exception(
            file: "DiskFaultTests/Scenarios/Scenarios+History.swift", sleeps: 1,
            because: "what a server keeps for no time at all goes once its clock has gone on"),
        Exception(
            file: "DiskFaultTests/Scenarios/Stage+Acts.swift", sleeps: 1,
            because: "it gives the disk room after a while, and looks until then as fast as it may"),
        Exception(
            file: "ServerTests/Postgres/PostgresLossTests.swift", sleeps: 4,
            because: "the database ends at any moment of work; a thread off the pool looks for a commit that waits"),
        Exception(
            file: "ServerTests/Postgres/PostgresNodesTests.swift", sleeps: 3,
            because: "a write takes long on purpose; its body is not async"),
        Exception(
            file: "ServerTests/Support/PostgresBench.swift", sleeps: 2,
            because: "whoever was refused for now asks again after a pause"),
        Exception(
            file: "ServerTests/Tables/TableTroubleTests.swift", sleeps: 2,
            because: "a write takes long on purpose, in a body that is not async; the database ends at any moment"),
        Exception(
            file: "ServerTests/Turns/FairTurnTests.swift", sleeps: 2,
            because: "a write takes long on purpose; a worker that connects is in no queue"),
        Exception(
            file: "EndToEndTests/Blobs/BlobConnectionTests.swift", sleeps: 1,
            because: "a body is sent slowly on purpose"),
        Exception(
            file: "EndToEndTests/Blobs/BlobUploadTests.swift", sleeps: 2,
            because: "a connection is reset at any moment, and again where nothing of it has come"),
        Exception(
            file: "EndToEndTests/Clients/URLLoadingTests.swift", sleeps: 1,
            because: "a request is cancelled at any moment"),
        Exception(
            file: "EndToEndTests/Command/AttachCommandTests.swift", sleeps: 1,
            because: "a node is killed at any moment"),
        Exception(
            file: "EndToEndTests/Command/FileWatchTests.swift", sleeps: 1,
            because: "nothing is to come, and nothing tells of that"),
        Exception(
            file: "EndToEndTests/Crashes/BlobKillTests.swift", sleeps: 1, because: "a server is killed at any moment"),
        Exception(
            file: "EndToEndTests/Crashes/BootstrapKillTests.swift", sleeps: 4,
            because: "a program is killed at any moment, for which it is waited a second at most"),
        Exception(
            file: "EndToEndTests/Crashes/CrashTests.swift", sleeps: 3,
            because: "a server is killed at any moment; a device whose push fails rests"),
        Exception(
            file: "EndToEndTests/Hooks/WebhookReceiver.swift", sleeps: 1, because: "it never answers, on purpose"),
        Exception(
            file: "EndToEndTests/Objects/ObjectAnswerTests.swift", sleeps: 1,
            because: "an answer takes long on purpose, and comes in the end"),
        Exception(
            file: "EndToEndTests/Streams/EventStreamTests.swift", sleeps: 1,
            because: "an event comes between two comments, on the server's real clock"),
        Exception(
            file: "EndToEndTests/Streams/OpenEvents.swift", sleeps: 1, because: "it tells what has come instead"),
        Exception(
            file: "EndToEndTests/Streams/OpenSocket.swift", sleeps: 2, because: "it tells what has come instead"),
        Exception(
            file: "PostgresCluster/PostgresCluster.swift", sleeps: 2,
            because: "a database is away for a while on purpose; it is looked for on a thread, not in a task"),
    ]

    static func faults(path: String, text: String, exceptions: [Exception] = SleepRule.exceptions) -> [Fault] {
        guard targets.contains(where: { path.hasPrefix("Tests/\($0)/") }) else { return [] }
        let sleeps = SwiftText(text).code.enumerated().filter { _, line in
            line.replacing("func sleep(", with: "").contains(/\b(Task|Thread)\.sleep\b|(?:^|[^.\w])u?sleep\(/)
        }
        let allowed = exceptions.first { path == "Tests/" + $0.file }?.sleeps ?? 0
        if sleeps.count < allowed {
            return [Fault(path: path, line: 1, message: "sleeps in \(sleeps.count) places, not \(allowed)")]
        }
        guard sleeps.count > allowed else { return [] }
        return sleeps.map { index, _ in
            Fault(path: path, line: index + 1, message: "sleeps; wait for what happens, or use poll(until:)")
        }
    }
}

@Suite("Tests that do not sleep")
struct SleepRuleTests {
    @Test("No test sleeps that has no cause to")
    func sleep() { expectNone(Repository.files.flatMap { SleepRule.faults(path: $0.path, text: $0.text) }) }

    @Test("Each exception is a file of the tests, and is there once")
    func exceptions() {
        let paths = Set(Repository.files.map(\.path))
        #expect(SleepRule.exceptions.allSatisfy { paths.contains("Tests/" + $0.file) && !$0.because.isEmpty })
        #expect(Set(SleepRule.exceptions.map(\.file)).count == SleepRule.exceptions.count)
    }

    @Test("A sleep is found, and what is only called so passes")
    func planted() {
        let text = "try await Task.sleep(for: .seconds(1))\nusleep(5)\nlet sleep = 1 // Task.sleep\nclock.sleep(for: x)"
        #expect(SleepRule.faults(path: "Tests/ClientTests/Push/A.swift", text: text).map(\.line) == [1, 2])
        #expect(SleepRule.faults(path: "Tests/ServerTests/Push/A.swift", text: text).count == 2)
        #expect(SleepRule.faults(path: "Tests/ClientTests/Support/A.swift", text: text).count == 2)
        #expect(SleepRule.faults(path: "Tests/PostgresCluster/A.swift", text: text).count == 2)
        #expect(SleepRule.faults(path: "Tests/TidyTests/Code/A.swift", text: text).isEmpty)
    }

    @Test("A clock of the tests may declare how it sleeps, and not sleep there")
    func declared() {
        let text = "func sleep(for time: Duration) async {\n}\nfunc sleep(for time: Duration) { usleep(5) }"
        #expect(SleepRule.faults(path: "Tests/ClientTests/Support/A.swift", text: text).map(\.line) == [3])
    }

    @Test("A file that is allowed to sleep sleeps in so many places, no more and no fewer", arguments: 1...3)
    func counted(sleeps: Int) {
        let exception = SleepRule.Exception(file: "ServerTests/Push/A.swift", sleeps: sleeps, because: "it is a test")
        let faults = SleepRule.faults(
            path: "Tests/ServerTests/Push/A.swift", text: "usleep(5)\nusleep(5)", exceptions: [exception])
        #expect(faults.map(\.line) == (sleeps == 1 ? [1, 2] : sleeps == 2 ? [] : [1]))
    }
}
