import GRDB
import Testing
import TidemarkServer

@testable import Tidemark

@Suite("Observations of the app's own see what the engine writes", .hangLimit)
struct ObservationTests {
    @Test("a ValueObservation tells of other devices' inserts, edits and deletes, a page at a time")
    func remote() async throws {
        let directory = try TestDirectory()
        let server = try Device.server(in: directory)
        let first = try await Device(noteSchema, tables: ["note"], server: server, in: directory, name: "a")
        let second = try await Device(
            noteSchema, tables: ["note"], server: server, in: directory, name: "b", usesPool: true)
        let titles = ValueObservation.tracking { db in
            try String.fetchAll(db, sql: "SELECT title FROM note ORDER BY id")
        }.removeDuplicates()
        var seen = titles.values(in: second.writer).makeAsyncIterator()
        #expect(try await seen.next() == [])
        try await first.sql("INSERT INTO note (id, title) VALUES ('n1', 'a'), ('n2', 'b')")
        try await Device.sync(first, second)
        #expect(try await seen.next() == ["a", "b"])
        // That this edit is sent changes no row: the next value is that of the other device's delete.
        try await second.sql("UPDATE note SET title = 'mine' WHERE id = 'n2'")
        #expect(try await seen.next() == ["a", "mine"])
        try await Device.sync(second, first)
        try await first.sql("DELETE FROM note WHERE id = 'n1'")
        try await Device.sync(first, second)
        #expect(try await seen.next() == ["mine"])
    }
}
