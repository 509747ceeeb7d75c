import Testing
import TidemarkWire

@testable import TidemarkServer

extension StoreConformanceTests {
    @Test("The clock of ages begins with the first write, and goes where it is put", arguments: StoreKind.allCases)
    func ageClock(kind: StoreKind) async throws {
        let bench = try StoreBench(kind)
        try await bench.write { try $0.keep(.test("s", number: 1), limit: 9) }
        #expect(try await bench.store.ageClock() == nil)
        try await bench.write { try $0.store(.applied(nil), .test, 1, at: 5000) }
        #expect(try await bench.store.ageClock() == 5000)
        try await bench.append(.upsert("a"), at: 9000)
        try await bench.append(.upsert("a"), to: "other", at: 1000)
        #expect(try await bench.store.ageClock() == 5000)
        try await bench.store.setAgeClock(4000)
        try bench.reopen()
        try await bench.append(.upsert("a"), to: "third", at: 1000)
        #expect(try await bench.store.ageClock() == 4000)
        let other = try StoreBench(kind)
        try await other.store.setAgeClock(7)
        try await other.append(.upsert("a"), at: 1000)
        #expect(try await other.store.ageClock() == 7)
    }

    @Test("Rows are old up to the first that is not", arguments: StoreKind.allCases)
    func aged(kind: StoreKind) async throws {
        let bench = try StoreBench(kind)
        // Times 10, 11, … 15; the fourth and sixth are states.
        try await bench.append(
            .delete("a"), .event("e"), .idmap("3"), .upsert("a"), .delete("a"), .upsert("b"), at: 10)
        try await bench.read { reader throws in
            #expect(try pair(reader.aged(after: 0, through: 6, before: 99, limit: 99)) == [6, 4])
            #expect(try pair(reader.aged(after: 0, through: 6, before: 14, limit: 99)) == [4, 3])
            #expect(try pair(reader.aged(after: 0, through: 6, before: 10, limit: 99)) == [0, 0])
            #expect(try pair(reader.aged(after: 2, through: 6, before: 12, limit: 99)) == [2, 0])
            #expect(try pair(reader.aged(after: 1, through: 3, before: 99, limit: 99)) == [3, 2])
            #expect(try pair(reader.aged(after: 1, through: 6, before: 99, limit: 2)) == [3, 2])
            #expect(try pair(reader.aged(after: 3, through: 4, before: 99, limit: 2)) == [4, 0])
            #expect(try pair(reader.aged(after: 6, through: 6, before: 99, limit: 2)) == [6, 0])
            #expect(try pair(reader.aged(after: 0, through: 6, before: 99, events: false, limit: 99)) == [6, 3])
        }
    }

    @Test("Events may stay behind the floor, and are counted with what is there", arguments: StoreKind.allCases)
    func eventsStay(kind: StoreKind) async throws {
        let bench = try StoreBench(kind)
        try await bench.append(.upsert("a"), .delete("b"), .event("e"), .idmap("4"), .event("f"))
        let before = try await bench.state()
        try await bench.write { try $0.expire(through: 4, events: false) }
        #expect(try await bench.changes().map(\.version) == [1, 3, 5])
        #expect(try await bench.state().retentionFloor == 4)
        #expect(try await bench.state().size.rows == before.size.rows - 2)
        // What is declared later holds for what the floor passes from then on.
        try await bench.write { try $0.expire(through: 5, events: true) }
        #expect(try await bench.changes().map(\.version) == [1, 3])
    }

    @Test("Deletions, events and idmaps go up to the floor, which never falls", arguments: StoreKind.allCases)
    func expired(kind: StoreKind) async throws {
        let bench = try StoreBench(kind)
        try await bench.append(
            .upsert("a"), .delete("b"), .event("e"), .idmap("4"), .upsert("b"), .delete("c"), .event("f"))
        try await bench.write { writer throws in
            try writer.expire(through: 4)
            #expect(writer.state.retentionFloor == 4)
            #expect(try writer.newest(entity: "audit", record: "e") == nil)
        }
        #expect(try await bench.state().retentionFloor == 4)
        #expect(try await bench.changes().map(\.version) == [1, 5, 6, 7])
        // The deletion of b was superseded; it is gone from its window too.
        #expect(try await bench.changes(through: 4).map(\.version) == [1])
        #expect(try await bench.read { try $0.newest(entity: "task", record: "b")?.version } == 5)
        try await bench.write { try $0.expire(through: 3) }
        #expect(try await bench.state().retentionFloor == 4)
        try await bench.write { try $0.expire(through: 6) }
        #expect(try await bench.changes().map(\.version) == [1, 5, 7])
        #expect(try await bench.read { try $0.newest(entity: "task", record: "c") } == nil)
        #expect(try await bench.state().head == 7)
        #expect(try await bench.state("other").retentionFloor == 0)
        try bench.reopen()
        #expect(try await bench.append(.upsert("z")) == [8])
    }

    @Test(
        "Superseded rows go by their age, at most so many, and the floors rise with them", arguments: StoreKind.allCases
    )
    func swept(kind: StoreKind) async throws {
        let bench = try StoreBench(kind)
        // Superseded at 20 (s 1), 30 (other 1), 40 (s 2), 50 (other 2); a clock that was put back made s 3 the oldest.
        for (moment, scope) in [(10, "s"), (10, "other"), (20, "s"), (30, "other")] as [(Int64, Scope)] {
            try await bench.append(.upsert("a"), to: scope, at: moment)
        }
        try await bench.append(.upsert("a"), at: 40)
        try await bench.append(.upsert("a"), to: "other", at: 50)
        func floors() async throws -> [Version] {
            [try await bench.state().sweepFloor, try await bench.state("other").sweepFloor]
        }
        let store = bench.store
        #expect(try await store.sweep(supersededBefore: 20, limit: 9) == 0)
        #expect(try await floors() == [0, 0])
        #expect(try await store.sweep(supersededBefore: 99, limit: 1) == 1)
        #expect(try await floors() == [2, 0])
        #expect(try await bench.changes(through: 1).map(\.version) == [])
        #expect(try await bench.changes(through: 2).map(\.version) == [2])
        #expect(try await store.sweep(supersededBefore: 99, limit: 2) == 2)
        #expect(try await floors() == [3, 2])
        #expect(try await bench.changes("other", through: 2).map(\.version) == [2])
        try await bench.append(.upsert("a"), at: 15)
        #expect(try await store.sweep(supersededBefore: 20, limit: 9) == 1)
        #expect(try await floors() == [4, 2])
        #expect(try await store.sweep(supersededBefore: 99, limit: 9) == 1)
        #expect(try await store.sweep(supersededBefore: .max, limit: 9) == 0)
        #expect(try await floors() == [4, 3])
        #expect(try await bench.changes().map(\.version) == [4])
        #expect(try await bench.changes("other").map(\.version) == [3])
    }
}
