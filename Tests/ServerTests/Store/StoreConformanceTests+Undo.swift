import Testing
import TidemarkWire

@testable import TidemarkServer

extension StoreConformanceTests {
    @Test("A part that fails is undone, and only that; parts stand in parts", arguments: StoreKind.allCases)
    func attempts(kind: StoreKind) async throws {
        let bench = try StoreBench(kind)
        let versions = try await bench.write { writer throws in
            var versions = [try writer.append(.upsert("a", #"{"n":1}"#), at: 10)]
            writer.attemptInVain { _ = try writer.append(.upsert("a", #"{"n":2}"#), at: 20) }
            #expect(writer.state.head == 1)
            #expect(try writer.newest(entity: "task", record: "a")?.payload == Array(#"{"n":1}"#.utf8))
            try writer.attempt {
                versions.append(try writer.append(.upsert("b"), at: 30))
                writer.attemptInVain {
                    _ = try writer.append(.delete("b"), at: 40)
                    try writer.attempt { _ = try writer.append(.upsert("c"), at: 50) }
                }
                versions.append(try writer.append(.upsert("d"), at: 31))
            }
            writer.attemptInVain { try writer.attempt { _ = try writer.append(.upsert("e"), at: 60) } }
            return versions
        }
        #expect(versions == [1, 2, 3])
        let seen = try await bench.changes()
        #expect(seen.map(\.record) == ["a", "b", "d"])
        #expect(seen.map(\.time) == [10, 30, 31])
        try await bench.expectDigest(of: "task", records: 3)
    }

    @Test("A part answers what its body does", arguments: StoreKind.allCases)
    func attemptAnswers(kind: StoreKind) async throws {
        let bench = try StoreBench(kind)
        #expect(try await bench.write { writer in try writer.attempt { try writer.append(.upsert("a"), at: 1) } } == 1)
    }

    @Test("A failed part leaves nothing of any kind", arguments: StoreKind.allCases)
    func attemptUndoesAll(kind: StoreKind) async throws {
        let bench = try StoreBench(kind)
        try await bench.write { writer in try writer.writeSomethingOfEverything(1) }
        let before = try await bench.store.dump()
        try await bench.write { writer throws in
            writer.attemptInVain {
                try writer.writeSomethingOfEverything(2)
                try writer.tidyEverything()
            }
        }
        #expect(try await bench.store.dump() == before)
        // As if it had never been: the next gets the same numbers.
        try await bench.write { writer in try writer.writeSomethingOfEverything(2) }
        #expect(try await bench.store.rejections(in: nil, id: nil, limit: 9).map(\.id) == [2, 1])
        #expect(try await bench.state().head == 8)
    }

    @Test("An error in a write undoes all of it, the scope and the clock of ages too", arguments: StoreKind.allCases)
    func thrown(kind: StoreKind) async throws {
        let bench = try StoreBench(kind)
        let empty = try await bench.store.dump()
        for _ in 0..<2 {
            await #expect(throws: Undone.self) {
                try await bench.write { writer throws in
                    try writer.writeSomethingOfEverything(1)
                    throw Undone()
                }
            }
        }
        #expect(try await bench.store.dump() == empty)
        try await bench.write { writer in try writer.writeSomethingOfEverything(2) }
        #expect(try await bench.store.ageClock() == 2)
        let before = try await bench.store.dump()
        try bench.reopen()
        await #expect(throws: Undone.self) {
            try await bench.write { writer throws in
                try writer.writeSomethingOfEverything(3)
                try writer.tidyEverything()
                throw Undone()
            }
        }
        #expect(try await bench.store.dump() == before)
        await #expect(throws: Undone.self) { try await bench.read { _ throws -> Version in throw Undone() } }
    }

    @Test("A name that is taken is refused, and a part that tried it changes nothing", arguments: StoreKind.allCases)
    func taken(kind: StoreKind) async throws {
        let bench = try StoreBench(kind)
        try await bench.write { writer throws in
            try writer.store(.applied(1), .test, 1, at: 1)
            try writer.store(.applied(2), .test, 2, at: 1)
            try writer.store("7", for: StoreNames.temporaries[0], at: 1)
        }
        let before = try await bench.store.dump()
        try await bench.write { writer throws in
            #expect(throws: (any Error).self) { try writer.store(.applied(9), .test, 1, at: 2) }
            #expect(throws: (any Error).self) { try writer.store("8", for: StoreNames.temporaries[0], at: 2) }
        }
        #expect(try await bench.store.dump() == before)
    }
}

extension ScopeWriter {
    /// A part of a write that fails at its end.
    func attemptInVain(_ body: () throws -> Void) {
        #expect(throws: Undone.self) {
            try attempt {
                try body()
                throw Undone()
            }
        }
    }

    /// Four rows, and one of everything else that can be written.
    fileprivate func writeSomethingOfEverything(_ number: Int64) throws {
        _ = try append(.upsert("a", #"{"n":\#(number)}"#), at: number)
        _ = try append(.delete("b", of: "note"), at: number)
        _ = try append(.event("9"), at: number)
        _ = try append(.upsert("a", #"{"m":\#(number)}"#), at: number)
        try store(.applied(state.head), StoreNames.lanes[0], number, at: number)
        try store(.applied(nil), StoreNames.lanes[Int(number)], number + 3, at: number)
        try store("10", for: StoreNames.temporaries[Int(number)], at: number)
        try note(DeviceStanding(version: number, seen: number), of: .test)
        try note(DeviceStanding(version: nil, seen: number), of: StoreNames.devices[Int(number)])
        try store(tally: [UInt8(number)], by: "ada", of: "task", at: number)
        try keep(.test("s", number: number), limit: 2)
    }

    /// Everything that takes something away.
    fileprivate func tidyEverything() throws {
        try forgetVerdicts(StoreNames.lanes[0], through: 9)
        try expire(through: state.head)
        #expect(try pair(forget(devicesBefore: .max, lanesBefore: .max, limit: 99)) != [0, 0])
        try keep(.test("s", number: 99), limit: 0)
        _ = try append(.upsert("B"), at: 99)
    }
}

extension StoredRejection {
    static func test(_ scope: Scope, number: Int64, fields: [UInt8]? = nil) -> StoredRejection {
        StoredRejection(
            scope: scope, entity: "task", record: "a", isDelete: fields == nil, fields: fields, lane: .test,
            number: number, code: "no", detail: "No.", time: number * 10)
    }
}
