import Foundation
import GRDB
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

    @Test("whatever is edited, lost, repeated, cut or started again", arguments: seeds)
    func converge(seed: UInt64) async throws { try await play(seed, isCrowded: false) }

    @Test("with two engines on each file at once, and a server that sweeps without a window", arguments: seeds)
    func crowded(seed: UInt64) async throws { try await play(seed &+ 20_000, isCrowded: true) }

    @Test("where checkpoints and snapshots expire at any moment, with edits under way (A14)", arguments: seeds)
    func expiring(seed: UInt64) async throws { try await play(seed &+ 40_000, isCrowded: seed % 2 == 0, expiry: 25) }

    private func play(_ seed: UInt64, isCrowded: Bool, expiry: Int = 0) async throws {
        let directory = FileManager.default.temporaryDirectory.appending(path: "tidemark-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: directory) }
        var generator = SplitMix64(world: seed)
        let store = try SQLiteStore(path: directory.appending(path: "server.sqlite").path)
        var configuration = SyncServer.Configuration()
        if isCrowded { configuration.window = .zero }
        let server = SyncServer(
            store: store, entities: [.state("task", patch: ["body"])], configuration: configuration)
        let devices = try (0..<3).map { index in
            try Device("d\(index)", in: directory, server: server, seed: seed &* 31 &+ UInt64(index))
        }
        for device in devices { await device.transport.expire(expiry) }
        let page = [1, 2, 3, 50][Int(seed % 4)]
        var engines = try devices.map { try $0.engine(page: page) }
        let others = try devices.map { try $0.engine(page: page, operationLimit: 1) }
        for engine in engines { try await engine.install() }

        for step in 0..<80 {
            let index = Int.random(in: 0..<devices.count, using: &generator)
            if generator.chance(75) {
                try devices[index].edit(&generator, serial: step)
            } else if isCrowded {
                if generator.chance(30) { _ = try? await server.sweep() }
                try await syncCrowded(engines[index], others[index], &generator)
            } else {
                _ = try? await engines[index].syncNow()
            }
            if generator.chance(5) {
                let limit = isCrowded ? Int.random(in: 1...12, using: &generator) : nil
                engines[index] = try devices[index].engine(page: page, operationLimit: limit)
            }
        }

        for device in devices { await device.transport.heal() }
        for _ in 0..<4 { for engine in engines { try await engine.syncNow() } }
        for engine in engines {
            let report = try await engine.verify()
            #expect(report.isClean && report.differing == 0, "seed \(seed) \(report.scopes)")
        }
        try await Self.check(devices, server, seed: seed)
        try store.close()
    }

    /// One engine, the other, or both at the same time: a failure is the wire's, and healed later.
    private func syncCrowded(
        _ first: SyncEngine, _ second: SyncEngine, _ generator: inout SplitMix64
    ) async throws {
        if generator.chance(40) {
            async let one = try? first.syncNow()
            async let two = try? second.syncNow()
            _ = await (one, two)
        } else {
            _ = try? await (generator.chance(30) ? second : first).syncNow()
        }
    }

    static func check(_ devices: [Device], _ server: SyncServer, seed: UInt64) async throws {
        for device in devices {
            #expect(
                try device.count("SELECT count(*) FROM tidemark_shadow_project") == 0, "seed \(seed) \(device.name)")
            #expect(try device.count("SELECT count(*) FROM tidemark_shadow_task") == 0, "seed \(seed) \(device.name)")
            #expect(
                try device.count("SELECT count(*) FROM tidemark_operation WHERE finished_at IS NULL") == 0,
                "seed \(seed) \(device.name)")
        }
        for table in ["project", "task"] {
            let first = try devices[0].rows(table)
            for device in devices.dropFirst() { #expect(try device.rows(table) == first, "seed \(seed) \(table)") }
            let served = try await ids(of: table, on: server)
            for device in devices {
                let here = try await device.queue.read { db in
                    try String.fetchSet(
                        db,
                        sql: """
                            SELECT CAST(id AS TEXT) FROM \(table)
                            UNION SELECT record FROM tidemark_quarantine WHERE entity = '\(table)'
                            """)
                }
                #expect(here == served, "seed \(seed) \(table) \(device.name)")
            }
        }
    }

    private static func ids(of entity: String, on server: SyncServer) async throws -> Set<String> {
        let bytes = try await server.changes(in: "w:1", since: nil, limit: 5000, access: .read(as: "ada"))
        let answer = try JSONSerialization.jsonObject(with: Data(bytes)) as? [String: Any]
        let changes = answer?["changes"] as? [[String: Any]] ?? []
        return Set(changes.filter { $0["entity"] as? String == entity }.compactMap { $0["id"] as? String })
    }
}
