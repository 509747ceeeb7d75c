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

    /// SQLite tells nothing of this table, so that the library has to. Observers hear of a commit before the write
    /// returns: this test waits for nothing that may never come.
    @Test("an observation of quarantined rows hears that the ids in one were rewritten, and nothing without a rewrite")
    func quarantined() async throws {
        let device = try await Device(noteSchema, tables: ["note"])
        try await device.sql(
            """
            INSERT INTO tidemark_quarantine(entity, record, scope, reason, contends, fresh, data)
            VALUES ('note', 'n1', 'w:1', 'no place', 1, 0, CAST('{"title":"local-1"}' AS BLOB))
            """)
        let seen = Locked<[String]>([])
        let watch = DatabaseRegionObservation(tracking: Table("tidemark_quarantine")).start(
            in: device.writer, onError: { Issue.record($0) },
            onChange: { db in
                let data = "SELECT CAST(data AS TEXT) FROM tidemark_quarantine"
                do {
                    let rows = try String.fetchAll(db, sql: data)
                    seen.withLock { $0 += rows }
                } catch { Issue.record(error) }
            })
        defer { watch.cancel() }
        try await device.sql("INSERT INTO note (id) VALUES ('n2')")
        #expect(seen.withLock { $0 } == [])
        try await device.writer.write { db in
            try QuarantinedRow.rewrite(db, "note", "n1", "w:1", data: Array(#"{"title":"17"}"#.utf8))
        }
        #expect(seen.withLock { $0 } == [#"{"title":"17"}"#])
    }
}
