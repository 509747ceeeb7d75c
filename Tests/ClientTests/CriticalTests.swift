import Foundation
import GRDB
import Testing
import TidemarkServer
import TidemarkWire

@testable import Tidemark

@Suite("After a long time away, critical tables come first on the device (A18)")
struct CriticalTests {
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
    private func away(_ device: Device, _ server: SyncServer, profiles: Int = 1) async throws {
        _ = try await server.commit(to: "w:1") { changes in
            for index in 0..<300 { changes.upsert("note", id: .init(stringLiteral: "n\(index)"), ["title": "t"]) }
        }
        _ = try await server.commit(to: "w:1") { changes in
            changes.upsert("profile", id: "p1", ["name": "Ada Lovelace"])
            changes.delete("profile", id: "p2")
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

    @Test("Their changes, deletions too, are in the tables before any other row has come")
    func first() async throws {
        let (device, server) = try await scene()
        try await away(device, server)
        let before = await paths(device).count
        await device.wire.next { request, inner in
            #expect(try await device.rows("SELECT name FROM profile") == ["\"Ada Lovelace\""])
            #expect(try await device.count("note") == 0)
            return try await inner.send(request)
        }
        let engine = try device.engine(.mobile)
        try await engine.syncNow()
        let asked = await paths(device).dropFirst(before).filter { $0 != "/sync/declarations" }
        #expect(asked.first == "/sync/changes profile")
        #expect(try await device.count("note") == 300)
        #expect(try await device.rows("SELECT name FROM profile") == ["\"Ada Lovelace\""])
        #expect(try await device.count("tidemark_ahead") == 0)
        #expect(try await engine.verify().isClean)
        // Once in sync again, changes come as ever.
        try await engine.syncNow()
        #expect(await paths(device).filter { $0.hasPrefix("/sync/changes") }.count == 1)
    }

    @Test("Edits that wait stay over what comes ahead, and what comes again with the walk changes nothing")
    func edited() async throws {
        let (device, server) = try await scene()
        try await away(device, server)
        try await device.sql("UPDATE profile SET name = 'mine' WHERE id = 'p1'")
        await device.wire.loseRequest()
        let engine = try device.engine(.mobile)
        await #expect(throws: SyncError.self) { try await engine.syncNow() }
        #expect(try await device.rows("SELECT id, name FROM profile") == ["\"p1\"|\"mine\""])
        #expect(try await device.count("note") == 0)
        try await engine.syncNow()
        #expect(try await engine.status().pending == 0)
        #expect(try await device.rows("SELECT name FROM profile") == ["\"mine\""])
        // It was made without a look at the other one's.
        let conflicts = try await engine.conflicts()
        #expect(conflicts.map(\.record) == ["p1"])
        #expect(conflicts.first?.fields.first?.theirs == "Ada Lovelace")
        #expect(try await engine.verify().isClean)
    }

    @Test("Page by page, and where it is cut the walk brings the rest")
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
