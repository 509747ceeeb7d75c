import Foundation
import Tidemark
import TidemarkSQLite
import TidemarkTesting

@testable import TidemarkServer
@testable import TidemarkWire

extension SplitMix64 {
    /// The numbers of a world. They are those of the seed before, shifted by one, so that only seeds far apart make
    /// worlds that have nothing in common. The seeds that failed once are of these.
    init(world seed: UInt64) { self.init(seed: seed &* 0x9e37_79b9_7f4a_7c15 &+ 0x1234_5678_9abc_def1) }

    /// Seeds of worlds that have nothing in common.
    static func worlds(_ count: UInt64, from first: UInt64) -> [UInt64] { (0..<count).map { first + $0 * 7919 } }
}

/// The world of one seed: a server on a file of its own, devices on faulty wires, their engines, and the random numbers
/// by which all of it goes on.
final class ConvergenceWorld<App: ConvergenceApp> {
    let seed: UInt64
    var generator: SplitMix64
    /// How many records a page has.
    let page: Int
    private(set) var server: SyncServer
    private(set) var devices: [ConvergenceDevice<App>] = []
    /// Each device's engine, in the order of the devices.
    private(set) var engines: [SyncEngine] = []
    private var store: SQLiteStore
    private let makeServer: (SQLiteStore) -> SyncServer
    private let directory = FileManager.default.temporaryDirectory.appending(path: "tidemark-\(UUID().uuidString)")

    /// - Parameters:
    ///   - shift: how far the seed of the world's own numbers lies behind `seed`.
    ///   - factor: by what `seed` is multiplied for the numbers of the wires.
    ///   - followed: the scopes that each device follows, one entry per device.
    init(
        _ seed: UInt64, shift: UInt64 = 0, wires factor: UInt64 = 31, following followed: [[Scope]]? = nil,
        server makeServer: @escaping (SQLiteStore) -> SyncServer = { SyncServer(store: $0) }
    ) throws {
        self.seed = seed
        self.makeServer = makeServer
        generator = SplitMix64(world: seed &+ shift)
        page = [1, 2, 3, 50][Int(seed % 4)]
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        store = try SQLiteStore(path: directory.appending(path: "server.sqlite").path)
        server = makeServer(store)
        for (index, scopes) in (followed ?? Array(repeating: ["w:1"], count: 3)).enumerated() {
            devices.append(
                try ConvergenceDevice(
                    "d\(index)", scopes, in: directory, server: server, seed: seed &* factor &+ UInt64(index)))
        }
    }

    deinit { try? FileManager.default.removeItem(at: directory) }

    func close() throws { try store.close() }

    /// Makes and installs each device's engine.
    func start(
        _ makeEngine: (ConvergenceDevice<App>, inout SplitMix64) throws -> SyncEngine
    ) async throws {
        engines = try devices.map { try makeEngine($0, &generator) }
        for engine in engines { try await engine.install() }
    }

    /// The app of a device is started anew, with another engine.
    func restart(
        _ index: Int, _ makeEngine: (ConvergenceDevice<App>, inout SplitMix64) throws -> SyncEngine
    ) throws {
        engines[index] = try makeEngine(devices[index], &generator)
    }

    /// The index of a device that does the next step.
    func next() -> Int { Int.random(in: 0..<devices.count, using: &generator) }

    /// From here on no wire loses anything.
    func endFaults() async { for device in devices { await device.transport.endFaults() } }

    /// Every engine syncs, one after the other, so many times.
    func sync(times: Int) async throws {
        for _ in 0..<times { for engine in engines { try await engine.syncNow() } }
    }

    /// The answer to a pull of all that the server has in a scope.
    func log(of scope: Scope = "w:1") async throws -> Data {
        Data(try await server.changes(in: scope, since: nil, limit: 5000, access: .read(as: "ada")))
    }

    /// All changes that the server has in a scope.
    func changes(in scope: Scope = "w:1") async throws -> [[String: Any]] {
        let answer = try JSONSerialization.jsonObject(with: try await log(of: scope)) as? [String: Any]
        return answer?["changes"] as? [[String: Any]] ?? []
    }
}

/// Files that go back to what they were.
extension ConvergenceWorld {
    private var path: URL { directory.appending(path: "server.sqlite") }
    private var backup: URL { directory.appending(path: "backup.sqlite") }

    /// Makes a copy of the server's file.
    func backUpServer() async throws {
        try store.close()
        try StoreFile.copy(path, backup)
        try await reopen()
    }

    /// Puts the server's file back to what it was when it was copied.
    func putBackServer() async throws {
        try store.close()
        try StoreFile.copy(backup, path)
        try await reopen()
    }

    private func reopen() async throws {
        store = try SQLiteStore(path: path.path)
        server = makeServer(store)
        for device in devices { await device.transport.connect(to: ConvergenceDevice<App>.wire(to: server)) }
    }

    /// Puts a device's file back to what it was when it was copied, where it ever was.
    func putBack(
        _ index: Int, _ makeEngine: (ConvergenceDevice<App>, inout SplitMix64) throws -> SyncEngine
    ) throws {
        guard let device = try devices[index].putBack() else { return }
        devices[index] = device
        try restart(index, makeEngine)
    }
}
