import Testing
import TidemarkWire

@testable import TidemarkServer

/// What every ``ChangeStore`` promises, sentence by sentence; the stores themselves are listed in `StoreKind`.
@Suite("Every store keeps the seam's promises")
struct StoreConformanceTests {
    @Test(
        "A scope that nobody wrote to is all zero and empty, and is not made by looking", arguments: StoreKind.allCases)
    func empty(kind: StoreKind) async throws {
        let bench = try StoreBench(kind)
        #expect(bench.store.tokenKey.count == 32)
        #expect(try await bench.state() == ScopeState())
        #expect(try await bench.changes().isEmpty)
        try await bench.read { reader throws in
            #expect(try reader.newest(entity: "task", record: "a") == nil)
            #expect(try reader.row(entity: "task", record: "a", at: 1) == nil)
            try reader.newest(entity: "task", record: "a") { _ in Issue.record("There is no row to visit.") }
            #expect(try reader.digest(of: "task") == nil)
            #expect(reader.state.entities.all == [])
            #expect(try reader.seen(of: "task") == [])
            #expect(try reader.lane(.test) == 0)
            #expect(try reader.lanes(of: .test, limit: 9).isEmpty)
            #expect(try reader.standing(of: .test) == nil)
            #expect(try reader.slowest() == nil)
            #expect(try pair(reader.aged(after: 0, through: 9, before: .max, limit: 9)) == [0, 0])
            #expect(try pair(reader.unheard(devicesBefore: .max, lanesBefore: .max)) == [0, 0])
            #expect(try reader.verdict(.test, 1) == nil)
            #expect(try reader.assignment(of: "a", entity: "task") == nil)
        }
        try await bench.write { writer throws in
            try writer.note(DeviceStanding(version: 1, seen: 1), of: .test)
            try writer.expire(through: 1)
            #expect(try pair(writer.forget(devicesBefore: .max, lanesBefore: .max, limit: 9)) == [0, 0])
            try writer.forgetVerdicts(.test, through: 9)
        }
        #expect(try await bench.state() == ScopeState())
        #expect(try await bench.store.scopes(after: nil, limit: 9) == [])
        #expect(try await bench.store.ageClock() == nil)
    }

    @Test(
        "A write returns its result, versions go up by one, and what is written is read", arguments: StoreKind.allCases)
    func appended(kind: StoreKind) async throws {
        let bench = try StoreBench(kind)
        #expect(try await bench.append(.upsert("a", #"{"n":1}"#), .upsert("b")) == [1, 2])
        #expect(try await bench.append(.event("e", "[]"), .idmap("4"), .delete("a", madeOn: 2)) == [3, 4, 5])
        #expect(try await bench.append(.upsert("a"), to: "other") == [1])
        #expect(try await bench.state().head == 5)
        let seen = try await bench.changes()
        #expect(seen.map(\.version) == [2, 3, 4, 5])
        #expect(seen.map(\.kind) == [.upsert, .event, .idmap, .delete])
        #expect(seen.map(\.entity) == ["task", "audit", "", "task"])
        #expect(seen.map(\.record) == ["b", "e", "4", "a"])
        #expect(seen.map(\.payload) == ["{}", "[]", #""entity":"task""#, "2"])
    }

    @Test("Time never goes back in a scope, and takes no second row at one moment", arguments: StoreKind.allCases)
    func time(kind: StoreKind) async throws {
        let bench = try StoreBench(kind)
        for moment in [100, 100, 50, 300] as [Int64] { try await bench.append(.event("e"), at: moment) }
        try await bench.append(.event("e"), to: "other", at: 20)
        #expect(try await bench.changes().map(\.time) == [100, 101, 102, 300])
        #expect(try await bench.changes("other").map(\.time) == [20])
        #expect(try await bench.read { try $0.newest(entity: "audit", record: "e")?.time } == 300)
    }

    @Test("A writer sees what it has written before it is done", arguments: StoreKind.allCases)
    func own(kind: StoreKind) async throws {
        let bench = try StoreBench(kind)
        try await bench.append(.upsert("a", #"{"n":1}"#))
        try await bench.write { writer throws in
            _ = try writer.newest(entity: "task", record: "a")
            #expect(try writer.append(.upsert("a", #"{"n":2}"#), at: 2000) == 2)
            #expect(writer.state.head == 2)
            #expect(try writer.newest(entity: "task", record: "a")?.payload == Array(#"{"n":2}"#.utf8))
            #expect(try writer.seen(after: 0, through: 2, tombstonesAfter: 0).map(\.version) == [2])
            try writer.store(.applied(2), .test, 7, at: 2000)
            #expect(try writer.lane(.test) == 7)
            #expect(try writer.verdict(.test, 7) == .applied(2))
            #expect(try writer.lanes(of: .test, limit: 9).map(\.number) == [7])
        }
    }

    @Test(
        "Writes of many tasks come one after the other, and a failed one is undone alone", arguments: StoreKind.allCases
    )
    func together(kind: StoreKind) async throws {
        let bench = try StoreBench(kind)
        let store = bench.store
        let versions = await withTaskGroup(of: Version?.self) { group in
            for index in 0..<60 {
                group.addTask {
                    try? await store.write(index % 2 == 0 ? "s" : "other") { writer throws in
                        let version = try writer.append(.event(RecordID(stringLiteral: "e\(index)")), at: 1000)
                        if index % 10 == 3 { throw Undone() }
                        return version
                    }
                }
                group.addTask {
                    // A view is of one moment: as many rows as its head says.
                    try? await store.read("s") { reader throws in
                        let seen = try reader.seen(after: 0, through: .max, tombstonesAfter: 0)
                        #expect(Int64(seen.count) == reader.state.head)
                    }
                    return nil
                }
            }
            return await group.reduce(into: []) { all, version in version.map { all.append($0) } }
        }
        #expect(versions.sorted() == (Array(1...24) + Array(1...30)).sorted())
        #expect(try await bench.changes().map(\.version) == Array(1...30))
        #expect(try await bench.changes("other").map(\.version) == Array(1...24))
    }
}

extension LaneName {
    static let test = LaneName(principal: "ada", client: "device-aaaa", lane: "lane-aaaa")

    static func test(_ lane: String, of device: DeviceName = .test) -> LaneName {
        LaneName(principal: device.principal, client: device.client, lane: lane)
    }
}

extension DeviceName {
    static let test = DeviceName(principal: "ada", client: "device-aaaa")

    static func test(_ client: String) -> DeviceName { DeviceName(principal: "ada", client: client) }
}
