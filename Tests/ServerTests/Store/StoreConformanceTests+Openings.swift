import Testing
import TidemarkCore
import TidemarkTesting
import TidemarkWire

@testable import TidemarkServer

extension StoreConformanceTests {
    @Test("Scopes are listed in the order of their bytes, behind one, so many at a time", arguments: StoreKind.allCases)
    func scopes(kind: StoreKind) async throws {
        let bench = try StoreBench(kind)
        let names: [Scope] = ["10", "9", "A", "Z", "_", "a", "a-b", "a.b", "a:b", "ab"].sorted()
        var generator = SplitMix64(seed: 1)
        for scope in names.shuffled(using: &generator) { try await bench.append(.upsert("a"), to: scope) }
        let store = bench.store
        #expect(try await store.scopes(after: nil, limit: 99) == names)
        #expect(try await store.scopes(after: nil, limit: 3) == Array(names[..<3]))
        for (index, name) in names.enumerated() {
            #expect(try await store.scopes(after: name, limit: 2) == Array(names[(index + 1)...].prefix(2)))
        }
        #expect(try await store.scopes(after: "B", limit: 1) == ["Z"])
        #expect(try await store.scopes(after: "zz", limit: 1) == [])
        #expect(try await bench.changes("Z").count == 1)
    }

    @Test(
        "Each opening that writes rows in a scope is an incarnation of it, from the head that it found",
        arguments: StoreKind.allCases)
    func incarnations(kind: StoreKind) async throws {
        let bench = try StoreBench(kind)
        func starts(_ scope: Scope = "s") async throws -> [Version] {
            try await bench.state(scope).incarnations.map(\.start)
        }
        let key = bench.store.tokenKey
        try await bench.append(.upsert("a"), .upsert("b"))
        try await bench.append(.upsert("c"))
        #expect(try await starts() == [0])
        let first = try await bench.state().incarnations
        #expect(first.allSatisfy { $0.id > 0 })
        try bench.reopen()
        #expect(bench.store.tokenKey == key)
        #expect(try await bench.state().head == 3)
        _ = try await bench.changes()
        try await bench.write { writer throws in
            try writer.note(DeviceStanding(version: 1, seen: 1), of: .test)
            try writer.store(.applied(1), .test, 1, at: 1)
        }
        #expect(try await starts() == [0])
        try await bench.write { writer throws in
            _ = try writer.append(.upsert("d"), at: 1)
            #expect(writer.state.incarnations.map(\.start) == [0, 3])
        }
        #expect(try await starts() == [0, 3])
        try await bench.append(.upsert("e"))
        try await bench.append(.upsert("e"), to: "other")
        #expect(try await starts() == [0, 3])
        #expect(try await starts("other") == [0])
        try bench.reopen()
        try await bench.write { writer throws in
            writer.attemptInVain {
                _ = try writer.append(.upsert("f"), at: 1)
            }
        }
        #expect(try await starts() == [0, 3])
        try await bench.append(.upsert("f"))
        #expect(try await starts() == [0, 3, 5])
        let last = try await bench.state().incarnations
        #expect(last[0] == first[0])
        #expect(Set(last.map(\.id)).count == 3)
        #expect(try await bench.state("other").incarnations[0].id == last[1].id)
    }

    @Test(
        "Openings that all readers are refused by the retention floor are forgotten, but for those that a name lists",
        arguments: StoreKind.allCases)
    func forgottenOpenings(kind: StoreKind) async throws {
        let bench = try StoreBench(kind)
        for opening in 0..<10 {
            if opening > 0 { try bench.reopen() }
            try await bench.append(.upsert("a"), .delete("b"))
        }
        let all = try await bench.state().incarnations
        #expect(all.map(\.start) == (0..<10).map { Version($0 * 2) })
        let name = try await bench.state().history.epoch(of: 20)
        // The opening that ended at 12 is still named by who stands there.
        try await bench.write { writer throws in
            writer.attemptInVain { try writer.expire(through: 18) }
            #expect(writer.state.incarnations.count == 10)
            try writer.expire(through: 12)
            #expect(writer.state.incarnations.map(\.start) == [2, 4, 6, 8, 10, 12, 14, 16, 18])
        }
        #expect(try await bench.state().incarnations.elementsEqual(all[1...]) { $0 == $1 })
        try await bench.write { try $0.expire(through: 13) }
        #expect(try await bench.state().incarnations.map(\.start) == [4, 6, 8, 10, 12, 14, 16, 18])
        try await bench.write { try $0.expire(through: 20) }
        #expect(try await bench.state().incarnations.map(\.start) == [10, 12, 14, 16, 18])
        #expect(try await bench.state().history.epoch(of: 20) == name)
        try bench.reopen()
        try await bench.append(.upsert("a"))
        #expect(try await bench.state().incarnations.map(\.start) == [10, 12, 14, 16, 18, 20])
    }

    @Test("A write is there when the store is opened again", arguments: StoreKind.allCases)
    func openedAgain(kind: StoreKind) async throws {
        let bench = try StoreBench(kind)
        try await bench.append(.upsert("a", #"{"n":1}"#), .upsert("a", #"{"n":2}"#), .delete("b"), .event("9"))
        try await bench.write { writer throws in
            try writer.store(.applied(4), StoreNames.lanes[0], 3, at: 10)
            try writer.note(DeviceStanding(version: 2, seen: 5), of: .test)
            try writer.store("10", for: StoreNames.temporaries[0], at: 10)
            try writer.keep(.test("s", number: 1), limit: 9)
            try writer.expire(through: 1)
        }
        _ = try await bench.store.sweep(supersededBefore: .max, limit: 9)
        let before = try await bench.store.dump()
        try bench.reopen()
        #expect(try await bench.store.dump() == before)
    }
}
