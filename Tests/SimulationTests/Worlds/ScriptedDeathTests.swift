import SampleApps
import Testing
import TidemarkTesting

/// Each world ends in calm, so that whatever was lost with a process would be missed.
@Suite("Apps and servers die where a script says")
struct ScriptedDeathTests {
    private static let beginning = """
        world seed 1 devices 2 users 1 page 1
        1 edit addProject 5
        1 edit addProject 6
        """

    private func deaths(_ lines: String) async throws -> [String: Int] {
        let script = try #require(Simulation.Script(Self.beginning + "\n" + lines))
        return try await Simulation(of: TaskApp.app).play(script).deaths
    }

    @Test(
        "just before or after what they write or send",
        arguments: ["seal", "apply", "page", "/sync", "/sync/push", "/sync/snapshot"], ["before", "after"])
    func app(point: String, side: String) async throws {
        // The first message is about the declarations; a scope that is not filled yet pushes and takes pages.
        let isFilling = ["page", "/sync/push", "/sync/snapshot"].contains(point)
        let lines =
            isFilling
            ? "0 edit replaceProject 3\n0 kill \(side) \(point)\nflow\n0 start\nflow"
            : "flow\n0 edit replaceProject 3\n0 kill \(side) \(point)\n0 sync\nflow\n0 start\nflow"
        #expect(try await deaths(lines) == ["app \(side) \(point)": 1])
    }

    @Test("before, within and after a use of their store", arguments: 0...5)
    func server(place: Int) async throws {
        let deaths = try await deaths("flow\n0 edit replaceProject 3\nserver kill \(place)\nflow\n0 sync\nflow")
        let side = ["before", "within", "after"][place % 3]
        #expect(deaths == ["server \(side) \(place < 3 ? "write" : "read")": 1])
    }

    /// A write within which the server dies is undone, so that it is asked for anew; one that it dies after is there.
    @Test("and what they had written by then is there", arguments: 0...2)
    func undone(place: Int) async throws {
        let lines = "flow\n0 edit replaceProject 3\nserver kill \(place)\nflow\n0 sync\nflow"
        let script = try #require(Simulation.Script(Self.beginning + "\n" + lines))
        let trace = try await Simulation(of: TaskApp.app).trace(of: script)
        #expect(trace.contains { $0.contains(#""replayed":true"#) } == (place == 2))
    }

    @Test("and nowhere else: a name that nobody has makes no script")
    func misspelled() {
        #expect(Simulation.Script(Self.beginning + "\n0 kill before sael") == nil)
        #expect(Simulation.Script(Self.beginning + "\n0 kill during seal") == nil)
        #expect(Simulation.Script(Self.beginning + "\n0 kill before leave") != nil)
    }

    @Test("a death that never comes is none")
    func survivor() async throws {
        #expect(try await deaths("0 kill before leave\nserver kill 100000\nflow").isEmpty)
    }
}
