import Testing
import TidemarkWire

@testable import TidemarkServer

extension StoreConformanceTests {
    @Test("A scan sees the rows in its window that are live as of its horizon, in order", arguments: StoreKind.allCases)
    func windows(kind: StoreKind) async throws {
        let bench = try StoreBench(kind)
        // 1 a, 2 b, 3 a again, 4 c, 5 b deleted, 6 a for the third time
        try await bench.append(
            .upsert("a"), .upsert("b"), .upsert("a"), .upsert("c"), .delete("b"), .upsert("a"))
        func versions(_ position: Version, _ horizon: Version) async throws -> [Version] {
            try await bench.changes(after: position, through: horizon).map(\.version)
        }
        #expect(try await versions(0, 6) == [4, 5, 6])
        #expect(try await versions(0, 5) == [3, 4, 5])
        #expect(try await versions(0, 4) == [2, 3, 4])
        #expect(try await versions(0, 2) == [1, 2])
        #expect(try await versions(0, 1) == [1])
        #expect(try await versions(1, 4) == [2, 3, 4])
        #expect(try await versions(3, 4) == [4])
        #expect(try await versions(4, 4) == [])
        #expect(try await versions(0, 99) == [4, 5, 6])
    }

    @Test(
        "Tombstones and idmaps at or below a version are left out, states and events never",
        arguments: StoreKind.allCases)
    func tombstonesAfter(kind: StoreKind) async throws {
        let bench = try StoreBench(kind)
        try await bench.append(
            .upsert("a"), .delete("b"), .idmap("3"), .event("e"), .delete("c"), .idmap("6"), .upsert("d"))
        func versions(_ version: Version) async throws -> [Version] {
            try await bench.changes(through: 7, tombstonesAfter: version).map(\.version)
        }
        #expect(try await versions(0) == [1, 2, 3, 4, 5, 6, 7])
        #expect(try await versions(2) == [1, 3, 4, 5, 6, 7])
        #expect(try await versions(5) == [1, 4, 6, 7])
        #expect(try await versions(9) == [1, 4, 7])
    }

    @Test("A visit that answers false is the last", arguments: StoreKind.allCases)
    func visits(kind: StoreKind) async throws {
        let bench = try StoreBench(kind)
        try await bench.append(.upsert("a"), .upsert("b"), .upsert("c"))
        try await bench.read { reader throws in
            var count = 0
            try reader.changes(after: 0, through: 3, tombstonesAfter: 0) { _ in
                count += 1
                return count < 2
            }
            #expect(count == 2)
            try reader.records(of: "task", above: 0, at: nil, after: nil) { _ in
                count += 1
                return count < 4
            }
            #expect(count == 4)
        }
    }

    @Test("The newest row of a record, with all that was kept with it", arguments: StoreKind.allCases)
    func newest(kind: StoreKind) async throws {
        let bench = try StoreBench(kind)
        var row = NewRow.upsert("a", #"{"n":1}"#)
        (row.fieldVersions, row.originals) = ([1, 2, 0], [])
        let kept = row
        try await bench.append(.upsert("a"), kept, .upsert("b"), .upsert("a", of: "note"), at: 10)
        let stored = StoredRecord(
            version: 2, time: 11, payload: Array(#"{"n":1}"#.utf8), fieldVersions: [1, 2, 0], originals: [])
        #expect(try await bench.read { try $0.newest(entity: "task", record: "a") } == stored)
        try await bench.append(.delete("a", madeOn: 17), at: 20)
        let tombstone = StoredRecord(version: 5, time: 20, payload: nil, fieldVersions: nil)
        #expect(try await bench.read { try $0.newest(entity: "task", record: "a") } == tombstone)
        let visited = try await bench.read { reader throws in
            var seen: [SeenChange] = []
            try reader.newest(entity: "task", record: "a") { change in SeenChange(change).map { seen.append($0) } }
            return seen
        }
        #expect(visited.map(\.version) == [5])
        #expect(visited.map(\.kind) == [.delete])
        #expect(visited.map(\.payload) == ["17"])
        #expect(try await bench.read { try $0.newest(entity: "note", record: "a")?.version } == 4)
    }

    @Test("The row that was live as of a version, while it is kept", arguments: StoreKind.allCases)
    func rowAt(kind: StoreKind) async throws {
        let bench = try StoreBench(kind)
        // 2 a, 3 a, 5 a deleted, 6 a again
        try await bench.append(
            .upsert("b"), .upsert("a", #"{"n":2}"#), .upsert("a", #"{"n":3}"#), .upsert("b"), .delete("a", madeOn: 3),
            .upsert("a", #"{"n":6}"#))
        @Sendable func row(_ version: Version, _ reader: any ScopeReader) throws -> StoredRecord? {
            try reader.row(entity: "task", record: "a", at: version)
        }
        try await bench.read { reader throws in
            #expect(try row(1, reader) == nil)
            #expect(try row(2, reader)?.payload == Array(#"{"n":2}"#.utf8))
            #expect(try row(3, reader)?.version == 3)
            #expect(try row(4, reader)?.version == 3)
            #expect(try row(5, reader)?.version == 5)
            #expect(try row(5, reader)?.payload == nil)
            #expect(try row(6, reader)?.version == 6)
            #expect(try row(99, reader)?.version == 6)
        }
        #expect(try await bench.store.sweep(supersededBefore: 1003, limit: 99) == 1)
        try await bench.read { reader throws in
            #expect(try row(2, reader) == nil)
            #expect(try row(3, reader)?.version == 3)
        }
    }

    @Test(
        "A superseded row is not the newest, although the tombstone above it is gone (I6)",
        arguments: StoreKind.allCases)
    func supersededIsNotNewest(kind: StoreKind) async throws {
        let bench = try StoreBench(kind)
        try await bench.append(.upsert("a", #"{"n":1}"#), .delete("a"))
        try await bench.write { try $0.expire(through: 2) }
        try await bench.read { reader throws in
            #expect(try reader.newest(entity: "task", record: "a") == nil)
            try reader.newest(entity: "task", record: "a") { _ in Issue.record("It was deleted.") }
            #expect(try reader.row(entity: "task", record: "a", at: 1)?.version == 1)
            #expect(try reader.row(entity: "task", record: "a", at: 2) == nil)
        }
        try await bench.append(.upsert("a", #"{"n":2}"#))
        try await bench.expectDigest(of: "task", records: 1)
    }
}
