import Foundation
import Testing

@testable import TidemarkServer
@testable import TidemarkWire

@Suite("Records that are only pushed are not handed out (B1)")
struct PushOnlyEntityTests {
    private static let entities: [EntityDeclaration] = [
        .state("report", direction: .push), .events("log", direction: .push),
    ]

    private static let service = Access(.readWrite, principal: "operator", isService: true)

    private func filled() async throws -> Bench {
        let bench = try Bench(entities: Self.entities)
        _ = try await bench.exchange([
            upsert(1, "r1", #"{"x":1}"#, entity: "report"), upsert(2, "t1", "{}"),
            upsert(3, "l1", #"{"n":1}"#, entity: "log"), upsert(4, "t2", "{}"),
        ])
        return bench
    }

    @Test("Pages and snapshots leave it out for devices, in every page size, and show it to service tokens")
    func withheld() async throws {
        let bench = try await filled()
        for limit: Int64 in [1, 2, 500] {
            #expect(try await bench.pullAll(limit: limit).changes.map(\.id) == ["t1", "t2"])
        }
        let all = try await bench.changes(access: Self.service)
        #expect(all.changes.map(\.id) == ["r1", "t1", "l1", "t2"])
        for (access, count) in [(Access.read(as: "ada"), 2), (Self.service, 4)] {
            let page = try await bench.server.snapshot(SnapshotQuery(of: "s"), access: access)
            #expect(try Answer(page.body).changes.count == count)
        }
    }

    @Test("The ids behind its temporary ids are not handed out either")
    func ids() async throws {
        let bench = try Bench(entities: [.state("order", direction: .push, ids: .server), .state("line", ids: .server)])
        let since = try await bench.exchange(client: "device-bbbb", access: .readWrite(as: "eve")).nextSince
        let answer = try await bench.exchange(
            ["order", "line"].enumerated().map { index, entity in
                #"""
                {"lane":"lane-aaaa","number":\#(index + 1),"type":"upsert","entity":"\#(entity)",\#
                "tempId":"local-\#(entity)","fields":{}}
                """#
            })
        #expect(answer.statuses == ["applied", "applied"])
        let page = try await bench.changes(since: since, access: .read(as: "eve"))
        #expect(page.changes.map { $0.type + " " + $0.entity } == ["idmap line", "upsert line"])
        #expect(!String(decoding: page.bytes, as: UTF8.self).contains("local-order"))
        #expect(try await bench.changes(since: since, access: Self.service).changes.count == 4)
    }

    @Test("A verdict tells nothing of what other devices pushed")
    func verdicts() async throws {
        let bench = try await filled()
        let answer = try await bench.exchange(
            [upsert(1, "r1", #"{"x":2}"#, entity: "report"), upsert(2, "r1", #"{"y":2}"#, entity: "report")],
            client: "device-bbbb")
        #expect(answer.statuses == ["merged", "merged"])
        #expect(answer.results.allSatisfy { $0["record"] == nil && $0["overwrote"] == nil })
        let row = try await bench.changes(access: Self.service).changes.first { $0.id == "r1" }
        #expect(row?.data == ["x": 2, "y": 2])
    }

    @Test("A request reads past a bounded number of rows that it does not hand out, and the scan still ends whole")
    func bounded() async throws {
        let bench = try await filled()
        try await bench.server.commit(to: "s") { changes in
            for index in 0...RowSplicer.passedOverLimit {
                changes.upsert("report", id: .init(stringLiteral: "p\(index)"), [:])
            }
            changes.upsert("task", id: "last", [:])
        }
        let first = try await bench.changes()
        #expect(first.hasMore)
        #expect(first.changes.map(\.id) == ["t1", "t2"])
        #expect(try await bench.pullAll().changes.map(\.id) == ["t1", "t2", "last"])
    }
}
