import Foundation
import GRDB
import Testing
import TidemarkServer
import TidemarkSpawning
import TidemarkTesting

@testable import Tidemark

@Suite("Capture: whoever writes, and however, the record is noted")
struct CaptureTests {
    @Test("a second connection's write is captured")
    func secondConnection() async throws {
        let device = try await Device(noteSchema, tables: ["note"])
        let other = try DatabaseQueue(path: device.path)
        try await other.write { db in try db.execute(sql: "INSERT INTO note (id, title) VALUES ('n1', 'x')") }
        #expect(try await device.marked("note") == ["n1"])
    }

    @Test("the sqlite3 shell's write is captured")
    func shell() async throws {
        let device = try await Device(noteSchema, tables: ["note"])
        _ = try Spawned.output(
            of: ["/usr/bin/env", "sqlite3", device.path, "INSERT INTO note (id, title) VALUES ('n1', 'x')"])
        #expect(try await device.marked("note") == ["n1"])
    }

    @Test("a REPLACE that evicts another row by a unique value marks that row as deleted")
    func evictingInsert() async throws {
        let device = try await Device(noteSchema, tables: ["note"])
        try await device.sql("INSERT INTO note (id, slug) VALUES ('n1', 's')")
        try await device.sync()
        try await device.sql("INSERT OR REPLACE INTO note (id, slug) VALUES ('n2', 's')")
        #expect(try await device.marked("note") == ["n1", "n2"])
        _ = try await device.seal()
        let sealed = try await device.sealed()
        #expect(sealed.count == 2)
        #expect(sealed[0].contains(#""type":"delete","entity":"note","id":"n1""#))
        #expect(sealed[1].contains(#""type":"upsert","entity":"note","id":"n2""#))
    }

    @Test("an UPDATE OR REPLACE that evicts another row marks that row")
    func evictingUpdate() async throws {
        let device = try await Device(noteSchema, tables: ["note"])
        try await device.sql("INSERT INTO note (id, slug) VALUES ('n1', 's'), ('n2', 't')")
        try await device.sync()
        try await device.sql("UPDATE OR REPLACE note SET slug = 's' WHERE id = 'n2'")
        #expect(try await device.marked("note") == ["n1", "n2"])
    }

    @Test("a REPLACE of a row by its own key is an update of the columns that differ")
    func replaceByKey() async throws {
        let device = try await Device(noteSchema, tables: ["note"])
        try await device.sql("INSERT INTO note (id, title, body) VALUES ('n1', 'a', 'b')")
        try await device.sync()
        try await device.sql("INSERT OR REPLACE INTO note (id, title, body) VALUES ('n1', 'a', 'c')")
        _ = try await device.seal()
        #expect(try await device.sealed().first?.hasSuffix(#""fields":{"body":"c"}"#) == true)
    }

    @Test("an upsert that updates sends the changed column; one that does nothing sends nothing")
    func upsert() async throws {
        let device = try await Device(noteSchema, tables: ["note"])
        try await device.sql("INSERT INTO note (id, title) VALUES ('n1', 'a'), ('n2', 'b')")
        try await device.sync()
        try await device.sql(
            """
            INSERT INTO note (id, title) VALUES ('n1', 'z') ON CONFLICT (id) DO UPDATE SET title = excluded.title;
            INSERT INTO note (id, title) VALUES ('n2', 'z') ON CONFLICT (id) DO NOTHING;
            """)
        _ = try await device.seal()
        let sealed = try await device.sealed()
        #expect(sealed.count == 1)
        #expect(sealed.first?.hasSuffix(#""fields":{"title":"z"}"#) == true)
        #expect(try await device.count("tidemark_shadow_note WHERE id = 'n2'") == 0)
    }

    @Test("cascades of foreign keys are captured")
    func cascade() async throws {
        let device = try await Device(
            """
            CREATE TABLE parent (id TEXT PRIMARY KEY);
            CREATE TABLE child (id TEXT PRIMARY KEY, parent TEXT REFERENCES parent(id) ON DELETE CASCADE);
            """, tables: ["parent", "child"])
        try await device.sql("INSERT INTO parent VALUES ('p'); INSERT INTO child VALUES ('c', 'p')")
        try await device.sync()
        try await device.sql("DELETE FROM parent")
        #expect(try await device.marked("child") == ["c"])
    }

    @Test("a new key is a delete under the old one and an insert under the new one")
    func rekey() async throws {
        let device = try await Device(noteSchema, tables: ["note"])
        try await device.sql("INSERT INTO note (id, title) VALUES ('n1', 'a')")
        try await device.sync()
        try await device.sql("UPDATE note SET id = 'n2'")
        _ = try await device.seal()
        let sealed = try await device.sealed()
        #expect(sealed.contains { $0.contains(#""type":"delete","entity":"note","id":"n1""#) })
        #expect(sealed.contains { $0.contains(#""type":"upsert","entity":"note","id":"n2""#) })
    }

    @Test("a row that is deleted and made again under its key in one transaction is an edit of it (T32)")
    func deletedAndMadeAgain() async throws {
        let directory = try TestDirectory()
        let server = try Device.server(in: directory)
        let device = try await Device(noteSchema, tables: ["note"], server: server, in: directory)
        let other = try await Device(noteSchema, tables: ["note"], server: server, in: directory, name: "other")
        try await device.sql(
            "INSERT INTO note (id, title, body, rank) VALUES ('n1', 'a', 'b', 1), ('n2', 'a', 'b', 1)")
        try await device.sync()
        try await other.sync()
        // One statement after the other, in the transaction of `write`.
        try await device.sql(
            """
            DELETE FROM note; INSERT INTO note (id, title, rank) VALUES ('n1', 'new', 1);
            INSERT INTO note (id, title, body, rank) VALUES ('n2', 'a', 'b', 1);
            """)
        _ = try await device.seal()
        let sealed = try await device.sealed()
        #expect(sealed.count == 1, "what is as it was is no edit")
        #expect(sealed.first?.contains(#""type":"upsert","entity":"note","id":"n1""#) == true)
        #expect(sealed.first?.hasSuffix(#""fields":{"title":"new","body":null}"#) == true)
        try await device.sync()
        try await other.sync()
        let rows = ["\"n1\"|\"new\"|NULL|1", "\"n2\"|\"a\"|\"b\"|1"]
        for device in [device, other] {
            #expect(try await device.rows("SELECT id, title, body, rank FROM note ORDER BY id") == rows)
            #expect(try await device.count("tidemark_shadow_note") == 0)
            #expect(try await device.engine().conflicts().isEmpty)
        }
    }

    @Test("a row that is made and deleted in one transaction was never there (T32)")
    func madeAndDeleted() async throws {
        let device = try await Device(noteSchema, tables: ["note"])
        try await device.sync()
        try await device.sql("INSERT INTO note (id, title) VALUES ('n1', 'a'); DELETE FROM note")
        #expect(try await device.seal().isEmpty)
        #expect(try await device.count("tidemark_shadow_note") == 0)
    }

    @Test("DELETE without WHERE marks every row")
    func truncation() async throws {
        let device = try await Device(noteSchema, tables: ["note"])
        try await device.sql("INSERT INTO note (id) VALUES ('n1'), ('n2'), ('n3')")
        try await device.sync()
        try await device.sql("DELETE FROM note")
        #expect(try await device.marked("note").count == 3)
    }

    @Test("an edit that a savepoint rolled back leaves no mark")
    func savepoint() async throws {
        let device = try await Device(noteSchema, tables: ["note"])
        try await device.sql(
            """
            SAVEPOINT s; INSERT INTO note (id) VALUES ('n1'); ROLLBACK TO s; RELEASE s;
            INSERT INTO note (id) VALUES ('n2'); SAVEPOINT t; INSERT INTO note (id) VALUES ('n3'); RELEASE t;
            """)
        #expect(try await device.marked("note") == ["n2", "n3"])
        #expect(try await device.count("tidemark_shadow_note") == 2)
    }

    @Test("an update to the same values leaves nothing")
    func noOp() async throws {
        let device = try await Device(noteSchema, tables: ["note"])
        try await device.sql("INSERT INTO note (id, title, rank) VALUES ('n1', 'a', 1)")
        try await device.sync()
        try await device.sql("UPDATE note SET title = 'a', rank = 1")
        #expect(try await device.count("tidemark_shadow_note") == 0)
        try await device.sql("UPDATE note SET title = 'a', rank = 2")
        #expect(try await device.marked("note") == ["n1"])
        _ = try await device.seal()
        #expect(try await device.sealed().first?.hasSuffix(#""fields":{"rank":2}"#) == true)
    }

    @Test("a change of case is captured although the column's collation does not see it")
    func collation() async throws {
        let device = try await Device(
            "CREATE TABLE tag (id TEXT PRIMARY KEY, name TEXT COLLATE NOCASE UNIQUE)", tables: ["tag"])
        try await device.sql("INSERT INTO tag VALUES ('t', 'home')")
        try await device.sync()
        try await device.sql("UPDATE tag SET name = 'Home'")
        _ = try await device.seal()
        #expect(try await device.sealed().first?.hasSuffix(#""fields":{"name":"Home"}"#) == true)
    }

    @Test("an edit that is undone before it is sealed leaves nothing")
    func undone() async throws {
        let device = try await Device(noteSchema, tables: ["note"])
        try await device.sql("INSERT INTO note (id, title) VALUES ('n1', 'a')")
        try await device.sync()
        try await device.sql("UPDATE note SET title = 'b'; UPDATE note SET title = 'a'")
        #expect(try await device.seal().isEmpty)
        #expect(try await device.count("tidemark_shadow_note") == 0)
    }

    @Test("a row without a value in its key is written, stays here, and is counted")
    func nullKey() async throws {
        let device = try await Device(noteSchema, tables: ["note"])
        try await device.sql(
            """
            INSERT INTO note (title) VALUES ('x'), ('y'), ('z');
            UPDATE note SET title = 'changed' WHERE title = 'y'; DELETE FROM note WHERE title = 'z';
            INSERT INTO note (id, title) VALUES ('n1', 'a')
            """)
        #expect(try await device.marked("note") == ["n1"])
        try await device.sync()
        let rows = try await device.engine().status().rows
        #expect((rows.confirmed, rows.outgoing, rows.unable, rows.total) == (1, 0, 2, 3))
        try await device.sql("UPDATE note SET id = 'n2' WHERE title = 'changed'")
        try await device.sync()
        let named = try await device.engine().status().rows
        #expect((named.confirmed, named.unable) == (2, 1))
    }

    @Test("rows from before the library are sent too")
    func existingRows() async throws {
        let device = try await Device(
            noteSchema + "INSERT INTO note (id, title) VALUES ('n1', 'old')", tables: ["note"])
        #expect(try await device.engine().status().rows.outgoing == 1)
        try await device.sync()
        #expect(try await device.engine().status().rows.confirmed == 1)
    }

    @Test("an installation sees what another process has installed just before")
    func installedElsewhere() async throws {
        let directory = try TestDirectory()
        let server = try Device.server(in: directory)
        let path = directory.url.appending(path: "shared.sqlite").path
        let queues = [try DatabaseQueue(path: path), try DatabaseQueue(path: path)]
        try await queues[0].write { db in try db.execute(sql: noteSchema) }
        for queue in queues {
            let names = ["tidemark_meta", "tidemark_table", "tidemark_shadow_note"]
            #expect(try await queue.read { db in try names.contains { try db.tableExists($0) } } == false)
        }
        for queue in queues {
            let transport = InProcessTransport(to: server) { _ in .readWrite(as: "ada") }
            try await SyncEngine(for: queue, tables: [.table("note")], scopes: ["w:1"], transport: transport).install()
        }
    }

    @Test("a column that a migration adds is captured from the next installation on")
    func migration() async throws {
        let device = try await Device(noteSchema, tables: ["note"])
        try await device.sql("INSERT INTO note (id, title) VALUES ('n1', 'a')")
        try await device.sync()
        try await device.sql("UPDATE note SET title = 'b'")
        try await device.sql("ALTER TABLE note ADD COLUMN color TEXT DEFAULT 'red'")
        try await device.engine().install()
        try await device.sql("UPDATE note SET color = 'blue'")
        _ = try await device.seal()
        #expect(try await device.sealed().first?.hasSuffix(#""fields":{"title":"b","color":"blue"}"#) == true)
    }

    @Test(
        "a table that cannot be synced is refused with the reason",
        arguments: [
            "CREATE TABLE bad (a TEXT)", "CREATE TABLE bad (a TEXT COLLATE NOCASE PRIMARY KEY)",
            "CREATE VIRTUAL TABLE bad USING fts5(a)", "CREATE TABLE bad (a TEXT PRIMARY KEY, tidemark_x)",
        ])
    func refused(schema: String) async throws {
        let error = await #expect(throws: SyncError.self) { _ = try await Device(schema, tables: ["bad"]) }
        #expect(error?.code == .tableUnsupported)
        #expect(error?.recovery == .needsApp)
    }

    @Test("a table whose name is another's with '_mark' behind is synced beside it")
    func similarNames() async throws {
        let device = try await Device(
            "CREATE TABLE book (id TEXT PRIMARY KEY); CREATE TABLE book_mark (id TEXT PRIMARY KEY);",
            tables: ["book", "book_mark"])
        try await device.sql("INSERT INTO book_mark VALUES ('m1')")
        #expect(try await device.marked("book_mark") == ["m1"])
    }

    @Test("a migration drops a column once capture is taken off, and capture goes on afterwards")
    func droppedColumn() async throws {
        let device = try await Device(noteSchema, tables: ["note"])
        try await device.sql("INSERT INTO note (id, title, body) VALUES ('n1', 'a', 'b')")
        try await device.sync()
        try await device.writer.write { db in
            try SyncEngine.removeCapture(db)
            try db.execute(sql: "ALTER TABLE note DROP COLUMN body")
        }
        let engine = try device.engine()
        try await engine.install()
        try await device.sql("UPDATE note SET title = 'c'")
        #expect(try await device.marked("note") == ["n1"])
        try await engine.syncNow()
        #expect(try await device.count("tidemark_shadow_note") == 0)
    }

    @Test(
        "a migration renames a column, with capture on or off: it is a new field that holds what the old one held",
        arguments: [false, true])
    func renamedColumn(isTakenOff: Bool) async throws {
        let directory = try TestDirectory()
        let server = try Device.server(in: directory)
        let devices = [
            try await Device(noteSchema, tables: ["note"], server: server, in: directory, name: "here"),
            try await Device(noteSchema, tables: ["note"], server: server, in: directory, name: "there"),
        ]
        try await devices[0].sql("INSERT INTO note (id, title, body) VALUES ('n1', 'a', 'b'), ('n2', 'a', 'b')")
        for device in devices { try await device.sync() }
        for device in devices {
            try await device.writer.write { db in
                if isTakenOff { try SyncEngine.removeCapture(db) }
                try db.execute(sql: "ALTER TABLE note RENAME COLUMN body TO content")
                if !isTakenOff { try db.execute(sql: "UPDATE note SET title = 'in the migration' WHERE id = 'n2'") }
            }
            try await device.engine().install()
        }
        try await devices[0].sql("UPDATE note SET content = 'c' WHERE id = 'n1'")
        for device in devices + devices { try await device.sync() }
        let title = isTakenOff ? "a" : "in the migration"
        for device in devices {
            #expect(
                try await device.rows("SELECT id, title, content FROM note ORDER BY id") == [
                    "\"n1\"|\"a\"|\"c\"", "\"n2\"|\"\(title)\"|\"b\"",
                ])
            #expect(try await device.count("tidemark_shadow_note") == 0)
        }
        // A device that comes with the new schema has it all, and one with the old schema goes on with the old field.
        let fresh = try await Device(
            noteSchema.replacing("body", with: "content"), tables: ["note"], server: server, in: directory,
            name: "fresh")
        try await fresh.sync()
        #expect(try await fresh.rows("SELECT content FROM note ORDER BY id") == ["\"c\"", "\"b\""])
        let old = try await Device(noteSchema, tables: ["note"], server: server, in: directory, name: "old")
        try await old.sync()
        #expect(try await old.rows("SELECT body FROM note ORDER BY id") == ["\"b\"", "\"b\""])
    }

    @Test("an edit that was not sent before its column was renamed goes under the new name, unless another was first")
    func renamedBeforeSent() async throws {
        for isFirst in [true, false] {
            let pair = try await Pair()
            try await pair.share()
            try await pair.here.sql("UPDATE note SET body = 'not sent'")
            for device in [pair.here, pair.there] {
                try await device.sql("ALTER TABLE note RENAME COLUMN body TO content")
            }
            let order = isFirst ? [pair.here, pair.there] : [pair.there, pair.here]
            for device in order + order { try await device.sync() }
            let content = isFirst ? "\"not sent\"" : "\"text\""
            for device in order {
                #expect(try await device.rows("SELECT content FROM note") == [content])
                #expect(try await device.count("tidemark_shadow_note") == 0)
            }
        }
    }
}
