import Foundation
import SampleApps
import Testing
import TidemarkSpawning
import TidemarkTesting

@Suite("A world can be written down and played again")
struct ScriptTests {
    @Test("a script survives its text", arguments: 1...50 as ClosedRange<UInt64>)
    func text(seed: UInt64) throws {
        let script = Simulation(of: TaskApp.app).script(seed: seed)
        #expect(Simulation.Script(script.description) == script)
    }

    @Test("the same seeds make the same world, to the byte", arguments: SampleApps.all.map(\.name))
    func again(name: String) async throws {
        let simulation = Simulation(of: try #require(SampleApps[name]))
        let first = try await simulation.run(seeds: 1...4)
        var second = try await simulation.run(seeds: 1...4)
        second.duration = first.duration
        #expect(first == second)
    }

    /// Names in dictionaries are hashed otherwise in each process: nothing may follow from their order.
    @Test("and in another process", arguments: SampleApps.all.map(\.name))
    func elsewhere(name: String) async throws {
        let report = try await Simulation(of: try #require(SampleApps[name])).run(seeds: 1...4)
        let simulator = URL(filePath: CommandLine.arguments[0]).deletingLastPathComponent()
            .appending(path: "TidemarkSimulator")
        let text = try Spawned.output(of: [simulator.path, "--app", name, "--count", "4"])
        #expect(text.contains("trace \(report.trace)\n"), "\(text)")
    }
}
