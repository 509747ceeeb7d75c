import Foundation
import GRDB
import SampleApps
import Testing
import TidemarkTesting

@Suite("Simulated worlds")
struct SimulationTests {
    /// TIDEMARK_WORLDS=5000 makes it longer.
    private static let worlds =
        ProcessInfo.processInfo.environment["TIDEMARK_WORLDS"].flatMap(UInt64.init) ?? 30

    @Test("no guarantee is broken, whatever goes wrong", arguments: SampleApps.all.map(\.name))
    func sound(name: String) async throws {
        let simulation = Simulation(of: try #require(SampleApps[name]))
        let report = try await simulation.run(seeds: 1...Self.worlds)
        #expect(report.worlds == Int(Self.worlds))
    }

    @Test("an invariant that does not hold is found, and the script that breaks it is made short")
    func finds() async throws {
        var app = try #require(SampleApps["card"])
        app.finalInvariants = [
            .init("nobody has a card") { db in try Int.fetchOne(db, sql: "SELECT count(*) FROM card") == 0 }
        ]
        let simulation = Simulation(of: app)
        let failure = try #require(
            await #expect(throws: Simulation.Failure.self) { try await simulation.run(seeds: 1...50) })
        #expect(failure.guarantee == "invariant")
        #expect(failure.script.count == 1, "\(failure.script)")
        await #expect(throws: Simulation.Failure.self) { try await simulation.play(failure.script) }
    }

    @Test("an act that cannot be done fails its world, also in a group", arguments: [true, false])
    func brokenAct(isGroup: Bool) async throws {
        var app = try #require(SampleApps["card"])
        app.acts = [.init("err", isGroup: isGroup) { db, _ in try db.execute(sql: "UPDATE nowhere SET a = 1") }]
        let simulation = Simulation(of: app)
        let failure = try #require(
            await #expect(throws: Simulation.Failure.self) { try await simulation.run(seeds: 1...3) })
        #expect(failure.guarantee == "act")
    }

    @Test("a script whose act the app no longer has does not pass")
    func goneAct() async throws {
        let simulation = Simulation(of: try #require(SampleApps["card"]))
        let script = try #require(
            Simulation.Script("world seed 1 devices 1 users 1 page 1\n0 edit shuffle 0"))
        let failure = try #require(
            await #expect(throws: Simulation.Failure.self) { try await simulation.play(script) })
        #expect(failure.guarantee == "script")
    }
}
