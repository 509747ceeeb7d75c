import SampleApps
import Testing
import TidemarkTesting

/// Worlds whose devices send the next request while they apply an answer, as real ones do.
@Suite("Worlds in which requests go early")
struct EarlyWorldTests {
    @Test(
        "nothing is lost where devices are killed between an early request and the answer before it",
        arguments: ["task", "ledger", "order", "trigger", "migrating", "catalog"])
    func sound(name: String) async throws {
        var simulation = Simulation(of: try #require(SampleApps[name]))
        simulation.sendsEarly = true
        let report = try await simulation.run(seeds: 1...32)
        #expect(report.worlds == 32)
        #expect(report.early > 2, "\(report.early) requests went early")
    }

    @Test("a script says that requests go early")
    func script() throws {
        var simulation = Simulation(of: try #require(SampleApps["task"]))
        simulation.sendsEarly = true
        let early = simulation.script(seed: 1)
        #expect(early.description.contains(" early\n") && Simulation.Script(early.description) == early)
        #expect(Simulation.Script(early.description.replacing(" early", with: "")) != early)
    }
}
