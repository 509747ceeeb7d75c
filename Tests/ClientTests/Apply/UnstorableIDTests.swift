import GRDB
import Testing

@testable import Tidemark

@Suite("Records whose id the table's key cannot hold are kept outside it, and counted (I13)")
struct UnstorableIDTests {
    private func pair(_ schema: String, _ other: String) async throws -> (Device, Device) {
        let directory = try TestDirectory()
        let server = try Device.server(in: directory)
        return (
            try await Device(schema, tables: ["note"], server: server, in: directory, name: "first"),
            try await Device(other, tables: ["note"], server: server, in: directory, name: "second")
        )
    }

    private func rows(_ device: Device) async throws -> SyncStatus.Rows {
        let rows = try #require(try await device.engine().status().tables["note"])
        #expect(try await rows.total == device.count("note"), "\(rows)")
        return rows
    }

    @Test("text ids in an app with INTEGER keys wait, change and go with the server's, and come with a migration")
    func text() async throws {
        let (first, second) = try await pair(
            "CREATE TABLE note (id TEXT PRIMARY KEY, title)", "CREATE TABLE note (id INTEGER PRIMARY KEY, title)")
        try await first.sql("INSERT INTO note VALUES ('1', 'one'), ('abc', 'a'), ('007', 'b'), ('gone', 'c')")
        try await first.sync()
        try await second.sync()
        #expect(try await rows(second).quarantined == 3)
        try await first.sql("DELETE FROM note WHERE id = 'gone'; UPDATE note SET title = 'edited' WHERE id = 'abc'")
        try await first.sync()
        try await second.sync()
        #expect(try await rows(second).quarantined == 2)
        try await second.sql(
            """
            CREATE TABLE fresh (id TEXT PRIMARY KEY, title); INSERT INTO fresh SELECT CAST(id AS TEXT), title FROM note;
            DROP TABLE note; ALTER TABLE fresh RENAME TO note
            """)
        for _ in 1...2 { try await second.sync() }
        #expect(
            try await second.rows("SELECT * FROM note ORDER BY id") == first.rows("SELECT * FROM note ORDER BY id"))
        let rows = try await rows(second)
        #expect((rows.quarantined, rows.outgoing, rows.confirmed) == (0, 0, 3))
        #expect(try await second.engine().verify().isClean)
    }

    @Test("a part of a key that the column would make another value of is none of the table's keys")
    func composite() async throws {
        let (first, second) = try await pair(
            "CREATE TABLE note (x TEXT, y TEXT, title, PRIMARY KEY (x, y))",
            "CREATE TABLE note (x INTEGER, y TEXT, title, PRIMARY KEY (x, y))")
        try await first.sql("INSERT INTO note VALUES ('1', 'q', 'one'), ('b', 'q', 'two')")
        try await first.sync()
        try await second.sync()
        #expect(try await second.rows("SELECT x, title FROM note") == [#""b"|"two""#])
        #expect(try await rows(second).quarantined == 1)
        try await second.sql("UPDATE note SET title = 'edited'; INSERT INTO note VALUES (1, 'q', 'a number''s')")
        for device in [second, first] { try await device.sync() }
        #expect(try await rows(second).quarantined == 1)
        #expect(
            try await first.rows("SELECT x, title FROM note ORDER BY title")
                == [
                    #""1"|"a number's""#, #""b"|"edited""#, #""1"|"one""#,
                ].filter { !$0.contains("number") })
        #expect(try await rows(first).quarantined == 1, "the number is none of its keys")
    }
}
