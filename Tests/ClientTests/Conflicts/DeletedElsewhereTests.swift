import Foundation
import GRDB
import Testing
import TidemarkServer
import TidemarkWire

@testable import Tidemark

@Suite("A record that was deleted elsewhere leaves the screen and can be revived (E8)")
struct DeletedElsewhereTests {
    private static let month = Duration.seconds(30 * 24 * 3600)
    private let directory: TestDirectory
    private let server: SyncServer

    init() throws {
        directory = try TestDirectory()
        server = try Device.server(in: directory)
    }

    private func device(_ name: String) async throws -> Device {
        try await Device(noteSchema, tables: ["note"], server: server, in: directory, name: name)
    }

    private func engine(_ device: Device, keeps: Duration? = month) throws -> SyncEngine {
        try SyncEngine(
            for: device.writer, tables: [.table("note", keepsDeleted: keeps)], scopes: [Device.scope],
            transport: device.wire)
    }

    /// Two devices with two notes, of which the second device deletes one.
    private func pair(keeps: Duration? = month) async throws -> (Device, SyncEngine, Device) {
        let (here, there) = (try await device("a"), try await device("b"))
        try await here.sql("INSERT INTO note VALUES ('n1', 'title', 'body', 3, 'slug'), ('n2', 'b', NULL, NULL, NULL)")
        let engine = try engine(here, keeps: keeps)
        try await engine.syncNow()
        try await there.sync()
        try await there.sql("DELETE FROM note WHERE id = 'n1'")
        try await there.sync()
        return (here, engine, there)
    }

    @Test("the last content is listed, and an undo revives the record on every device")
    func undo() async throws {
        let (here, engine, there) = try await pair()
        try await engine.syncNow()
        #expect(try await here.rows("SELECT id FROM note") == ["\"n2\""])
        let deleted = try await engine.deletedRecords()
        #expect(deleted.map(\.record) == ["n1"])
        #expect(deleted.first?.fields == ["title": "title", "body": "body", "rank": 3, "slug": "slug"])
        #expect(try await engine.deletedRecords(in: "other").isEmpty)
        try await engine.restore(try #require(deleted.first))
        #expect(try await engine.deletedRecords().isEmpty)
        try await engine.syncNow()
        try await there.sync()
        for device in [here, there] {
            #expect(try await device.rows("SELECT * FROM note WHERE id = 'n1'") == [#""n1"|"title"|"body"|3|"slug""#])
            #expect(try await device.count("tidemark_shadow_note") == 0)
        }
        #expect(try await engine.rejectedOperations().isEmpty)
    }

    @Test("nothing is kept where the table does not ask for it, of own deletes, and of rows deleted on both sides")
    func notKept() async throws {
        let (_, plain, _) = try await pair(keeps: nil)
        try await plain.syncNow()
        #expect(try await plain.deletedRecords().isEmpty)
        let other = try await device("c")
        let engine = try engine(other)
        try await engine.syncNow()
        try await other.sql("DELETE FROM note")
        try await engine.syncNow()
        #expect(try await engine.deletedRecords().isEmpty)
    }

    @Test("an edit that met the delete is kept apart from the row that it was made on")
    func underEdit() async throws {
        let (here, engine, _) = try await pair()
        try await here.sql("UPDATE note SET title = 'mine' WHERE id = 'n1'")
        try await engine.syncNow()
        #expect(try await engine.rejectedOperations().first?.fields == ["title": "mine"])
        let deleted = try await engine.deletedRecords()
        #expect(deleted.map(\.record) == ["n1"])
        #expect(deleted.first?.fields["title"] == "title")
        #expect(try await here.count("note") == 1)
    }

    @Test("a row that a fresh snapshot does not hold any more is kept too")
    func snapshot() async throws {
        let (here, engine, _) = try await pair()
        await here.wire.next { request, _ in
            let problem = Problem(.checkpointExpired, "Deletions are no longer kept.")
            return TransportResponse(
                status: 410, headers: ["Content-Type": Problem.contentType], body: problem.body(), bytesSent: 0,
                bytesReceived: 0)
        }
        try await engine.syncNow()
        #expect(try await here.count("note") == 1)
        #expect(try await engine.deletedRecords().map(\.record) == ["n1"])
    }

    @Test("a record that somebody made anew is on no list, and an undo of it changes nothing")
    func madeAnew() async throws {
        let (here, engine, there) = try await pair()
        try await engine.syncNow()
        let deleted = try #require(try await engine.deletedRecords().first)
        try await there.sql("INSERT INTO note (id, title) VALUES ('n1', 'new')")
        try await there.sync()
        try await engine.syncNow()
        #expect(try await engine.deletedRecords().isEmpty)
        try await engine.restore(deleted)
        #expect(try await here.rows("SELECT title FROM note WHERE id = 'n1'") == ["\"new\""])
    }

    @Test("after its time a kept row goes, and so do all of a table that no longer keeps them")
    func pruned() async throws {
        let (here, engine, _) = try await pair()
        try await engine.syncNow()
        try await here.sql("UPDATE tidemark_deleted_row SET deleted_at = deleted_at - \(29 * 24 * 3600 * 1000)")
        try await engine.syncNow()
        #expect(try await engine.deletedRecords().count == 1)
        try await here.sql("UPDATE tidemark_deleted_row SET deleted_at = deleted_at - \(2 * 24 * 3600 * 1000)")
        try await engine.syncNow()
        #expect(try await engine.deletedRecords().isEmpty)
        #expect(try await here.count("tidemark_deleted_row") == 0)
        try await here.sql(
            """
            INSERT INTO tidemark_deleted_row(scope, entity, record, data, deleted_at)
            VALUES ('w:1', 'note', 'x', '{}', 9e15)
            """
        )
        try await self.engine(here, keeps: nil).syncNow()
        #expect(try await here.count("tidemark_deleted_row") == 0)
    }

    @Test("no more than a bounded number is kept, the last deleted ones")
    func bounded() async throws {
        let device = try await device("a")
        let shape = try await device.writer.read { db in try TableSchema(db, table: "note", rule: .constant("w:1")) }
        try await device.writer.write { db in
            for index in 0..<(DeletedRowCache.limit + 5) {
                try DeletedRowCache.keep(
                    db, shape, record: RecordID(stringLiteral: "r\(index)"), scope: "w:1",
                    cells: shape.data.map { _ in .null }, now: 1)
            }
        }
        #expect(try await device.count("tidemark_deleted_row") == DeletedRowCache.limit)
        #expect(try await device.count("tidemark_deleted_row WHERE record = 'r0'") == 0)
    }
}
