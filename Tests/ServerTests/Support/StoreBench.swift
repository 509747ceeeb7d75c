import Foundation
import PostgresCluster
import Testing
import TidemarkPostgres
import TidemarkSQLite
import TidemarkTesting
import TidemarkWire

@testable import TidemarkServer

/// The stores that the conformance suite holds to the seam's promises. A new one joins by a case here.
enum StoreKind: String, CaseIterable, Sendable {
    case sqlite
    case memory
    case postgres
    case partitionedPostgres
}

/// One store of a kind, and how it is opened again. What is random about it is the same for all kinds.
final class StoreBench {
    private(set) var store: any ChangeStore
    private let again: (any ChangeStore, _ opening: UInt64) throws -> any ChangeStore
    private var openings: UInt64 = 1
    private let end: (any ChangeStore) -> Void

    init(_ kind: StoreKind, on cluster: PostgresCluster? = nil) throws {
        switch kind {
        case .sqlite:
            let directory = FileManager.default.temporaryDirectory.appending(path: "tidemark-\(UUID().uuidString)")
            try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
            let path = directory.appending(path: "sync.sqlite").path
            store = try SQLiteStore(path: path, seed: StoreSeed(opening: openings)) { _ in }
            again = { store, opening in
                try (store as? SQLiteStore)?.close()
                return try SQLiteStore(path: path, seed: StoreSeed(opening: opening)) { _ in }
            }
            end = { store in
                try? (store as? SQLiteStore)?.close()
                try? FileManager.default.removeItem(at: directory)
            }
        case .memory:
            store = MemoryStore(seed: openings)
            again = { store, opening in
                MemoryStore(try #require(store as? MemoryStore).backup(), seed: opening)
            }
            end = { _ in }
        case .postgres, .partitionedPostgres:
            let cluster = try cluster ?? PostgresCluster.shared.get()
            var configuration = PostgresStore.Configuration()
            configuration.schema = "bench_" + UUID().uuidString.replacing("-", with: "").lowercased()
            (configuration.writers, configuration.readers) = (3, 2)
            configuration.partitions = kind == .partitionedPostgres ? 4 : 0
            let (url, settings) = (cluster.url(), configuration)
            store = try PostgresStore(url: url, configuration: settings, seed: StoreSeed(opening: openings))
            again = { store, opening in
                (store as? PostgresStore)?.close()
                return try PostgresStore(url: url, configuration: settings, seed: StoreSeed(opening: opening))
            }
            end = { store in (store as? PostgresStore)?.close() }
        }
    }

    deinit { end(store) }

    func reopen() throws {
        openings += 1
        store = try again(store, openings)
    }

    @discardableResult
    func write<Result: Sendable>(
        _ scope: Scope = "s", _ body: @escaping @Sendable (any ScopeWriter) throws -> Result
    ) async throws -> Result {
        try await store.write(scope, body)
    }

    func read<Result: Sendable>(
        _ scope: Scope = "s", _ body: @escaping @Sendable (any ScopeReader) throws -> Result
    ) async throws -> Result {
        try await store.read(scope, body)
    }

    /// Appends rows in one write, a millisecond apart.
    @discardableResult
    func append(_ rows: NewRow..., to scope: Scope = "s", at moment: Int64 = 1000) async throws -> [Version] {
        try await write(scope) { writer in
            try rows.enumerated().map { try writer.append($1, at: moment + Int64($0)) }
        }
    }

    func state(_ scope: Scope = "s") async throws -> ScopeState { try await read(scope) { $0.state } }

    /// The changes that a scan to a horizon sees.
    func changes(
        _ scope: Scope = "s", after position: Version = 0, through horizon: Version = .max,
        tombstonesAfter: Version = 0
    ) async throws -> [SeenChange] {
        try await read(scope) { reader in
            try reader.seen(after: position, through: horizon, tombstonesAfter: tombstonesAfter)
        }
    }
}

extension StoreSeed {
    /// As a memory store derives it.
    fileprivate init(opening: UInt64) {
        var generator = SplitMix64(seed: opening)
        self.init(from: &generator)
    }
}

/// A row as a visitor saw it, kept.
struct SeenChange: Hashable, Sendable, CustomStringConvertible {
    var version: Version
    var kind: RowKind
    var time: Int64
    var entity: String
    var record: RecordID
    var payload: String

    init?(_ change: BorrowedChange) {
        guard let record = RecordID(String(decoding: change.record, as: UTF8.self)) else { return nil }
        (version, kind, time, self.record) = (change.version, change.kind, change.time, record)
        entity = String(decoding: change.entity, as: UTF8.self)
        payload = String(decoding: change.payload, as: UTF8.self)
    }

    var description: String { "\(version) \(kind) \(entity)/\(record.text.utf8.map { $0 }) \(payload) at \(time)" }
}

extension ScopeReader {
    func seen(after position: Version, through horizon: Version, tombstonesAfter: Version) throws -> [SeenChange] {
        var seen: [SeenChange] = []
        try changes(after: position, through: horizon, tombstonesAfter: tombstonesAfter) { change in
            SeenChange(change).map { seen.append($0) } != nil
        }
        return seen
    }

    func seen(
        of entity: String, above base: Version = 0, at horizon: Version? = nil, after record: RecordID? = nil
    ) throws -> [SeenChange] {
        var seen: [SeenChange] = []
        try records(of: entity, above: base, at: horizon, after: record) { change in
            SeenChange(change).map { seen.append($0) } != nil
        }
        return seen
    }
}

extension NewRow {
    static func upsert(_ id: RecordID, _ fields: String = "{}", of entity: String = "task") -> NewRow {
        NewRow(entity: entity, record: id, kind: .upsert, payload: Array(fields.utf8))
    }

    static func delete(_ id: RecordID, madeOn version: Version? = nil, of entity: String = "task") -> NewRow {
        NewRow(entity: entity, record: id, kind: .delete, payload: version.map { Array("\($0)".utf8) })
    }

    static func event(_ id: RecordID, _ data: String = "{}", of entity: String = "audit") -> NewRow {
        NewRow(entity: entity, record: id, kind: .event, payload: Array(data.utf8))
    }

    static func idmap(_ id: RecordID) -> NewRow {
        NewRow(entity: "", record: id, kind: .idmap, payload: Array(#""entity":"task""#.utf8))
    }
}

extension StoredVerdict {
    static func applied(_ version: Version?) -> StoredVerdict {
        StoredVerdict(
            digest: [1, 2], members: Array(#""status":"applied""#.utf8), version: version, baseNumber: nil,
            tookEffect: version != nil)
    }
}

/// What a write throws that is to be undone.
struct Undone: Error {}

/// Two counts as one value that a test can compare.
func pair(_ counts: (some BinaryInteger, some BinaryInteger)) -> [Int64] { [Int64(counts.0), Int64(counts.1)] }
