import Foundation
import GRDB
import Testing
import TidemarkServer

@testable import Tidemark

@Suite("Evolution: schemas change on some devices first, and nobody's data suffers")
struct SchemaEvolutionTests {
    private static let schema = """
        CREATE TABLE note (id TEXT PRIMARY KEY, title TEXT, mood TEXT NOT NULL DEFAULT 'calm', place TEXT NOT NULL,
          seen TEXT DEFAULT CURRENT_TIMESTAMP);
        """

    @Test("a whole record that lacks a field puts it back to its default; a partial one leaves it")
    func whole() async throws {
        let device = try await Device(Self.schema, tables: ["note"])
        let full = #"{"title":"a","mood":"merry","place":"here","seen":"then"}"#
        try await device.apply(Device.page([Device.upsert("note", "n1", 1, full)], next: "T1", head: 1))
        let part = Device.upsert("note", "n1", 2, #"{"place":"there"}"#)
            .replacing(#""version":2"#, with: #""version":2,"partial":true"#)
        try await device.apply(Device.page([part], since: "T1", next: "T2", head: 2), since: "T1")
        let row = "SELECT title, mood, place, seen FROM note"
        #expect(try await device.rows(row) == [#""a"|"merry"|"there"|"then""#])
        // A default that is computed is each device's own, and a column that needs a value keeps the one it has.
        let fewer = Device.upsert("note", "n1", 3, #"{"title":"b"}"#)
        try await device.apply(Device.page([fewer], since: "T2", next: "T3", head: 3), since: "T2")
        #expect(try await device.rows(row) == [#""b"|"calm"|"there"|"then""#])
        // The same under an edit, where the row takes the long way.
        try await device.sql("UPDATE note SET title = 'mine', mood = 'merry'")
        try await device.sql("UPDATE note SET mood = 'calm'")
        let again = Device.upsert("note", "n1", 4, #"{"title":"c","mood":"sad"}"#)
        try await device.apply(Device.page([again], since: "T3", next: "T4", head: 4), since: "T3")
        #expect(try await device.rows(row) == [#""mine"|"sad"|"there"|"then""#])
        let last = Device.upsert("note", "n1", 5, #"{"title":"d"}"#)
        try await device.apply(Device.page([last], since: "T4", next: "T5", head: 5), since: "T4")
        #expect(try await device.rows(row) == [#""mine"|"calm"|"there"|"then""#])
    }

    @Test("a record deleted and made anew with fewer fields is the same on a device that missed the tombstone")
    func madeAnew() async throws {
        let directory = try TestDirectory()
        let server = try Device.server(in: directory)
        let device = try await Device(noteSchema, tables: ["note"], server: server, in: directory)
        try await server.commit(to: Device.scope) { $0.upsert("note", id: "n1", ["title": "a", "body": "long"]) }
        try await device.sync()
        try await server.commit(to: Device.scope) { $0.delete("note", id: "n1") }
        try await server.commit(to: Device.scope) { $0.upsert("note", id: "n1", ["title": "b"]) }
        try await device.sync()
        #expect(try await device.rows("SELECT title, body FROM note") == [#""b"|NULL"#])
    }

    @Test("a field that newer apps dropped keeps its declared default for the older ones (A19)")
    func dropped() async throws {
        let directory = try TestDirectory()
        let server = try Device.server(
            in: directory, entities: [.state("note", defaults: ["state": "open", "body": "-"])])
        let new = try await Device(noteSchema, tables: ["note"], server: server, in: directory, name: "new")
        let old = try await Device(
            "CREATE TABLE note (id TEXT PRIMARY KEY, title TEXT, body TEXT, state TEXT NOT NULL)", tables: ["note"],
            server: server, in: directory, name: "old")
        try await new.sql("INSERT INTO note (id, title, body) VALUES ('n1', 'a', 'mine')")
        try await new.sync()
        try await old.sync()
        #expect(try await old.rows("SELECT title, body, state FROM note") == [#""a"|"mine"|"open""#])
        // From then on the field is the old apps' own: edits of newer ones leave it alone.
        try await old.sql("UPDATE note SET state = 'done'")
        try await old.sync()
        try await new.sql("UPDATE note SET title = 'b'")
        try await new.sync()
        try await old.sync()
        #expect(try await old.rows("SELECT title, state FROM note") == [#""b"|"done""#])
    }
}
