import Foundation
import GRDB
import Testing
import TidemarkServer
import TidemarkWire

@testable import Tidemark

@Suite("Changed fields come down alone, and no row is ever made of a part (A9)")
struct ChangedFieldsTests {
    private static let body = String(repeating: "tide ", count: 100)

    /// Two devices of one server that hold the same note.
    private func pair(deletes: DeletePolicy = .win) async throws -> (Device, Device) {
        let directory = try TestDirectory()
        let server = try Device.server(in: directory, entities: [.state("note", deletes: deletes)])
        let here = try await Device(noteSchema, tables: ["note"], server: server, in: directory, name: "a")
        let there = try await Device(noteSchema, tables: ["note"], server: server, in: directory, name: "b")
        try await here.sql("INSERT INTO note VALUES ('n1', 'tides', '\(Self.body)', 1, 's1')")
        try await here.sync()
        try await there.sync()
        return (here, there)
    }

    /// How the last answer brought the note.
    private func last(_ device: Device) async -> (isPartial: Bool, hasBody: Bool) {
        // With its quotes: a checkpoint may hold the two letters.
        let answer = await device.wire.answers.last { $0.contains("\"n1\"") } ?? ""
        return (answer.contains("\"partial\":true"), answer.contains(Self.body))
    }

    private func check(_ here: Device, _ there: Device) async throws {
        #expect(try await here.rows("SELECT * FROM note ORDER BY id") == there.rows("SELECT * FROM note ORDER BY id"))
        for device in [here, there] {
            #expect(try await device.count("tidemark_shadow_note") == 0)
            #expect(try await device.engine().verify().isClean)
        }
    }

    @Test("A row without edits takes the part, and nothing but the part travels", arguments: [false, true])
    func plain(isEditedElsewhere: Bool) async throws {
        let (here, there) = try await pair()
        // With an edit in the table, rows take the long way.
        if isEditedElsewhere { try await there.sql("INSERT INTO note (id) VALUES ('n2')") }
        try await here.sql("UPDATE note SET rank = 2, slug = NULL")
        try await here.sync()
        let report = try await there.engine().syncNow()
        #expect(report.applied == 1)
        #expect(await last(there) == (true, false))
        let row = "\"n1\"|\"tides\"|\"\(Self.body)\"|2|NULL"
        #expect(try await there.rows("SELECT * FROM note WHERE id = 'n1'") == [row])
        try await here.sync()
        try await check(here, there)
    }

    @Test("The part comes under an edit of other fields and of the same")
    func underEdit() async throws {
        let (here, there) = try await pair()
        try await here.sql("UPDATE note SET rank = 2, title = 'ebb'")
        try await here.sync()
        try await there.sql("UPDATE note SET rank = 3")
        await there.wire.next { request, inner in
            // The push is held back, so that the part comes first.
            var pull = request
            let body = String(decoding: request.body, as: UTF8.self)
            pull.body = Array(body.replacing(#/"operations":\[.*\]}$/#, with: "\"operations\":[]}").utf8)
            return try await inner.send(pull)
        }
        _ = try? await there.engine().syncNow()
        try await there.sync()
        try await here.sync()
        #expect(try await there.rows("SELECT title, rank FROM note") == ["\"ebb\"|3"])
        try await check(here, there)
    }

    @Test("A row that is not here is asked for whole, on the page's way and on the long one", arguments: [1, 500])
    func absent(page: Int) async throws {
        let (here, there) = try await pair()
        try await there.writer.write { db in
            try db.execute(
                sql: """
                    INSERT INTO tidemark_applying VALUES (1); DELETE FROM note; DELETE FROM tidemark_applying
                    """)
        }
        try await here.sql("UPDATE note SET rank = 2; INSERT INTO note (id) VALUES ('n2'), ('n3')")
        try await here.sync()
        var configuration = SyncConfiguration()
        (configuration.pageRange, configuration.firstPage) = (page...page, page)
        let engine = try there.engine(configuration)
        try await engine.syncNow()
        #expect(await last(there) == (false, true))
        #expect(try await there.count("note") == 3)
        try await check(here, there)
        let asked = await there.wire.bodies.map { $0.contains(#""partial":true"#) }
        #expect(asked.filter { !$0 }.count == (page == 1 ? 3 : 1))
        try await here.sql("UPDATE note SET rank = 5 WHERE id = 'n1'")
        try await here.sync()
        try await engine.syncNow()
        #expect(await last(there) == (true, false), "once the scan has ended, parts come again")
        try await check(here, there)
    }

    @Test("A row in quarantine takes the part, and comes whole to its place")
    func quarantined() async throws {
        let (here, there) = try await pair()
        try await there.sql(
            """
            CREATE TRIGGER refuse BEFORE INSERT ON note WHEN NEW.rank = 13 BEGIN SELECT RAISE(ABORT, 'thirteen'); END;
            CREATE TRIGGER refuse_update BEFORE UPDATE ON note WHEN NEW.rank = 13
            BEGIN SELECT RAISE(ABORT, 'thirteen'); END
            """)
        try await here.sql("UPDATE note SET rank = 13")
        try await here.sync()
        try await there.sync()
        #expect(try await there.engine().status().quarantined == 1)
        try await here.sql("UPDATE note SET title = 'ebb'")
        try await here.sync()
        try await there.sync()
        #expect(await last(there) == (true, false))
        #expect(try await there.engine().status().quarantined == 1)
        try await here.sql("UPDATE note SET rank = 14")
        try await here.sync()
        try await there.sync()
        #expect(try await there.engine().status().quarantined == 0)
        try await check(here, there)
    }

    @Test("A record that was deleted here under way takes the part where its delete does not stand")
    func underDelete() async throws {
        let (here, there) = try await pair(deletes: .lose)
        try await here.sql("UPDATE note SET rank = 2")
        try await here.sync()
        try await there.sql("DELETE FROM note")
        try await there.sync()
        #expect(try await there.rows("SELECT rank FROM note") == ["2"])
        try await check(here, there)
    }

    @Test("A delete that an edit elsewhere has undone comes back whole")
    func revived() async throws {
        let (here, there) = try await pair(deletes: .lose)
        try await here.sql("DELETE FROM note")
        try await here.sync()
        // Edited offline; it revives the record.
        try await there.sql("UPDATE note SET rank = 2")
        try await there.sync()
        try await here.sync()
        #expect(await last(here) == (false, true))
        try await check(here, there)
    }
}
