import Foundation
import GRDB
import Testing
import TidemarkServer
import TidemarkTesting
import TidemarkWire

@testable import Tidemark

@Suite("Rows of one table in several scopes: each scope for itself, and nothing lost between them (A3)")
struct ColumnScopeTests {
    @Test("a row whose scope nobody here follows waits, visibly, and goes as soon as one does; so does a move there")
    func waiting() async throws {
        let world = try MultiScopeWorld()
        let device = try await world.device("d", scopes: ["w:a"])
        try await device.sql("INSERT INTO item (id, w, title) VALUES ('i', 'b', 'x'), ('j', 'a', 'y')")
        try await device.sync()
        #expect(try await world.held("w:b").isEmpty)
        #expect(try await device.engine().status().unfollowed == 1)
        try await device.sql("UPDATE item SET w = 'b' WHERE id = 'j'")
        try await device.sync()
        #expect(try await device.engine().status().unfollowed == 2)
        // Others have it where it is until it has arrived.
        #expect(try await world.held("w:a").keys.sorted() == ["j"])
        try await device.sync(["w:a", "w:b"])
        #expect(try await device.engine().status().unfollowed == 0)
        #expect(try await world.held("w:b").keys.sorted() == ["i", "j"])
        #expect(try await world.held("w:a").isEmpty)
    }

    @Test("a row that is deleted again before its scope was followed leaves nothing behind")
    func waitingAndGone() async throws {
        let world = try MultiScopeWorld()
        let device = try await world.device("d", scopes: ["w:a"])
        try await device.sql("INSERT INTO item (id, w) VALUES ('i', 'b'); DELETE FROM item")
        try await device.sync()
        #expect(try await device.isConfirmed())
        #expect(try await device.engine().status().pending == 0)
    }

    @Test("a value that makes no scope's name is told, and goes when it is put right")
    func nowhere() async throws {
        let world = try MultiScopeWorld()
        let device = try await world.device("d")
        try await device.sql("INSERT INTO item (id, w) VALUES ('i', NULL), ('j', 'not a name'), ('k', 'a')")
        try await device.sync()
        let refused = try await device.engine().rejectedOperations()
        #expect(refused.map(\.record) == ["i", "j"])
        #expect(refused.allSatisfy { $0.detail.contains("'w'") })
        #expect(try await world.held("w:a").keys.sorted() == ["k"])
        try await device.sql("UPDATE item SET w = NULL WHERE id = 'k'")
        try await device.sync()
        #expect(try await world.held("w:a").keys.sorted() == ["k"])
        try await device.sql("UPDATE item SET w = 'b'")
        try await device.sync()
        #expect(try await device.engine().rejectedOperations().isEmpty)
        #expect(try await world.held("w:a").isEmpty)
        #expect(try await world.held("w:b").count == 3)
        #expect(try await device.isConfirmed())
    }

    @Test(
        "a value that makes no scope's name stays an edit where another scope syncs before the last one has answered",
        arguments: [true, false])
    func nowhereUnanswered(isPutRight: Bool) async throws {
        let world = try MultiScopeWorld()
        let device = try await world.device("d")
        try await device.sync()
        try await device.sql("INSERT INTO item (id, w, title) VALUES ('i', 'a', 'x')")
        await device.wire.loseAnswer()
        _ = try? await device.sync(["w:a"])
        #expect(try await world.held("w:a").keys.sorted() == ["i"])
        try await device.sql("UPDATE item SET w = 'not a name'")
        for scope: Scope in ["w:b", "w:a", "w:b"] { try await device.sync([scope]) }
        #expect(try await device.engine().rejectedOperations().map(\.record) == ["i"])
        // What comes from the scope that has the row lands beneath the edit.
        try await world.server.commit(to: "w:a") { $0.upsert("item", id: "i", ["title": "later"]) }
        try await device.sync()
        #expect(try await device.items() == ["i not a name later"])
        try await device.sql(isPutRight ? "UPDATE item SET w = 'b'" : "DELETE FROM item")
        for _ in 0..<2 { try await device.sync() }
        #expect(try await world.held("w:a").isEmpty)
        #expect(try await world.held("w:b").keys.sorted() == (isPutRight ? ["i"] : []))
        #expect(try await device.items() == (isPutRight ? ["i b later"] : []))
        #expect(try await device.isConfirmed())
    }

    @Test("so it stays in a group that names no scope at all")
    func nowhereUnansweredGroup() async throws {
        let world = try MultiScopeWorld()
        let device = try await world.device("d")
        try await device.sql("INSERT INTO item (id, w, title) VALUES ('i', 'a', 'x'), ('j', 'a', 'y')")
        try await device.sync()
        try await device.sql("UPDATE item SET title = 'z' WHERE id = 'j'")
        await device.wire.loseAnswer()
        _ = try? await device.sync(["w:a"])
        try await device.engine().atomically { db in
            try db.execute(sql: "UPDATE item SET w = NULL WHERE id = 'i'; UPDATE item SET w = NULL WHERE id = 'j'")
        }
        for scope: Scope in ["w:b", "w:a", "w:b"] { try await device.sync([scope]) }
        #expect(try await device.engine().rejectedOperations().map(\.record).sorted() == ["i", "j"])
        #expect(try await device.count("tidemark_shadow_item WHERE tidemark_scope = 'w:a'") == 2)
        try await device.sql("UPDATE item SET w = 'b'")
        for _ in 0..<2 { try await device.sync() }
        #expect(try await world.held("w:a").isEmpty)
        #expect(try await world.held("w:b").mapValues { $0["title"] } == ["i": "x", "j": "z"])
        #expect(try await device.isConfirmed())
    }

    @Test("a scope that is stuck holds up neither the others nor their marks behind its own")
    func stuck() async throws {
        let world = try MultiScopeWorld()
        let device = try await world.device("d")
        for index in 0..<40 { try await device.sql("INSERT INTO item (id, w) VALUES ('a\(index)', 'a')") }
        try await device.sync(["w:b"])
        try await device.sql("INSERT INTO item (id, w) VALUES ('b', 'b')")
        var configuration = SyncConfiguration()
        configuration.operationLimit = 5
        let engine = try SyncEngine(
            for: device.writer, tables: [.table("item", scope: MultiScopeWorld.rule)], scopes: ["w:b"],
            transport: device.wire, configuration: configuration)
        try await engine.syncNow()
        #expect(try await world.held("w:b").keys.sorted() == ["b"])
        #expect(try await world.held("w:a").isEmpty)
    }

    @Test("records that wait for another scope's verdict do not hide those behind them")
    func waitingForVerdict() async throws {
        let world = try MultiScopeWorld()
        let device = try await world.device("d")
        try await device.sql(
            "INSERT INTO item (id, w) VALUES " + (0..<9).map { "('i\($0)', 'a')" }.joined(separator: ","))
        try await device.sync()
        try await device.sql("UPDATE item SET title = 'sealed'")
        await device.wire.loseRequest()
        _ = try? await device.sync(["w:a"])
        #expect(try await device.count("tidemark_operation WHERE finished_at IS NULL") == 9)
        try await device.sql("UPDATE item SET w = 'b'; INSERT INTO item (id, w) VALUES ('last', 'b')")
        var configuration = SyncConfiguration()
        configuration.operationLimit = 3
        let engine = try SyncEngine(
            for: device.writer, tables: [.table("item", scope: MultiScopeWorld.rule)], scopes: ["w:b"],
            transport: device.wire, configuration: configuration)
        try await engine.syncNow()
        #expect(try await world.held("w:b").keys.sorted() == ["last"])
        try await device.sync()
        #expect(try await world.held("w:b").count == 10)
        #expect(try await world.held("w:a").isEmpty)
        #expect(try await device.isConfirmed())
    }

    @Test("a row that says another scope than the one that it came in is quarantined, visibly")
    func foreign() async throws {
        let world = try MultiScopeWorld()
        let device = try await world.device("d")
        try await world.server.commit(to: "w:a") {
            $0.upsert("item", id: "i", ["w": "b", "title": "astray"])
            $0.upsert("item", id: "j", ["w": nil, "title": "nowhere"])
            $0.upsert("item", id: "k", ["w": "a", "title": "fine"])
        }
        try await device.sync()
        #expect(try await device.items() == ["k a fine"])
        #expect(try await device.engine().status().quarantined == 2)
        try await world.server.commit(to: "w:a") {
            $0.upsert("item", id: "i", ["w": "a"])
            $0.upsert("item", id: "k", ["w": "b"])
            $0.delete("item", id: "j")
        }
        try await device.sync()
        #expect(try await device.items() == ["i a astray"])
        #expect(try await device.engine().status().quarantined == 1)
    }

    @Test("a row that says no scope at all is in the one that it came in")
    func unsaid() async throws {
        let world = try MultiScopeWorld()
        let device = try await world.device("d")
        try await world.server.commit(to: "w:a") { $0.upsert("item", id: "i", ["title": "unsaid"]) }
        for _ in 0..<2 { try await device.sync() }
        #expect(try await device.items() == ["i a unsaid"])
        #expect(try await device.isConfirmed())
    }

    @Test("a running engine carries a move through both scopes without being asked", .hangLimit)
    func running() async throws {
        let world = try MultiScopeWorld()
        let device = try await world.device("d")
        try await device.sql("INSERT INTO item (id, w, title) VALUES ('i', 'a', 'x')")
        try await device.sync()
        var configuration = SyncConfiguration()
        configuration.pollInterval = .milliseconds(50)
        let engine = try SyncEngine(
            for: device.writer, tables: [.table("item", scope: MultiScopeWorld.rule)], scopes: device.scopes,
            transport: device.wire, configuration: configuration)
        let running = Task { try await engine.run() }
        try await device.sql("UPDATE item SET w = 'b' WHERE id = 'i'")
        for await _ in engine.statusUpdates {
            if try await world.held("w:a").isEmpty, try await world.held("w:b").count == 1 { break }
        }
        running.cancel()
        try await running.value
    }

    @Test("the scope may be named by a column of the key: another scope is then another record")
    func key() async throws {
        let world = try MultiScopeWorld()
        let queue = try DatabaseQueue()
        try await queue.write { db in
            try db.execute(sql: "CREATE TABLE item (w TEXT, n INTEGER, title TEXT, PRIMARY KEY (w, n))")
        }
        let wire = InProcessTransport(to: world.server) { _ in .readWrite(as: "ada") }
        let engine = try SyncEngine(
            for: queue, tables: [.table("item", scope: MultiScopeWorld.rule)], scopes: ["w:a", "w:b"], transport: wire)
        try await engine.install()
        try await queue.write { db in try db.execute(sql: "INSERT INTO item VALUES ('a', 1, 'x'), ('b', 1, 'y')") }
        try await engine.syncNow()
        try await queue.write { db in try db.execute(sql: "UPDATE item SET w = 'b', n = 2 WHERE w = 'a'") }
        try await engine.syncNow()
        #expect(try await world.held("w:a").isEmpty)
        #expect(try await world.held("w:b").keys.sorted() == [#"["b",1]"#, #"["b",2]"#])
    }
}

/// Where one scope's request waits until another's has arrived.
private actor Rendezvous: Transport {
    private let inner: any Transport
    private var hasArrived = false
    private var waiting: CheckedContinuation<Void, Never>?

    init(to inner: any Transport) { self.inner = inner }

    func send(_ request: TransportRequest) async throws -> TransportResponse {
        let body = String(decoding: request.body, as: UTF8.self)
        if body.contains(#""scope":"w:b""#) {
            hasArrived = true
            waiting?.resume()
            waiting = nil
        } else if body.contains(#""scope":"w:a""#), !hasArrived {
            await withCheckedContinuation { waiting = $0 }
        }
        return try await inner.send(request)
    }
}

@Suite("Scopes are synced side by side")
struct ParallelScopeTests {
    @Test("one scope's exchange may wait for another's to arrive, and both end", .hangLimit)
    func parallel() async throws {
        let world = try MultiScopeWorld()
        let device = try await world.device("d", scopes: ["w:a", "w:b"])
        try await device.sync()
        try await device.sql("INSERT INTO item (id, w) VALUES ('i', 'a'), ('o', 'b')")
        let engine = try SyncEngine(
            for: device.writer, tables: [.table("item", scope: MultiScopeWorld.rule)], scopes: device.scopes,
            transport: Rendezvous(to: device.wire))
        try await engine.syncNow()
        #expect(try await world.held("w:a").count == 1)
        #expect(try await world.held("w:b").count == 1)
        #expect(try await device.isConfirmed())
    }
}
