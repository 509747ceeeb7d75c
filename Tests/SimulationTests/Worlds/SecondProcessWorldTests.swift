import SampleApps
import Testing
import TidemarkTesting

/// Worlds in which an extension of the app syncs the same file, or another program does (decision 19).
@Suite("Worlds with a second process on the file")
struct SecondProcessWorldTests {
    @Test(
        "nothing is lost where two processes edit and sync one file, take over and are killed",
        arguments: ["task", "ledger", "migrating"])
    func sound(name: String) async throws {
        var simulation = Simulation(of: try #require(SampleApps[name]))
        simulation.hasSecondProcesses = true
        let report = try await simulation.run(seeds: 1...24)
        #expect(report.worlds == 24)
        #expect(report.handovers > 10)
    }

    @Test("second processes change none of the other steps, and come back from a script")
    func script() throws {
        let kinds = try insertedSteps("second", by: \.hasSecondProcesses)
        #expect(kinds == ["start", "stop", "sync", "kill", "edit", "resign", "resume", "wait"])
        #expect(Simulation.Script("world seed 1 devices 1 users 1 page 1\n0 second sing") == nil)
        #expect(Simulation.Script("world seed 1 devices 1 users 1 page 1\n0 second kill -1") == nil)
    }
}
