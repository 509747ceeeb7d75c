import Foundation
import Testing
import TidemarkCore
import TidemarkSQLite
import TidemarkWire

@testable import TidemarkServer

/// What a server does with bytes whose caller goes (A12).
@Suite("Bytes of a blob outlast their caller's request")
struct BlobKeepingTests {
    static let kinds: [StoreKind] = [.sqlite, .postgres]
    private static let room = BlobRoom(scope: 4 << 20, caller: 4 << 20, parts: 9)

    /// A body that is cut behind its last piece, since its request is cancelled.
    private struct LeftBody: AsyncSequence, AsyncIteratorProtocol, Sendable {
        typealias Element = [UInt8]
        var pieces: [[UInt8]]
        /// Done as the caller goes.
        var leaving: @Sendable () -> Void = {}

        mutating func next() async throws -> [UInt8]? {
            guard pieces.isEmpty else { return pieces.removeFirst() }
            leaving()
            Self.cancelTask()
            return nil
        }

        func makeAsyncIterator() -> LeftBody { self }

        private static func cancelTask() {
            withUnsafeCurrentTask { (task: UnsafeCurrentTask?) -> Void in task?.cancel() }
        }
    }

    /// Two pieces and a bit.
    private static let bytes: [UInt8] = (0..<2 * BlobPart.pieceBytes + 77).map {
        UInt8(truncatingIfNeeded: ($0 &* 31) ^ ($0 >> 8))
    }

    private static let upload = upload(of: bytes)
    private static let name = BlobPartName(scope: "s", principal: "ada", hash: upload.hash)

    private static func upload(of bytes: [UInt8]) -> BlobUpload {
        let hash = BlobHash.of(bytes)
        return BlobUpload(hash: hash, scope: "s", start: nil, length: Int64(bytes.count), size: Int64(bytes.count))
    }

    @Test(
        "Bytes of a cancelled request are kept, also less than a piece, and also of a blob that has one piece",
        arguments: kinds, [bytes, Array(bytes.prefix(2000))])
    func cancelled(kind: StoreKind, bytes: [UInt8]) async throws {
        let upload = Self.upload(of: bytes)
        let name = BlobPartName(scope: "s", principal: "ada", hash: upload.hash)
        let bench = try StoreBench(kind)
        let store = try #require(bench.store as? any BlobStore)
        let clock = Guarded<Int64>(1000)
        var configuration = SyncServer.Configuration.still
        configuration.now = { Date(milliseconds: clock.withLock { $0 }) }
        let server = SyncServer(store: bench.store, configuration: configuration)
        let body = LeftBody(pieces: [Array(bytes.prefix(1000)), Array(bytes[1000..<1500])]) {
            clock.withLock { $0 = 2000 }
        }
        let request = Task { try await server.receive(upload, access: .readWrite(as: "ada"), body) }
        await #expect(throws: Problem.self) { try await request.value }
        let part = try #require(try await store.part(name))
        #expect(part.kept == 1500 && part.written == 2000)
        #expect(try await store.bytes(of: part, from: 0, limit: 9999) == Array(bytes.prefix(1500)))
    }

    @Test("A piece that cannot be appended is tried once")
    func once() async throws {
        let bench = try Bench()
        let asked = Guarded<[HookedBlobs.Step]>([])
        let blobs = HookedBlobs(bench.store) { step in
            asked.withLock { $0.append(step) }
            throw StoreUnavailable("the disk is full")
        }
        let server = SyncServer(store: blobs, configuration: .still)
        let body = LeftBody(pieces: [Self.bytes])
        await #expect(throws: StoreUnavailable.self) {
            try await server.receive(Self.upload, access: .readWrite(as: "ada"), body)
        }
        #expect(asked.withLock { $0 } == [.append(count: BlobPart.pieceBytes)])
    }

    @Test(
        "Of those who wait for one reading, one has made the blob; all hear of its failure", arguments: [true, false])
    func joined(isSound: Bool) async throws {
        struct Broken: Error {}
        let completions = BlobCompletions()
        let works = Guarded<[@Sendable () async -> Void]>([])
        let waiters = (0..<3).map { _ in
            Task {
                try await completions.join(1, by: { work in works.withLock { $0.append(work) } }) {
                    guard isSound else { throw Broken() }
                    return true
                }
            }
        }
        try await poll { completions.count(at: 1) >= 3 }
        let begun = works.withLock { $0 }
        #expect(begun.count == 1)
        for work in begun { await work() }
        var results: [Bool] = []
        for waiter in waiters { if let made = try? await waiter.value { results.append(made) } }
        #expect(results.sorted { $0 && !$1 } == (isSound ? [true, false, false] : []))
        #expect(completions.count(at: 1) == 0)
    }

    @Test("All bytes are read back once, though who waits for it goes and asks again")
    func readOnce() async throws {
        let bench = try Bench()
        var part = try await bench.store.begin(Self.name, size: Self.upload.size, within: Self.room, at: 1_000_000)
        while !part.isComplete {
            let piece = Array(Self.bytes.dropFirst(Int(part.kept)).prefix(part.room))
            part = try await bench.store.append(piece, to: part, isLast: true, at: 1_000_000)
        }
        let asked = Guarded<[HookedBlobs.Step]>([])
        let (begun, begin) = AsyncStream.makeStream(of: Void.self)
        let (held, release) = AsyncStream.makeStream(of: Void.self)
        let blobs = HookedBlobs(bench.store) { step in
            asked.withLock { $0.append(step) }
            begin.yield()
            _ = await held.first { _ in true }
        }
        var configuration = SyncServer.Configuration.still
        configuration.now = { Date(milliseconds: 1_000_000) }
        let server = SyncServer(store: blobs, configuration: configuration)
        let first = Task { try await server.findBlob(Self.name.hash, in: "s", access: .readWrite(as: "ada")) }
        _ = await begun.first { _ in true }
        first.cancel()
        let second = Task { try await server.findBlob(Self.name.hash, in: "s", access: .readWrite(as: "ada")) }
        release.finish()
        let found = try await second.value
        let blob = try #require(try await bench.store.blob(Self.name.hash, in: "s"))
        #expect(found == .whole(blob))
        _ = try? await first.value
        let piece = Int64(BlobPart.pieceBytes)
        let reads = [0, piece, 2 * piece].map { HookedBlobs.Step.read(offset: $0) }
        #expect(asked.withLock { $0 } == reads)
    }
}
