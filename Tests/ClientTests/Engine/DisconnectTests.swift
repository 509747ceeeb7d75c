import Foundation
import GRDB
import Testing
import TidemarkServer
import TidemarkTesting
import TidemarkWire

@testable import Tidemark

@Suite("Signing out: the engine lets go, and takes the rows along where the app asks for it", .hangLimit)
struct DisconnectTests {
    private let directory: TestDirectory
    private let server: SyncServer
    private let device: Device

    init() async throws {
        directory = try TestDirectory()
        server = try Device.server(in: directory)
        device = try await Device(noteSchema, tables: ["note"], server: server, in: directory, name: "a")
        try await device.sql("INSERT INTO note (id, title) VALUES ('n1', 'a'), ('n2', 'a')")
        try await device.sync()
    }

    private func objects() async throws -> [String] {
        try await device.rows("SELECT name FROM sqlite_master WHERE name LIKE 'tidemark%' ORDER BY 1")
    }

    @Test("run() returns, nothing is sent any more, edits are captured and go with the next engine")
    func disconnected() async throws {
        let engine = try device.engine()
        let running = Task { try await engine.run() }
        let before = await device.wire.requests.count
        try await poll { await device.wire.requests.count > before }
        await engine.disconnect()
        try await running.value
        let requests = await device.wire.requests.count
        try await device.sql("UPDATE note SET title = 'later' WHERE id = 'n1'")
        await #expect(throws: SyncError.self) { try await engine.syncNow() }
        let error = await #expect(throws: SyncError.self) { try await engine.run() }
        #expect(error?.code == .engineDisconnected)
        await engine.wake()
        #expect(await device.wire.requests.count == requests)
        #expect(try await engine.status().pending == 1)
        #expect(try await engine.state(of: "note", id: "n1") == .pending)
        #expect(try await engine.state(of: "note", id: "n2") == .confirmed)
        #expect(try await engine.deletedRecords().isEmpty)
        let decision = await #expect(throws: SyncError.self) { try await engine.verify() }
        #expect(decision?.code == .engineDisconnected)

        #expect(try await device.engine().syncNow().pushed == 1)
    }

    @Test("with everything sent, rows and library go in one step, and the table is a plain one")
    func removed() async throws {
        let engine = try device.engine()
        let removed = try await engine.disconnectAndRemove()
        #expect(removed.rows == 2 && removed.tables == ["note"] && removed.unsent.isEmpty)
        #expect(try await objects().isEmpty)
        try await device.sql("INSERT INTO note (id, title) VALUES ('n9', 'plain')")
        #expect(try await device.rows("SELECT id FROM note") == ["\"n9\""])
        // Neither a status nor a sync puts anything back.
        #expect(try await engine.status().tables.isEmpty)
        await #expect(throws: SyncError.self) { try await engine.syncNow() }
        #expect(try await objects().isEmpty)
        let bytes = try await server.changes(in: "w:1", since: nil, limit: 10, access: .read(as: "ada"))
        #expect(String(decoding: bytes, as: UTF8.self).contains("\"n1\""))
    }

    @Test("unsent edits are refused with their numbers, and the engine goes on; told to, it loses them")
    func unsent() async throws {
        try await device.sql("UPDATE note SET title = 'mine' WHERE id = 'n1'; DELETE FROM note WHERE id = 'n2'")
        let engine = try device.engine()
        do {
            try await engine.disconnectAndRemove()
            Issue.record("unsent edits were taken along")
        } catch {
            let error = try #require(error as? SyncError)
            #expect(error.code == .unsentEdits && error.detail.contains("2 pending"), "\(error)")
        }
        #expect(try await device.rows("SELECT title FROM note") == ["\"mine\""])
        #expect(try await engine.syncNow().pushed == 2)
        try await device.sql("UPDATE note SET title = 'lost' WHERE id = 'n1'")
        let removed = try await engine.disconnectAndRemove(discardingUnsent: true)
        #expect(removed.rows == 1 && removed.unsent.pending == 1)
        #expect(try await objects().isEmpty)
        #expect(try await device.rows("SELECT id FROM note").isEmpty)
    }

    @Test("children that restrict their parents go first, and what the schema keeps keeps everything")
    func children() async throws {
        let schema = """
            CREATE TABLE author (id TEXT PRIMARY KEY, name TEXT);
            CREATE TABLE book (id TEXT PRIMARY KEY, author_id TEXT REFERENCES author(id) ON DELETE RESTRICT);
            CREATE TABLE shelf (book_id TEXT REFERENCES book(id));
            """
        let device = try await Device(
            schema, tables: ["author", "book"], server: server, in: directory, name: "books")
        try await device.sql("INSERT INTO author VALUES ('a', 'x'); INSERT INTO book VALUES ('b', 'a')")
        try await device.sync()
        try await device.sql("INSERT INTO shelf VALUES ('b')")
        await #expect(throws: (any Error).self) { try await device.engine().disconnectAndRemove() }
        #expect(try await device.rows("SELECT id FROM book") == ["\"b\""])
        try await device.sql("DELETE FROM shelf")
        #expect(try await device.engine().disconnectAndRemove().rows == 2)
    }

    @Test("rows that cannot travel stay in the file, and so keep nothing from being taken out")
    func unable() async throws {
        try await device.sql("INSERT INTO note (id, title) VALUES ('n3', CAST(x'ff' AS TEXT))")
        try await device.sync()
        #expect(try await device.engine().status().rows.unable == 1)
        await #expect(throws: SyncError.self) { try await device.engine().disconnectAndRemove() }
        let removed = try await device.writer.write { db in try SyncEngine.uninstall(db) }
        #expect(removed.unsent.isEmpty && removed.libraryTables > 20)
        #expect(try await device.count("note") == 3)
    }

    @Test("a file without the library is left alone, and one with it keeps its rows")
    func uninstalled() async throws {
        try await device.sql("UPDATE note SET title = 'mine' WHERE id = 'n1'")
        await #expect(throws: SyncError.self) { try await device.writer.write { try SyncEngine.uninstall($0) } }
        try await device.sql("CREATE TRIGGER tidemark_own AFTER DELETE ON note BEGIN SELECT 1; END")
        let removed = try await device.writer.write { db in
            try SyncEngine.uninstall(db, discardingUnsent: true)
        }
        #expect(removed.triggers > 3 && removed.libraryTables > 20)
        // The app's own trigger stays, whatever its name begins with.
        #expect(try await objects() == ["\"tidemark_own\""])
        #expect(try await device.rows("SELECT id, title FROM note ORDER BY id") == ["\"n1\"|\"mine\"", "\"n2\"|\"a\""])
        #expect(try await device.writer.write { try SyncEngine.uninstall($0) } == UninstallReport())
    }
}
