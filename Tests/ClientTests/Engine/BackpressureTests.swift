import Foundation
import GRDB
import Testing
import TidemarkServer
import TidemarkTesting
import TidemarkWire

@testable import Tidemark

@Suite("A server asks a device to wait, and to send less (W80, W81)")
struct BackpressureTests {
    /// Runs one exchange that is answered so, and gives the seconds that the device then waits.
    private func wait(_ status: Int, _ headers: [String: String]) async throws -> Double? {
        let device = try await Device(noteSchema, tables: ["note"])
        try await device.sql("INSERT INTO note (id) VALUES ('n1')")
        var headers = headers
        headers["Content-Type"] = Problem.contentType
        let (body, sent) = (Problem(.unavailable, "d").body(), headers)
        await device.wire.next { _, _ in TransportResponse(status: status, headers: sent, body: body) }
        let engine = try device.engine()
        await #expect(throws: SyncError.self) { try await engine.syncNow() }
        guard case .waiting(let until) = try await engine.status().activity else { return nil }
        return until.timeIntervalSinceNow
    }

    /// Seconds that the machine may have been slow by.
    private static let slack = 50.0

    @Test("Retry-After is waited for, in seconds", arguments: [429, 503])
    func seconds(status: Int) async throws {
        let wait = try #require(try await wait(status, ["Retry-After": "300"]))
        #expect(wait <= 300 && wait > 300 - Self.slack)
    }

    @Test("and as a date, held against the server's own clock")
    func date() async throws {
        let wait = try #require(
            try await wait(
                503,
                ["Retry-After": "Sun, 06 Nov 1994 08:49:37 GMT", "Date": "Sun, 06 Nov 1994 08:44:37 GMT"]))
        #expect(wait <= 300 && wait > 300 - Self.slack)
    }

    @Test(
        "No server silences a device for longer than a quarter of an hour",
        arguments: ["86400", "9223372036854775807", "Fri, 31 Dec 9999 23:59:59 GMT"])
    func bounded(header: String) async throws {
        let wait = try #require(try await wait(503, ["Retry-After": header]))
        #expect(wait <= 15 * 60 && wait > 15 * 60 - Self.slack)
    }

    @Test("A Retry-After that cannot be read asks for no wait", arguments: ["-5", "soon", ""])
    func unreadable(header: String) async throws {
        let wait = try #require(try await wait(503, ["Retry-After": header]))
        #expect(wait <= 3)
    }

    @Test(
        "An answer with Backoff is taken, and nothing is sent until its time has come, unless the user asks",
        .hangLimit)
    func backoff() async throws {
        let device = try await Device(noteSchema, tables: ["note"])
        try await device.sync()
        try await device.sql("INSERT INTO note (id) VALUES ('n1')")
        await device.wire.next { request, server in
            let answer = try await server.send(request)
            var headers = answer.headers
            headers["Backoff"] = "300"
            return TransportResponse(status: answer.status, headers: headers, body: answer.body)
        }
        let engine = try device.engine()
        let running = Task { try await engine.run() }
        for await status in engine.statusUpdates where status.scopes["w:1"]?.complete == 1 { break }
        #expect(try await engine.state(of: "note", id: "n1") == .confirmed)
        let asked = await device.wire.bodies.count
        try await device.sql("INSERT INTO note (id) VALUES ('n2')")
        // It is woken for the edit, and waits.
        var wait = 0.0
        for await status in engine.statusUpdates {
            guard case .waiting(let until) = status.activity else { continue }
            wait = until.timeIntervalSinceNow
            break
        }
        #expect(wait <= 300 && wait > 300 - Self.slack)
        #expect(await device.wire.bodies.count == asked)
        #expect(try await engine.syncNow().pushed == 1)
        running.cancel()
        try await running.value
    }

    @Test("A record that is fetched by name waits with its scope where the server asks for it")
    func fetched() async throws {
        let device = try await Device(noteSchema, tables: ["note"])
        let engine = try device.engine()
        try await engine.syncNow()
        try await device.sql("INSERT INTO tidemark_refetch VALUES ('w:1', 'note', 'x')")
        let asked = await device.wire.bodies.count
        await device.wire.nextRecords { _, _ in
            TransportResponse(
                status: 429, headers: ["Content-Type": Problem.contentType, "Retry-After": "60"],
                body: Problem(.tooManyRequests, "d").body())
        }
        await #expect(throws: SyncError.self) { try await engine.syncNow() }
        #expect(await device.wire.bodies.count == asked)
    }

    @Test("A device whose pushes are cut sends smaller ones, and larger ones again once they are taken whole")
    func smaller() async throws {
        let directory = try TestDirectory()
        var limits = Limits()
        limits.pushBytes = 1500
        let store = try Device.store(in: directory)
        let server = SyncServer(store: store, limits: limits)
        let device = try await Device(noteSchema, tables: ["note"], server: server, in: directory)
        let engine = try device.engine()
        try await engine.syncNow()
        func sent(_ prefix: String) async throws -> [Int] {
            let before = await device.wire.bodies.count
            try await device.sql(
                """
                WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 64)
                INSERT INTO note (id, title) SELECT '\(prefix)' || i, printf('%.100c', 'x') FROM n
                """)
            try await engine.syncNow()
            return await device.wire.bodies.dropFirst(before).map { $0.matches(of: /"number":/).count }
                .filter { $0 > 0 }
        }
        let first = try await sent("a")
        #expect(first.first == 64)
        #expect(first[1] == 32 && first[2] == 16)
        #expect(try await sent("b").first ?? 64 <= 16, "it is remembered")
        await device.wire.connect(to: InProcessTransport(to: SyncServer(store: store)) { _ in .readWrite(as: "ada") })
        let grown = try await sent("c")
        #expect(grown.last ?? 0 > 16 || grown.max() ?? 0 > 16)
        #expect(zip(grown, grown.dropFirst()).dropLast().allSatisfy { $0 <= $1 }, "\(grown)")
        #expect(try await device.count("note") == 192)
        #expect(try await engine.status().pending == 0)
    }

    @Test("However small, a batch holds one group")
    func group() async throws {
        let directory = try TestDirectory()
        var limits = Limits()
        limits.pushBytes = 1
        let server = SyncServer(store: try Device.store(in: directory), limits: limits)
        let device = try await Device(noteSchema, tables: ["note"], server: server, in: directory)
        let engine = try device.engine()
        try await engine.syncNow()
        for index in 0..<8 { try await device.sql("INSERT INTO note (id) VALUES ('n\(index)')") }
        try await engine.syncNow()
        try await engine.atomically { db in
            for index in 0..<5 { try db.execute(sql: "INSERT INTO note (id) VALUES ('g\(index)')") }
        }
        try await engine.syncNow()
        #expect(try await engine.status().pending == 0)
        let bodies = await device.wire.bodies.filter { $0.contains("\"group\"") }
        #expect(bodies.count == 1)
        #expect(bodies.first?.components(separatedBy: "\"group\":").count == 6)
    }
}
