import Foundation
import GRDB
import Testing
import TidemarkServer
import TidemarkTesting
import TidemarkWire

@testable import Tidemark

@Suite("A scope is filled from a snapshot, and begins where it left off (A5, A6, A14, A15, B4)")
struct BootstrapTests {
    static func problem(_ code: ProblemCode) -> Wire.Step {
        let body = Problem(code, "d").body()
        return { _, _ in
            TransportResponse(status: code.status, headers: ["Content-Type": Problem.contentType], body: body)
        }
    }

    static let schema = """
        CREATE TABLE note (id TEXT PRIMARY KEY, title TEXT, body TEXT, rank INTEGER, slug TEXT UNIQUE);
        CREATE TABLE tag (id INTEGER PRIMARY KEY, name TEXT);
        CREATE TABLE pair (a TEXT, b INTEGER, n INTEGER, PRIMARY KEY (a, b));
        """
    static let tables = ["note", "tag", "pair"]

    /// A server with a few rows in three tables, whose order in a snapshot is pair, note, tag.
    static func server(in directory: TestDirectory) async throws -> SyncServer {
        let server = try Device.server(in: directory, entities: [.state("pair", priority: 0)])
        try await server.commit(to: "w:1") { changes in
            for index in 1...7 { changes.upsert("note", id: RecordID("n\(index)")!, ["title": .text("t\(index)")]) }
            for index in 8...12 { changes.upsert("tag", id: RecordID("\(index)")!, ["name": .text("g\(index)")]) }
            for index in 1...3 { changes.upsert("pair", id: RecordID("[\"p\",\(index)]")!, ["n": .integer(1)]) }
        }
        return server
    }

    static func small(_ page: Int = 2) -> SyncConfiguration {
        var configuration = SyncConfiguration()
        configuration.snapshotRange = page...page
        configuration.firstSnapshotPage = page
        return configuration
    }

    static func device(_ server: SyncServer, in directory: TestDirectory, name: String = "d") async throws -> Device {
        try await Device(schema, tables: tables, server: server, in: directory, name: name)
    }

    static func content(_ device: Device) async throws -> [String] {
        try await device.rows("SELECT 'n', id, title, body FROM note ORDER BY id")
            + device.rows("SELECT 't', id, name FROM tag ORDER BY id")
            + device.rows("SELECT 'p', a, b, n FROM pair ORDER BY a, b")
    }

    static let whole = 15

    @Test("the first sync scans a snapshot; after it only deltas travel (B4)")
    func first() async throws {
        let directory = try TestDirectory()
        let server = try await Self.server(in: directory)
        let device = try await Self.device(server, in: directory)
        let report = try await device.engine(Self.small()).syncNow()
        #expect(report.received == Self.whole)
        #expect(report.applied == Self.whole)
        #expect(try await Self.content(device).count == Self.whole)
        #expect(try await device.rows("SELECT complete FROM tidemark_scope") == ["\(Self.whole)"])
        #expect(try await device.count("tidemark_bootstrap") == 0)
        #expect(try await device.count("tidemark_known_version") == 0)
        let pages = await device.wire.requests.filter { $0.path == "/sync/snapshot" }.count
        #expect(pages == 8)
        try await server.commit(to: "w:1") { $0.upsert("note", id: "n1", ["title": "new"]) }
        #expect(try await device.engine(Self.small()).syncNow().received == 1)
        #expect(await device.wire.requests.filter { $0.path == "/sync/snapshot" }.count == pages)
    }

    /// Loses the wire after `pages` pages, as a kill does, and goes on with a new opening of the file.
    private func interrupted(after pages: Int, _ device: Device, lost: Bool) async throws -> [String?] {
        for _ in 0..<pages { await device.wire.nextPage { request, inner in try await inner.send(request) } }
        await device.wire.nextPage { request, inner in
            if lost { _ = try await inner.send(request) }
            throw Wire.Lost()
        }
        await #expect(throws: SyncError.self) { try await device.engine(Self.small()).syncNow() }
        let asked = await device.wire.requests.count
        try await device.engine(Self.small()).syncNow()
        return await device.wire.requests[asked...].filter { $0.path == "/sync/snapshot" }
            .map { request in request.query.first { $0.name == "pageCursor" }?.value }
    }

    @Test("an empty device resumes at every page, and asks for none twice", arguments: 0..<8)
    func resumeDirect(pages: Int) async throws {
        let directory = try TestDirectory()
        let device = try await Self.device(try await Self.server(in: directory), in: directory)
        let cursors = try await interrupted(after: pages, device, lost: pages % 2 == 0)
        #expect(cursors.count == 8 - pages)
        #expect((cursors.first == .some(nil)) == (pages == 0))
        #expect(try await Self.content(device).count == Self.whole)
        #expect(try await device.rows("SELECT complete FROM tidemark_scope") == ["\(Self.whole)"])
    }

    @Test("a device with rows resumes at every page, and what is gone goes (T7)", arguments: 0..<8)
    func resumeStaged(pages: Int) async throws {
        let directory = try TestDirectory()
        let server = try await Self.server(in: directory)
        let device = try await Self.device(server, in: directory)
        try await device.sync()
        try await server.commit(to: "w:1") { changes in
            changes.upsert("note", id: "n1", ["title": "new"])
            changes.delete("note", id: "n2")
            changes.delete("tag", id: "9")
            changes.delete("pair", id: "[\"p\",2]")
            changes.upsert("tag", id: "1", ["name": "one"])
            changes.upsert("note", id: "n0", ["title": "zero"])
            changes.upsert("pair", id: "[\"q\",2]", ["n": 2])
        }
        await device.wire.next(Self.problem(.checkpointExpired))
        let cursors = try await interrupted(after: pages, device, lost: pages % 2 == 1)
        #expect(cursors.count == 8 - pages)
        let other = try await Self.device(server, in: directory, name: "other")
        try await other.sync()
        #expect(try await Self.content(device) == Self.content(other))
        #expect(try await device.count("tidemark_staged") == 0)
        #expect(try await device.count("tidemark_shadow_note") == 0)
    }

    @Test("a write while the snapshot is scanned comes behind it", arguments: [true, false])
    func underWrites(isEmpty: Bool) async throws {
        let directory = try TestDirectory()
        let server = try await Self.server(in: directory)
        let device = try await Self.device(server, in: directory)
        if !isEmpty {
            try await device.sync()
            await device.wire.next(Self.problem(.checkpointExpired))
        }
        for index in 0..<8 {
            await device.wire.nextPage { request, inner in
                let answer = try await inner.send(request)
                try await server.commit(to: "w:1") { changes in
                    changes.upsert("note", id: RecordID("n\(index)")!, ["title": .text("late \(index)")])
                    changes.delete("tag", id: RecordID("\(index + 8)")!)
                }
                return answer
            }
        }
        try await device.engine(Self.small()).syncNow()
        let other = try await Self.device(server, in: directory, name: "other")
        try await other.sync()
        #expect(try await Self.content(device) == Self.content(other))
        #expect(try await device.count("tidemark_known_version") == 0)
    }

    @Test("rows that come by the way may be edited before the scan ends")
    func editedOnTheWay() async throws {
        let directory = try TestDirectory()
        let server = try await Self.server(in: directory)
        let device = try await Self.device(server, in: directory)
        await device.wire.nextPage { request, inner in try await inner.send(request) }
        await device.wire.nextPage { request, inner in try await inner.send(request) }
        await device.wire.nextPage { request, inner in
            try await device.sql(
                """
                UPDATE note SET title = 'mine' WHERE id = 'n1'; DELETE FROM pair WHERE b = 1;
                INSERT INTO note(id, title) VALUES ('n7', 'mine too'), ('n9', 'all mine');
                """)
            return try await inner.send(request)
        }
        let report = try await device.engine(Self.small()).syncNow()
        #expect(report.pushed == 4)
        // They were sent between the pages.
        let paths = await device.wire.requests.map(\.path)
        #expect(paths.lastIndex(of: "/sync/snapshot")! > paths.lastIndex(of: "/sync/push")!)
        #expect(await device.wire.bodies.contains { $0.contains(#""id":"n1","baseVersion":15"#) })
        let other = try await Self.device(server, in: directory, name: "other")
        try await other.sync()
        #expect(try await Self.content(device) == Self.content(other))
        #expect(try await device.rows("SELECT id, title FROM note WHERE title LIKE '%mine%' ORDER BY id").count == 3)
        #expect(try await device.count("tidemark_shadow_note") == 0)
        #expect(try await device.sealed() == [])
    }
}
