import Foundation
import GRDB
import Testing
import TidemarkServer
import TidemarkWire

@testable import Tidemark

@Suite("After a long time away, critical tables come first on the device (A18)")
struct CriticalTablesFirstTests {
    private static let schema = """
        CREATE TABLE note (id TEXT PRIMARY KEY, title TEXT);
        CREATE TABLE profile (id TEXT PRIMARY KEY, name TEXT);
        """

    private func scene() async throws -> (Device, SyncServer) {
        let directory = try TestDirectory()
        let server = try Device.server(in: directory, entities: [.state("profile", priority: 0)])
        let device = try await Device(
            Self.schema, tables: ["note", "profile"], server: server, in: directory, name: "device")
        _ = try await server.commit(to: "w:1") { changes in
            changes.upsert("profile", id: "p1", ["name": "Ada"])
            changes.upsert("profile", id: "p2", ["name": "Bob"])
        }
        try await device.sync()
        return (device, server)
    }

    /// Weeks go by, in which many notes are written, and profiles last.
    private func away(
        _ device: Device, _ server: SyncServer, profiles: Int = 1, deletes: Bool = true
    ) async throws {
        _ = try await server.commit(to: "w:1") { changes in
            for index in 0..<300 {
                changes.upsert("note", id: .init(stringLiteral: "n\(index)"), ["title": .text(UUID().uuidString)])
            }
        }
        _ = try await server.commit(to: "w:1") { changes in
            changes.upsert("profile", id: "p1", ["name": "Ada Lovelace"])
            if deletes { changes.delete("profile", id: "p2") }
            for index in 0..<(profiles - 1) {
                changes.upsert("profile", id: .init(stringLiteral: "q\(index)"), ["name": "new"])
            }
        }
        try await device.sql("UPDATE tidemark_scope SET last_sync = last_sync - \(3 * 24 * 3_600_000)")
    }

    private func paths(_ device: Device) async -> [String] {
        await device.wire.requests.map { request in
            request.query.first { $0.name == "entity" }.map { "\(request.path) \($0.value)" } ?? request.path
        }
    }

    @Test("Their changes, deletions too, are in the tables before the second page of the log has come")
    func first() async throws {
        let (device, server) = try await scene()
        try await away(device, server)
        let before = await paths(device).count
        await device.wire.next { request, inner in try await inner.send(request) }
        await device.wire.next { request, inner in
            #expect(try await device.rows("SELECT name FROM profile") == ["\"Ada Lovelace\""])
            #expect(try await device.count("note") == 50)
            return try await inner.send(request)
        }
        let engine = try device.engine(.mobile)
        try await engine.syncNow()
        let asked = await paths(device).dropFirst(before).filter { $0 != "/sync/declarations" }
        #expect(asked.prefix(3) == ["/sync", "/sync/changes profile", "/sync"])
        #expect(try await device.count("note") == 300)
        #expect(try await device.rows("SELECT name FROM profile") == ["\"Ada Lovelace\""])
        #expect(try await device.count("tidemark_known_version") == 0)
        #expect(try await engine.verify().isClean)
        // Once in sync again, changes come as ever.
        try await engine.syncNow()
        #expect(await paths(device).filter { $0.hasPrefix("/sync/changes") }.count == 1)
    }

    @Test("Edits that wait stay over what comes ahead, and what comes again with the scan changes nothing")
    func edited() async throws {
        let (device, server) = try await scene()
        try await away(device, server)
        let engine = try device.engine(.mobile)
        await device.wire.next { request, inner in
            // Written while the first page is on its way: it waits while the critical rows come.
            let response = try await inner.send(request)
            try await device.sql("UPDATE profile SET name = 'mine' WHERE id = 'p1'")
            return response
        }
        await device.wire.loseRequest()
        await #expect(throws: SyncError.self) { try await engine.syncNow() }
        #expect(try await device.rows("SELECT id, name FROM profile") == ["\"p1\"|\"mine\""])
        #expect(try await device.count("note") == 50)
        try await engine.syncNow()
        #expect(try await engine.status().pending == 0)
        #expect(try await device.rows("SELECT name FROM profile") == ["\"mine\""])
        // It was made without a look at the other one's.
        let conflicts = try await engine.conflicts()
        #expect(conflicts.map(\.record) == ["p1"])
        #expect(conflicts.first?.fields.first?.theirs == "Ada Lovelace")
        #expect(try await engine.verify().isClean)
    }

    @Test("Page by page, and where it is cut the scan brings the rest")
    func pages() async throws {
        let (device, server) = try await scene()
        try await away(device, server, profiles: 2500)
        var configuration = SyncConfiguration.mobile
        (configuration.snapshotRange, configuration.firstSnapshotPage) = (1000...1000, 1000)
        let engine = try device.engine(configuration)
        try await engine.syncNow()
        #expect(await paths(device).filter { $0 == "/sync/changes profile" }.count == 3)
        #expect(try await device.count("profile") == 2500)
        #expect(try await device.count("note") == 300)
        #expect(try await engine.verify().isClean)
    }

    @Test("A delete that an edit of this device was lost to is listed once, though it comes twice")
    func listedOnce() async throws {
        let (device, server) = try await scene()
        let other = try await Device(
            Self.schema, tables: ["note", "profile"], server: server, in: device.directory, name: "other")
        try await other.sync()
        try await device.sql("UPDATE profile SET name = 'mine' WHERE id = 'p2'")
        try await device.sync()
        try await away(device, server, deletes: false)
        // Made without a look at that edit, and behind all else in the log.
        try await other.sql("DELETE FROM profile WHERE id = 'p2'")
        await other.wire.next { request, inner in
            var push = request
            push.path = "/sync/push"
            _ = try await inner.send(push)
            throw Wire.Lost()
        }
        await #expect(throws: SyncError.self) { try await other.sync() }
        let engine = try device.engine(.mobile)
        try await engine.syncNow()
        #expect(await paths(device).contains("/sync/changes profile"))
        #expect(try await device.rows("SELECT id FROM profile") == ["\"p1\""])
        #expect(try await engine.conflicts().map(\.record) == ["p2"])
    }

    @Test("A server that answers another question, or asks for a wait, is gone along with")
    func otherServer() async throws {
        let (device, server) = try await scene()
        try await away(device, server)
        let engine = try device.engine(.mobile)
        await device.wire.nextChanges { request, inner in
            var whole = request
            whole.query.removeAll { $0.name == "entity" }
            return try await inner.send(whole)
        }
        try await engine.syncNow()
        #expect(try await device.count("note") == 300)
        try await away(device, server)
        await device.wire.nextChanges { _, _ in
            TransportResponse(
                status: 429, headers: ["Content-Type": Problem.contentType, "Retry-After": "60"],
                body: Problem(.tooManyRequests, "d").body())
        }
        let error = await #expect(throws: SyncError.self) { try await engine.syncNow() }
        #expect(error?.recovery == .wait)
        try await engine.syncNow()
        #expect(try await engine.verify().isClean)
    }

    @Test("Nothing is asked for by itself soon after a sync, nor where all tables are alike")
    func usual() async throws {
        let (device, server) = try await scene()
        _ = try await server.commit(to: "w:1") { $0.upsert("profile", id: "p3", ["name": "Eve"]) }
        try await device.sync()
        #expect(await !paths(device).contains("/sync/changes profile"))
        let plain = try await Device(Self.schema, tables: ["note", "profile"])
        try await plain.sync()
        try await plain.sql("UPDATE tidemark_scope SET last_sync = 0")
        try await plain.sync()
        #expect(await !paths(plain).contains { $0.hasPrefix("/sync/changes") })
    }
}
