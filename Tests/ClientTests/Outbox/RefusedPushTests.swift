import Foundation
import GRDB
import Testing
import TidemarkWire

@testable import Tidemark

@Suite("A push that the server refuses in its own words (B11, F1)")
struct RefusedPushTests {
    /// Refuses every exchange for which `isRefused` is true, and lets the others through.
    private struct Strict: Transport {
        let inner: any Transport
        let trouble: Trouble
        let isRefused: @Sendable (String) -> Bool

        func send(_ request: TransportRequest) async throws -> TransportResponse {
            isRefused(String(decoding: request.body, as: UTF8.self))
                ? try trouble.answer() : try await inner.send(request)
        }
    }

    private func engine(
        _ device: Device, _ trouble: Trouble, tables: [SyncedTable]? = nil,
        refusing isRefused: @escaping @Sendable (String) -> Bool
    ) throws -> SyncEngine {
        try SyncEngine(
            for: device.writer, tables: device.tables, scopes: [Device.scope],
            transport: Strict(inner: device.wire, trouble: trouble, isRefused: isRefused))
    }

    @Test("one edit that no request goes through with is found and rejected, and the others go", arguments: 1...9)
    func blocker(place: Int) async throws {
        let device = try await Device(noteSchema, tables: ["note"])
        for number in 1...9 { try await device.sql("INSERT INTO note (id) VALUES ('n\(number)')") }
        let engine = try engine(device, .refused) { $0.contains(#""id":"n\#(place)""#) }
        try await engine.syncNow()
        let rejected = try await engine.rejectedOperations()
        #expect(rejected.map(\.record) == ["n\(place)"])
        #expect(rejected.first?.code == "request_refused")
        let status = try await engine.status()
        #expect((status.pending, status.sent) == (0, 0))
        // What comes after it goes, too.
        try await device.sql("INSERT INTO note (id) VALUES ('later')")
        try await engine.syncNow()
        #expect(try await engine.state(of: "note", id: "later") == .confirmed)
        #expect(try await engine.verify().scopes[Device.scope]?.tables["note"]?.records == 9)
    }

    @Test("the others go in large requests again")
    func grows() async throws {
        let device = try await Device(noteSchema, tables: ["note"])
        try await device.sql(
            """
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 600)
            INSERT INTO note (id) SELECT 'n' || i FROM n
            """)
        let engine = try engine(device, .refused) { $0.contains(#""id":"n300""#) }
        let report = try await engine.syncNow()
        #expect(try await engine.rejectedOperations().map(\.record) == ["n300"])
        #expect(report.roundTrips < 60, "\(report.roundTrips)")
        #expect(try await engine.status().pending == 0)
    }

    @Test("one answer that is about a request and not its edit rejects nothing", arguments: [1, 2])
    func once(count: Int) async throws {
        let device = try await Device(noteSchema, tables: ["note"])
        try await device.sync()
        for number in 1...count { try await device.sql("INSERT INTO note (id) VALUES ('n\(number)')") }
        await device.wire.next { _, _ in Trouble.problem(.malformedRequest) }
        try await device.sync()
        #expect(try await device.engine().rejectedOperations().isEmpty)
        #expect(try await device.engine().status().isConfirmed)
    }

    @Test("a group goes or stays whole")
    func group() async throws {
        let device = try await Device(noteSchema, tables: ["note"])
        let engine = try engine(device, .refused) { $0.contains(#""id":"bad""#) }
        try await engine.install()
        try await engine.atomically { db in try db.execute(sql: "INSERT INTO note (id) VALUES ('g1'), ('bad')") }
        try await device.sql("INSERT INTO note (id) VALUES ('n1')")
        try await engine.syncNow()
        #expect(try await engine.rejectedOperations().map(\.record).sorted() == ["bad", "g1"])
        #expect(try await engine.state(of: "note", id: "n1") == .confirmed)
    }

    @Test(
        "where the request itself is refused no edit is at fault, and all go once the server takes them",
        arguments: [Trouble.refused, .missing, .unauthenticated])
    func innocent(trouble: Trouble) async throws {
        let device = try await Device(noteSchema, tables: ["note"])
        try await device.sync()
        try await device.sql("INSERT INTO note (id) VALUES ('n1')")
        let strict = try engine(device, trouble) { $0.contains("operations") }
        for _ in 0..<3 { await #expect(throws: SyncError.self) { try await strict.syncNow() } }
        guard case .stopped = try await strict.status().activity else {
            Issue.record("the status does not say that the app must act")
            return
        }
        #expect(try await strict.rejectedOperations().isEmpty)
        try await device.sync()
        #expect(try await device.engine().state(of: "note", id: "n1") == .confirmed)
    }

    @Test("an answer that is not in the server's own words rejects nothing, and is a failure like any other")
    func foreign() async throws {
        let device = try await Device(noteSchema, tables: ["note"])
        try await device.sql("INSERT INTO note (id) VALUES ('n1')")
        let portal = try engine(device, .portal) { $0.contains(#""operations":[{"#) }
        let error = await #expect(throws: SyncError.self) { try await portal.syncNow() }
        #expect(error?.recovery == .wait)
        #expect(try await portal.rejectedOperations().isEmpty)
        #expect(try await portal.status().sent == 1)
    }

    @Test("a closure that gives no token is told as what it is")
    func token() async throws {
        struct SignedOut: Error {}
        let device = try await Device(noteSchema, tables: ["note"])
        let transport = HTTPTransport(try #require(.init(string: "http://127.0.0.1:9"))) { throw SignedOut() }
        let engine = try SyncEngine(
            for: device.writer, tables: device.tables, scopes: [Device.scope], transport: transport)
        let error = await #expect(throws: SyncError.self) { try await engine.syncNow() }
        #expect(error?.code == .tokenUnavailable)
        #expect(error?.recovery == .needsApp)
        #expect(error?.detail.contains("SignedOut") == true)
    }
}
