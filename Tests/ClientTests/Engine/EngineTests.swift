import Foundation
import GRDB
import Testing
import TidemarkSQLite
import TidemarkServer
import TidemarkTesting
import TidemarkWire

@testable import Tidemark

@Suite("Engine: one exchange after another, whatever the network does")
struct EngineTests {
    private func problem(_ code: ProblemCode, _ detail: String = "d") -> Wire.Step {
        let body = Problem(code, detail).body()
        return { _, _ in
            TransportResponse(status: code.status, headers: ["Content-Type": Problem.contentType], body: body)
        }
    }

    @Test("making an engine touches neither file nor network")
    func inert() async throws {
        let device = try await Device("CREATE TABLE other (id TEXT PRIMARY KEY)", tables: ["other"])
        let queue = try DatabaseQueue()
        let engine = try SyncEngine(for: queue, tables: [.table("note")], scopes: ["w:1"], transport: device.wire)
        #expect(try await engine.status().activity == .idle)
        #expect(try await queue.read { try $0.tableExists("tidemark_meta") } == false)
        #expect(await device.wire.requests.isEmpty)
    }

    @Test("an answer that is lost is asked for again under the same keys, and nothing happens twice")
    func lostAnswer() async throws {
        let device = try await Device(noteSchema, tables: ["note"])
        try await device.sql("INSERT INTO note (id, title) VALUES ('n1', 'a')")
        await device.wire.loseAnswer()
        let engine = try device.engine()
        let error = await #expect(throws: SyncError.self) { try await engine.syncNow() }
        #expect(error?.code == .networkUnavailable)
        #expect(error?.recovery == .wait)
        #expect(try await engine.status().sent == 1)
        #expect(try await engine.state(of: "note", id: "n1") == .sent)
        #expect(try await engine.syncNow().pushed == 1)
        #expect(try await engine.state(of: "note", id: "n1") == .confirmed)
        let operations = await device.wire.bodies.map { $0.split(separator: "\"operations\"").last }
        #expect(operations[0] == operations[1])
        #expect(try await device.rows("SELECT complete FROM tidemark_scope") == ["1"])
    }

    @Test("a login page in place of the answer changes nothing, and the edit goes once behind it")
    func captivePortal() async throws {
        let pair = try await Pair()
        let (device, other) = (pair.here, pair.there)
        try await other.sql("INSERT INTO note (id, title) VALUES ('theirs', 'a')")
        try await other.sync()
        let engine = try device.engine()
        try await engine.syncNow()
        try await device.sql("INSERT INTO note (id, title) VALUES ('mine', 'b')")
        try await other.sql("UPDATE note SET title = 'c'")
        try await other.sync()
        let before = try await device.rows("SELECT complete, checkpoint FROM tidemark_scope")
        await device.wire.next { _, _ in
            TransportResponse(status: 200, headers: ["content-type": "text/html"], body: Array("<html>".utf8))
        }
        let error = await #expect(throws: SyncError.self) { try await engine.syncNow() }
        #expect(error?.code == .answerUnusable)
        #expect(try await device.rows(Self.titles) == ["\"mine\"|\"b\"", "\"theirs\"|\"a\""])
        #expect(try await engine.state(of: "note", id: "mine") == .sent)
        #expect(try await engine.status().sent == 1)
        #expect(try await device.rows("SELECT complete, checkpoint FROM tidemark_scope") == before)
        #expect(try await engine.syncNow().pushed == 1)
        #expect(try await engine.state(of: "note", id: "mine") == .confirmed)
        #expect(try await engine.syncNow().pushed == 0)
        try await expectSentAgain(device)
        try await other.sync()
        for device in [device, other] {
            #expect(try await device.rows(Self.titles) == ["\"mine\"|\"b\"", "\"theirs\"|\"c\""])
        }
    }

    private static let titles = "SELECT id, title FROM note ORDER BY id"

    /// The edit of `mine` was in two requests, of which the first came to nothing, and was the same in both.
    private func expectSentAgain(_ device: Device) async throws {
        let sent = await device.wire.bodies.filter { $0.contains(#""id":"mine""#) }
            .map { $0.split(separator: "\"operations\"").last }
        try #require(sent.count == 2)
        #expect(sent[0] == sent[1])
        #expect(try await device.count("tidemark_operation WHERE state = 'applied'") == 1)
    }

    @Test("an expired token stops the scope until the next attempt, and wipes nothing")
    func unauthenticated() async throws {
        let device = try await Device(noteSchema, tables: ["note"])
        try await device.sql("INSERT INTO note (id) VALUES ('n1')")
        await device.wire.next(problem(.unauthenticated))
        let engine = try device.engine()
        let error = await #expect(throws: SyncError.self) { try await engine.syncNow() }
        #expect(error?.recovery == .needsApp)
        guard case .stopped(let shown) = try await engine.status().activity else {
            Issue.record("the status does not say that the app must act")
            return
        }
        #expect(shown.code == .unauthenticated)
        #expect(try await engine.syncNow().pushed == 1)
        #expect(try await engine.status().activity == .idle)
    }

    @Test(
        "a call after the sign-in is followed by a request at once; edits before it ask nobody", .hangLimit
    )
    func signedIn() async throws {
        let device = try await Device(noteSchema, tables: ["note"])
        await device.wire.next(problem(.unauthenticated))
        var configuration = SyncConfiguration()
        configuration.pollInterval = .milliseconds(20)
        // Neither a tick nor the end of a wait comes to help.
        (configuration.tick, configuration.longestWait) = (.seconds(3600), .seconds(3600))
        configuration.backoff.base = .seconds(600)
        let clock = CountingClock(longerThan: .seconds(1))
        let engine = try device.engine(configuration)
        let running = Dependencies.$current.withValue(clock) { Task { try await engine.run() } }
        for await status in engine.statusUpdates {
            if case .stopped(let error) = status.activity, error.code == .unauthenticated { break }
        }
        try await clock.wait(for: 1)
        let asked = await device.wire.bodies.count
        try await device.sql("INSERT INTO note (id) VALUES ('n1')")
        // The edit wakes the scope, which looks and waits again.
        try await clock.wait(for: 2)
        #expect(await device.wire.bodies.count == asked)
        await engine.wake()
        for await status in engine.statusUpdates where status.activity == .idle && status.pending + status.sent == 0 {
            break
        }
        #expect(try await engine.state(of: "note", id: "n1") == .confirmed)
        running.cancel()
    }

    @Test("after a gap the unseen operations go, unchanged and in order, into a new lane")
    func gap() async throws {
        let device = try await Device(noteSchema, tables: ["note"])
        try await device.sql("INSERT INTO note (id, title) VALUES ('n1', 'a')")
        _ = try await device.seal(lane: "lane-0001")
        try await device.sql("UPDATE tidemark_operation SET number = 5; UPDATE tidemark_lane SET next_number = 6")
        try await device.sql("INSERT INTO note (id, title) VALUES ('n2', 'b')")
        var gap = Problem(.operationGap, "d")
        gap.lane = "lane-0001"
        gap.expected = 1
        let body = gap.body()
        await device.wire.next { _, _ in
            TransportResponse(status: 409, headers: ["Content-Type": Problem.contentType], body: body)
        }
        try await device.engine().syncNow()
        let bodies = await device.wire.bodies
        #expect(bodies.count == 2)
        #expect(bodies[0].contains(#""lane":"lane-0001","number":5"#))
        #expect(!bodies[1].contains("\"number\":5"))
        #expect(!bodies[1].contains("lane-0001"), "no verdict of the broken lane was ever had")
        #expect(try await device.count("tidemark_operation WHERE finished_at IS NULL") == 0)
    }

    @Test("a checkpoint that has expired: the scope is filled anew by itself, and the outbox is sent (A14, I7)")
    func expired() async throws {
        let device = try await Device(noteSchema, tables: ["note"])
        let engine = try device.engine()
        try await engine.syncNow()
        try await device.sql("INSERT INTO note (id) VALUES ('n1')")
        await device.wire.next(problem(.checkpointExpired))
        #expect(try await engine.syncNow().pushed == 1)
        #expect(try await engine.state(of: "note", id: "n1") == .confirmed)
        #expect(await device.wire.requests.filter { $0.path == "/sync/snapshot" }.count == 2)
        #expect(try await engine.status().scopes["w:1"]?.bootstrap == nil)
    }

    @Test("a server that refuses each checkpoint it has given is not asked in a hurry, and nothing is lost")
    func expiredForEver() async throws {
        let device = try await Device(noteSchema, tables: ["note"])
        let engine = try device.engine()
        try await engine.syncNow()
        try await device.sql("INSERT INTO note (id) VALUES ('n1')")
        for _ in 0..<2 {
            await device.wire.next(problem(.checkpointExpired))
            await device.wire.next { request, inner in try await inner.send(request) }
        }
        await device.wire.next(problem(.checkpointExpired))
        let error = await #expect(throws: SyncError.self) { try await engine.syncNow() }
        #expect(error?.code == .checkpointExpired)
        #expect(error?.recovery == .wait)
        #expect(try await engine.syncNow().scopes["w:1"] != nil)
        #expect(try await device.rows("SELECT id FROM note") == ["\"n1\""])
        #expect(try await engine.status().lastError == nil)
    }

    @Test("an operation that the server refuses is kept with its reason and blocks nobody")
    func rejected() async throws {
        let directory = try TestDirectory()
        let store = try SQLiteStore(path: directory.url.appending(path: "strict.sqlite").path)
        let server = SyncServer(store: store, entities: [.state("note")], isStrict: true)
        let schema = noteSchema + "CREATE TABLE locked (id TEXT PRIMARY KEY, title TEXT)"
        let device = try await Device(schema, tables: ["note", "locked"], server: server, in: directory)
        try await device.sql("INSERT INTO locked VALUES ('l', 'x'); INSERT INTO note (id) VALUES ('n1')")
        let engine = try device.engine()
        let report = try await engine.syncNow()
        #expect(report.pushed == 2)
        #expect(report.rejected == 1)
        // The row is the server's again, and what was written is kept in the list.
        #expect(try await device.count("locked") == 0)
        let rejected = try await engine.rejectedOperations()
        #expect(rejected.map(\.code) == ["entity_unknown"])
        #expect(rejected.first?.fields == ["title": "x"])
        #expect(try await engine.status().rejected == 1)
    }

    @Test("a policy that the app counts on and the server does not declare is told, and needs the app")
    func declarations() async throws {
        let directory = try TestDirectory()
        let server = try Device.server(in: directory, entities: [.state("note", conflict: .lastWriteWins)])
        let device = try await Device(noteSchema, tables: ["note"], server: server, in: directory)
        let engine = try SyncEngine(
            for: device.writer, tables: [.table("note", conflicts: .mergeFields)], scopes: ["w:1"],
            transport: device.wire)
        let error = await #expect(throws: SyncError.self) { try await engine.syncNow() }
        #expect(error?.code == .declarationMismatch)
        #expect(error?.recovery == .needsApp)
    }

    @Test("one scope's failure leaves the others up to date")
    func scopes() async throws {
        let directory = try TestDirectory()
        let server = try Device.server(in: directory)
        let schema = noteSchema + "CREATE TABLE mine (id TEXT PRIMARY KEY, title TEXT)"
        let device = try await Device(schema, tables: ["note"], server: server, in: directory)
        let transport = InProcessTransport(to: server) { scope in
            guard scope == "w:2" else { throw Problem(.scopeForbidden, "Not yours.") }
            return .readWrite(as: "ada")
        }
        let engine = try SyncEngine(
            for: device.writer,
            tables: [.table("note", scope: .constant("w:1")), .table("mine", scope: .constant("w:2"))],
            scopes: ["w:1", "w:2"], transport: transport)
        try await engine.install()
        try await device.sql("INSERT INTO mine VALUES ('m', 'x'); INSERT INTO note (id) VALUES ('n1')")
        let error = await #expect(throws: SyncError.self) { try await engine.syncNow() }
        #expect(error?.code == .scopeForbidden)
        #expect(error?.scope == "w:1")
        #expect(try await engine.state(of: "mine", id: "m") == .confirmed)
        #expect(try await engine.state(of: "note", id: "n1") == .sent)
        #expect(try await engine.status().scopes["w:2"]?.lag == 0)
    }

    @Test("tables and scopes that do not fit together are refused")
    func configuration() async throws {
        let device = try await Device(noteSchema, tables: ["note"])
        for (tables, scopes) in [
            ([.table("note")], ["w:1", "w:2"] as [Scope]), ([.table("note", scope: .constant("w:3"))], ["w:1"]),
            ([], ["w:1"]), ([.table("note"), .table("NOTE")], ["w:1"]),
        ] as [([SyncedTable], [Scope])] {
            let error = #expect(throws: SyncError.self) {
                try SyncEngine(for: device.writer, tables: tables, scopes: scopes, transport: device.wire)
            }
            #expect(error?.code == .configurationInvalid)
        }
    }

    @Test("a running engine sends what any connection writes, without being asked", .hangLimit)
    func running() async throws {
        let device = try await Device(noteSchema, tables: ["note"])
        var configuration = SyncConfiguration()
        configuration.pollInterval = .milliseconds(50)
        let engine = try device.engine(configuration)
        let running = Task { try await engine.run() }
        try await device.sql("INSERT INTO note (id) VALUES ('n1')")
        let other = try DatabaseQueue(path: device.path, configuration: Self.patient)
        try await other.write { db in try db.execute(sql: "INSERT INTO note (id) VALUES ('n2')") }
        for await status in engine.statusUpdates where status.pending == 0 && status.sent == 0 {
            if status.scopes["w:1"]?.complete == 2 { break }
        }
        running.cancel()
        try await running.value
        #expect(try await device.count("tidemark_operation WHERE state = 'applied'") == 2)
    }

    @Test("a scope that is woken while its request is out sends one request more, however often", .hangLimit)
    func wokenTwice() async throws {
        let device = try await Device(noteSchema, tables: ["note"])
        var configuration = SyncConfiguration()
        (configuration.pollInterval, configuration.tick) = (.milliseconds(20), .seconds(3600))
        let engine = try device.engine(configuration)
        await device.wire.next { request, inner in
            for _ in 0..<3 { await engine.wake() }
            return try await inner.send(request)
        }
        let clock = CountingClock(longerThan: .seconds(1))
        let running = Dependencies.$current.withValue(clock) { Task { try await engine.run() } }
        try await clock.wait(for: 1)
        // The next request is that of an edit, and behind it the scope is at rest again.
        try await device.sql("INSERT INTO note (id) VALUES ('n1')")
        try await clock.wait(for: 2)
        running.cancel()
        #expect(await device.wire.bodies.map { $0.contains("\"number\":") } == [false, false, true])
    }

    @Test("the running engine sends after the wait what a sync by hand could not send", .hangLimit)
    func failedBesides() async throws {
        let pair = try await Pair()
        let (device, other) = (pair.here, pair.there)
        var configuration = SyncConfiguration()
        configuration.backoff.base = .milliseconds(10)
        configuration.backoff.jitter = .milliseconds(5)
        // Neither a tick nor a look for edits comes to help.
        (configuration.tick, configuration.pollInterval) = (.seconds(600), .seconds(600))
        let engine = try device.engine(configuration)
        let running = Task { try await engine.run() }
        try await poll { await !device.wire.answers.isEmpty }
        for await status in engine.statusUpdates where status.activity == .idle { break }
        try await other.sql("INSERT INTO note (id, title) VALUES ('theirs', 'a')")
        try await other.sync()
        // Of what another connection writes nobody tells the engine.
        let program = try DatabaseQueue(path: device.path, configuration: Self.patient)
        try await program.write { db in try db.execute(sql: "INSERT INTO note (id, title) VALUES ('mine', 'b')") }
        await device.wire.loseRequest()
        await #expect(throws: SyncError.self) { try await engine.syncNow() }
        for await status in engine.statusUpdates where status.scopes["w:1"]?.complete == 2 && status.sent == 0 { break }
        running.cancel()
        try await running.value
        try await expectSentAgain(device)
        try await other.sync()
        for device in [device, other] {
            #expect(try await device.rows(Self.titles) == ["\"mine\"|\"b\"", "\"theirs\"|\"a\""])
        }
    }

    @Test("a file that another process holds when the engine starts delays it, no more", .hangLimit)
    func busyStart() async throws {
        let device = try await Device(noteSchema, tables: ["note"])
        var configuration = SyncConfiguration()
        configuration.pollInterval = .milliseconds(20)
        try await device.sql("INSERT INTO note (id) VALUES ('n1')")
        let engine = try device.engine(configuration)
        let other = try DatabaseQueue(path: device.path)
        let clock = CountingClock(longerThan: .zero)
        let (running, hasWaited) = try await other.writeWithoutTransaction { db in
            try db.execute(sql: "BEGIN EXCLUSIVE")
            let running = Dependencies.$current.withValue(clock) { Task { try await engine.run() } }
            let hasWaited = clock.block(for: 1)
            try db.execute(sql: "COMMIT")
            return (running, hasWaited)
        }
        #expect(hasWaited)
        for await status in engine.statusUpdates where status.scopes["w:1"]?.complete == 1 { break }
        running.cancel()
        try await running.value
    }

    @Test("a running engine comes back by itself once the network does", .hangLimit)
    func recovering() async throws {
        let device = try await Device(noteSchema, tables: ["note"])
        var configuration = SyncConfiguration()
        configuration.backoff.base = .milliseconds(10)
        configuration.backoff.jitter = .milliseconds(5)
        configuration.breakerCoolDown = .milliseconds(50)
        for _ in 0..<8 { await device.wire.loseRequest() }
        try await device.sql("INSERT INTO note (id) VALUES ('n1')")
        let engine = try device.engine(configuration)
        let running = Task { try await engine.run() }
        for await status in engine.statusUpdates where status.scopes["w:1"]?.complete == 1 { break }
        running.cancel()
        try await running.value
        #expect(try await engine.status().lastError == nil)
    }

    private static let patient: Configuration = {
        var configuration = Configuration()
        configuration.busyMode = .timeout(5)
        return configuration
    }()
}
