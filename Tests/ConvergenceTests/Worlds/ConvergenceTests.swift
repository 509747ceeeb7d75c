import Foundation
import Testing
import Tidemark
import TidemarkSQLite
import TidemarkTesting

@testable import TidemarkServer
@testable import TidemarkWire

@Suite("Devices and server come to hold the same rows (I4)")
struct ConvergenceTests {
    /// More seeds by environment, for long runs; a seed that ever failed belongs into this list.
    static let seeds: [UInt64] = {
        let failedOnce: [UInt64] = [5185, 5209, 5220, 5354]
        let count = ProcessInfo.processInfo.environment["TIDEMARK_SEEDS"].flatMap { UInt64($0) }
        let first = ProcessInfo.processInfo.environment["TIDEMARK_SEED"].flatMap { UInt64($0) } ?? 1
        return SplitMix64.worlds(count ?? 12, from: first) + (count == nil ? failedOnce : [])
    }()

    @Test("devices and server converge, whatever is edited, lost, repeated, cut or started again", arguments: seeds)
    func converge(seed: UInt64) async throws { try await play(seed, isCrowded: false) }

    @Test("with two engines on each file at once, and a server that sweeps without a window", arguments: seeds)
    func crowded(seed: UInt64) async throws { try await play(seed &+ 20_000, isCrowded: true) }

    @Test("where checkpoints and snapshots expire at any moment, with edits under way (A14)", arguments: seeds)
    func expiring(seed: UInt64) async throws { try await play(seed &+ 40_000, isCrowded: seed % 2 == 0, expiry: 25) }

    private func play(_ seed: UInt64, isCrowded: Bool, expiry: Int = 0) async throws {
        var configuration = SyncServer.Configuration()
        if isCrowded { configuration.window = .zero }
        let world = try ConvergenceWorld<ProjectApp>(seed) { store in
            SyncServer(store: store, entities: [.state("task", patch: ["body"])], configuration: configuration)
        }
        for device in world.devices { await device.transport.expire(expiry) }
        try await world.start { device, _ in try device.engine(page: world.page) }
        let others = try world.devices.map { try $0.engine(page: world.page, operationLimit: 1) }

        for step in 0..<80 {
            let index = world.next()
            if world.generator.chance(75) {
                try world.devices[index].edit(&world.generator, serial: step)
            } else if isCrowded {
                if world.generator.chance(30) { _ = try? await world.server.sweep() }
                try await syncCrowded(world, index, others[index])
            } else {
                _ = try? await world.engines[index].syncNow()
            }
            if world.generator.chance(5) {
                let limit = isCrowded ? Int.random(in: 1...12, using: &world.generator) : nil
                try world.restart(index) { device, _ in try device.engine(page: world.page, operationLimit: limit) }
            }
        }

        await world.endFaults()
        try await world.sync(times: 4)
        for engine in world.engines {
            let report = try await engine.verify()
            #expect(report.isClean && report.differing == 0, "seed \(seed) \(report.scopes)")
        }
        try await world.expectSameRows()
        try world.close()
    }

    /// One engine, the other, or both at the same time: a failure is the wire's, and mended later.
    private func syncCrowded(
        _ world: ConvergenceWorld<ProjectApp>, _ index: Int, _ second: SyncEngine
    ) async throws {
        let first = world.engines[index]
        if world.generator.chance(40) {
            async let one = try? first.syncNow()
            async let two = try? second.syncNow()
            _ = await (one, two)
        } else {
            _ = try? await (world.generator.chance(30) ? second : first).syncNow()
        }
    }
}
