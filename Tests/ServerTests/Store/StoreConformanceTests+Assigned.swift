import Testing
import TidemarkWire

@testable import TidemarkServer

extension StoreConformanceTests {
    @Test(
        "The id behind a temporary id is known in all scopes, and whose it is, and where",
        arguments: StoreKind.allCases)
    func aliases(kind: StoreKind) async throws {
        let bench = try StoreBench(kind)
        let name = TemporaryName(principal: "ada", client: "device-1", entity: "task", id: "-1")
        try await bench.write { try $0.store("7", for: name, at: 10) }
        var others = [name, name, name, name]
        others[0].principal = "bob"
        others[1].client = "device-2"
        others[2].entity = "note"
        others[3].id = "-2"
        let strangers = others
        for scope in ["s", "other"] as [Scope] {
            try await bench.read(scope) { reader throws in
                #expect(try reader.id(for: name) == "7")
                for stranger in strangers { #expect(try reader.id(for: stranger) == nil) }
                #expect(try reader.assignment(of: "7", entity: "task") == (scope == "s" ? .here : .elsewhere))
                #expect(try reader.assignment(of: "7", entity: "note") == nil)
                #expect(try reader.assignment(of: "8", entity: "task") == nil)
            }
        }
        // Given in two scopes, it is here in both.
        try await bench.write("other") { try $0.store("7", for: strangers[1], at: 10) }
        for scope in ["s", "other"] as [Scope] {
            #expect(try await bench.read(scope) { try $0.assignment(of: "7", entity: "task") } == .here)
        }
        #expect(try await bench.read("third") { try $0.assignment(of: "7", entity: "task") } == .elsewhere)
        #expect(try await bench.store.scopes(after: nil, limit: 9) == ["other", "s"])
    }

    @Test(
        "Refused edits are listed the newest first, of one scope or all, and taken off once",
        arguments: StoreKind.allCases)
    func rejections(kind: StoreKind) async throws {
        let bench = try StoreBench(kind)
        let fields = Array(#"{"title":""}"#.utf8)
        try await bench.write { try $0.keep(.test("s", number: 1, fields: fields), limit: 10) }
        try await bench.write("other") { try $0.keep(.test("other", number: 2), limit: 10) }
        try await bench.write { try $0.keep(.test("s", number: 3), limit: 10) }
        let store = bench.store
        let all = try await store.rejections(in: nil, id: nil, limit: 10)
        var first = StoredRejection.test("s", number: 1, fields: fields)
        first.id = all.last?.id ?? 0
        #expect(all.map(\.number) == [3, 2, 1])
        #expect(all.last == first)
        #expect(all.map(\.id).sorted(by: >) == all.map(\.id))
        #expect(try await store.rejections(in: "s", id: nil, limit: 10).map(\.number) == [3, 1])
        #expect(try await store.rejections(in: nil, id: nil, limit: 2).map(\.number) == [3, 2])
        #expect(try await store.rejections(in: "none", id: nil, limit: 2).isEmpty)
        #expect(try await store.rejections(in: nil, id: all[1].id, limit: 9).map(\.number) == [2])
        #expect(try await store.rejections(in: "s", id: all[1].id, limit: 9).isEmpty)
        #expect(try await store.discardRejection(all[0].id))
        #expect(try await !store.discardRejection(all[0].id))
        #expect(try await store.rejections(in: nil, id: nil, limit: 10).map(\.number) == [2, 1])
        // Its number does not come again.
        try await bench.write { try $0.keep(.test("s", number: 4), limit: 10) }
        #expect(try await store.rejections(in: nil, id: nil, limit: 1)[0].id > all[0].id)
    }

    @Test(
        "Of each scope's refused edits the newest are kept: nobody pushes out another's", arguments: StoreKind.allCases)
    func rejectionsTrimmed(kind: StoreKind) async throws {
        let bench = try StoreBench(kind)
        for number in 1...9 as ClosedRange<Int64> {
            let scope: Scope = number % 2 == 0 ? "s" : "other"
            try await bench.write(scope) { try $0.keep(.test(scope, number: number), limit: 2) }
        }
        #expect(try await bench.store.rejections(in: nil, id: nil, limit: 99).map(\.number) == [9, 8, 7, 6])
        for number in 10...12 as ClosedRange<Int64> {
            try await bench.write("other") { try $0.keep(.test("other", number: number), limit: 2) }
        }
        try bench.reopen()
        #expect(try await bench.store.rejections(in: nil, id: nil, limit: 99).map(\.number) == [12, 11, 8, 6])
    }
}
