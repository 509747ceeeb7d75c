import Foundation
import GRDB
import Testing
import TidemarkCore
import TidemarkServer
import TidemarkTesting
import TidemarkWire

@testable import Tidemark

/// A device carries out what its operator asks (F3, W108).
@Suite("A device carries out its operator's remedies, each once")
struct RemedyTests {
    let directory: TestDirectory
    let server: SyncServer
    let device: Device
    let scope = Device.scope

    init() async throws {
        directory = try TestDirectory()
        server = try Device.server(in: directory, entities: [.state("note")])
        device = try await Device(verifySchema, tables: ["note"], server: server, in: directory)
        try await device.sql("INSERT INTO note (id, title) VALUES ('n', 'x'), ('m', 'x')")
        try await device.sync()
    }

    private var known: FleetDevice {
        get async throws { try #require(try await server.devices().devices.first) }
    }

    func ask(_ remedy: Remedy) async throws {
        try await server.remedy(remedy, for: try await known.name.client)
    }

    var outcome: RemedyOutcome? { get async throws { try await known.remedy?.outcome } }

    /// The fillings that were begun: pages that continue none.
    private var fillings: Int {
        get async {
            await device.wire.requests.count { request in
                request.path == "/sync/snapshot" && !request.query.contains { $0.name == "snapshotToken" }
            }
        }
    }

    private func title(_ id: String) async throws -> String? {
        try await device.writer.read { db in
            try String.fetchOne(db, sql: "SELECT title FROM note WHERE id = ?", arguments: [id])
        }
    }

    // MARK: Refill

    @Test("A scope is filled anew, edits are kept and go, and it is told as done")
    func refill() async throws {
        let before = await fillings
        try await flip(device, "UPDATE note SET title = 'broken' WHERE id = 'm'")
        try await device.sql("UPDATE note SET title = 'mine' WHERE id = 'n'")
        try await ask(.refill)
        let engine = try device.engine()
        try await engine.syncNow()
        #expect(await fillings == before + 1)
        #expect(try await device.rows("SELECT title FROM note ORDER BY id") == [#""x""#, #""mine""#])
        #expect(try await outcome?.result == .done)
        #expect(try await engine.status().scopes[scope]?.remedy == nil)
        try await engine.syncNow()
        try await device.sync()
        #expect(await fillings == before + 1)
    }

    @Test("An answer that is lost, with the remedy or behind it, makes it no second one")
    func lostAnswers() async throws {
        let before = await fillings
        try await ask(.refill)
        await device.wire.loseAnswer()
        let engine = try device.engine()
        await #expect(throws: SyncError.self) { try await engine.syncNow() }
        #expect(await fillings == before)
        // The exchange behind the filling tells that it is done, and its answer is lost too.
        await device.wire.next { request, inner in try await inner.send(request) }
        await device.wire.loseRequest()
        await #expect(throws: SyncError.self) { try await engine.syncNow() }
        #expect(await fillings == before + 1)
        #expect(try await outcome == nil)
        try await device.sync()
        #expect(try await outcome?.result == .done)
        #expect(await fillings == before + 1)
    }

    @Test("A server that has lost what it heard of a remedy is told again, and the remedy is not carried out twice")
    func toldAgain() async throws {
        try await ask(.refill)
        let file = try DatabaseQueue(path: directory.url.appending(path: "server.sqlite").path)
        let asked = try await file.read { db in try Data.fetchOne(db, sql: "SELECT remedy FROM device") }
        let engine = try device.engine()
        try await engine.syncNow()
        #expect(try await outcome?.result == .done)
        let before = await fillings
        try await file.write { db in try db.execute(sql: "UPDATE device SET remedy = ?", arguments: [asked]) }
        #expect(try await outcome == nil)
        // One answer asks again, and the exchange behind it tells.
        for _ in 1...2 { try await engine.syncNow() }
        #expect(try await outcome?.result == .done)
        #expect(await fillings == before)
    }

    @Test("An app that ends in the midst of it goes on where it was")
    func restarted() async throws {
        let before = await fillings
        try await ask(.refill)
        await device.wire.nextPage { _, _ in throw Wire.Lost() }
        await #expect(throws: SyncError.self) { try await device.sync() }
        let engine = try device.engine()
        #expect(try await engine.status().scopes[scope]?.remedy == .refilling)
        try await device.sql("UPDATE note SET title = 'mine' WHERE id = 'n'")
        try await engine.syncNow()
        // The first page was asked for twice, in one filling.
        #expect(await fillings == before + 2)
        #expect(try await outcome?.result == .done)
        #expect(try await title("n") == "mine")
        #expect(try await engine.status().isConfirmed)
    }

    // MARK: Stop

    @Test("A stopped scope sends and takes nothing, keeps its edits, and goes on once it is cleared")
    func stopped() async throws {
        try await ask(.stop(message: "Please update."))
        let engine = try device.engine()
        let error = await #expect(throws: SyncError.self) { try await engine.syncNow() }
        #expect(error?.code == .stoppedByOperator && error?.detail.contains("Please update.") == true)
        #expect(try await outcome?.result == .done)
        try await server.commit(to: scope) { $0.upsert("note", id: "o", ["title": "theirs"]) }
        try await device.sql("UPDATE note SET title = 'mine' WHERE id = 'n'")
        let count = await device.wire.requests.count
        // The app is started anew, and asks once.
        let again = try device.engine()
        await #expect(throws: SyncError.self) { try await again.syncNow() }
        let asked = await device.wire.requests.dropFirst(count).filter { $0.path != "/sync/declarations" }
        #expect(asked.map(\.path) == ["/sync"])
        let body = String(decoding: asked.first?.body ?? [], as: UTF8.self)
        #expect(body.contains(#""operations":[]"#))
        #expect(try await title("o") == nil)
        let status = try await again.status()
        #expect(status.pending == 1 && status.scopes[scope]?.remedy == .stopped(message: "Please update."))
        #expect(status.lastError?.code == .stoppedByOperator)
        try await ask(.clear)
        try await again.syncNow()
        #expect(try await title("o") == "theirs")
        #expect(try await outcome?.result == .done)
        let after = try await again.status()
        #expect(after.isConfirmed && after.scopes[scope]?.remedy == nil)
        let other = try await Device(verifySchema, tables: ["note"], server: server, in: directory, name: "other")
        try await other.sync()
        #expect(try await other.rows("SELECT title FROM note WHERE id = 'n'") == [#""mine""#])
    }

    @Test("It is stopped for every door, also before the app has asked")
    func everyDoor() async throws {
        try await ask(.stop(message: "m"))
        await #expect(throws: SyncError.self) { try await device.sync() }
        let engine = try device.engine()
        let status = try await engine.status()
        guard case .stopped(let error) = status.activity else {
            Issue.record("\(status.activity)")
            return
        }
        #expect(error.code == .stoppedByOperator)
        let verified = await #expect(throws: SyncError.self) { try await engine.verify(repairing: true) }
        #expect(verified?.code == .stoppedByOperator)
        #expect(await device.wire.requests.allSatisfy { $0.path != "/sync/digest" })
    }

    @Test("A question whose answer is lost leaves it stopped, and a stop that is not told yet is told again")
    func lostStop() async throws {
        try await ask(.stop(message: "m"))
        await device.wire.next { request, inner in try await inner.send(request) }
        await device.wire.loseRequest()
        let engine = try device.engine()
        let untold = await #expect(throws: SyncError.self) { try await engine.syncNow() }
        #expect(untold?.code == .networkUnavailable)
        #expect(try await outcome == nil)
        let told = await #expect(throws: SyncError.self) { try await engine.syncNow() }
        #expect(told?.code == .stoppedByOperator)
        #expect(try await outcome?.result == .done)
        await device.wire.loseRequest()
        let later = await #expect(throws: SyncError.self) { try await engine.syncNow() }
        #expect(later?.code == .stoppedByOperator)
    }

    @Test(
        "A stopped device keeps the operator's message while its server is down, also after a restart",
        arguments: [503, 500, 429])
    func stoppedWithoutServer(status: Int) async throws {
        try await ask(.stop(message: "m"))
        let engine = try device.engine()
        await #expect(throws: SyncError.self) { try await engine.syncNow() }
        #expect(try await outcome?.result == .done)
        for engine in [engine, try device.engine()] {
            await device.wire.next { _, _ in TransportResponse(status: status) }
            let error = await #expect(throws: SyncError.self) { try await engine.syncNow() }
            #expect(error?.code == .stoppedByOperator)
        }
    }

    @Test("A server that was put back to before the stop lets the device go on")
    func putBack() async throws {
        let other = try Device.server(in: directory, name: "other")
        try await other.commit(to: scope) { $0.upsert("note", id: "o", ["title": "theirs"]) }
        try await ask(.stop(message: "m"))
        await #expect(throws: SyncError.self) { try await device.sync() }
        await device.wire.connect(to: InProcessTransport(to: other) { _ in .readWrite(as: "ada") })
        try await device.sync()
        #expect(try await title("o") == "theirs")
        #expect(try await device.engine().status().scopes[scope]?.remedy == nil)
    }

    // MARK: Verify

    @Test("The tables are compared and put right once, and what was found is told")
    func verify() async throws {
        try await flip(device, "UPDATE note SET title = 'broken' WHERE id = 'm'")
        try await ask(.verify)
        try await device.sync()
        #expect(try await title("m") == "x")
        let told = try #require(try await outcome)
        #expect(told.result == .done && told.differing == 1 && told.repaired == 1)
        let digests = await device.wire.requests.count { $0.path == "/sync/digest" }
        #expect(digests > 0)
        try await device.sync()
        #expect(await device.wire.requests.count { $0.path == "/sync/digest" } == digests)
    }

    @Test("A comparison that the network ends is begun anew, and one whose process ends with it is given up in the end")
    func verifyAgain() async throws {
        try await ask(.verify)
        let asking = AskingWire(device.wire) { throw Wire.Lost() }
        let engine = try SyncEngine(
            for: device.writer, tables: device.tables, scopes: [scope], transport: asking)
        _ = try? await engine.syncNow()
        #expect(try await engine.status().scopes[scope]?.remedy == .verifying)
        #expect(try await outcome == nil)
        try await engine.syncNow()
        #expect(try await outcome?.result == .done)
        try await ask(.verify)
        let again = AskingWire(device.wire) { throw Wire.Lost() }
        _ = try? await SyncEngine(for: device.writer, tables: device.tables, scopes: [scope], transport: again)
            .syncNow()
        // What processes leave that are killed in the midst of it.
        try await device.writer.write { db in
            for _ in 1...RemedyMachine.verifyLimit {
                try RemedyMachine.handle(.verifyBegan, db, Device.scope, now: 0)
            }
        }
        try await device.sync()
        let told = try await outcome
        #expect(told?.result == .failed && told?.code == "interrupted")
    }

    @Test("A comparison whose task is cancelled is none that ended with its process", .hangLimit)
    func verifyCancelled() async throws {
        try await ask(.verify)
        for _ in 0...RemedyMachine.verifyLimit {
            let (silence, end) = AsyncStream.makeStream(of: Void.self)
            let (begun, begin) = AsyncStream.makeStream(of: Void.self)
            defer { end.finish() }
            let hanging = AskingWire(device.wire) {
                begin.finish()
                for await _ in silence {}
                throw Wire.Lost()
            }
            let engine = try SyncEngine(
                for: device.writer, tables: device.tables, scopes: [scope], transport: hanging)
            let running = Task { try await engine.syncNow() }
            for await _ in begun {}
            running.cancel()
            _ = try? await running.value
            let machine = try await device.writer.read { db in try RemedyMachine.read(db, Device.scope) }
            #expect(machine.state == .verifyDue(begun: 0))
        }
        try await device.sync()
        #expect(try await outcome?.result == .done)
    }

    @Test("The app's own comparison runs without the operator's inside it, which follows")
    func verifyApart() async throws {
        try await ask(.verify)
        let engine = try device.engine()
        _ = try await engine.verify(repairing: false)
        #expect(try await engine.status().scopes[scope]?.remedy == .verifying)
        try await engine.syncNow()
        #expect(try await outcome?.result == .done)
    }

    // MARK: Unknown kinds, and other engines and servers

    @Test("A kind that this version does not know is refused, and what goes on goes on")
    func unknownKind() async throws {
        try await ask(.refill)
        let before = await fillings
        await device.wire.next { request, inner in
            var answer = try await inner.send(request)
            answer.body = Array(
                String(decoding: answer.body, as: UTF8.self).replacing(#""kind":"refill""#, with: #""kind":"sing""#)
                    .utf8)
            return answer
        }
        try await device.sync()
        let told = try await outcome
        #expect(told?.result == .refused && told?.code == "unknown_remedy")
        #expect(await fillings == before)
    }

    @Test("A device of an earlier version passes over it, and it stays pending")
    func oldDevice() async throws {
        try await ask(.stop(message: "m"))
        for _ in 1...2 {
            await device.wire.next { request, inner in
                var answer = try await inner.send(request)
                let text = String(decoding: answer.body, as: UTF8.self)
                #expect(text.contains(#""remedy":{"#))
                answer.body = Array(text.replacing(#""remedy":"#, with: #""unheard":"#).utf8)
                return answer
            }
            try await device.sync()
        }
        let kept = try await known.remedy
        #expect(kept?.outcome == nil && kept?.remedy == .stop(message: "m"))
    }

    @Test("An app that tells nothing of itself tells what came of it, and nothing else")
    func silent() async throws {
        var configuration = SyncConfiguration()
        configuration.sendsReports = false
        let other = try await Device(verifySchema, tables: ["note"], server: server, in: directory, name: "other")
        try await other.engine(configuration).syncNow()
        let all = try await server.devices().devices
        let silent = try #require(all.first { $0.report == nil })
        try await server.remedy(.refill, for: silent.name.client)
        try await other.engine(configuration).syncNow()
        let after = try #require(try await server.devices().devices.first { $0.name == silent.name })
        #expect(after.report == nil && after.remedy?.outcome?.result == .done)
    }
}
