import Foundation
import GRDB
import Testing
import Tidemark
import TidemarkSQLite
import TidemarkTesting

@testable import TidemarkServer
@testable import TidemarkWire

@Suite("Devices and server come to hold the same rows although files are put back to what they were (I4, I11)")
struct RestoreTests {
    @Test(
        "the server's, at any moment, with edits, lost answers and snapshots under way",
        arguments: ConvergenceTests.seeds)
    func server(seed: UInt64) async throws { try await Play(seed &+ 60_000, serverRestores: 6).run() }

    @Test("the devices'", arguments: ConvergenceTests.seeds)
    func devices(seed: UInt64) async throws { try await Play(seed &+ 80_000, deviceRestores: 6).run() }

    @Test("both", arguments: ConvergenceTests.seeds)
    func all(seed: UInt64) async throws {
        try await Play(seed &+ 100_000, serverRestores: 5, deviceRestores: 5).run()
    }

    /// One seed's story.
    private final class Play {
        private let seed: UInt64
        private let serverRestores: Int
        private let deviceRestores: Int
        private var generator: SplitMix64
        private let directory = FileManager.default.temporaryDirectory.appending(path: "tidemark-\(UUID().uuidString)")
        private let path: URL
        private var store: SQLiteStore
        private var server: SyncServer
        private var devices: [Device] = []

        init(_ seed: UInt64, serverRestores: Int = 0, deviceRestores: Int = 0) throws {
            self.seed = seed
            self.serverRestores = serverRestores
            self.deviceRestores = deviceRestores
            generator = SplitMix64(world: seed)
            try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
            path = directory.appending(path: "server.sqlite")
            store = try SQLiteStore(path: path.path)
            server = SyncServer(store: store)
            devices = try (0..<3).map { index in
                try Device("d\(index)", in: directory, server: server, seed: seed &* 31 &+ UInt64(index))
            }
        }

        deinit { try? FileManager.default.removeItem(at: directory) }

        func run() async throws {
            let page = [1, 2, 3, 50][Int(seed % 4)]
            var engines = try devices.map { try $0.engine(page: page) }
            for engine in engines { try await engine.install() }
            try await copyStore(to: backup)
            for step in 0..<80 {
                let index = Int.random(in: 0..<devices.count, using: &generator)
                if generator.chance(65) {
                    try devices[index].edit(&generator, serial: step)
                } else {
                    _ = try? await engines[index].syncNow()
                }
                if generator.chance(4) { try await copyStore(to: backup) }
                if generator.chance(serverRestores) { try await restoreStore() }
                if generator.chance(4) { try devices[index].backUp() }
                if generator.chance(deviceRestores), let restored = try devices[index].putBack() {
                    devices[index] = restored
                    engines[index] = try restored.engine(page: page)
                }
            }
            for device in devices { await device.transport.heal() }
            for _ in 0..<6 { for engine in engines { _ = try? await engine.syncNow() } }
            for engine in engines { try await engine.syncNow() }
            try await ConvergenceTests.check(devices, server, seed: seed)
            try store.close()
        }

        private var backup: URL { directory.appending(path: "backup.sqlite") }

        private func copyStore(to other: URL) async throws {
            try store.close()
            try StoreFile.copy(path, other)
            try await reopen()
        }

        private func restoreStore() async throws {
            try store.close()
            try StoreFile.copy(backup, path)
            try await reopen()
        }

        private func reopen() async throws {
            store = try SQLiteStore(path: path.path)
            server = SyncServer(store: store)
            for device in devices { await device.transport.connect(to: Device.wire(to: server)) }
        }
    }
}
