import GRDB
import Testing
import TidemarkServer
import TidemarkWire

@testable import Tidemark

@Suite("Uncaptured: what waits for a word goes when it is said (I13)")
struct UnconfirmedTests {
    @Test("a table that came back empty is confirmed", .records("block unconfirmed, released"))
    func confirmed() async throws {
        let device = try await Device(noteSchema, tables: ["note"])
        try await device.sql("INSERT INTO note(id) VALUES ('n1'), ('n2')")
        try await device.sync()
        try await device.sql("DROP TABLE note;" + noteSchema)
        try await device.sync()
        #expect(try await device.count("tidemark_inferred WHERE held AND compared") == 2)
        try await device.engine().confirmInferredEdits()
        try await device.sync()
        #expect(try await device.count("tidemark_inferred") == 0)
        #expect(try await device.count("tidemark_operation WHERE kind = 'delete' AND state <> 'applied'") == 0)
    }

    @Test("an edit in sight ends the wait for a confirmation of its record")
    func superseded() async throws {
        let device = try await Device(noteSchema, tables: ["note"])
        try await device.sql("INSERT INTO note(id) VALUES ('n1'), ('n2')")
        try await device.sync()
        try await device.sql("DROP TABLE note;" + noteSchema)
        try await device.sync()
        #expect(try await device.engine().inferredEdits().map(\.deletes) == [2])
        #expect(try await !device.engine().status().isConfirmed)
        try await device.sql("INSERT INTO note(id, title) VALUES ('n1', 'again')")
        try await device.sync()
        #expect(try await device.engine().inferredEdits().map(\.deletes) == [1])
        try await device.engine().confirmInferredEdits()
        try await device.sync()
        #expect(try await device.rows("SELECT id, title FROM note") == ["\"n1\"|\"again\""])
        #expect(try await device.engine().status().isConfirmed)
        #expect(try await device.engine().verify().isClean)
    }

    @Test("a delete that another device made too needs no confirmation")
    func overtaken() async throws {
        let directory = try TestDirectory()
        let server = try Device.server(in: directory)
        let device = try await Device(noteSchema, tables: ["note"], server: server, in: directory)
        try await device.sql("INSERT INTO note(id) VALUES ('n1'), ('n2')")
        try await device.sync()
        try await device.sql("DROP TABLE note;" + noteSchema)
        try await device.sync()
        #expect(try await device.engine().inferredEdits().map(\.deletes) == [2])
        try await server.commit(to: "w:1") { $0.delete("note", id: "n1") }
        try await device.sync()
        #expect(try await device.engine().inferredEdits().map(\.deletes) == [1])
        try await server.commit(to: "w:1") { $0.delete("note", id: "n2") }
        try await device.sync()
        #expect(try await device.engine().inferredEdits().isEmpty)
        #expect(try await device.engine().status().isConfirmed)
    }

    @Test("an edit in sight that cannot be sent is counted once")
    func unsendable() async throws {
        let device = try await Device(noteSchema, tables: ["note"])
        try await device.sql("INSERT INTO note(id) VALUES ('n1'), ('n2')")
        try await device.sync()
        try await device.sql("DROP TABLE note;" + noteSchema)
        try await device.sync()
        try await device.sql("INSERT INTO note(id, title) VALUES ('n1', CAST(X'FF' AS TEXT))")
        try await device.sync()
        #expect(try await device.engine().inferredEdits().map(\.deletes) == [1])
        let rows = try await device.engine().status().rows
        #expect((rows.unable, rows.stalled, rows.outgoing) == (1, 0, 0))
    }

    @Test("a conflict is found of a record that has a refusal", .records("decision rejected, conflictFound"))
    func met() async throws {
        let directory = try TestDirectory()
        let server = try Device.server(in: directory)
        let device = try await Device(noteSchema, tables: ["note"], server: server, in: directory)
        try await device.sql("INSERT INTO note(id, title) VALUES ('n1', 'old')")
        try await device.sync()
        try await device.sql("UPDATE note SET title = 'refused'")
        let entry = try #require(try await device.seal().last)
        let verdict = """
            {"lane":"\(entry.key.lane)","number":\(entry.key.number),"status":"rejected",
            "error":{"code":"validation_failed","detail":"d","hint":"h"}}
            """
        try await device.apply(#"{"results":[\#(verdict)]}"#)
        try await server.commit(to: "w:1") { $0.upsert("note", id: "n1", ["title": "theirs"]) }
        try await device.sql("DROP TABLE note;" + noteSchema + "INSERT INTO note(id, title) VALUES ('n1', 'unseen');")
        try await device.sync()
        #expect(try await device.count("tidemark_conflict WHERE is_open") == 1)
    }
}
