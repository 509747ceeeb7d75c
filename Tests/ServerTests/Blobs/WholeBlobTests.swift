import Foundation
import Testing
import TidemarkCore
import TidemarkSQLite
import TidemarkWire

@testable import TidemarkServer

/// Blobs of one piece, which need no part (A12).
@Suite("A blob that comes whole in one piece is kept in one change")
struct WholeBlobTests {
    static let kinds: [StoreKind] = [.sqlite, .memory, .postgres, .partitionedPostgres]
    private static let room = BlobRoom(scope: 4 << 20, caller: 2 << 20, parts: 3)
    private static let bytes: [UInt8] = (0..<5000).map { UInt8(truncatingIfNeeded: ($0 &* 31) ^ ($0 >> 8)) }

    private static func name(of bytes: [UInt8], by principal: String = "ada") -> BlobPartName {
        BlobPartName(scope: "s", principal: principal, hash: BlobHash.of(bytes))
    }

    private static let name = name(of: bytes)

    private static func upload(_ bytes: [UInt8], from start: Int64? = 0) -> BlobUpload {
        let count = Int64(bytes.count)
        return BlobUpload(hash: BlobHash.of(bytes), scope: "s", start: start, length: count, size: count)
    }

    private struct Body: AsyncSequence, AsyncIteratorProtocol, Sendable {
        typealias Element = [UInt8]
        struct Cut: Error {}
        var pieces: [[UInt8]]
        var isCut = false
        /// Done when the first bytes are asked for.
        var before: (@Sendable () async -> Void)?

        mutating func next() async throws -> [UInt8]? {
            await before?()
            before = nil
            guard pieces.isEmpty else { return pieces.removeFirst() }
            if isCut { throw Cut() }
            return nil
        }

        func makeAsyncIterator() -> Body { self }
    }

    // MARK: Stores

    @Test("It is the scope's blob at once; what is kept of a part of its name goes", arguments: kinds)
    func kept(kind: StoreKind) async throws {
        let bench = try StoreBench(kind)
        var store = try #require(bench.store as? any BlobStore)
        let part = try await store.begin(Self.name, size: 5000, within: Self.room, at: 1)
        _ = try await store.append([1, 2, 3], to: part, isLast: true, at: 1)
        #expect(try await store.keep(Self.bytes, as: Self.name, within: Self.room, at: 5))
        #expect(try await store.part(Self.name) == nil)
        #expect(try await !store.keep(Self.bytes, as: Self.name(of: Self.bytes, by: "bob"), within: Self.room, at: 9))
        #expect(try await store.keep([], as: Self.name(of: []), within: Self.room, at: 5))
        try bench.reopen()
        store = try #require(bench.store as? any BlobStore)
        let blob = try #require(try await store.blob(Self.name.hash, in: "s"))
        #expect(blob.size == 5000 && blob.seen.milliseconds == 9)
        #expect(try await store.bytes(of: blob, in: "s", from: 0, limit: 9999) == Self.bytes)
        #expect(try await store.blob(BlobHash.of([]), in: "s")?.size == 0)
        #expect(try await store.blobTally(of: "s", by: nil) == BlobTally(blobs: 2, bytes: 5000))
        await #expect(throws: BlobRefusal.moved) { try await store.append([4], to: part, isLast: true, at: 9) }
    }

    @Test("It needs the room that a part needs, and an erased scope takes none", arguments: kinds)
    func refused(kind: StoreKind) async throws {
        let bench = try StoreBench(kind)
        let store = try #require(bench.store as? any BlobStore)
        for (room, refusal) in [
            (BlobRoom(scope: 5000, caller: 9999, parts: 9), BlobRefusal.scopeFull),
            (BlobRoom(scope: 9999, caller: 5000, parts: 9), .callerFull),
            (BlobRoom(scope: 9999, caller: 9999, parts: 0), .callerFull),
        ] {
            await #expect(throws: refusal) { try await store.keep(Self.bytes, as: Self.name, within: room, at: 1) }
        }
        #expect(try await store.blobTally(of: "s", by: nil) == BlobTally())
        try await bench.write { try $0.markErased(at: 5) }
        await #expect(throws: BlobRefusal.erased) {
            try await store.keep(Self.bytes, as: Self.name, within: Self.room, at: 1)
        }
        #expect(try await store.blob(Self.name.hash, in: "s") == nil)
    }

    @Test("Of many who send it at one time one has made it", arguments: kinds)
    func together(kind: StoreKind) async throws {
        let bench = try StoreBench(kind)
        let store = try #require(bench.store as? any BlobStore)
        let made = try await withThrowingTaskGroup(of: Bool.self) { group in
            for number in 1...16 {
                let name = Self.name(of: Self.bytes, by: "user\(number % 4)")
                group.addTask { try await store.keep(Self.bytes, as: name, within: Self.room, at: 1) }
            }
            return try await group.reduce(into: 0) { $0 += $1 ? 1 : 0 }
        }
        #expect(made == 1)
        let blob = try #require(try await store.blob(Self.name.hash, in: "s"))
        #expect(try await store.bytes(of: blob, in: "s", from: 0, limit: 9999) == Self.bytes)
        #expect(try await store.blobTally(of: "s", by: nil) == BlobTally(blobs: 1, bytes: 5000))
    }

    @Test("No file is left where it was refused, and one that was lost or cut short is made again")
    func files() async throws {
        let bench = try Bench()
        let folder = bench.directory.appending(path: "sync.sqlite-blobs")
        func files() -> [URL] {
            let all = FileManager.default.enumerator(at: folder, includingPropertiesForKeys: nil)
            return (all?.allObjects as? [URL] ?? []).filter { !$0.hasDirectoryPath }
        }
        let narrow = BlobRoom(scope: 5000, caller: 9999, parts: 9)
        await #expect(throws: BlobRefusal.scopeFull) {
            try await bench.store.keep(Self.bytes, as: Self.name, within: narrow, at: 1)
        }
        #expect(files().isEmpty)
        #expect(try await bench.store.keep(Self.bytes, as: Self.name, within: Self.room, at: 1))
        for damage in [nil, Data(Self.bytes.prefix(9))] {
            let file = try #require(files().first)
            try FileManager.default.removeItem(at: file)
            try damage?.write(to: file)
            #expect(try await bench.store.blob(Self.name.hash, in: "s") == nil)
            #expect(try await bench.store.keep(Self.bytes, as: Self.name, within: Self.room, at: 2))
            #expect(try Data(contentsOf: file) == Data(Self.bytes))
        }
        #expect(files().count == 1)
        #expect(try await bench.store.blobTally(of: "s", by: nil) == BlobTally(blobs: 1, bytes: 5000))
    }

    // MARK: Uploads

    /// The server, and what it asks of its store for blobs.
    private func server(_ bench: Bench) -> (server: SyncServer, steps: Guarded<[HookedBlobs.Step]>) {
        let steps = Guarded<[HookedBlobs.Step]>([])
        let blobs = HookedBlobs(bench.store) { step in steps.withLock { $0.append(step) } }
        var configuration = SyncServer.Configuration.still
        configuration.now = { Date(milliseconds: 1_000_000) }
        return (SyncServer(store: blobs, configuration: configuration), steps)
    }

    @Test("An upload of one piece is one change, and the second one finds it there", arguments: [0, nil])
    func oneChange(start: Int64?) async throws {
        let bench = try Bench()
        let (server, steps) = server(bench)
        let upload = Self.upload(Self.bytes, from: start)
        for receipt in [BlobReceipt.created, .present] {
            let body = Body(pieces: [Array(Self.bytes.prefix(1000)), Array(Self.bytes.dropFirst(1000))])
            #expect(try await server.receive(upload, access: .readWrite(as: "ada"), body) == receipt)
        }
        #expect(steps.withLock { $0 } == [.keep(count: 5000)])
    }

    @Test("The bytes of an upload that is cut are a part, with which the next one goes on")
    func cut() async throws {
        let bench = try Bench()
        let (server, _) = server(bench)
        let body = Body(pieces: [Array(Self.bytes.prefix(1000))], isCut: true)
        await #expect(throws: Problem.self) {
            try await server.receive(Self.upload(Self.bytes), access: .readWrite(as: "ada"), body)
        }
        #expect(try await bench.store.part(Self.name)?.kept == 1000)
        // A caller who begins from the beginning all the same is told where to go on.
        let problem = await #expect(throws: Problem.self) {
            let body = Body(pieces: [Self.bytes])
            return try await server.receive(Self.upload(Self.bytes), access: .readWrite(as: "ada"), body)
        }
        #expect(problem?.code == .uploadOffsetMismatch && problem?.offset == 1000)
        let rest = BlobUpload(hash: Self.name.hash, scope: "s", start: 1000, length: 4000, size: 5000)
        let last = Body(pieces: [Array(Self.bytes.dropFirst(1000))])
        #expect(try await server.receive(rest, access: .readWrite(as: "ada"), last) == .created)
    }

    @Test("Other bytes than its hash says are refused, and what was kept under it goes")
    func wrongBytes() async throws {
        let bench = try Bench()
        let (server, steps) = server(bench)
        let part = try await bench.store.begin(Self.name, size: 5000, within: Self.room, at: 1)
        _ = try await bench.store.append(Self.bytes, to: part, isLast: true, at: 1)
        // A device sends this where the server keeps a whole part that it never took.
        let upload = BlobUpload(hash: Self.name.hash, scope: "s", start: nil, length: 0, size: 0)
        let problem = await #expect(throws: Problem.self) {
            try await server.receive(upload, access: .readWrite(as: "ada"), Body(pieces: []))
        }
        #expect(problem?.code == .hashMismatch)
        #expect(try await bench.store.part(Self.name) == nil)
        #expect(try await bench.store.blob(Self.name.hash, in: "s") == nil)
        #expect(steps.withLock { $0 }.isEmpty)
    }

    @Test("A request that is cut, or has wrong bytes, does not undo what another one has done meanwhile")
    func late() async throws {
        let bench = try Bench()
        let (server, _) = server(bench)
        let (reached, reach) = AsyncStream.makeStream(of: Void.self)
        var releases: [AsyncStream<Void>.Continuation] = []
        func slow(_ upload: BlobUpload, _ body: Body) -> Task<BlobReceipt, any Error> {
            let (held, release) = AsyncStream.makeStream(of: Void.self)
            releases.append(release)
            var body = body
            body.before = {
                reach.yield()
                for await _ in held {}
            }
            let slow = body
            return Task { try await server.receive(upload, access: .readWrite(as: "ada"), slow) }
        }
        let cut = slow(Self.upload(Self.bytes, from: nil), Body(pieces: [[1]], isCut: true))
        let other = Self.bytes + [1]
        let outrun = slow(Self.upload(other), Body(pieces: [[1]], isCut: true))
        let wrong = slow(Self.upload(Self.bytes, from: nil), Body(pieces: [Self.bytes.map { ~$0 }]))
        // All have looked at what is kept, and read their bodies.
        var all = reached.makeAsyncIterator()
        for _ in 0..<3 { await all.next() }
        var part = try await bench.store.begin(Self.name, size: 5000, within: Self.room, at: 1_000_000)
        part = try await bench.store.append(Array(Self.bytes.prefix(2000)), to: part, isLast: true, at: 1_000_000)
        #expect(try await bench.store.keep(other, as: Self.name(of: other), within: Self.room, at: 1_000_000))
        for release in releases { release.finish() }
        for request in [cut, outrun, wrong] { await #expect(throws: Problem.self) { try await request.value } }
        #expect(try await bench.store.part(Self.name)?.kept == 2000)
        #expect(try await bench.store.part(Self.name(of: other)) == nil)
    }

    @Test("Old drafts of processes that were ended are tidied away, and new ones are not")
    func drafts() async throws {
        let bench = try Bench()
        #expect(try await bench.store.keep(Self.bytes, as: Self.name, within: Self.room, at: 1))
        let folder = bench.directory.appending(path: "sync.sqlite-blobs")
        let all = FileManager.default.enumerator(at: folder, includingPropertiesForKeys: nil)
        let parts = try #require((all?.allObjects as? [URL])?.first { $0.lastPathComponent == "parts" })
        for (name, age) in [("draft-old", 7200.0), ("draft-new", 0)] {
            let path = parts.appending(path: name).path
            #expect(FileManager.default.createFile(atPath: path, contents: Data([1])))
            let moment = Date(timeIntervalSinceNow: -age)
            try FileManager.default.setAttributes([.modificationDate: moment], ofItemAtPath: path)
        }
        try await bench.store.tidyBlobs(of: "s")
        #expect(try FileManager.default.contentsOfDirectory(atPath: parts.path) == ["draft-new"])
    }
}
