import Foundation
import TidemarkSQLite
import TidemarkServer

/// The store of a simulated server, and what the world sees of it besides the engine.
@available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
protocol SimulatedStore: ChangeStore {
    /// The store as it is, to be opened again.
    func image() throws -> StoreImage

    /// Closes this one and opens it again in a new incarnation, as it is or (`image`) as it was at some moment.
    func reopened(from image: StoreImage?, seed: UInt64) throws -> any SimulatedStore

    /// A copy of this one, opened beside it.
    func cloned(seed: UInt64) throws -> any SimulatedStore

    func close() throws
    func state(of scope: Scope) throws -> ScopeState
    func log(of scope: Scope, after version: Version) throws -> [LogEntry]
}

/// A store as it was at one moment.
@available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
enum StoreImage: Sendable {
    case memory(MemoryStore.Backup)
    case file(Data)

    /// What it holds, where it was in memory.
    var log: MemoryLog? { if case .memory(let backup) = self { backup.log } else { nil } }
}

/// Thrown where a world mixes up its two kinds of stores.
struct ForeignImage: Error {}

@available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
extension MemoryStore: SimulatedStore {
    func image() -> StoreImage { .memory(backup()) }

    func reopened(from image: StoreImage?, seed: UInt64) throws -> any SimulatedStore {
        guard case .memory(let backup) = image ?? self.image() else { throw ForeignImage() }
        return MemoryStore(backup, seed: seed)
    }

    func cloned(seed: UInt64) -> any SimulatedStore { MemoryStore(backup(), seed: seed) }

    func close() {}
}

/// The store that servers have, on its SQLite file and with threads of its own: each of its calls is over before
/// anything else in the world goes on.
@available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
final class FileStore: SimulatedStore {
    /// Where the file is, where a copy of it would be, and who waits for it.
    typealias Place = (file: URL, copy: URL, executor: SimulatedExecutor)

    private let store: SQLiteStore
    private let place: Place
    var tokenKey: [UInt8] { store.tokenKey }

    /// A new one.
    ///
    /// - Parameter seed: what is random about it follows from that, as it does in memory.
    convenience init(at place: Place, seed: UInt64) throws {
        Self.remove(place)
        try self.init(opening: place, seed: seed)
    }

    private static func remove(_ place: Place) {
        for suffix in ["", "-wal", "-shm"] { try? FileManager.default.removeItem(atPath: place.file.path + suffix) }
    }

    private init(opening place: Place, seed: UInt64) throws {
        self.place = place
        var generator = SplitMix64(seed: seed)
        store = try SQLiteStore(path: place.file.path, seed: StoreSeed(from: &generator)) { _ in }
    }

    func image() throws -> StoreImage {
        let image = place.file.appendingPathExtension("image")
        defer { try? FileManager.default.removeItem(at: image) }
        try store.copy(to: image)
        return .file(try Data(contentsOf: image))
    }

    func cloned(seed: UInt64) throws -> any SimulatedStore {
        let other: Place = (place.copy, place.file, place.executor)
        Self.remove(other)
        try store.copy(to: other.file)
        return try FileStore(opening: other, seed: seed)
    }

    func reopened(from image: StoreImage?, seed: UInt64) throws -> any SimulatedStore {
        try store.close()
        switch image {
        case nil: break
        case .file(let contents):
            Self.remove(place)
            try contents.write(to: place.file)
        case .memory: throw ForeignImage()
        }
        return try FileStore(opening: place, seed: seed)
    }

    func close() throws { try store.close() }
    func state(of scope: Scope) throws -> ScopeState { try store.state(of: scope) }
    func log(of scope: Scope, after version: Version) throws -> [LogEntry] { try store.log(of: scope, after: version) }

    // MARK: What the engine asks

    func read<Result: Sendable>(
        _ scope: Scope, for caller: String, _ body: @escaping @Sendable (any ScopeReader) throws -> Result
    ) async throws -> Result {
        try await place.executor.outside { try await store.read(scope, for: caller, body) }
    }

    func write<Result: Sendable>(
        _ scope: Scope, for caller: String, _ body: @escaping @Sendable (any ScopeWriter) throws -> Result
    ) async throws -> Result {
        try await place.executor.outside { try await store.write(scope, for: caller, body) }
    }

    func sweep(supersededBefore moment: Int64, limit: Int) async throws -> Int {
        try await place.executor.outside { try await store.sweep(supersededBefore: moment, limit: limit) }
    }

    func scopes(after scope: Scope?, limit: Int) async throws -> [Scope] {
        try await place.executor.outside { try await store.scopes(after: scope, limit: limit) }
    }

    func ageClock() async throws -> Int64? { try await place.executor.outside { try await store.ageClock() } }

    func setAgeClock(_ moment: Int64) async throws {
        try await place.executor.outside { try await store.setAgeClock(moment) }
    }

    func rejections(in scope: Scope?, id: Int64?, limit: Int) async throws -> [StoredRejection] {
        try await place.executor.outside { try await store.rejections(in: scope, id: id, limit: limit) }
    }

    func devices(_ query: FleetQuery) async throws -> FleetPage {
        try await place.executor.outside { try await store.devices(query) }
    }

    func discardRejection(_ id: Int64) async throws -> Bool {
        try await place.executor.outside { try await store.discardRejection(id) }
    }
}
