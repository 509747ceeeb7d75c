import Dispatch
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
        let hash = BlobHash.of(bytes)
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
        // A row of a part would be counted again when its caller begins anew.
        #expect(try await copy.parts(in: nil, of: nil, writtenBefore: .max, limit: 9).isEmpty)
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

    /// The file of a blob under a folder.
    private func file(_ hash: String, under folder: URL) throws -> URL {
        let files = FileManager.default.enumerator(at: folder, includingPropertiesForKeys: nil)?.allObjects ?? []
        return try #require(files.compactMap { $0 as? URL }.first { $0.lastPathComponent == hash })
    }

    private func status(of path: String) throws -> stat {
        var status = stat()
        guard stat(path, &status) == 0 else { throw POSIXError(.ENOENT) }
        return status
    }

    @Test("Blobs are links, or copies where that is asked for, and the database may be read by the same people")
    func copies() async throws {
        let bytes = [UInt8](repeating: 7, count: 70_000)
        let name = try await put(bytes)
        let (own, files) = (bench.directory.appending(path: "sync.sqlite").path, FileManager.default)
        try files.setAttributes([.posixPermissions: 0o640], ofItemAtPath: own)
        for isLinking in [false, true] {
            let target = target + "-\(isLinking)"
            let backup = try await bench.store.backUp(to: target, isLinking: isLinking)
            #expect((backup.blobs, backup.missing) == (1, 0))
            let copy = try file(name.hash, under: URL(filePath: target))
            #expect(try [UInt8](Data(contentsOf: copy)) == bytes)
            #expect(try status(of: copy.path).st_nlink == (isLinking ? 2 : 1))
            #expect(try status(of: target + "/sync.sqlite").st_mode & 0o777 == 0o640)
        }
    }

    /// Makes a copy that waits behind its first blob until something is done.
    private func backUp(while work: (Task<StoreBackup, any Error>) async throws -> Void) async throws -> StoreBackup {
        let (begun, begin) = AsyncStream.makeStream(of: Void.self)
        let (goesOn, hasBegun) = (DispatchSemaphore(value: 0), Guarded(false))
        let (store, target) = (bench.store, target)
        let copying = Task {
            try await store.backUp(to: target) { _ in
                let isFirst = hasBegun.withLock { hasBegun in
                    defer { hasBegun = true }
                    return !hasBegun
                }
                guard isFirst else { return }
                begin.yield()
                goesOn.wait()
            }
        }
        _ = await begun.first { _ in true }
        do { try await work(copying) } catch { Issue.record(error) }
        goesOn.signal()
        return try await copying.value
    }

    @Test("Blobs and scopes that go while it is made are left out with their rows")
    func goneMeanwhile() async throws {
        try await bench.server.commit(to: "c") { $0.upsert("task", id: "t1", ["title": "one"]) }
        _ = try await put([1, 2, 3], in: "a")
        let (old, _) = (try await put([4, 5], in: "b"), try await put([6], in: "c"))
        let (store, server) = (bench.store, bench.server)
        let backup = try await backUp { _ in
            let blob = try #require(try await store.blob(old.hash, in: "b"))
            #expect(try await store.remove(blob, in: "b", seenBefore: .max))
            try await server.erase(.scope("c"))
        }
        #expect(try await store.blobTally(of: "c", by: nil) == BlobTally())
        #expect((backup.expected, backup.blobs, backup.missing) == (3, 1, 2))
        let copy = try SQLiteStore(path: target + "/sync.sqlite")
        let found = try await SyncServer(store: copy, configuration: .still).rehashBlobs()
        #expect((found.expected, found.blobs, found.damaged) == (1, 1, 0))
        try copy.close()
    }

    @Test("It ends when it is cancelled, and leaves nothing behind")
    func cancelled() async throws {
        for byte: UInt8 in 1...3 { _ = try await put([byte]) }
        await #expect(throws: CancellationError.self) { try await backUp { $0.cancel() } }
        #expect(try names(bench.directory.path).filter { $0.hasPrefix("copy") } == [])
    }
}
