import GRDB
import Testing
import TidemarkServer
import TidemarkTesting
import TidemarkWire

@testable import Tidemark

/// What a device tells its server of itself (W100), and when.
@Suite("A device tells how it stands")
struct ToldReportTests {
    let directory: TestDirectory
    let server: SyncServer
    let device: Device

    init() async throws {
        directory = try TestDirectory()
        server = try Device.server(
            in: directory, entities: [.state("note")],
            rules: [
                EntityRule("note") { edit in
                    edit.id == "bad" ? .reject(code: "not_here", detail: "No.") : .accept
                }
            ])
        device = try await Device(noteSchema, tables: ["note"], server: server, in: directory)
        try await device.sql("INSERT INTO note (id, title) VALUES ('n', 'x')")
    }

    /// The reports of exchanges so far, `nil` for those without one.
    private func told() async throws -> [DeviceReport?] {
        try await device.wire.bodies.map { body in
            try Array(body.utf8).withUnsafeBytes { try ExchangeRequest(from: $0, operationLimit: 1000) }.report
        }
    }

    private func known() async throws -> DeviceReport? { try await server.devices().devices.first?.report }

    @Test("The first exchange of an engine tells it, later ones only what is new, and one in an hour all of it")
    func news() async throws {
        var configuration = SyncConfiguration()
        configuration.appVersion = "2.1"
        let engine = try device.engine(configuration)
        try await engine.syncNow()
        let first = try #require(try await told().compactMap { $0 }.first)
        #expect(first.app == "2.1" && first.library == LibraryVersion.text && first.pending == 0 && first.error == nil)
        let count = try await told().count
        try await device.sql("UPDATE note SET title = 'y'")
        try await engine.syncNow()
        let later = try await told().dropFirst(count)
        #expect(!later.isEmpty && later.allSatisfy { $0 == nil })
        #expect(try await known() == first)
    }

    @Test("A refused edit is told with the exchange behind its verdict, and once it is let go")
    func refused() async throws {
        let engine = try device.engine()
        try await engine.syncNow()
        try await device.sql("INSERT INTO note (id) VALUES ('bad')")
        try await engine.syncNow()
        try await engine.syncNow()
        #expect(try await known()?.refused == 1)
        try await engine.discard(try #require(try await engine.rejectedOperations().first))
        try await engine.syncNow()
        #expect(try await known()?.refused == 0)
    }

    @Test("Edits that a request does not carry are told with the age of the oldest")
    func pending() async throws {
        var configuration = SyncConfiguration()
        configuration.operationLimit = 2
        let engine = try device.engine(configuration)
        for number in 1...12 { try await device.sql("INSERT INTO note (id) VALUES ('\(number)')") }
        try await engine.syncNow()
        let counts = try await told().map { $0?.pending }
        #expect(counts.first == 10)
        #expect(counts.contains(5) && counts.contains(1))
        #expect(try await told().first??.oldest != nil)
        let last = try #require(try await known())
        #expect(last.pending == 0 && last.oldest == nil)
    }

    @Test("A report whose answer was lost is told again")
    func lostAnswer() async throws {
        await device.wire.loseAnswer()
        let engine = try device.engine()
        await #expect(throws: SyncError.self) { try await engine.syncNow() }
        try await engine.syncNow()
        let told = try await told()
        #expect(told.count >= 2 && told[0] != nil && told[1] != nil)
    }

    @Test("A server of an earlier version passes over it, and an app may tell nothing")
    func silence() async throws {
        var configuration = SyncConfiguration()
        configuration.sendsReports = false
        try await device.engine(configuration).syncNow()
        #expect(try await told().allSatisfy { $0 == nil })
        #expect(try await known() == nil)
        // Such a server reads the body as if the member were not there.
        try await device.sql("UPDATE note SET title = 'y'")
        await device.wire.next { request, inner in
            var request = request
            let body = String(decoding: request.body, as: UTF8.self)
            #expect(body.contains(#""device":{"#))
            request.body = Array(body.replacing(#""device":{"#, with: #""unheard":{"#).utf8)
            return try await inner.send(request)
        }
        try await device.sync()
        #expect(try await known() == nil)
        #expect(try await device.engine().status().isConfirmed)
    }
}
