import Testing
import TidemarkWire

@testable import TidemarkServer

extension StoreConformanceTests {
    /// In the order of their bytes: capitals before small letters, and one letter in two scalars and in one.
    private static let ordered: [RecordID] = [
        "10", "9", "B", "a", "a b", "ab", "e\u{301}", "z", "\u{e9}", "\u{ff5e}", "😀",
    ]

    @Test("An entity's records come in the order of their bytes, from behind one", arguments: StoreKind.allCases)
    func byteOrder(kind: StoreKind) async throws {
        let bench = try StoreBench(kind)
        for id in Self.ordered.shuffled() {
            try await bench.append(
                .upsert(id), .upsert(RecordID(stringLiteral: "\(id)x"), of: "task2"), .upsert(id, of: "tas"))
        }
        try await bench.read { reader throws in
            #expect(try reader.seen(of: "task").map(\.record) == Self.ordered)
            #expect(try reader.seen(of: "task").allSatisfy { $0.entity == "task" })
            for (index, id) in Self.ordered.enumerated() {
                #expect(try reader.seen(of: "task", after: id).map(\.record) == Array(Self.ordered[(index + 1)...]))
            }
            #expect(try reader.seen(of: "task", after: "aa").map(\.record).first == "ab")
            #expect(
                try reader.newest(entity: "task", record: "\u{e9}") != reader.newest(entity: "task", record: "e\u{301}")
            )
            #expect(try reader.seen(of: "other").isEmpty)
            #expect(try Set(reader.entities()) == ["task", "task2", "tas"])
        }
    }

    @Test("Records above a version, as of a horizon, tombstones only above one", arguments: StoreKind.allCases)
    func recordWindows(kind: StoreKind) async throws {
        let bench = try StoreBench(kind)
        // 1 c, 2 b, 3 a, 4 b deleted, 5 c again, 6 a deleted
        try await bench.append(.upsert("c"), .upsert("b"), .upsert("a"), .delete("b"), .upsert("c"), .delete("a"))
        @Sendable func versions(_ base: Version, _ horizon: Version?, _ reader: any ScopeReader) throws -> [Version] {
            try reader.seen(of: "task", above: base, at: horizon).map(\.version)
        }
        try await bench.read { reader throws in
            #expect(try versions(0, nil, reader) == [5])
            #expect(try versions(0, 6, reader) == [5])
            #expect(try versions(0, 5, reader) == [3, 5])
            #expect(try versions(0, 4, reader) == [3, 1])
            #expect(try versions(0, 3, reader) == [3, 2, 1])
            #expect(try versions(1, 3, reader) == [3, 2])
            #expect(try versions(1, nil, reader) == [6, 4, 5])
            #expect(try versions(4, nil, reader) == [6, 5])
            #expect(try versions(4, 4, reader) == [])
            #expect(try versions(3, 4, reader) == [4])
        }
    }

    @Test("Events take nobody's place, and a state takes that of all before it", arguments: StoreKind.allCases)
    func events(kind: StoreKind) async throws {
        let bench = try StoreBench(kind)
        try await bench.append(.event("e"), .event("d"), .event("e"))
        try await bench.read { reader throws in
            #expect(try reader.seen(of: "audit").map(\.version) == [2, 1, 3])
            #expect(try reader.newest(entity: "audit", record: "e")?.version == 3)
            #expect(try reader.newest(entity: "audit", record: "e")?.payload == Array("{}".utf8))
            #expect(try reader.digest(of: "audit") == nil)
        }
        try await bench.append(.upsert("e", of: "audit"))
        #expect(try await bench.changes().map(\.version) == [2, 4])
        #expect(try await bench.changes(through: 3).map(\.version) == [1, 2, 3])
        try await bench.append(.event("e"))
        #expect(try await bench.changes().map(\.version) == [2, 4, 5])
        try await bench.expectDigest(of: "audit", records: 1)
        try await bench.append(.upsert("e", #"{"n":2}"#, of: "audit"))
        try await bench.expectDigest(of: "audit", records: 1)
        #expect(try await bench.changes().map(\.version) == [2, 6])
    }

    @Test("An idmap belongs to no entity, and an entity without rows is none", arguments: StoreKind.allCases)
    func entities(kind: StoreKind) async throws {
        let bench = try StoreBench(kind)
        try await bench.append(.idmap("1"), .upsert("a"), .delete("b", of: "note"), .event("e"))
        try await bench.append(.upsert("a", of: "elsewhere"), to: "other")
        #expect(try await bench.read { Set(try $0.entities()) } == ["task", "note", "audit"])
        #expect(try await bench.read { try $0.entities().count } == 3)
        try await bench.write { try $0.expire(through: 4) }
        #expect(try await bench.read { try $0.entities() } == ["task"])
    }
}
