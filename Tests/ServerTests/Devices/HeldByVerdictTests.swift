import Foundation
import Testing

@testable import TidemarkServer
@testable import TidemarkWire

/// Rows that a device holds although no checkpoint says so, because verdicts have told it of them (W14, W39).
@Suite("Rows that a device knows by verdicts alone")
struct HeldByVerdictTests {
    private static let device = "device-aaaa"

    /// A device that has pushed `a` and `b` in two requests and pulled nothing; somebody else has deleted `a` since.
    private func pushed(_ kind: StoreKind) async throws -> EngineBench {
        let bench = try EngineBench(kind)
        try await bench.server.commit(to: "s") { changes in
            changes.upsert("task", id: "old", ["n": 1])
            changes.delete("task", id: "old")
        }
        _ = try await bench.push(upsert(1, "a", #"{"n":1}"#))
        _ = try await bench.push(upsert(2, "b", #"{"n":1}"#))
        try await bench.server.commit(to: "s") { $0.delete("task", id: "a") }
        return bench
    }

    @Test("A row known from an earlier verdict gets its tombstone in the first scan", arguments: StoreKind.allCases)
    func earlierVerdict(kind: StoreKind) async throws {
        let bench = try await pushed(kind)
        let scan = try await bench.pullAll(client: Self.device)
        #expect(scan.changes.map { "\($0.type) \($0.id)" } == ["upsert b", "delete a"])
        // Page by page it is the same, and who is not that device hears of no deletion.
        let pages = try await bench.pullAll(limit: 1, client: "device-bbbb")
        #expect(pages.changes.map(\.id) == ["b"])
    }

    @Test("An exchange without a checkpoint tells of it too, and of what it has written itself")
    func exchange() async throws {
        for kind in StoreKind.allCases {
            let bench = try await pushed(kind)
            let answer = try await bench.exchange([upsert(3, "b", #"{"m":2}"#, base: 4)])
            #expect(answer.statuses == ["applied"])
            #expect(answer.changes.map { "\($0.type) \($0.id)" } == ["delete a", "upsert b"])
            #expect(answer.changes.last?.data == ["n": 1, "m": 2])
            let next = try await bench.exchange([upsert(4, "b", #"{"m":3}"#, base: 6)], since: answer.nextSince)
            #expect(next.changes.isEmpty)
        }
    }

    @Test("It is so for each page of the scan, and once more for who asks anew", arguments: StoreKind.allCases)
    func pages(kind: StoreKind) async throws {
        let bench = try await pushed(kind)
        let first = try await bench.changes(limit: 1, client: Self.device)
        #expect(try await bench.changes(limit: 1, client: Self.device).bytes == first.bytes)
        let second = try await bench.changes(since: first.nextSince, client: Self.device)
        #expect(second.changes.map(\.type) == ["delete"])
        let anew = try await bench.pullAll(client: Self.device)
        #expect(anew.changes.map(\.id) == ["b", "a"])
    }

    @Test("A checkpoint that was shown since takes the place of the verdicts", arguments: StoreKind.allCases)
    func checkpoint(kind: StoreKind) async throws {
        let bench = try await pushed(kind)
        let scan = try await bench.pullAll(client: Self.device)
        _ = try await bench.changes(since: scan.nextSince, client: Self.device)
        let known = try await bench.bench.read {
            try $0.standing(of: DeviceName(principal: "ada", client: Self.device))
        }
        #expect(known?.version == 5)
        #expect(known?.oldest == nil)
        // It begins anew with nothing: only what was deleted behind the checkpoint can be a row that it holds.
        #expect(try await bench.pullAll(client: Self.device).changes.map(\.id) == ["b"])
        _ = try await bench.push(upsert(3, "c", "{}"))
        try await bench.server.commit(to: "s") { $0.delete("task", id: "c") }
        #expect(try await bench.pullAll(client: Self.device).changes.map(\.id) == ["b", "c"])
    }

    @Test("An old verdict told again counts as the row that it names", arguments: StoreKind.allCases)
    func replay(kind: StoreKind) async throws {
        let bench = try await pushed(kind)
        let scan = try await bench.pullAll(client: Self.device)
        _ = try await bench.changes(since: scan.nextSince, client: Self.device)
        #expect(try await bench.push(upsert(1, "a", #"{"n":1}"#)).versions == [3])
        #expect(try await bench.pullAll(client: Self.device).changes.map(\.id) == ["b", "a"])
    }

    @Test("A device that was forgotten with its verdicts gets all deletions that are kept")
    func forgotten() async throws {
        for kind in StoreKind.allCases {
            let bench = try await pushed(kind)
            bench.clock += 91 * 86_400_000
            var configuration = SyncServer.Configuration.still
            configuration.retention = nil
            let moment = bench.clock
            configuration.now = { Date(milliseconds: moment) }
            let server = SyncServer(store: bench.bench.store, configuration: configuration)
            _ = try await server.compact(trustingClock: true)
            let scan = try await bench.pullAll(client: Self.device)
            #expect(scan.changes.map(\.id) == ["old", "b", "a"])
        }
    }
}
