import Foundation
import GRDB
import Testing
import TidemarkServer
import TidemarkWire

@testable import Tidemark

@Suite("The app's own triggers: rows end as the server's, indexes stay right")
struct AppTriggerTests {
    private static let schema = """
        CREATE TABLE actor (id INTEGER PRIMARY KEY, name TEXT, last_update TEXT, films INTEGER DEFAULT 0);
        CREATE TABLE film (id INTEGER PRIMARY KEY, title TEXT, actor INTEGER, last_update TEXT);
        CREATE TABLE counter (n INTEGER); INSERT INTO counter VALUES (0);
        CREATE VIRTUAL TABLE film_text USING fts5(title, content='film', content_rowid='id');
        CREATE TRIGGER actor_touch AFTER UPDATE ON actor
          BEGIN UPDATE actor SET last_update = 'here ' || random() WHERE id = NEW.id; END;
        CREATE TRIGGER actor_new AFTER INSERT ON actor
          BEGIN UPDATE actor SET last_update = 'here ' || random() WHERE id = NEW.id; END;
        CREATE TRIGGER film_new AFTER INSERT ON film BEGIN
          INSERT INTO film_text(rowid, title) VALUES (NEW.id, NEW.title);
          UPDATE film SET last_update = 'here ' || random() WHERE id = NEW.id;
          UPDATE actor SET films = films + 1 WHERE id = NEW.actor; UPDATE counter SET n = n + 1; END;
        CREATE TRIGGER film_gone AFTER DELETE ON film BEGIN
          INSERT INTO film_text(film_text, rowid, title) VALUES ('delete', OLD.id, OLD.title);
          UPDATE actor SET films = films - 1 WHERE id = OLD.actor; END;
        CREATE TRIGGER film_touch AFTER UPDATE OF title ON film BEGIN
          INSERT INTO film_text(film_text, rowid, title) VALUES ('delete', OLD.id, OLD.title);
          INSERT INTO film_text(rowid, title) VALUES (NEW.id, NEW.title);
          UPDATE film SET last_update = 'here ' || random() WHERE id = NEW.id; END;
        """
    private static let actors = "SELECT * FROM actor ORDER BY id"
    private static let films = "SELECT * FROM film ORDER BY id"

    private func pair() async throws -> (first: Device, second: Device) {
        let directory = try TestDirectory()
        let server = try Device.server(in: directory)
        let tables = ["actor", "film"]
        let first = try await Device(Self.schema, tables: tables, server: server, in: directory, name: "first")
        let second = try await Device(Self.schema, tables: tables, server: server, in: directory, name: "second")
        try await first.sql(
            """
            INSERT INTO actor (id, name) VALUES (1, 'Nick'), (2, 'Ada');
            INSERT INTO film (id, title, actor) VALUES (1, 'Alpha', 1), (2, 'Beta', 1), (3, 'Gamma', 2)
            """)
        return (first, second)
    }

    private func expectEqual(_ devices: (first: Device, second: Device)) async throws {
        for _ in 0..<2 {
            try await devices.first.sync()
            try await devices.second.sync()
        }
        #expect(try await devices.first.rows(Self.actors) == devices.second.rows(Self.actors))
        #expect(try await devices.first.rows(Self.films) == devices.second.rows(Self.films))
        for device in [devices.first, devices.second] {
            #expect(try await device.engine().verify().isClean)
            #expect(try await device.count("tidemark_touched_actor") == 0)
            try await device.sql("INSERT INTO film_text(film_text) VALUES ('integrity-check')")
            let status = try await device.engine().status()
            #expect(try await status.rows.total == device.count("actor") + device.count("film"))
            #expect(status.rows.outgoing == 0)
        }
    }

    @Test("a trigger that stamps its own row, one that counts in another table, and a search index")
    func converge() async throws {
        let devices = try await pair()
        try await expectEqual(devices)
        #expect(try await devices.second.rows("SELECT films FROM actor ORDER BY id") == ["2", "1"])
        #expect(try await devices.second.rows("SELECT n FROM counter") == ["3"], "what is not synced goes its own way")
        try await devices.second.sql(
            """
            UPDATE film SET title = 'Delta' WHERE id = 2; DELETE FROM film WHERE id = 3;
            UPDATE actor SET name = 'Eve' WHERE id = 2
            """)
        try await expectEqual(devices)
        #expect(
            try await devices.first.rows("SELECT rowid FROM film_text WHERE film_text MATCH 'delta OR gamma'") == ["2"])
    }

    @Test("an edit here stays one while a trigger writes to the same row")
    func edited() async throws {
        let devices = try await pair()
        try await expectEqual(devices)
        try await devices.first.sql("UPDATE actor SET name = 'mine' WHERE id = 1")
        try await devices.second.sql("INSERT INTO film (id, title, actor) VALUES (4, 'Delta', 1)")
        try await devices.second.sync()
        try await expectEqual(devices)
        #expect(try await devices.second.rows("SELECT name, films FROM actor WHERE id = 1") == [#""mine"|3"#])
    }

    @Test("a row that a trigger made what the page then brings stays that")
    func madeAlike() async throws {
        let devices = try await pair()
        try await expectEqual(devices)
        // In the page, the film comes first: its trigger counts the actor's films, as it did where it was made.
        try await devices.first.sql("INSERT INTO film (id, title, actor) VALUES (9, 'Omega', 2)")
        try await devices.first.sql("UPDATE film SET title = 'Last' WHERE id = 9")
        try await devices.first.sync()
        try await devices.second.sync()
        #expect(try await devices.second.rows("SELECT films FROM actor WHERE id = 2") == ["2"])
        try await expectEqual(devices)
    }

    @Test("an edit is told from the row as it is to stand, not from what a trigger makes of it while a page comes in")
    func editUnderTrigger() async throws {
        let directory = try TestDirectory()
        let server = try Device.server(in: directory)
        let schema = """
            CREATE TABLE box (id INTEGER PRIMARY KEY, items INTEGER NOT NULL DEFAULT 0);
            CREATE TABLE item (id INTEGER PRIMARY KEY, box INTEGER);
            CREATE TRIGGER fill AFTER INSERT ON item BEGIN UPDATE box SET items = items + 1 WHERE id = NEW.box; END;
            CREATE TRIGGER empty AFTER DELETE ON item BEGIN UPDATE box SET items = items - 1 WHERE id = OLD.box; END;
            """
        let tables = ["item", "box"]
        let first = try await Device(schema, tables: tables, server: server, in: directory, name: "first")
        let second = try await Device(schema, tables: tables, server: server, in: directory, name: "second")
        try await first.sql("INSERT INTO box (id) VALUES (1)")
        try await first.sync()
        try await second.sync()
        try await first.sql("INSERT INTO item VALUES (1, 1)")
        try await first.sync()
        try await second.sql("INSERT INTO item VALUES (2, 1)")
        await second.wire.next { request, inner in
            try await second.sql("DELETE FROM item WHERE id = 2")
            return try await inner.send(request)
        }
        try await second.sync()
        try await second.sync()
        try await first.sync()
        #expect(try await second.rows("SELECT items FROM box") == ["0"], "the edit, which came last")
        #expect(try await first.rows("SELECT items FROM box") == ["0"])
    }

    @Test("edits that are orphaned with a scope come back as they were, and nothing besides")
    func replayed() async throws {
        let devices = try await pair()
        try await expectEqual(devices)
        let second = devices.second
        try await second.sql(
            """
            UPDATE film SET title = 'Mine' WHERE id = 1; DELETE FROM film WHERE id = 2;
            INSERT INTO film (id, title, actor) VALUES (7, 'Seven', 2)
            """)
        let before = (try await second.rows(Self.actors), try await second.rows(Self.films))
        let away = try SyncEngine(
            for: second.writer, tables: second.tables, scopes: ["w:other"], transport: second.wire)
        try await away.leave(Device.scope)
        #expect(try await second.count("film") == 0)
        let edits = try await away.orphanedEdits().filter { $0.entity == "actor" }
        #expect(edits.map { $0.fields["films"] } == [.integer(1), .integer(2)])
        try await second.sync()
        #expect(try await second.rows(Self.actors) == before.0)
        #expect(try await second.rows(Self.films) == before.1)
        try await expectEqual(devices)
        #expect(try await second.rows(Self.actors) == before.0)
    }

    @Test("a trigger's own OR IGNORE and OR REPLACE do what they say while a page is applied")
    func conflictClauses() async throws {
        let directory = try TestDirectory()
        let server = try Device.server(in: directory)
        func device(_ name: String) async throws -> Device {
            try await Device(
                """
                CREATE TABLE note (id TEXT PRIMARY KEY, tag TEXT, slug TEXT UNIQUE);
                CREATE TABLE tag (name TEXT PRIMARY KEY);
                CREATE TABLE latest (tag TEXT PRIMARY KEY, note TEXT);
                CREATE TRIGGER note_tag AFTER INSERT ON note BEGIN INSERT OR IGNORE INTO tag VALUES (NEW.tag); END;
                CREATE TRIGGER note_latest AFTER INSERT ON note
                  BEGIN INSERT OR REPLACE INTO latest VALUES (NEW.tag, NEW.id); END;
                """, tables: ["note"], server: server, in: directory, name: name)
        }
        let (first, second) = (try await device("first"), try await device("second"))
        try await first.sql("INSERT INTO note VALUES ('1', 'red', 'a'), ('2', 'red', 'b'), ('3', 'red', 'c')")
        try await first.sync()
        try await second.sync()
        try await first.sql("INSERT INTO note VALUES ('4', 'red', 'd')")
        try await first.sync()
        try await second.sync()
        for device in [first, second] {
            let rows = try await device.engine().status().rows
            #expect((rows.confirmed, rows.quarantined) == (4, 0))
            #expect(try await device.rows("SELECT * FROM tag") == ["\"red\""])
            #expect(try await device.rows("SELECT * FROM latest") == [#""red"|"4""#])
        }
    }

    @Test(
        "a row that a REPLACE in a trigger evicts while changes arrive stands as on the server (I13)",
        arguments: [
            // By its key, by another unique column, and by the row's own number.
            "BEFORE INSERT ON t BEGIN INSERT OR REPLACE INTO t (id, code) VALUES (5, 'e'); END",
            "AFTER UPDATE ON t BEGIN INSERT OR REPLACE INTO t (id, code) VALUES (8, 'c'); END",
            "AFTER UPDATE ON t BEGIN UPDATE OR REPLACE t SET code = 'c' WHERE id = 5; END",
            "AFTER UPDATE ON t BEGIN REPLACE INTO t (rowid, id, code) VALUES (4, 77, 'none'); END",
        ], ["INTEGER PRIMARY KEY", "INT PRIMARY KEY"])
    func replacingTrigger(trigger: String, key: String) async throws {
        let directory = try TestDirectory()
        let server = try Device.server(in: directory)
        let schema = "CREATE TABLE t (id \(key), note, code TEXT UNIQUE)"
        let first = try await Device(schema, tables: ["t"], server: server, in: directory, name: "first")
        let second = try await Device(schema, tables: ["t"], server: server, in: directory, name: "second")
        try await first.sql(
            "INSERT INTO t VALUES (1, 'x', 'a'), (2, 'y', 'b'), (3, 'z', 'c'), (4, 'v', 'd'), (5, 'w', 'e')")
        try await first.sync()
        try await second.sync()
        try await second.sql("CREATE TRIGGER z \(trigger)")
        try await first.sql("UPDATE t SET note = 'new' WHERE id = 1; INSERT INTO t VALUES (6, 'n', 'f')")
        for device in [first, second, first, second] { try await device.sync() }
        let rows = "SELECT id, note, code FROM t ORDER BY id"
        #expect(try await second.rows(rows) == first.rows(rows))
        #expect(try await first.count("t") == 6)
        #expect(try await second.engine().verify().isClean)
        let counts = try await second.engine().status().rows
        #expect((counts.confirmed, counts.total, counts.quarantined) == (6, 6, 0))
    }
}
