import Foundation
import GRDB
import Testing
import TidemarkServer
import TidemarkTesting

@testable import Tidemark

@Suite("Counts: each row is confirmed, pending, blocked or unable to travel (I13)")
struct RowCountTests {
    @Test("a row that is made anew while the server's row of its key is quarantined counts once")
    func quarantinedNamesake() async throws {
        let directory = try TestDirectory()
        let server = try Device.server(in: directory)
        let schema = "CREATE TABLE project (id TEXT PRIMARY KEY, slug TEXT UNIQUE)"
        let first = try await Device(schema, tables: ["project"], server: server, in: directory, name: "first")
        let second = try await Device(schema, tables: ["project"], server: server, in: directory, name: "second")
        try await first.sql("INSERT INTO project VALUES ('p1', 'same')")
        try await second.sql("INSERT INTO project VALUES ('p2', 'same')")
        for device in [first, second, first] { try await device.sync() }
        let quarantined = try await first.rows("SELECT record FROM tidemark_quarantine")
        #expect(quarantined.count == 1)
        let id = try #require(quarantined.first).replacing("\"", with: "")
        #expect(try await first.engine().status().rows.quarantined == 1)
        try await first.sql("INSERT INTO project VALUES ('\(id)', 'other')")
        let rows = try await first.engine().status().rows
        #expect((rows.confirmed, rows.pending, rows.total) == (1, 1, 2))
        for device in [first, second, first] { try await device.sync() }
        for device in [first, second] {
            let rows = try await device.engine().status().rows
            #expect((rows.confirmed, rows.pending, rows.quarantined) == (2, 0, 0))
            #expect(try await device.engine().verify().isClean)
        }
    }

    @Test("before the first sync every row waits, and after a sign-out none does")
    func uncaptured() async throws {
        let directory = try TestDirectory()
        let server = try Device.server(in: directory)
        let schema = """
            CREATE TABLE task (id TEXT PRIMARY KEY, title TEXT);
            INSERT INTO task VALUES ('t1', 'a'), ('t2', 'b'), (NULL, 'c');
            """
        let file = try DatabaseQueue(path: directory.url.appending(path: "plain.sqlite").path)
        try await file.write { db in try db.execute(sql: schema) }
        let wire = InProcessTransport(to: server) { _ in .readWrite(as: "ada") }
        func device() throws -> SyncEngine {
            try SyncEngine(for: file, tables: [.table("TASK")], scopes: [Device.scope], transport: wire)
        }
        let engine = try device()
        let before = try await engine.status()
        #expect(before.tables == ["task": SyncStatus.Rows(pending: 2, unable: 1)])
        #expect(!before.isSettled)
        #expect(try await !file.read { db in try LibrarySchema.isInstalled(db) })
        _ = try await engine.syncNow()
        #expect(try await engine.status().tables == ["task": SyncStatus.Rows(confirmed: 2, unable: 1)])
        let other = try device()
        _ = try await other.disconnectAndRemove(discardingUnsent: true)
        // The one has signed out; the other finds the library taken out of its file.
        for engine in [other, engine] { #expect(try await engine.status().tables.isEmpty) }
    }
}
