import Foundation
import Testing
import TidemarkCore
import TidemarkWire

@testable import TidemarkServer

/// Blobs that records name stay; others go after a while (A12).
@Suite("Collection of blobs")
struct BlobCollectionTests {
    static let kinds: [StoreKind] = [.sqlite, .memory, .postgres]
    private static let day: Int64 = 86_400_000

    /// A server over a store, on a clock of its own.
    private final class World: Sendable {
        let server: SyncServer
        let clock: Guarded<Int64>
        let blobs: any BlobStore

        init(
            _ bench: StoreBench, retention: Duration? = .seconds(10 * 86_400), named: Bool = true,
            limits: Limits = Limits()
        ) throws {
            let clock = Guarded(Int64(1_780_000_000_000))
            self.clock = clock
            var configuration = SyncServer.Configuration.still
            configuration.now = { Date(milliseconds: clock.withLock { $0 }) }
            configuration.retention = retention
            blobs = try #require(bench.store as? any BlobStore)
            server = SyncServer(
                store: bench.store,
                entities: named
                    ? [
                        .state("task", attachments: ["photo"]),
                        .state("clip", subscope: "media", attachments: ["film"]),
                        .events("scan", attachments: ["page"]),
                    ] : [], limits: limits, configuration: configuration)
        }

        func put(_ text: String, in scope: Scope = "s", as principal: String = "ada") async throws -> BlobReference {
            let bytes = Array(text.utf8)
            let hash = BlobHash.of(bytes)
            let upload = BlobUpload(
                hash: hash, scope: scope, start: nil, length: Int64(bytes.count), size: Int64(bytes.count))
            let receipt = try await server.receive(upload, access: .readWrite(as: principal), Pieces(bytes))
            #expect(receipt == .created)
            return try #require(BlobReference(hash: hash, size: Int64(bytes.count)))
        }

        func pass(days: Int64) { clock.withLock { $0 += days * BlobCollectionTests.day } }

        @discardableResult
        func compact(isRehearsal: Bool = false) async throws -> Compaction {
            try await server.compact(trustingClock: true, isRehearsal: isRehearsal)
        }

        func has(_ reference: BlobReference, in scope: Scope = "s") async throws -> Bool {
            try await blobs.blob(reference.hash, in: scope) != nil
        }
    }

    /// A body in one piece.
    private struct Pieces: AsyncSequence {
        let bytes: [UInt8]

        init(_ bytes: [UInt8]) { self.bytes = bytes }

        struct AsyncIterator: AsyncIteratorProtocol {
            var rest: [UInt8]?

            mutating func next() async -> [UInt8]? {
                defer { rest = nil }
                return rest
            }
        }

        func makeAsyncIterator() -> AsyncIterator { AsyncIterator(rest: bytes) }
    }

    @Test("A blob that a record, an event or a sub-scope's record names stays; the others go", arguments: kinds)
    func named(kind: StoreKind) async throws {
        let bench = try StoreBench(kind)
        let world = try World(bench)
        var kept: [BlobReference] = []
        for text in ["photo", "film", "page"] { kept.append(try await world.put(text)) }
        let (photo, film, page) = (kept[0], kept[1], kept[2])
        let loose = try await world.put("loose")
        try await world.server.commit(to: "s") { changes in
            changes.upsert("task", id: "t1", ["Photo": .text("\(photo)"), "title": .text("\(loose)")])
            changes.upsert("scan", id: "e1", ["page": .text("\(page)")])
        }
        try await world.server.commit(to: "s~media") { changes in
            changes.upsert("clip", id: "c1", ["film": .text("\(film)")])
        }
        world.pass(days: 9)
        #expect(try await world.compact().blobs == 0)
        world.pass(days: 2)
        let rehearsal = try await world.compact(isRehearsal: true)
        #expect(rehearsal.blobs == 1 && rehearsal.blobBytes == 5)
        #expect(try await world.has(loose))
        #expect(try await world.compact().blobs == 1)
        #expect(try await !world.has(loose))
        for blob in kept { #expect(try await world.has(blob)) }
        // The record goes, and the blob stays for as long again as it was named.
        try await world.server.commit(to: "s") { $0.delete("task", id: "t1") }
        world.pass(days: 9)
        try await world.compact()
        #expect(try await world.has(photo))
        world.pass(days: 2)
        try await world.compact()
        #expect(try await !world.has(photo))
        #expect(try await world.has(film))
    }

    @Test(
        "A blob is kept for seven days however short the retention is, and longer once it was asked for",
        arguments: kinds)
    func asked(kind: StoreKind) async throws {
        let bench = try StoreBench(kind)
        let world = try World(bench, retention: .seconds(60))
        let (blob, other) = (try await world.put("one"), try await world.put("two"))
        world.pass(days: 6)
        try await world.compact()
        let found = try await world.server.findBlob(blob.hash, in: "s", access: .read(as: "bob"))
        guard case .whole = found else {
            Issue.record("\(found)")
            return
        }
        world.pass(days: 2)
        try await world.compact()
        #expect(try await world.has(blob))
        #expect(try await !world.has(other))
        world.pass(days: 6)
        try await world.compact()
        #expect(try await !world.has(blob))
        #expect(try await world.blobs.blobScopes(after: nil, limit: 9) == [])
    }

    @Test("A scope is scanned once a day, and its parts go a day after their last bytes", arguments: kinds)
    func parts(kind: StoreKind) async throws {
        let bench = try StoreBench(kind)
        let world = try World(bench)
        let blob = try await world.put("one")
        let name = BlobPartName(scope: "s", principal: "ada", hash: String(repeating: "a", count: 64))
        let room = BlobRoom(scope: 1 << 20, caller: 1 << 20, parts: 9)
        _ = try await world.blobs.begin(name, size: 9, within: room, at: world.clock.withLock { $0 })
        try await world.compact()
        let scanned = try await world.blobs.blobScopes(after: nil, limit: 9)
        world.clock.withLock { $0 += Self.day - 1 }
        #expect(try await world.compact().parts == 0)
        #expect(try await world.blobs.blobScopes(after: nil, limit: 9) == scanned)
        #expect(try await world.server.livePart(name) != nil)
        world.clock.withLock { $0 += 2 }
        #expect(try await world.compact().parts == 1)
        #expect(try await world.blobs.part(name) == nil)
        #expect(try await world.blobs.blobScopes(after: nil, limit: 9) != scanned)
        #expect(try await world.has(blob))
        // Nor is it there for its caller before anybody has looked.
        _ = try await world.blobs.begin(name, size: 9, within: room, at: world.clock.withLock { $0 })
        world.clock.withLock { $0 += Self.day + 1 }
        #expect(try await world.server.livePart(name) == nil)
    }

    @Test("A clock of ages that lags makes no scan come sooner, and keeps no part for longer", arguments: kinds)
    func lagging(kind: StoreKind) async throws {
        let bench = try StoreBench(kind)
        let world = try World(bench)
        try await world.compact()
        let name = BlobPartName(scope: "s", principal: "ada", hash: String(repeating: "a", count: 64))
        let room = BlobRoom(scope: 1 << 20, caller: 1 << 20, parts: 9)
        _ = try await world.blobs.begin(name, size: 9, within: room, at: world.clock.withLock { $0 })
        // The server was off for long.
        world.pass(days: 10)
        let blob = try await world.put("one")
        #expect(try await world.server.compact(elapsed: .seconds(3600)).parts == 1)
        let scanned = try await world.blobs.blobScopes(after: nil, limit: 9)
        #expect(scanned.map(\.scanned) == [world.clock.withLock { $0 }])
        world.clock.withLock { $0 += 3_600_000 }
        try await world.server.compact(elapsed: .seconds(3600))
        #expect(try await world.blobs.blobScopes(after: nil, limit: 9) == scanned)
        #expect(try await world.has(blob))
    }

    @Test("An upload that is cut again and again stays for as long as bytes come", arguments: kinds)
    func cut(kind: StoreKind) async throws {
        let bench = try StoreBench(kind)
        let world = try World(bench)
        let piece = BlobPart.pieceBytes
        let bytes = (0..<4 * piece).map { UInt8(truncatingIfNeeded: $0) }
        let hash = BlobHash.of(bytes)
        for start in stride(from: 0, to: 3 * piece, by: piece) {
            let upload = BlobUpload(
                hash: hash, scope: "s", start: Int64(start), length: Int64(bytes.count - start),
                size: Int64(bytes.count))
            let some = Array(bytes[start..<start + piece])
            let problem = await #expect(throws: Problem.self) {
                try await world.server.receive(upload, access: .readWrite(as: "ada"), Pieces(some))
            }
            #expect(problem?.code == .malformedRequest)
            world.clock.withLock { $0 += 20 * 3_600_000 }
        }
        let found = try await world.server.findBlob(hash, in: "s", access: .readWrite(as: "ada"))
        #expect(found == .missing(kept: Int64(3 * piece)))
    }

    @Test("A blob whose bytes have all come is read back only where a transfer is free", arguments: kinds)
    func transfer(kind: StoreKind) async throws {
        let bench = try StoreBench(kind)
        var limits = Limits()
        limits.blobTransfers = 1
        let world = try World(bench, limits: limits)
        let name = BlobPartName(scope: "s", principal: "ada", hash: BlobHash.of([1, 2, 3]))
        let room = BlobRoom(scope: 1 << 20, caller: 1 << 20, parts: 9)
        let moment = world.clock.withLock { $0 }
        let part = try await world.blobs.begin(name, size: 3, within: room, at: moment)
        _ = try await world.blobs.append([1, 2, 3], to: part, isLast: true, at: moment)
        let access = Access.readWrite(as: "ada")
        var held: BlobTransfer? = try world.server.beginTransfer(of: access)
        let problem = await #expect(throws: Problem.self) {
            try await world.server.findBlob(name.hash, in: "s", access: access)
        }
        #expect(problem?.code == .tooManyRequests)
        withExtendedLifetime(held) {}
        held = nil
        let found = try await world.server.findBlob(name.hash, in: "s", access: access)
        guard case .whole(let blob) = found else {
            Issue.record("\(found)")
            return
        }
        #expect(blob.size == 3)
    }

    @Test("A server without declared attachments, or with history for ever, takes no blob away")
    func unknowing() async throws {
        let bench = try StoreBench(.sqlite)
        let world = try World(bench, named: false)
        let blob = try await world.put("one")
        world.pass(days: 1000)
        #expect(try await world.compact().blobs == 0)
        #expect(try await world.has(blob))
        let forever = try World(bench, retention: nil)
        forever.pass(days: 2000)
        #expect(try await forever.compact().blobs == 0)
        #expect(try await world.has(blob))
    }

    @Test("An erased scope's blobs and parts go with it, a caller's parts with his name", arguments: kinds)
    func erased(kind: StoreKind) async throws {
        let bench = try StoreBench(kind)
        let world = try World(bench)
        let (blob, other) = (try await world.put("one"), try await world.put("one", in: "other"))
        let room = BlobRoom(scope: 1 << 20, caller: 1 << 20, parts: 9)
        for principal in ["ada", "bob"] {
            let name = BlobPartName(
                scope: "s", principal: principal, hash: String(repeating: "a", count: 64))
            _ = try await world.blobs.begin(name, size: 9, within: room, at: world.clock.withLock { $0 })
        }
        let caller = try await world.server.erase(.principal("bob"))
        #expect(caller.parts == 1 && caller.blobs == 0)
        #expect(try await world.server.erase(.scope("s"), isRehearsal: true).blobs == 1)
        let gone = try await world.server.erase(.scope("s"))
        #expect(gone.blobs == 1 && gone.parts == 1 && gone.scopes == 1)
        #expect(try await !world.has(blob))
        #expect(try await world.has(other, in: "other"))
        #expect(try await world.blobs.blobTally(of: "s", by: nil) == BlobTally())
        let upload = BlobUpload(hash: blob.hash, scope: "s", start: nil, length: 3, size: 3)
        let problem = await #expect(throws: Problem.self) {
            try await world.server.receive(upload, access: .readWrite(as: "ada"), Pieces(Array("one".utf8)))
        }
        #expect(problem?.code == .scopeErased)
    }

    @Test("An upload that is begun in a scope while it is erased goes with it, or is refused", arguments: kinds)
    func erasedMeanwhile(kind: StoreKind) async throws {
        let bench = try StoreBench(kind)
        let world = try World(bench)
        let (server, blobs) = (world.server, world.blobs)
        let room = BlobRoom(scope: 1 << 20, caller: 1 << 20, parts: 9)
        for round in 1...8 {
            let scope = try #require(Scope("r\(round)"))
            _ = try await world.put("one", in: scope)
            try await withThrowingTaskGroup(of: Void.self) { group in
                for caller in 1...8 {
                    let hash = String(repeating: "a", count: 64)
                    let name = BlobPartName(scope: scope, principal: "u\(caller)", hash: hash)
                    group.addTask {
                        do { _ = try await blobs.begin(name, size: 9, within: room, at: 1) } catch BlobRefusal.erased {}
                    }
                }
                group.addTask { _ = try await server.erase(.scope(scope)) }
                try await group.waitForAll()
            }
            #expect(try await blobs.blobTally(of: scope, by: nil) == BlobTally())
        }
    }

    @Test("Blobs that are named and missing are counted, and those that nothing names", arguments: kinds)
    func verified(kind: StoreKind) async throws {
        let bench = try StoreBench(kind)
        let world = try World(bench)
        let blob = try await world.put("one")
        _ = try await world.put("two", in: "other")
        try await world.server.commit(to: "s") { changes in
            changes.upsert("task", id: "t1", ["photo": .text("\(blob)")])
            changes.upsert("task", id: "t2", ["photo": .text("sha256:\(String(repeating: "0", count: 64)):5")])
            changes.upsert("task", id: "t3", ["photo": .null])
        }
        world.pass(days: 1)
        let all = try await world.server.verifyBlobs()
        #expect((all.scopes, all.blobs, all.bytes) == (2, 2, 6))
        #expect((all.missing, all.unnamed, all.parts) == (1, 1, 0))
        let one = try await world.server.verifyBlobs(in: "s")
        #expect((one.scopes, one.missing, one.unnamed) == (1, 1, 0))
    }
}
