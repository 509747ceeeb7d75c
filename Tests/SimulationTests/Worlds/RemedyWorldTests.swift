import SampleApps
import Testing
import TidemarkTesting

/// Worlds in which an operator asks something of devices in the midst of other trouble (W108).
@Suite("Worlds with an operator")
struct RemedyWorldTests {
    @Test(
        "nothing is lost where devices are filled anew, slowed down, stopped and cleared",
        arguments: ["task", "ledger"])
    func sound(name: String) async throws {
        var simulation = Simulation(of: try #require(SampleApps[name]))
        simulation.hasRemedies = true
        let report = try await simulation.run(seeds: 1...24)
        #expect(report.worlds == 24)
        for kind in ["refill", "stop"] { #expect(report.remedies[kind] != nil, "\(report.remedies)") }
    }

    @Test("remedies change none of the other steps, and come back from a script")
    func script() throws {
        let kinds = try insertedSteps("remedy", by: \.hasRemedies)
        #expect(kinds == ["refill", "verify", "stop", "clear", "slowDown"])
        #expect(Simulation.Script("world seed 1 devices 1 users 1 page 1\n0 remedy sing") == nil)
        #expect(Simulation.Script("world seed 1 devices 1 users 1 page 1\n0 remedy slowDown 0") == nil)
    }
}
