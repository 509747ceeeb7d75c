import Foundation
import GRDB
import Testing
import TidemarkCore
import TidemarkSQLite
import TidemarkWire

@testable import TidemarkServer

/// Blobs are read back and compared with their names (A12).
@Suite("Blobs are read back")
struct BlobRehashTests {
    static let kinds: [StoreKind] = [.sqlite, .postgres]
    private static let room = BlobRoom(scope: 4 << 20, caller: 4 << 20, parts: 9)

    /// Two pieces and a bit.
    private static func bytes(_ seed: Int = 1) -> [UInt8] {
        (0..<2 * BlobPart.pieceBytes + 77).map { UInt8(truncatingIfNeeded: ($0 &* 31) ^ ($0 >> 8) &+ seed) }
    }

    /// Puts bytes there under the hash of others, or of themselves.
    private func put(
        _ bytes: [UInt8], as hash: String? = nil, in scope: Scope = "s", to store: any BlobStore
    ) async throws {
        let name = BlobPartName(scope: scope, principal: "ada", hash: hash ?? BlobHash.of(bytes))
        var part = try await store.begin(name, size: Int64(bytes.count), within: Self.room, at: 1000)
        for start in stride(from: 0, to: bytes.count, by: BlobPart.pieceBytes) {
            let end = min(start + BlobPart.pieceBytes, bytes.count)
            part = try await store.append(Array(bytes[start..<end]), to: part, isLast: end == bytes.count, at: 1000)
        }
        #expect(try await store.finish(part, at: 1000))
    }

    private func send(_ bytes: [UInt8], to server: SyncServer) async throws -> BlobReceipt {
        let upload = BlobUpload(
            hash: BlobHash.of(bytes), scope: "s", start: nil, length: Int64(bytes.count), size: Int64(bytes.count))
        let (body, continuation) = AsyncStream.makeStream(of: [UInt8].self)
        continuation.yield(bytes)
        continuation.finish()
        return try await server.receive(upload, access: .readWrite(as: "ada"), body)
    }

    @Test("A blob with other bytes is found, removed where that is asked for, and can be sent again", arguments: kinds)
    func damaged(kind: StoreKind) async throws {
        let bench = try StoreBench(kind)
        let store = try #require(bench.store as? any BlobStore)
        let server = SyncServer(store: bench.store, configuration: .still)
        let (good, other) = (Self.bytes(), Self.bytes(2))
        var wrong = other
        wrong[BlobPart.pieceBytes + 5] ^= 1
        try await put(good, to: store)
        try await put(wrong, as: BlobHash.of(other), to: store)
        try await put(good, in: "t", to: store)
        try await put([], in: "t", to: store)
        let told = Guarded<[Int]>([])
        let found = try await server.rehashBlobs { rehash in told.withLock { $0.append(rehash.blobs) } }
        #expect((found.expected, found.blobs, found.damaged, found.removed) == (4, 4, 1, 0))
        #expect(found.bytes == Int64(3 * good.count))
        #expect(told.withLock { $0 } == [1, 2, 3, 4])
        var blob = DamagedBlob(
            scope: "s", hash: BlobHash.of(other), size: Int64(other.count), damage: .differs, isRemoved: false)
        #expect(found.list == [blob])
        #expect(try await server.rehashBlobs(in: "t", removingDamaged: true).damaged == 0)
        #expect(try await store.blob(blob.hash, in: "s") != nil)

        let removed = try await server.rehashBlobs(in: "s~media", removingDamaged: true)
        blob.isRemoved = true
        #expect(removed.list == [blob] && removed.removed == 1 && removed.blobs == 2)
        #expect(try await store.blob(blob.hash, in: "s") == nil)
        #expect(try await store.blobTally(of: "s", by: nil) == BlobTally(blobs: 1, bytes: Int64(good.count)))
        #expect(try await send(other, to: server) == .created)
        let mended = try await server.rehashBlobs()
        #expect((mended.blobs, mended.damaged) == (4, 0))
    }

    /// The file of the only blob.
    private func file(_ bench: Bench) throws -> URL {
        let folder = bench.directory.appending(path: "sync.sqlite-blobs")
        let all = FileManager.default.enumerator(at: folder, includingPropertiesForKeys: nil)?.allObjects ?? []
        return try #require(all.compactMap { $0 as? URL }.first { BlobReference.isHash($0.lastPathComponent) })
    }

    @Test("A blob that lost bytes, or its file, is found, and its row goes", arguments: [true, false])
    func lost(isCut: Bool) async throws {
        let bench = try Bench()
        let bytes = Self.bytes()
        try await put(bytes, to: bench.store)
        let file = try file(bench)
        if isCut {
            let handle = try FileHandle(forWritingTo: file)
            try handle.truncate(atOffset: UInt64(bytes.count - 1))
            try handle.close()
        } else {
            try FileManager.default.removeItem(at: file)
        }
        let found = try await bench.server.rehashBlobs(removingDamaged: true)
        #expect(found.list.map(\.damage) == [.lost] && found.removed == 1)
        #expect(try await bench.store.blobTally(of: "s", by: nil) == BlobTally())
        #expect(try await send(bytes, to: bench.server) == .created)
        #expect(try await bench.server.rehashBlobs().damaged == 0)
    }

    @Test("A file that grew behind its last byte is none of that blob")
    func grown() async throws {
        let bench = try Bench()
        try await put(Self.bytes(), to: bench.store)
        let handle = try FileHandle(forWritingTo: try file(bench))
        try handle.seekToEnd()
        try handle.write(contentsOf: [9])
        try handle.close()
        #expect(try await bench.server.rehashBlobs().list.map(\.damage) == [.lost])
    }

    @Test("A blob that cannot be read now stays, whatever is asked for")
    func unreadable() async throws {
        let bench = try Bench()
        try await put(Self.bytes(), to: bench.store)
        // Nobody reads bytes of a folder, root neither.
        let file = try file(bench)
        try FileManager.default.removeItem(at: file)
        try FileManager.default.createDirectory(at: file, withIntermediateDirectories: false)
        let found = try await bench.server.rehashBlobs(removingDamaged: true)
        #expect(found.list.map(\.damage) == [.unreadable] && found.removed == 0)
        #expect(try await bench.store.blobTally(of: "s", by: nil).blobs == 1)
    }

    @Test("The blobs behind a broken page are looked at, whatever a database says of it")
    func broken() async throws {
        struct BrokenPage: Error {}
        let bench = try Bench()
        for seed in 1...3 { try await put(Self.bytes(seed), to: bench.store) }
        let reads = Guarded(0)
        let blobs = HookedBlobs(bench.store) { step in
            guard step == .readBlob,
                reads.withLock({
                    $0 += 1
                    return $0 == 1
                })
            else { return }
            throw BrokenPage()
        }
        let found = try await SyncServer(store: blobs).rehashBlobs(removingDamaged: true)
        #expect(found.list.map(\.damage) == [.unreadable] && found.removed == 0 && found.blobs == 3)
    }

    @Test(
        "A damaged blob with a moment that no date holds to the millisecond stays, and the reading ends",
        .timeLimit(.minutes(5)))
    func lateMoment() async throws {
        let bench = try Bench()
        let bytes = Self.bytes()
        try await put(bytes.reversed(), as: BlobHash.of(bytes), to: bench.store)
        // The date nearest to it is hundreds of milliseconds earlier.
        let moment = (Int64(1) << 62) + 511
        try await DatabaseQueue(path: bench.directory.appending(path: "sync.sqlite").path).write { db in
            try db.execute(sql: "UPDATE blob SET seen_at = ?", arguments: [moment])
        }
        let found = try await bench.server.rehashBlobs(removingDamaged: true)
        #expect(found.list.map(\.isRemoved) == [false])
        #expect((found.blobs, found.damaged, found.removed) == (1, 1, 0))
    }

    @Test("Bytes that are sent anew just before the damaged ones would be removed stay")
    func mended() async throws {
        let bench = try Bench()
        let bytes = Self.bytes()
        try await put(bytes.reversed(), as: BlobHash.of(bytes), to: bench.store)
        let file = try file(bench)
        let isMended = Guarded(false)
        let path = bench.directory.appending(path: "sync.sqlite").path
        let blobs = HookedBlobs(bench.store) { step in
            guard step == .remove else { return }
            // As a collection and an upload behind it leave them.
            try Data(bytes).write(to: file)
            try await DatabaseQueue(path: path).write { db in
                try db.execute(sql: "UPDATE blob SET seen_at = 2000")
            }
            isMended.withLock { $0 = true }
        }
        let server = SyncServer(store: blobs, configuration: .still)
        let found = try await server.rehashBlobs(removingDamaged: true)
        #expect(isMended.withLock { $0 })
        #expect((found.blobs, found.damaged) == (1, 0))
        #expect(try await bench.store.blob(BlobHash.of(bytes), in: "s") != nil)
    }
}
