import Foundation
import GRDB
import Testing

@testable import TidemarkServer
@testable import TidemarkWire

/// A scope has room for so much, and puts off what is more (I14).
@Suite("An edit that a scope has no room for waits, and none is refused")
struct QuotaTests {
    private func bench(_ kind: StoreKind, rows: Int = 1000, bytes: Int = 1 << 20) throws -> EngineBench {
        var limits = Limits()
        (limits.scopeRows, limits.scopeBytes) = (rows, bytes)
        return try EngineBench(
            kind, entities: [.state("task"), .events("visit"), .state("card", ids: .server)], limits: limits)
    }

    private func insert(_ numbers: ClosedRange<Int>, _ more: String = "") -> [String] {
        numbers.map { upsert($0, "r\($0)", #"{"n":1\#(more)}"#) }
    }

    @Test("One user fills a part of a scope, and another finds room", arguments: StoreKind.allCases)
    func rows(kind: StoreKind) async throws {
        let bench = try bench(kind, rows: 8)
        let first = try await bench.exchange(insert(1...8))
        #expect(first.statuses == Array(repeating: "applied", count: 7) + ["deferred"])
        #expect(first.errorCode(7) == "quota_exceeded")
        // What changes and what deletes passes, in the same request too; a tombstone is a row like any.
        let more = try await bench.exchange([
            upsert(9, "r1", #"{"n":2}"#, base: 7),
            #"{"lane":"lane-aaaa","number":10,"type":"delete","entity":"task","id":"r2","baseVersion":7}"#,
            upsert(11, "r9", #"{"n":1}"#),
        ])
        #expect(more.statuses == ["applied", "applied", "deferred"])
        let bob = try await bench.exchange(
            insert(1...2).map { $0.replacing("\"r", with: "\"b") }, client: "device-bbbb",
            access: .readWrite(as: "bob"))
        #expect(bob.statuses == ["applied", "deferred"])
        #expect(try await bench.server.rejections().isEmpty)
        // Told again it is the same, and it passes under another number when there is room.
        #expect(try await bench.exchange([insert(8...8)[0]]).statuses == ["deferred"])
        try await bench.bench.write { try $0.expire(through: $0.state.head) }
        #expect(try await bench.exchange([upsert(12, "r9", #"{"n":1}"#)]).statuses == ["deferred"])
        bench.clock += 25 * 3_600_000
        #expect(try await bench.exchange([upsert(13, "r9", #"{"n":1}"#)]).statuses == ["applied"])
    }

    @Test("Bytes are counted, and what shrinks makes room", arguments: StoreKind.allCases)
    func bytes(kind: StoreKind) async throws {
        let bench = try bench(kind, bytes: 2000)
        let text = String(repeating: "x", count: 400)
        let first = try await bench.exchange(insert(1...5, #","t":"\#(text)""#))
        #expect(first.statuses == ["applied", "applied", "applied", "applied", "deferred"])
        let longer = try await bench.exchange([
            upsert(6, "r1", #"{"t":"\#(text + text)"}"#, base: 4), upsert(7, "r1", #"{"t":""}"#, base: 4),
        ])
        #expect(longer.statuses == ["deferred", "applied"])
        #expect(try await bench.exchange([upsert(8, "r5", #"{"t":"\#(text)"}"#)]).statuses == ["applied"])
    }

    @Test("A group waits whole, events and new ids wait too, and programs pass", arguments: StoreKind.allCases)
    func all(kind: StoreKind) async throws {
        let bench = try bench(kind, rows: 4)
        _ = try await bench.exchange(insert(1...4))
        let group = try await bench.exchange([
            upsert(5, "r1", #"{"n":5}"#, base: 4, extra: #","group":"g""#),
            upsert(6, "r6", #"{"n":6}"#, extra: #","group":"g""#),
        ])
        #expect(group.statuses == ["deferred", "deferred"])
        #expect([group.errorCode(0), group.errorCode(1)] == [nil, "quota_exceeded"])
        let others = try await bench.exchange([
            upsert(7, "v1", #"{"n":5}"#, entity: "visit"),
            #"{"lane":"lane-aaaa","number":8,"type":"upsert","entity":"card","#
                + #""tempId":"-2305843009213693955","fields":{"n":1}}"#,
        ])
        #expect(others.statuses == ["deferred", "deferred"])
        let id = TemporaryName(
            principal: "ada", client: "device-aaaa", entity: "card", id: "-2305843009213693955")
        #expect(try await bench.bench.read { try $0.id(for: id) } == nil)
        #expect(try await bench.bench.read { $0.state.size.rows } == 4)
        try await bench.server.commit(to: "s") { $0.upsert("task", id: "p1", [:]) }
        #expect(try await bench.bench.read { $0.state.size.rows } == 5)
    }

    @Test("One user begins so many scopes within a day; what is there he may go on with", arguments: StoreKind.allCases)
    func scopes(kind: StoreKind) async throws {
        var limits = Limits()
        limits.scopesPerPrincipal = 2
        let bench = try StoreBench(kind)
        let clock = Guarded(Duration.zero)
        var configuration = SyncServer.Configuration.still
        configuration.uptime = { clock.withLock { $0 } }
        let server = SyncServer(store: bench.store, limits: limits, configuration: configuration)
        func push(_ scope: String, _ number: Int, as access: Access = .readWrite(as: "ada")) async throws -> Answer {
            let operation = upsert(number, "r\(number)", #"{"n":1}"#)
            let body = #"{"scope":"\#(scope)","clientId":"device-aaaa","operations":[\#(operation)]}"#
            return try Answer(try await server.exchange(Array(body.utf8), mode: .pushAndPull) { _ in access })
        }
        #expect(try await push("list:1", 1).statuses == ["applied"])
        #expect(try await push("list:1", 2).statuses == ["applied"])
        #expect(try await push("list:2", 1).statuses == ["applied"])
        let third = try await push("list:3", 1)
        #expect(third.statuses == ["deferred"] && third.errorCode(0) == "quota_exceeded")
        #expect(try await bench.store.read("list:3") { $0.state.size.rows } == 0)
        #expect(try await push("list:1", 3).statuses == ["applied"])
        #expect(try await push("list:4", 1, as: .readWrite(as: "bob")).statuses == ["applied"])
        #expect(try await push("list:4", 1).statuses != ["deferred"], "another one has begun it")
        let service = Access(.readWrite, principal: "ada", isService: true)
        #expect(try await push("list:5", 1, as: service).statuses == ["applied"])
        clock.withLock { $0 += .seconds(12 * 3600) }
        #expect(try await push("list:3", 2).statuses == ["applied"])
        #expect(try await push("list:6", 1).statuses == ["deferred"])
    }

    @Test("A store of the version before counts what its scopes keep")
    func older() async throws {
        let bench = try Bench()
        _ = try await bench.exchange([upsert(1, "r1", #"{"n":1}"#), upsert(2, "r2", #"{"n":22}"#)])
        let size = try await bench.store.read("s") { $0.state.size }
        try bench.reopen { store in
            let file = try DatabaseQueue(path: store.path)
            try file.write { db in
                for column in ["live_rows", "live_bytes"] {
                    try db.execute(sql: "ALTER TABLE scope DROP COLUMN \(column)")
                }
                try db.execute(sql: "DELETE FROM grdb_migrations WHERE identifier = '3'")
            }
            try file.close()
        }
        #expect(size.rows == 2)
        #expect(try await bench.store.read("s") { $0.state.size } == size)
    }
}
