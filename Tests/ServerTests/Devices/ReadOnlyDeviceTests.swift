import Foundation
import Testing

@testable import TidemarkServer
@testable import TidemarkWire

/// Who may only read is not written down, and holds nothing back (W25, I14).
@Suite("A device that only reads")
struct ReadOnlyDeviceTests {
    private let day: Int64 = 86_400_000

    /// What has gone once all of it is old.
    private func compact(_ bench: EngineBench) async throws -> Compaction {
        var configuration = SyncServer.Configuration.still
        configuration.retention = .seconds(30 * 86_400)
        configuration.uptime = { .zero }
        configuration.now = { Date(milliseconds: bench.clock + 31 * 86_400_000) }
        return try await SyncServer(store: bench.bench.store, configuration: configuration)
            .compact(trustingClock: true)
    }

    private func filled(_ kind: StoreKind) async throws -> EngineBench {
        let bench = try EngineBench(kind)
        try await bench.server.commit(to: "s") { changes in
            for id in ["a", "b"] as [RecordID] { changes.upsert("task", id: id, ["n": 1]) }
        }
        return bench
    }

    @Test("Any number of made-up names leave no row, and hold back no retention", arguments: StoreKind.allCases)
    func manyNames(kind: StoreKind) async throws {
        let bench = try await filled(kind)
        let reader = Access.read(as: "eve")
        let since = try await bench.changes().nextSince
        for number in 1...4000 {
            let client = "device-\(number)"
            switch number % 4 {
            case 0: _ = try await bench.changes(since: since, client: client, access: reader)
            case 1: _ = try await bench.changes(limit: 1, client: client, access: reader)
            case 2: _ = try await bench.exchange([], client: client, since: since, access: reader)
            default:
                var query = SnapshotQuery(of: "s")
                query.client = client
                _ = try await bench.server.snapshot(query, access: reader)
            }
        }
        let known = try await bench.bench.read { reader in
            (pair(try reader.unheard(devicesBefore: .max, lanesBefore: .max)), try reader.slowest())
        }
        #expect(known.0 == [0, 0] && known.1 == nil)
        try await bench.server.commit(to: "s") { $0.delete("task", id: "a") }
        #expect(try await compact(bench).expired == 1)
        #expect(try await bench.bench.state().retentionFloor == 3)
        // It begins anew then, as one that was away for too long; it has nothing to lose.
        let late = await problem { _ = try await bench.changes(since: since, client: "device-1", access: reader) }
        #expect(late?.code == .clientUnknown && late?.reason == .retention)
        #expect(try await bench.pullAll(client: "device-1").changes.map(\.id) == ["b"])
    }

    @Test("One that may write is known from its first request on, and waited for", arguments: StoreKind.allCases)
    func mayWrite(kind: StoreKind) async throws {
        let bench = try await filled(kind)
        let since = try await bench.changes(client: "device-aaaa").nextSince
        _ = try await bench.changes(since: since, client: "device-aaaa")
        try await bench.server.commit(to: "s") { $0.delete("task", id: "a") }
        #expect(try await compact(bench).expired == 0)
        #expect(try await bench.changes(since: since, client: "device-aaaa").changes.map(\.type) == ["delete"])
    }

    @Test("One that may not write any more is waited for until it is forgotten, however often it reads")
    func mayWriteNoMore() async throws {
        let bench = try await filled(.sqlite)
        let since = try await bench.exchange([upsert(1, "c", "{}")]).nextSince
        _ = try await bench.exchange([], since: since)
        try await bench.server.commit(to: "s") { $0.delete("task", id: "a") }
        for _ in 1...6 {
            bench.clock += 10 * day
            _ = try await bench.exchange([], since: since, access: .read(as: "ada"))
            #expect(try await compact(bench).expired == (bench.clock > 60 * day ? 1 : 0))
        }
    }
}
