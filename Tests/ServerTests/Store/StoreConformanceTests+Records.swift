import Testing
import TidemarkTesting
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
        var generator = SplitMix64(seed: 1)
        for id in Self.ordered.shuffled(using: &generator) {
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
            #expect(Set(reader.state.entities.all) == ["task", "task2", "tas"])
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

    @Test(
        "An idmap belongs to no entity; an entity's name is kept as it was spelled first, in each scope",
        arguments: StoreKind.allCases)
    func entities(kind: StoreKind) async throws {
        let bench = try StoreBench(kind)
        let names = ["task", "note", "audit", "Order \"Details\" é\\", "Order \"Details\" e\u{301}\\"]
        try await bench.append(.idmap("1"), .upsert("a"), .delete("b", of: "note"), .event("e"))
        try await bench.append(.upsert("a", of: "Task"), to: "other")
        try? await bench.write { writer throws in
            _ = try writer.append(.upsert("a", of: "undone"), at: 10)
            throw Undone()
        }
        try await bench.write { writer throws in
            try? writer.attempt {
                _ = try writer.append(.upsert("a", of: "undone"), at: 10)
                throw Undone()
            }
            for name in names[3...] { _ = try writer.append(.upsert("a", of: name), at: 10) }
            #expect(writer.state.entities.all.map { Array($0.utf8) } == names.map { Array($0.utf8) })
        }
        try await bench.write { try $0.expire(through: 4) }
        try bench.reopen()
        #expect(try await bench.state().entities.all.map { Array($0.utf8) } == names.map { Array($0.utf8) })
        #expect(try await bench.state("other").entities.all == ["Task"])
        #expect(try await bench.state("other").entities.spelling(of: "TASK") == "Task")
        try await bench.read { reader throws in
            #expect(try names.map { try reader.seen(of: $0).map(\.version) } == [[2], [], [], [5], [6]])
            #expect(try reader.digest(of: names[3]) != reader.digest(of: names[4]))
        }
    }
}
