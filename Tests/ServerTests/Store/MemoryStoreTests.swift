import Testing
import TidemarkTesting
import TidemarkWire

@testable import TidemarkServer

@Suite("A store in memory")
struct MemoryStoreTests {
    @Test("Is the same for the same seed, and another for another")
    func seeds() throws {
        func incarnation(_ store: MemoryStore) throws -> Int64 {
            try store.write("s", for: "") { writer in
                _ = try writer.append(.upsert("a"), at: 1)
                return writer.state.incarnations[0].id
            }
        }
        #expect(MemoryStore(seed: 5).tokenKey == MemoryStore(seed: 5).tokenKey)
        #expect(MemoryStore(seed: 5).tokenKey != MemoryStore(seed: 6).tokenKey)
        #expect(Set(MemoryStore().tokenKey).count > 8)
        #expect(try incarnation(MemoryStore(seed: 5)) == incarnation(MemoryStore(seed: 5)))
        #expect(try incarnation(MemoryStore(seed: 5)) != incarnation(MemoryStore(seed: 6)))
    }

    @Test("A backup is the store as it was, and opening it is a new incarnation whatever the seed", arguments: [1, 2])
    func backups(seed: UInt64) async throws {
        let store = MemoryStore(seed: 1)
        _ = try store.write("s", for: "") { try $0.append(.upsert("a", #"{"n":1}"#), at: 1) }
        let backup = store.backup()
        let before = try await store.dump()
        _ = try store.write("s", for: "") { try $0.append(.upsert("a", #"{"n":2}"#), at: 2) }
        _ = try store.write("other", for: "") { try $0.append(.upsert("a"), at: 2) }
        let after = try await store.dump()
        let restored = MemoryStore(backup, seed: seed)
        #expect(restored.tokenKey == store.tokenKey)
        #expect(try await restored.dump() == before)
        #expect(try restored.write("s", for: "") { try $0.append(.upsert("b"), at: 3) } == 2)
        #expect(try await store.dump() == after)
        #expect(try await MemoryStore(backup, seed: 9).dump() == before)
        let incarnations = try restored.read("s", for: "") { $0.state.incarnations }
        #expect(incarnations.map(\.start) == [0, 1])
        #expect(incarnations[0].id != incarnations[1].id)
    }

    @Test("A backup has the blobs and parts of its moment, and a part takes pieces of any length")
    func blobs() throws {
        let room = BlobRoom(scope: 9999, caller: 9999, parts: 9)
        let name = BlobPartName(scope: "s", principal: "ada", hash: String(repeating: "a", count: 64))
        let store = MemoryStore(seed: 1)
        var part = try store.begin(name, size: 5, within: room, at: 1)
        part = try store.append([1, 2, 3], to: part, isLast: true, at: 2)
        let backup = store.backup()
        let whole = try store.append([4, 5], to: part, isLast: true, at: 3)
        #expect(throws: BlobRefusal.moved) { try store.append([9], to: whole, isLast: true, at: 3) }
        #expect(try store.finish(whole, at: 4))
        let blob = try #require(store.blob(name.hash, in: "s"))
        #expect(try store.bytes(of: blob, in: "s", from: 1, limit: 3) == [2, 3, 4])

        let restored = MemoryStore(backup, seed: 2)
        #expect(restored.blob(name.hash, in: "s") == nil)
        #expect(restored.part(name) == part)
        let other = try restored.append([7], to: part, isLast: true, at: 5)
        #expect(try restored.bytes(of: other, from: 0, limit: 9) == [1, 2, 3, 7])
        #expect(try store.bytes(of: blob, in: "s", from: 0, limit: 9) == [1, 2, 3, 4, 5])
    }

    @Test("Shows its log to one who checks it, superseded rows too")
    func log() throws {
        let store = MemoryStore()
        _ = try store.write("s", for: "") { writer in
            _ = try writer.append(.upsert("a", #"{"n":1}"#), at: 10)
            _ = try writer.append(.delete("a", madeOn: 7), at: 20)
            _ = try writer.append(.event("e", "[]"), at: 30)
            return try writer.append(.delete("b"), at: 30)
        }
        _ = try store.write("A", for: "") { try $0.append(.idmap("1"), at: 1) }
        let log = store.log(of: "s", after: 0)
        #expect(log.map(\.version) == [1, 2, 3, 4])
        #expect(log.map(\.entity) == ["task", "task", "audit", "task"])
        #expect(log.map(\.record) == ["a", "a", "e", "b"])
        #expect(log.map(\.kind) == [.upsert, .delete, .event, .delete])
        #expect(log.map(\.payload) == [Array(#"{"n":1}"#.utf8), Array("7".utf8), Array("[]".utf8), nil])
        #expect(log.map(\.time) == [10, 20, 30, 31])
        #expect(log.map(\.supersededBy) == [2, nil, nil, nil])
        #expect(store.scopes() == ["A", "s"])
        #expect(store.log(of: "none", after: 0).isEmpty)
    }

    @Test("Its numbers are those of the published generator")
    func generator() {
        var generator = SplitMix64(seed: 1_234_567)
        #expect(
            (0..<3).map { _ in generator.next() } == [
                6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423,
            ])
    }
}
