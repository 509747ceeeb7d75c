import Foundation
import Testing
import TidemarkCore
import TidemarkSQLite
import TidemarkWire

@testable import TidemarkServer

/// A copy of a store in a file, with its blobs (A12).
@Suite("A copy of a store is whole, or is not there")
struct StoreBackupTests {
    private let bench: Bench
    private static let room = BlobRoom(scope: 4 << 20, caller: 4 << 20, parts: 9)

    init() throws { bench = try Bench(entities: [.state("task")]) }

    private var target: String { bench.directory.appending(path: "copy").path }

    private func name(_ bytes: [UInt8], in scope: Scope) -> BlobPartName {
        let hash = SHA256.digest(bytes).map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
        return BlobPartName(scope: scope, principal: "ada", hash: hash)
    }

    private func put(_ bytes: [UInt8], in scope: Scope = "s") async throws -> BlobPartName {
        let name = name(bytes, in: scope)
        let begun = try await bench.store.begin(name, size: Int64(bytes.count), within: Self.room, at: 1)
        let part = try await bench.store.append(bytes, to: begun, isLast: true, at: 1)
        #expect(try await bench.store.finish(part, at: 1))
        return name
    }

    private func names(_ folder: String) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: folder).sorted()
    }

    @Test("It has the rows, the blobs that they name and no part, and goes on by itself")
    func whole() async throws {
        try await bench.server.commit(to: "s") { $0.upsert("task", id: "t1", ["title": "one"]) }
        let (one, two) = (try await put([1, 2, 3]), try await put([4, 5], in: "t"))
        let unfinished = name([9, 9], in: "s")
        _ = try await bench.store.begin(unfinished, size: 2, within: Self.room, at: 1)
        let told = Guarded<[Int]>([])
        let backup = try await bench.store.backUp(to: target + "/") { backup in
            told.withLock { $0.append(backup.blobs) }
        }
        #expect((backup.expected, backup.blobs, backup.bytes, backup.missing) == (2, 2, 5, 0))
        #expect(told.withLock { $0 } == [1, 2])
        #expect(try names(target) == ["sync.sqlite", "sync.sqlite-blobs"])
        #expect(try names(bench.directory.path).filter { $0.hasPrefix("copy") } == ["copy"])

        let copy = try SQLiteStore(path: target + "/sync.sqlite")
        let server = SyncServer(store: copy, entities: [.state("task")], configuration: .still)
        let found = try await server.rehashBlobs()
        #expect((found.blobs, found.damaged) == (2, 0))
        #expect(try await copy.blobTally(of: "s", by: nil) == BlobTally(blobs: 1, bytes: 3))
        #expect(try await copy.part(unfinished) == nil)
        #expect(try await bench.store.part(unfinished) != nil)
        try await server.commit(to: "s") { $0.upsert("task", id: "t2", ["title": "two"]) }
        #expect(try await bench.store.read("s") { $0.state.head } == 1)
        // The two stores share no fate, though they may share files.
        let blob = try #require(try await copy.blob(one.hash, in: "s"))
        #expect(try await copy.remove(blob, in: "s", seenBefore: .max))
        #expect(try await bench.store.blob(one.hash, in: "s") != nil)
        #expect(try await bench.server.rehashBlobs().damaged == 0)
        #expect(try await copy.blob(two.hash, in: "t") != nil)
        try copy.close()
    }

    @Test("A blob whose file is gone is left out with its row, and counted")
    func gone() async throws {
        let (one, two) = (try await put([1, 2, 3]), try await put([4, 5]))
        let folder = bench.directory.appending(path: "sync.sqlite-blobs")
        let files = FileManager.default.enumerator(at: folder, includingPropertiesForKeys: nil)?.allObjects ?? []
        let file = try #require(files.compactMap { $0 as? URL }.first { $0.lastPathComponent == one.hash })
        try FileManager.default.removeItem(at: file)
        let backup = try await bench.store.backUp(to: target)
        #expect((backup.expected, backup.blobs, backup.missing) == (2, 1, 1))
        let copy = try SQLiteStore(path: target + "/sync.sqlite")
        #expect(try await copy.blobs(in: "s", after: nil, seenBefore: .max, limit: 9).map(\.hash) == [two.hash])
        #expect(try await copy.blobTally(of: "s", by: nil) == BlobTally(blobs: 1, bytes: 2))
        try copy.close()
    }

    @Test("Nothing is written over, and what cannot be made leaves nothing behind")
    func refused() async throws {
        _ = try await put([1, 2, 3])
        try Data([7]).write(to: URL(filePath: target))
        await #expect(throws: BackupRefusal.self) { try await bench.store.backUp(to: target) }
        #expect(try Data(contentsOf: URL(filePath: target)) == Data([7]))
        let other = bench.directory.appending(path: "other").path
        try FileManager.default.createDirectory(atPath: other + ".partial", withIntermediateDirectories: false)
        await #expect(throws: BackupRefusal.self) { try await bench.store.backUp(to: other) }
        #expect(try names(other + ".partial") == [])
        await #expect(throws: BackupRefusal.self) { try await bench.store.backUp(to: target + "/below/copy") }
        #expect(try names(bench.directory.path).filter { !$0.hasPrefix("sync") } == ["copy", "other.partial"])
    }
}
