import Testing
import Tidemark
import TidemarkTesting

@Suite("Devices and server come to hold the same rows although files are put back to what they were (I4, I11)")
struct RestoreTests {
    @Test(
        "the server's goes back at any moment, with edits, lost answers and snapshots under way",
        arguments: ConvergenceTests.seeds)
    func server(seed: UInt64) async throws { try await play(seed &+ 60_000, serverRestores: 6) }

    @Test("the devices' go back at any moment", arguments: ConvergenceTests.seeds)
    func devices(seed: UInt64) async throws { try await play(seed &+ 80_000, deviceRestores: 6) }

    @Test("the server's and the devices' go back at any moment", arguments: ConvergenceTests.seeds)
    func all(seed: UInt64) async throws {
        try await play(seed &+ 100_000, serverRestores: 5, deviceRestores: 5)
    }

    private func play(_ seed: UInt64, serverRestores: Int = 0, deviceRestores: Int = 0) async throws {
        let world = try ConvergenceWorld<ProjectApp>(seed)
        try await world.start { device, _ in try device.engine(page: world.page) }
        try await world.backUpServer()
        for step in 0..<80 {
            let index = world.next()
            if world.generator.chance(65) {
                try world.devices[index].edit(&world.generator, serial: step)
            } else {
                _ = try? await world.engines[index].syncNow()
            }
            if world.generator.chance(4) { try await world.backUpServer() }
            if world.generator.chance(serverRestores) { try await world.putBackServer() }
            if world.generator.chance(4) { try world.devices[index].backUp() }
            if world.generator.chance(deviceRestores) {
                try world.putBack(index) { device, _ in try device.engine(page: world.page) }
            }
        }
        await world.endFaults()
        for _ in 0..<6 { for engine in world.engines { _ = try? await engine.syncNow() } }
        try await world.sync(times: 1)
        try await world.expectSameRows()
        try world.close()
    }
}
