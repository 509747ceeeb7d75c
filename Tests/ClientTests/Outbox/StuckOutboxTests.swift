import Foundation
import GRDB
import Testing
import TidemarkSQLite
import TidemarkServer
import TidemarkTesting
import TidemarkWire

@testable import Tidemark

@Suite("An outbox is never stuck: engines that share a file, servers that take less, tokens that only read (F1)")
struct StuckOutboxTests {
    private func server(_ limits: Limits, in directory: TestDirectory) throws -> SyncServer {
        SyncServer(store: try SQLiteStore(path: directory.url.appending(path: "s.sqlite").path), limits: limits)
    }

    @Test("two engines on one file never use a number of a lane twice (T9, T20)")
    func lanes() async throws {
        let device = try await Device(noteSchema, tables: ["note"])
        let first = try device.engine()
        let second = try device.engine()
        try await device.sql("INSERT INTO note(id, title) VALUES ('n1', 'a')")
        try await first.syncNow()
        // The second engine tells the server all about the first one's lane and takes it off the list.
        try await second.syncNow()
        try await device.sql("INSERT INTO note(id, title) VALUES ('n2', 'b')")
        try await second.syncNow()
        try await device.sql("UPDATE note SET title = 'c' WHERE id = 'n1'")
        try await first.syncNow()
        #expect(try await device.rows("SELECT title FROM note WHERE id = 'n1'") == ["\"c\""])
        #expect(try await device.sealed() == [])
        #expect(try await device.count("tidemark_operation WHERE state = 'applied'") == 3)
    }

    @Test("an operation that no request can carry is rejected, and those behind it go on")
    func tooLargeAlone() async throws {
        let device = try await Device(noteSchema, tables: ["note"])
        let large = String(repeating: "x", count: 100_000)
        try await device.sql("INSERT INTO note(id, title) VALUES ('n1', '\(large)'), ('n2', 'small')")
        for _ in 0..<8 {
            await device.wire.next { request, inner in
                guard request.body.count > 90_000 else { return try await inner.send(request) }
                return TransportResponse(status: 413, headers: [:], body: [], bytesSent: 0, bytesReceived: 0)
            }
        }
        let engine = try device.engine()
        for _ in 0..<4 { _ = try? await engine.syncNow() }
        try await engine.syncNow()
        #expect(try await engine.rejectedOperations().map(\.record) == ["n1"])
        #expect(try await device.sealed() == [])
        #expect(try await device.rows("SELECT id FROM note") == ["\"n2\""])
    }

    @Test("a server with smaller limits than the device's gets smaller requests, without a wait or an error")
    func smallLimits() async throws {
        let directory = try TestDirectory()
        var limits = Limits()
        (limits.maximumPage, limits.defaultPage, limits.operations) = (20, 10, 2)
        let server = try server(limits, in: directory)
        let device = try await Device(noteSchema, tables: ["note"], server: server, in: directory)
        for index in 0..<40 { try await device.sql("INSERT INTO note(id, title) VALUES ('n\(index)', 'a')") }
        let engine = try device.engine()
        try await engine.syncNow()
        let theirs = (0..<30).compactMap { RecordID("s\($0)") }
        try await server.commit(to: "w:1") { for id in theirs { $0.upsert("note", id: id, ["title": "server"]) } }
        try await engine.syncNow()
        #expect(try await device.count("note") == 70)
        #expect(try await device.sealed() == [])
        #expect(try await device.count("tidemark_shadow_note") == 0)
    }

    @Test("a question that is too large for some proxy makes no request of edits smaller")
    func tooLargeQuestion() async throws {
        let device = try await Device(noteSchema, tables: ["note"])
        let engine = try device.engine()
        try await engine.syncNow()
        await device.wire.next { _, _ in
            TransportResponse(status: 413, headers: [:], body: [], bytesSent: 0, bytesReceived: 0)
        }
        await #expect(throws: SyncError.self) { try await engine.syncNow() }
        for index in 0..<5 { try await device.sql("INSERT INTO note(id, title) VALUES ('n\(index)', 'a')") }
        try await engine.syncNow()
        let counts = await device.wire.bodies.map { $0.matches(of: /"number":/).count }
        #expect(counts.filter { $0 > 0 } == [5])
        #expect(try await device.sealed() == [])
    }

    @Test("where a token only reads, edits wait with an error and pulls go on")
    func readOnly() async throws {
        let directory = try TestDirectory()
        let server = try server(Limits(), in: directory)
        try await server.commit(to: "w:1") { $0.upsert("note", id: "s1", ["title": "server"]) }
        let queue = try DatabaseQueue(path: directory.url.appending(path: "reader.sqlite").path)
        try await queue.write { try $0.execute(sql: noteSchema) }
        let engine = try SyncEngine(
            for: queue, tables: [.table("note")], scopes: ["w:1"],
            transport: InProcessTransport(to: server) { _ in .read(as: "ada") })
        try await engine.install()
        try await queue.write { try $0.execute(sql: "INSERT INTO note(id, title) VALUES ('n1', 'mine')") }
        let error = await #expect(throws: SyncError.self) { try await engine.syncNow() }
        #expect(error?.code == .scopeForbidden)
        #expect(
            try await queue.read { try String.fetchAll($0, sql: "SELECT id FROM note ORDER BY id") } == ["n1", "s1"])
        #expect(try await engine.status().lastError?.code == .scopeForbidden)
    }

    @Test("any number of marks that are no edits does not block the edit behind them")
    func noEdits() async throws {
        let device = try await Device(noteSchema, tables: ["note"])
        var configuration = SyncConfiguration()
        configuration.operationLimit = 2
        let engine = try device.engine(configuration)
        for index in 0..<6 { try await device.sql("INSERT INTO note(id, title) VALUES ('n\(index)', 'a')") }
        try await engine.syncNow()
        for index in 0..<5 {
            try await device.sql("UPDATE note SET title = 'b' WHERE id = 'n\(index)'")
            try await device.sql("UPDATE note SET title = 'a' WHERE id = 'n\(index)'")
        }
        try await device.sql("UPDATE note SET title = 'z' WHERE id = 'n5'")
        try await engine.syncNow()
        #expect(try await device.count("tidemark_shadow_note") == 0)
        #expect(await device.wire.bodies.last?.contains("\"n0\"") == false)
    }

    @Test("a row whose key cannot travel leaves nothing behind when it is deleted again")
    func quarantineGone() async throws {
        let device = try await Device(noteSchema, tables: ["note"])
        try await device.sql("INSERT INTO note(id, title) VALUES ('a' || char(10), 'x')")
        let engine = try device.engine()
        try await engine.syncNow()
        #expect(try await engine.rejectedOperations().count == 1)
        try await device.sql("DELETE FROM note")
        try await engine.syncNow()
        #expect(try await engine.rejectedOperations().isEmpty)
        #expect(try await device.count("tidemark_shadow_note") == 0)
    }

    @Test(
        "a row that goes with a discarded one by ON DELETE goes everywhere",
        .records("C8 editIsKept", "queue queued, released", "block rejectedParent, released"))
    func discardCascades() async throws {
        let device = try await Device(
            """
            CREATE TABLE p (id TEXT PRIMARY KEY, t TEXT);
            CREATE TABLE k (id TEXT PRIMARY KEY, p TEXT REFERENCES p(id) ON DELETE CASCADE);
            """, tables: ["p", "k"])
        try await device.sql("INSERT INTO p VALUES ('p1', CAST(x'ff' AS TEXT)); INSERT INTO k VALUES ('k1', 'p1')")
        let engine = try device.engine()
        try await engine.syncNow()
        let rejected = try #require(try await engine.rejectedOperations().first)
        try await engine.discard(rejected)
        #expect(try await device.count("p") == 0)
        #expect(try await device.count("k") == 0)
        #expect(try await device.marked("k") == ["k1"])
        #expect(try await device.count("tidemark_shadow_p") == 0)
    }

    @Test(
        "a refusal that is not the server's own is waited out, and moves no operation (T11, T40)",
        arguments: [403, 404, 409, 410])
    func foreignRefusal(status: Int) async throws {
        let device = try await Device(noteSchema, tables: ["note"])
        try await device.sql("INSERT INTO note(id, title) VALUES ('n1', 'a')")
        // The server takes the edit; a login page stands where its answer was, and again on the next attempt.
        await device.wire.next { request, inner in
            _ = try await inner.send(request)
            return TransportResponse(status: status, headers: [:], body: [], bytesSent: 0, bytesReceived: 0)
        }
        var configuration = SyncConfiguration()
        (configuration.backoff.base, configuration.backoff.jitter) = (.milliseconds(10), .zero)
        let engine = try device.engine(configuration)
        let running = Task { try await engine.run() }
        try await poll { try await device.count("tidemark_operation WHERE state = 'applied'") > 0 }
        running.cancel()
        #expect(try await device.count("tidemark_operation WHERE state = 'applied' AND number = 1") == 1)
        let lane = try #require(try await device.rows("SELECT lane FROM tidemark_operation").first)
        #expect(await device.wire.bodies.prefix(2).allSatisfy { $0.contains("\"lane\":\(lane)") })
    }

    @Test("a verdict that comes behind the record's deletion does not revive it (T3, T9)")
    func lateVerdict() async throws {
        let device = try await Device(noteSchema, tables: ["note"])
        try await device.apply(Device.page([Device.upsert("note", "n1", 5, #"{"title":"a"}"#)], head: 7))
        try await device.sql("UPDATE note SET title = 'b'")
        let key = try #require(try await device.seal().first?.key)
        // Another engine's page, asked for without the operation: the edit went in at 9, somebody deleted it at 10.
        try await device.apply(
            Device.page([Device.delete("note", "n1", 10)], since: "T1", next: "T2", head: 10), since: "T1")
        let verdict = #"{"lane":"\#(key.lane)","number":\#(key.number),"status":"applied","version":9}"#
        try await device.apply(Device.page([], since: "T1", next: "T2", head: 9, results: [verdict]), since: "T1")
        #expect(try await device.count("note") == 0)
        #expect(try await device.count("tidemark_shadow_note") == 0)
        #expect(try await device.sealed() == [])
    }

    @Test("an edit that is taken back after its record was deleted elsewhere does not keep the record (I6)")
    func takenBack() async throws {
        let directory = try TestDirectory()
        let server = try server(Limits(), in: directory)
        let device = try await Device(noteSchema, tables: ["note"], server: server, in: directory)
        try await server.commit(to: "w:1") { $0.upsert("note", id: "n1", ["title": "a"]) }
        try await device.sync()
        try await device.sql("UPDATE note SET title = 'b'")
        let since = try await device.rows("SELECT checkpoint FROM tidemark_scope")[0].replacing("\"", with: "")
        try await server.commit(to: "w:1") { $0.delete("note", id: "n1") }
        let page = try await server.changes(in: "w:1", since: since, limit: nil, access: .read(as: "ada"))
        try await device.apply(String(decoding: page, as: UTF8.self), since: since)
        #expect(try await device.count("note") == 1)
        try await device.sql("UPDATE note SET title = 'a'")
        try await device.sync()
        #expect(try await device.count("note") == 0)
        #expect(try await device.count("tidemark_shadow_note") == 0)
        #expect(try await device.sealed() == [])
    }
}
