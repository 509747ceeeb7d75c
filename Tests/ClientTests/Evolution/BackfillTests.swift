import Foundation
import GRDB
import Testing
import TidemarkServer

@testable import Tidemark

@Suite("Backfill: a new column or table gets its own data, and nothing else travels (F5)")
struct BackfillTests {
    private static let first = "CREATE TABLE note (id TEXT PRIMARY KEY, title TEXT, body TEXT);"
    private static let second = first.replacing("body TEXT", with: "body TEXT, mood TEXT DEFAULT 'calm'")
    private static let addMood = "ALTER TABLE note ADD COLUMN mood TEXT DEFAULT 'calm'"

    /// A device of the second version has written ten notes, and one of the first version holds them without moods.
    private func fleet(_ directory: TestDirectory) async throws -> (new: Device, old: Device, server: SyncServer) {
        let server = try Device.server(in: directory)
        let new = try await Device(Self.second, tables: ["note"], server: server, in: directory, name: "new")
        let old = try await Device(Self.first, tables: ["note"], server: server, in: directory, name: "old")
        let body = String(repeating: "long ", count: 100)
        try await new.sql(
            """
            WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 9)
            INSERT INTO note SELECT 'n' || i, 'title ' || i, '\(body)', 'mood ' || i FROM n
            """)
        try await new.sync()
        try await old.sync()
        return (new, old, server)
    }

    private func upgraded(
        _ directory: TestDirectory, _ server: SyncServer, _ sql: String, tables: [String] = ["note"]
    )
        async throws -> Device
    {
        try await Device(sql, tables: tables, server: server, in: directory, name: "old")
    }

    private let all = "SELECT id, title, body, mood FROM note ORDER BY id"

    @Test("a new column is fetched alone, page by page, and the old columns do not travel again")
    func column() async throws {
        let directory = try TestDirectory()
        let (new, _, server) = try await fleet(directory)
        let device = try await upgraded(directory, server, Self.addMood)
        var configuration = SyncConfiguration()
        configuration.snapshotRange = 3...3
        configuration.firstSnapshotPage = 3
        let report = try await device.engine(configuration).syncNow()
        #expect(try await device.rows(all) == (try await new.rows(all)))
        #expect(report.bytesReceived < 10 * 300)
        let asked = await device.wire.requests
        #expect(asked.filter { $0.path == "/sync/snapshot" }.count == 4)
        // Nothing was edited, so nothing goes up, and the next time nothing is fetched.
        #expect(report.pushed == 0)
        #expect(try await device.count("tidemark_shadow_note") == 0)
        #expect(try await device.engine().syncNow().roundTrips == 1)
    }

    @Test("a migration's values give way to the server's, and are sent where it has none")
    func fill() async throws {
        let directory = try TestDirectory()
        let (new, old, server) = try await fleet(directory)
        try await old.sql("INSERT INTO note (id, title) VALUES ('old', 'by an old app')")
        try await old.sync()
        try await new.sync()
        #expect(try await new.rows("SELECT mood FROM note WHERE id = 'old'") == [#""calm""#])
        let device = try await upgraded(directory, server, Self.addMood + "; UPDATE note SET mood = 'filled'")
        try await device.sync()
        try await device.sync()
        try await new.sync()
        #expect(try await device.rows("SELECT mood FROM note WHERE id = 'old'") == [#""filled""#])
        #expect(try await device.rows("SELECT count(*) FROM note WHERE mood = 'filled'") == ["1"])
        #expect(try await device.rows(all) == (try await new.rows(all)))
    }

    @Test("edits that wait are not touched, and one of the new column itself stays")
    func edits() async throws {
        let directory = try TestDirectory()
        let (new, old, server) = try await fleet(directory)
        try await old.sql("UPDATE note SET title = 'mine' WHERE id = 'n1'")
        let device = try await upgraded(directory, server, Self.addMood)
        try await device.sql("UPDATE note SET mood = 'mine' WHERE id = 'n2'")
        try await device.sql("UPDATE note SET title = 'mine' WHERE id = 'n3'")
        try await device.sql("DELETE FROM note WHERE id = 'n4'")
        try await device.sync()
        try await device.sync()
        try await new.sync()
        #expect(
            try await device.rows("SELECT id, title, mood FROM note WHERE id IN ('n1','n2','n3','n4') ORDER BY id")
                == [#""n1"|"mine"|"mood 1""#, #""n2"|"title 2"|"mine""#, #""n3"|"mine"|"mood 3""#])
        #expect(try await device.rows(all) == (try await new.rows(all)))
    }

    @Test("a column that was made anew lies beneath the edit of it that is on its way")
    func editOnItsWay() async throws {
        let directory = try TestDirectory()
        let (new, _, server) = try await fleet(directory)
        let device = try await upgraded(directory, server, Self.addMood)
        try await device.sync()
        try await device.sql("UPDATE note SET mood = 'mine' WHERE id = 'n2'")
        await device.wire.loseRequest()
        await #expect(throws: SyncError.self) { try await device.sync() }
        let without = """
            \(Self.first.replacing("note", with: "other")) INSERT INTO other SELECT id, title, body FROM note;
            DROP TABLE note; ALTER TABLE other RENAME TO note
            """
        _ = try await upgraded(directory, server, without)
        let again = try await upgraded(directory, server, Self.addMood)
        try await again.sync()
        #expect(try await again.rows("SELECT mood FROM note WHERE id = 'n2'") == [#""mine""#])
        try await new.sync()
        #expect(try await again.rows(all) == (try await new.rows(all)))
        #expect(try await again.engine().syncNow().pushed == 0)
    }

    @Test("a scan that is cut anywhere goes on from its last page; nothing is fetched twice")
    func resumed() async throws {
        let directory = try TestDirectory()
        let (new, _, server) = try await fleet(directory)
        let device = try await upgraded(directory, server, Self.addMood)
        var configuration = SyncConfiguration()
        configuration.snapshotRange = 4...4
        configuration.firstSnapshotPage = 4
        for _ in 0..<2 {
            // One page gets through, the next one does not, and the process is gone.
            await device.wire.nextPage { request, inner in try await inner.send(request) }
            await device.wire.nextPage { _, _ in throw Wire.Lost() }
            await #expect(throws: SyncError.self) { try await device.engine(configuration).syncNow() }
        }
        try await device.engine(configuration).syncNow()
        #expect(try await device.rows(all) == (try await new.rows(all)))
        let asked = await device.wire.requests.filter { $0.path == "/sync/snapshot" }
        #expect(asked.count == 3 + 2)
    }

    @Test("a new table gets its rows, also where an older app passed them over for weeks")
    func table() async throws {
        let directory = try TestDirectory()
        let server = try Device.server(in: directory)
        let tag = "CREATE TABLE tag (id TEXT PRIMARY KEY, name TEXT);"
        let new = try await Device(
            Self.first + tag, tables: ["note", "tag"], server: server, in: directory, name: "new")
        let old = try await Device(Self.first, tables: ["note"], server: server, in: directory, name: "old")
        try await new.sql(
            "INSERT INTO note (id, title) VALUES ('n1', 'a'), ('n2', 'a'); INSERT INTO tag VALUES ('t1', 'red')")
        try await new.sync()
        try await old.sync()
        let device = try await upgraded(
            directory, server, tag + "INSERT INTO tag VALUES ('t2', 'own')", tables: ["note", "tag"])
        let report = try await device.engine().syncNow()
        #expect(report.applied == 1)
        // The tag alone came, and the notes were not asked for again.
        #expect(report.received == 1)
        let asked = await device.wire.requests.filter { $0.path == "/sync/snapshot" }
        #expect(asked.count == 1)
        #expect(asked.allSatisfy { $0.query.contains { $0.name == "entity" && $0.value == "tag" } })
        try await device.sync()
        try await new.sync()
        for device in [new, device] {
            #expect(try await device.rows("SELECT id, name FROM tag ORDER BY id") == [#""t1"|"red""#, #""t2"|"own""#])
        }
    }

    @Test("a table that one app on the file does not name misses nothing once another names it again")
    func dormant() async throws {
        let directory = try TestDirectory()
        let server = try Device.server(in: directory)
        let schema = Self.first + "CREATE TABLE tag (id TEXT PRIMARY KEY, name TEXT);"
        let device = try await Device(schema, tables: ["note", "tag"], server: server, in: directory, name: "old")
        try await server.commit(to: Device.scope) { changes in
            changes.upsert("tag", id: "t1", ["name": "red"])
            changes.upsert("tag", id: "t2", ["name": "blue"])
        }
        try await device.sync()
        try await server.commit(to: Device.scope) { changes in
            changes.delete("tag", id: "t1")
            changes.upsert("tag", id: "t3", ["name": "green"])
        }
        try await upgraded(directory, server, "SELECT 1", tables: ["note"]).sync()
        try await device.sync()
        #expect(try await device.rows("SELECT id FROM tag ORDER BY id") == [#""t2""#, #""t3""#])
    }

    @Test("three versions of an app live on one scope; what one does not know survives its edits (A19)")
    func threeVersions() async throws {
        let directory = try TestDirectory()
        let server = try Device.server(in: directory)
        let schemas = [
            "CREATE TABLE note (id TEXT PRIMARY KEY, title TEXT);", Self.first,
            Self.second + "CREATE TABLE tag (id TEXT PRIMARY KEY, name TEXT);",
        ]
        var devices: [Device] = []
        for (index, schema) in schemas.enumerated() {
            let tables = index == 2 ? ["note", "tag"] : ["note"]
            devices.append(
                try await Device(schema, tables: tables, server: server, in: directory, name: "v\(index + 1)"))
        }
        try await devices[2].sql(
            """
            INSERT INTO note VALUES ('n1', 'a', 'b', 'merry'), ('n2', 'a', 'b', 'sad');
            INSERT INTO tag VALUES ('t', 'x')
            """)
        try await devices[0].sql("INSERT INTO note VALUES ('n3', 'by the oldest')")
        for device in devices + devices { try await device.sync() }
        try await devices[0].sql("UPDATE note SET title = 'one' WHERE id IN ('n1', 'n3')")
        try await devices[1].sql("UPDATE note SET body = 'two' WHERE id IN ('n1', 'n2')")
        try await devices[2].sql("UPDATE note SET mood = 'three' WHERE id = 'n3'")
        for device in devices + devices { try await device.sync() }
        #expect(
            try await devices[2].rows(all) == [
                #""n1"|"one"|"two"|"merry""#, #""n2"|"a"|"two"|"sad""#, #""n3"|"one"|NULL|"three""#,
            ])
        #expect(
            try await devices[1].rows("SELECT id, title, body FROM note ORDER BY id")
                == (try await devices[2].rows("SELECT id, title, body FROM note ORDER BY id")))
        #expect(
            try await devices[0].rows("SELECT id, title FROM note ORDER BY id")
                == (try await devices[2].rows("SELECT id, title FROM note ORDER BY id")))
    }
}
