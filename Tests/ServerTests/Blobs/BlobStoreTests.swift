import Foundation
import Testing
import TidemarkCore
import TidemarkSQLite
import TidemarkWire

@testable import TidemarkServer

/// What every ``BlobStore`` promises (A12).
@Suite("Every store that keeps blobs keeps its promises")
struct BlobStoreTests {
    static let kinds: [StoreKind] = [.sqlite, .memory, .postgres, .partitionedPostgres]

    private static let room = BlobRoom(scope: 4 << 20, caller: 2 << 20, parts: 3)
    private static let piece = BlobPart.pieceBytes

    private func store(_ bench: StoreBench) throws -> any BlobStore { try #require(bench.store as? any BlobStore) }

    private func name(_ hash: Character = "a", of principal: String = "ada", in scope: Scope = "s") -> BlobPartName {
        BlobPartName(scope: scope, principal: principal, hash: String(repeating: hash, count: 64))
    }

    private func bytes(_ count: Int, _ seed: Int = 1) -> [UInt8] {
        (0..<count).map { UInt8(truncatingIfNeeded: ($0 &* 31) ^ ($0 >> 8) &+ seed) }
    }

    private func whole(_ store: any BlobStore, _ blob: StoredBlob, in scope: Scope = "s") async throws -> [UInt8] {
        var all: [UInt8] = []
        while all.count < blob.size {
            all += try await store.bytes(of: blob, in: scope, from: Int64(all.count), limit: 100_000)
        }
        return all
    }

    /// Puts a blob there, whatever its hash says.
    @discardableResult
    private func put(
        _ bytes: [UInt8], as name: BlobPartName, to store: any BlobStore, at moment: Int64 = 1000
    ) async throws -> Bool {
        var part = try await store.begin(name, size: Int64(bytes.count), within: Self.room, at: moment)
        for start in stride(from: 0, to: bytes.count, by: Self.piece) {
            let end = min(start + Self.piece, bytes.count)
            part = try await store.append(
                Array(bytes[start..<end]), to: part, isLast: end == bytes.count, at: moment)
        }
        return try await store.finish(part, at: moment)
    }

    @Test("A part grows by pieces, survives, and becomes the blob of its scope alone", arguments: kinds)
    func grows(kind: StoreKind) async throws {
        let bench = try StoreBench(kind)
        var store = try store(bench)
        let all = bytes(Self.piece * 2 + 77)
        var part = try await store.begin(name(), size: Int64(all.count), within: Self.room, at: 1000)
        part = try await store.append(Array(all[..<Self.piece]), to: part, isLast: true, at: 2000)
        try bench.reopen()
        store = try self.store(bench)
        let found = try #require(try await store.part(name()))
        #expect(found == part && found.kept == Self.piece && found.written == 2000)
        #expect(try await store.part(name(of: "bob")) == nil)
        #expect(try await store.part(name(in: "other")) == nil)
        #expect(try await store.blob(name().hash, in: "s") == nil)
        part = try await store.append(Array(all[Self.piece..<Self.piece * 2]), to: found, isLast: false, at: 3000)
        let (half, reopened) = (part, store)
        await #expect(throws: BlobRefusal.moved) { try await reopened.finish(half, at: 3000) }
        part = try await store.append(Array(all[(Self.piece * 2)...]), to: part, isLast: true, at: 3000)
        #expect(part.isComplete)
        #expect(
            try await store.bytes(of: part, from: Int64(Self.piece) + 5, limit: 10)
                == Array(all[Self.piece + 5..<Self.piece + 15]))
        #expect(try await store.finish(part, at: 4000))
        #expect(try await store.part(name()) == nil)
        let blob = try #require(try await store.blob(name().hash, in: "s"))
        #expect(blob.size == Int64(all.count) && blob.seen.milliseconds == 4000)
        #expect(try await whole(store, blob) == all)
        #expect(try await store.blob(name().hash, in: "other") == nil)
        #expect(try await store.blobTally(of: "s", by: nil) == BlobTally(blobs: 1, bytes: Int64(all.count)))
        #expect(try await store.blobTally(of: "s", by: "ada") == BlobTally())
    }

    @Test(
        "Of two who append at one place one is refused, and so is who knows a part that was begun anew",
        arguments: kinds)
    func moved(kind: StoreKind) async throws {
        let bench = try StoreBench(kind)
        let store = try store(bench)
        let part = try await store.begin(name(), size: Int64(Self.piece * 2), within: Self.room, at: 1)
        let outcomes = await withTaskGroup(of: Int?.self) { group in
            for seed in 1...6 {
                let piece = bytes(Self.piece, seed)
                group.addTask {
                    (try? await store.append(piece, to: part, isLast: true, at: 1)) == nil ? nil : seed
                }
            }
            return await group.reduce(into: []) { all, seed in seed.map { all.append($0) } }
        }
        let winner = try #require(outcomes.first)
        #expect(outcomes.count == 1)
        let grown = try #require(try await store.part(name()))
        #expect(try await store.bytes(of: grown, from: 0, limit: Self.piece) == bytes(Self.piece, winner))
        let anew = try await store.begin(name(), size: Int64(Self.piece), within: Self.room, at: 1)
        await #expect(throws: BlobRefusal.moved) {
            try await store.append(bytes(Self.piece), to: grown, isLast: true, at: 1)
        }
        try await store.drop(grown)
        #expect(try await store.part(name()) == anew)
        let complete = try await store.append(bytes(Self.piece), to: anew, isLast: true, at: 1)
        #expect(try await store.finish(complete, at: 1))
        await #expect(throws: BlobRefusal.moved) { try await store.finish(complete, at: 1) }
    }

    @Test("Of many who begin one part at one time the last has it, and no other error comes", arguments: kinds)
    func begunTogether(kind: StoreKind) async throws {
        let bench = try StoreBench(kind)
        let store = try store(bench)
        let name = name()
        let parts = try await withThrowingTaskGroup(of: BlobPart.self) { group in
            for _ in 1...8 {
                group.addTask { try await store.begin(name, size: 9, within: Self.room, at: 1) }
                group.addTask {
                    let part = try await store.begin(name, size: 2, within: Self.room, at: 1)
                    do {
                        let whole = try await store.append([1, 2], to: part, isLast: true, at: 1)
                        _ = try await store.finish(whole, at: 1)
                    } catch BlobRefusal.moved {}
                    return part
                }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(Set(parts.map(\.place)).count == 16)
        let left = try await store.part(name)
        let tally = try await store.blobTally(of: "s", by: nil)
        #expect(tally.parts == (left == nil ? 0 : 1))
        #expect(left.map { parts.map(\.place).contains($0.place) } ?? true)
    }

    @Test(
        "Two callers' parts of one hash stand apart, and the second that is finished changes nothing", arguments: kinds)
    func two(kind: StoreKind) async throws {
        let bench = try StoreBench(kind)
        let store = try store(bench)
        let (one, other) = (bytes(1000, 1), bytes(1000, 2))
        let mine = try await store.begin(name(), size: 1000, within: Self.room, at: 1)
        let theirs = try await store.begin(name(of: "bob\u{0}"), size: 1000, within: Self.room, at: 1)
        let first = try await store.append(one, to: mine, isLast: true, at: 1)
        let second = try await store.append(other, to: theirs, isLast: true, at: 1)
        #expect(try await store.finish(first, at: 5))
        #expect(try await !store.finish(second, at: 9))
        let blob = try #require(try await store.blob(name().hash, in: "s"))
        #expect(try await whole(store, blob) == one)
        #expect(blob.seen.milliseconds == 9)
        #expect(try await store.blobTally(of: "s", by: nil) == BlobTally(blobs: 1, bytes: 1000))
    }

    @Test("There is room for so many bytes of a scope, and for so many parts and bytes of a caller", arguments: kinds)
    func room(kind: StoreKind) async throws {
        let bench = try StoreBench(kind)
        let store = try store(bench)
        _ = try await store.begin(name("a"), size: 1 << 20, within: Self.room, at: 1)
        await #expect(throws: BlobRefusal.callerFull) {
            try await store.begin(name("b"), size: 1 << 20, within: Self.room, at: 1)
        }
        // In its own place it fits.
        _ = try await store.begin(name("a"), size: 3 << 19, within: Self.room, at: 1)
        for hash in ["b", "c"] as [Character] {
            _ = try await store.begin(name(hash), size: 0, within: Self.room, at: 1)
        }
        await #expect(throws: BlobRefusal.callerFull) {
            try await store.begin(name("d"), size: 0, within: Self.room, at: 1)
        }
        _ = try await store.begin(name("d", of: "bob"), size: 3 << 19, within: Self.room, at: 1)
        await #expect(throws: BlobRefusal.scopeFull) {
            try await store.begin(name("d", of: "cy"), size: 3 << 19, within: Self.room, at: 1)
        }
        #expect(try await store.blobTally(of: "s", by: nil) == BlobTally(parts: 4, bytes: 3 << 20))
        _ = try await store.begin(name("d", of: "cy", in: "other"), size: 3 << 19, within: Self.room, at: 1)
    }

    @Test("An erased scope takes no part, and finishes none", arguments: kinds)
    func erased(kind: StoreKind) async throws {
        let bench = try StoreBench(kind)
        let store = try store(bench)
        let part = try await store.begin(name(), size: 0, within: Self.room, at: 1)
        try await bench.write { try $0.markErased(at: 5) }
        await #expect(throws: BlobRefusal.erased) { try await store.finish(part, at: 1) }
        await #expect(throws: BlobRefusal.erased) {
            try await store.begin(name("b"), size: 0, within: Self.room, at: 1)
        }
    }

    @Test("Blobs that were seen stay, the rest goes with its bytes; lists come in order", arguments: kinds)
    func removed(kind: StoreKind) async throws {
        let bench = try StoreBench(kind)
        let store = try store(bench)
        for hash in ["c", "a", "b"] as [Character] { try await put(bytes(300), as: name(hash), to: store) }
        try await put([], as: name("e", in: "other"), to: store)
        let hashes = (["a", "b", "c"] as [Character]).map { name($0).hash }
        #expect(try await store.blobs(in: "s", after: nil, seenBefore: 1001, limit: 9).map(\.hash) == hashes)
        #expect(try await store.blobs(in: "s", after: hashes[0], seenBefore: 1001, limit: 1).map(\.hash) == [hashes[1]])
        let gone = name("d").hash
        #expect(try await store.noteSeen([hashes[1], gone], in: "s", at: 5000) == [gone])
        #expect(try await store.noteSeen([hashes[1]], in: "s", at: 2000) == [])
        let old = try await store.blobs(in: "s", after: nil, seenBefore: 5000, limit: 9)
        #expect(old.map(\.hash) == [hashes[0], hashes[2]])
        #expect(try await store.remove(old[0], in: "s", seenBefore: 5000))
        #expect(try await !store.remove(old[0], in: "s", seenBefore: 5000))
        _ = try await store.noteSeen([hashes[2]], in: "s", at: 6000)
        #expect(try await !store.remove(old[1], in: "s", seenBefore: 5000))
        #expect(try await store.blob(hashes[0], in: "s") == nil)
        await #expect(throws: BlobRefusal.moved) { try await store.bytes(of: old[0], in: "s", from: 0, limit: 9) }
        #expect(try await store.blobTally(of: "s", by: nil) == BlobTally(blobs: 2, bytes: 600))
        #expect(try await store.blobScopes(after: nil, limit: 9).map(\.scope) == ["other", "s"])
        try await store.noteScan(of: "s", at: 7)
        #expect(try await store.blobScopes(after: "other", limit: 9) == [BlobScope(scope: "s", scanned: 7)])
        let empty = try #require(try await store.blob(name("e").hash, in: "other"))
        #expect(try await store.remove(empty, in: "other", seenBefore: .max))
        try await store.noteScan(of: "other", at: 7)
        #expect(try await store.blobScopes(after: nil, limit: 9).map(\.scope) == ["s"])
        // What went may come again.
        #expect(try await put(bytes(300), as: name("a"), to: store))
    }

    @Test("Parts are listed by age, scope and caller", arguments: kinds)
    func parts(kind: StoreKind) async throws {
        let bench = try StoreBench(kind)
        let store = try store(bench)
        for (index, name) in [name(), name(of: "bob"), name(in: "other")].enumerated() {
            _ = try await store.begin(name, size: 9, within: Self.room, at: Int64(index + 1) * 10)
        }
        func list(_ scope: Scope?, _ principal: String?, _ moment: Int64) async throws -> [Int64] {
            try await store.parts(in: scope, of: principal, writtenBefore: moment, limit: 9).map(\.written)
        }
        #expect(try await list(nil, nil, 30) == [10, 20])
        #expect(try await list("s", nil, .max) == [10, 20])
        #expect(try await list(nil, "ada", .max) == [10, 30])
        for part in try await store.parts(in: nil, of: nil, writtenBefore: .max, limit: 9) {
            try await store.drop(part)
        }
        #expect(try await list(nil, nil, .max) == [])
        #expect(try await store.blobTally(of: "s", by: nil) == BlobTally())
    }
}

/// A process that is ended between two steps, and files that somebody has lost (A12).
@Suite("Files of blobs beside an SQLite store")
struct BlobFileTests {
    private let bench: Bench
    private var store: any BlobStore { bench.store }
    private static let piece = BlobPart.pieceBytes
    private static let room = BlobRoom(scope: 4 << 20, caller: 4 << 20, parts: 9)
    private let name = BlobPartName(scope: "s", principal: "ada", hash: String(repeating: "a", count: 64))

    init() throws { bench = try Bench() }

    private var blobs: URL { bench.directory.appending(path: "sync.sqlite-blobs") }

    /// The files under the folder, as paths below the scope's.
    private func files() throws -> [URL] {
        let all = FileManager.default.enumerator(at: blobs, includingPropertiesForKeys: [.isRegularFileKey])
        return (all?.allObjects as? [URL] ?? []).filter {
            (try? $0.resourceValues(forKeys: [.isRegularFileKey]).isRegularFile) == true
        }
    }

    private func part(of bytes: [UInt8]) async throws -> BlobPart {
        let part = try await store.begin(name, size: Int64(bytes.count), within: Self.room, at: 1)
        return try await store.append(Array(bytes.prefix(Self.piece)), to: part, isLast: true, at: 1)
    }

    @Test("Bytes that a process wrote before it ended count, and a caller that knows of fewer is refused")
    func torn() async throws {
        let all = (0..<Self.piece + 50).map { UInt8(truncatingIfNeeded: $0) }
        let part = try await part(of: all)
        let file = try #require(try files().first)
        let handle = try FileHandle(forWritingTo: file)
        try handle.seekToEnd()
        try handle.write(contentsOf: all[Self.piece..<Self.piece + 3])
        try handle.close()
        let found = try #require(try await store.part(name))
        #expect(found.kept == Self.piece + 3)
        let (store, rest) = (store, Array(all.dropFirst(Self.piece)))
        await #expect(throws: BlobRefusal.moved) { try await store.append(rest, to: part, isLast: true, at: 1) }
        let whole = try await store.append(Array(rest.dropFirst(3)), to: found, isLast: true, at: 1)
        #expect(try await store.finish(whole, at: 1))
        #expect(try Data(contentsOf: try #require(try files().first)) == Data(all))
        #expect(try files().count == 1)
    }

    @Test("A new part is empty, whatever file lies under its number: the database may be a backup of the folder's")
    func stale() async throws {
        let former = try await self.part(of: [7, 7, 7])
        let home = try #require(try files().first).deletingLastPathComponent()
        let foreign = Data(repeating: 9, count: Self.piece)
        try foreign.write(to: home.appending(path: "\(former.place + 1)"))
        // A renaming that a power cut has left half done: the same bytes under two names.
        let kept = home.appending(path: "kept")
        try FileManager.default.linkItem(at: home.appending(path: "\(former.place + 1)"), to: kept)
        let other = BlobPartName(scope: "s", principal: "bob", hash: String(repeating: "b", count: 64))
        let all = (0..<Self.piece + 2).map { UInt8(truncatingIfNeeded: $0) }
        var grown = try await store.begin(other, size: Int64(all.count), within: Self.room, at: 1)
        #expect(grown.place == former.place + 1)
        #expect(try await store.part(other) == grown)
        grown = try await store.append(Array(all[..<Self.piece]), to: grown, isLast: false, at: 1)
        grown = try await store.append(Array(all[Self.piece...]), to: grown, isLast: true, at: 1)
        #expect(try await store.bytes(of: grown, from: 0, limit: 9) == Array(all[..<9]))
        #expect(try Data(contentsOf: kept) == foreign)
        #expect(try await store.finish(grown, at: 1))
    }

    @Test("A caller that goes on with a part that was dropped is refused, and leaves no file")
    func dropped() async throws {
        let begun = try await store.begin(name, size: 3, within: Self.room, at: 1)
        try await store.drop(begun)
        await #expect(throws: BlobRefusal.moved) { try await store.append([1, 2, 3], to: begun, isLast: true, at: 1) }
        #expect(try files().isEmpty)
        let empty = try await store.begin(name, size: 0, within: Self.room, at: 1)
        try await store.drop(empty)
        await #expect(throws: BlobRefusal.moved) { try await store.finish(empty, at: 1) }
        #expect(try files().isEmpty)
        // The process that removed the row was ended before the file went.
        let half = try await part(of: [UInt8](repeating: 1, count: Self.piece + 1))
        let file = try #require(try files().first)
        let bytes = try Data(contentsOf: file)
        try await store.drop(half)
        try bytes.write(to: file)
        await #expect(throws: BlobRefusal.moved) { try await store.append([1], to: half, isLast: true, at: 1) }
        #expect(try files().isEmpty)
    }

    @Test("A part whose file is lost is not there, and is begun anew")
    func lost() async throws {
        _ = try await part(of: [1, 2, 3])
        try FileManager.default.removeItem(at: try #require(try files().first))
        #expect(try await store.part(name) == nil)
        #expect(try await store.finish(try await part(of: [1, 2, 3]), at: 1))
        #expect(try await store.blobTally(of: "s", by: nil) == BlobTally(blobs: 1, bytes: 3))
    }

    @Test("A part that was renamed before its row was written is complete, and is finished")
    func renamed() async throws {
        let part = try await part(of: [1, 2, 3])
        let file = try #require(try files().first)
        try FileManager.default.moveItem(
            at: file, to: file.deletingLastPathComponent().deletingLastPathComponent().appending(path: name.hash))
        #expect(try await store.part(name) == part)
        #expect(try await store.bytes(of: part, from: 1, limit: 9) == [2, 3])
        try await store.tidyBlobs(of: "s")
        #expect(try await store.finish(part, at: 1))
        #expect(try await store.blob(name.hash, in: "s") != nil)
    }

    @Test("A blob that no row names goes, is not there any more, and may be sent again")
    func leftOver() async throws {
        let part = try await part(of: [1, 2, 3])
        #expect(try await store.finish(part, at: 1))
        let file = try #require(try files().first)
        let home = file.deletingLastPathComponent()
        let orphans = [home.appending(path: String(repeating: "b", count: 64)), home.appending(path: "parts/77")]
        for orphan in orphans { try Data([1]).write(to: orphan) }
        try await store.tidyBlobs(of: "s")
        #expect(try files().map(\.lastPathComponent) == [name.hash])
        try FileManager.default.removeItem(at: file)
        #expect(try await store.blob(name.hash, in: "s") == nil)
        #expect(try await store.noteSeen([name.hash], in: "s", at: 2) == [name.hash])
        #expect(try await store.finish(try await self.part(of: [1, 2, 3]), at: 3))
        #expect(try await store.blob(name.hash, in: "s")?.seen.milliseconds == 3)
        #expect(try await store.blobTally(of: "s", by: nil) == BlobTally(blobs: 1, bytes: 3))
    }

    @Test("A folder that cannot be written to is told as trouble that passes")
    func unwritable() async throws {
        try Data([1]).write(to: blobs)
        await #expect(throws: StoreUnavailable.self) { try await part(of: [1]) }
        try FileManager.default.removeItem(at: blobs)
        _ = try await part(of: [1])
    }
}
