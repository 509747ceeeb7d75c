import SampleApps
import Testing
import TidemarkTesting

@Suite("Worlds whose server has its SQLite store")
struct SQLiteServerTests {
    /// Worlds with attachments have theirs in memory.
    ///
    /// Bytes on the wire, versions, tokens and the order of all that happens: whatever differs changes the trace.
    @Test(
        "are the same, to the byte, as those in memory",
        arguments: SampleApps.all.map(\.name).filter { $0 != "album" })
    func same(name: String) async throws {
        let simulation = Simulation(of: try #require(SampleApps[name]))
        for seed in 1...6 as ClosedRange<UInt64> {
            var script = simulation.script(seed: seed)
            script.usesSQLite = false
            var memory = try await simulation.play(script)
            script.usesSQLite = true
            let file = try await simulation.play(script)
            memory.duration = file.duration
            #expect(file == memory, "seed \(seed)")
        }
    }
}
