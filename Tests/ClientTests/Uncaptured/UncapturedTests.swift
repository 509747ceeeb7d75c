import Foundation
import GRDB
import Testing
import TidemarkServer
import TidemarkWire

@testable import Tidemark

@Suite("Uncaptured: what was written while no trigger stood is found and sent (I13)")
struct UncapturedTests {
    static let all = "SELECT id, title, body FROM note ORDER BY id"

    /// SQLite's twelve steps, as GRDB's migrations, Django's and Alembic's take them.
    static func rebuild(
        _ columns: String = "body TEXT, rank INTEGER, slug TEXT UNIQUE", and more: String = ""
    )
        -> String
    {
        """
        CREATE TABLE fresh (id TEXT PRIMARY KEY, title TEXT, \(columns));
        INSERT INTO fresh (id, title, body) SELECT id, title, body FROM note;
        DROP TABLE note; ALTER TABLE fresh RENAME TO note; \(more)
        """
    }

    func pair() async throws -> (first: Device, second: Device) {
        let directory = try TestDirectory()
        let server = try Device.server(in: directory)
        let first = try await Device(noteSchema, tables: ["note"], server: server, in: directory, name: "first")
        let second = try await Device(noteSchema, tables: ["note"], server: server, in: directory, name: "second")
        try await first.sql(
            "INSERT INTO note (id, title, body) VALUES ('n1','a','x'),('n2','b','x'),('n3','c','x'),('n4','d','x')")
        try await first.sync()
        try await second.sync()
        return (first, second)
    }

    /// The four numbers add up to the rows that are there.
    func expectSum(_ device: Device, _ place: SourceLocation = #_sourceLocation) async throws {
        let status = try await device.engine().status()
        #expect(try await status.rows.total == device.count("note"), "\(status.rows)", sourceLocation: place)
    }

    @Test("a rebuild that inserts, edits and deletes is sent, and what it left alone is not")
    func rebuilt() async throws {
        let (first, second) = try await pair()
        try await first.sql(
            Self.rebuild(
                and: """
                    UPDATE note SET title = upper(title) WHERE id = 'n1';
                    INSERT INTO note (id, title) VALUES ('n5', 'new'); DELETE FROM note WHERE id = 'n3'
                    """))
        let engine = try first.engine()
        try await engine.install()
        let rows = try await engine.status().rows
        #expect((rows.confirmed, rows.outgoing, rows.deletes) == (2, 2, 1))
        try await expectSum(first)
        let report = try await engine.syncNow()
        #expect(report.pushed == 3)
        try await second.sync()
        #expect(try await second.rows(Self.all) == first.rows(Self.all))
        #expect(try await second.rows("SELECT title FROM note WHERE id = 'n1'") == [#""A""#])
        #expect(try await second.count("note") == 4)
        #expect(try await first.engine().verify().isClean)
        try await expectSum(first)
    }

    @Test("a rebuild that changes nothing asks the server nothing and sends nothing")
    func unchanged() async throws {
        let (first, _) = try await pair()
        try await first.sql(Self.rebuild())
        let asked = await first.wire.requests.count
        let report = try await first.engine().syncNow()
        #expect(report.pushed == 0)
        #expect(await first.wire.requests.dropFirst(asked).allSatisfy { !$0.path.hasPrefix("/sync/records") })
        #expect(try await first.engine().status().rows.confirmed == 4)
    }

    @Test("rows that others changed meanwhile are not taken for edits; those that both changed are open conflicts")
    func both() async throws {
        let (first, second) = try await pair()
        try await second.sql("UPDATE note SET body = 'theirs'")
        try await second.sync()
        try await first.sql(Self.rebuild(and: "UPDATE note SET title = 'mine' WHERE id IN ('n1', 'n2')"))
        try await first.sync()
        let conflicts = try await first.engine().conflicts().filter(\.isOpen)
        #expect(conflicts.map(\.record) == ["n1", "n2"])
        #expect(conflicts.first?["title"]?.mine == .text("mine"))
        #expect(try await first.rows("SELECT DISTINCT body FROM note") == [#""theirs""#])
        #expect(try await first.engine().status().rows.stalled == 2)
        try await expectSum(first)
        try await first.engine().resolve(conflicts[0], with: .merge(["title": .text("mine")]))
        try await first.sync()
        try await second.sync()
        #expect(
            try await second.rows("SELECT title, body FROM note WHERE id = 'n1'") == [#""mine"|"theirs""#])
    }

    @Test("a column that a rebuild drops hides no edit, and makes none")
    func dropped() async throws {
        let (first, second) = try await pair()
        try await second.sql("UPDATE note SET title = 'theirs' WHERE id = 'n4'")
        try await second.sync()
        try await first.sql(
            """
            CREATE TABLE fresh (id TEXT PRIMARY KEY, title TEXT, rank INTEGER, slug TEXT UNIQUE);
            INSERT INTO fresh (id, title) SELECT id, title FROM note; DROP TABLE note;
            ALTER TABLE fresh RENAME TO note; UPDATE note SET title = 'mine' WHERE id = 'n1'
            """)
        let report = try await first.engine().syncNow()
        #expect(report.pushed == 1)
        try await second.sync()
        #expect(
            try await second.rows("SELECT id, title, body FROM note WHERE id IN ('n1', 'n4') ORDER BY id")
                == [#""n1"|"mine"|"x""#, #""n4"|"theirs"|"x""#])
        #expect(try await first.engine().conflicts().isEmpty)
    }

    @Test("an edit on its way that is taken back unseen is taken back for all")
    func takenBack() async throws {
        let (first, second) = try await pair()
        try await first.sql("UPDATE note SET title = 'mine' WHERE id = 'n1'")
        await first.wire.loseRequest()
        await #expect(throws: SyncError.self) { try await first.sync() }
        try await first.sql(Self.rebuild(and: "UPDATE note SET title = 'a' WHERE id = 'n1'"))
        for device in [first, first, second] { try await device.sync() }
        for device in [first, second] {
            #expect(try await device.rows("SELECT title FROM note WHERE id = 'n1'") == [#""a""#])
        }
        #expect(try await first.engine().status().pending == 0)
    }

    @Test("an edit that waited when the table was rebuilt is sent, with what was written unseen on top of it")
    func pending() async throws {
        let (first, second) = try await pair()
        try await first.sql("UPDATE note SET title = 'captured' WHERE id = 'n1'; DELETE FROM note WHERE id = 'n2'")
        try await first.sql(Self.rebuild(and: "UPDATE note SET body = 'unseen' WHERE id = 'n1'"))
        try await first.sql("INSERT INTO note (id, title) VALUES ('n2', 'again')")
        try await first.sync()
        try await second.sync()
        #expect(
            try await second.rows("SELECT id, title, body FROM note WHERE id IN ('n1', 'n2') ORDER BY id")
                == [#""n1"|"captured"|"unseen""#, #""n2"|"again"|NULL"#])
        try await expectSum(first)
    }

    @Test("an edit on top of one that nobody saw hides it from nobody")
    func editedAfterwards() async throws {
        let (first, second) = try await pair()
        try await first.sql(Self.rebuild(and: "UPDATE note SET title = 'unseen' WHERE id = 'n1'"))
        try await first.engine().install()
        try await first.sql(
            "UPDATE note SET body = 'seen' WHERE id = 'n1'; INSERT INTO note (id, title) VALUES ('n9', 'seen')")
        try await first.sync()
        try await second.sync()
        #expect(
            try await second.rows("SELECT title, body FROM note WHERE id = 'n1'") == [#""unseen"|"seen""#])
        try await expectSum(first)
    }

    @Test("triggers that were dropped are noticed by the next exchange of a running engine")
    func droppedTriggers() async throws {
        let (first, second) = try await pair()
        let engine = try first.engine()
        try await engine.syncNow()
        try await first.writer.write { db in
            let names = try String.fetchAll(
                db, sql: "SELECT name FROM sqlite_master WHERE type = 'trigger' AND name LIKE 'tidemark_%'")
            for name in names { try db.execute(sql: "DROP TRIGGER \"\(name)\"") }
            try db.execute(sql: "UPDATE note SET title = 'unseen' WHERE id = 'n2'; DELETE FROM note WHERE id = 'n3'")
        }
        try await engine.syncNow()
        try await second.sync()
        #expect(try await second.rows(Self.all) == first.rows(Self.all))
        #expect(try await second.count("note") == 3)
    }

    @Test("a row that was deleted elsewhere and comes back with a backup of its table is orphaned (I6)")
    func restored() async throws {
        let (first, second) = try await pair()
        try await second.sql("DELETE FROM note WHERE id = 'n1'")
        try await second.sync()
        try await first.sql("CREATE TEMP TABLE backup AS SELECT * FROM note")
        try await first.sync()
        #expect(try await first.count("note") == 3)
        try await first.sql(
            """
            DROP TABLE note; \(noteSchema)
            INSERT INTO note SELECT * FROM temp.backup; INSERT INTO note (id, title) VALUES ('n8', 'really new')
            """)
        try await first.sync()
        try await second.sync()
        #expect(
            try await first.rows("SELECT id FROM note ORDER BY id") == second.rows("SELECT id FROM note ORDER BY id"))
        #expect(try await second.count("note WHERE id = 'n1'") == 0)
        #expect(try await second.count("note WHERE id = 'n8'") == 1)
        let orphaned = try #require(try await first.engine().orphanedEdits().first)
        #expect((orphaned.record, orphaned.kind, orphaned.fields["title"]) == ("n1", .insert, .text("a")))
        try await first.sync()
        #expect(try await first.count("note WHERE id = 'n1'") == 0, "it does not come back by itself")
        try await first.engine().replay(orphaned)
        try await first.sync()
        try await second.sync()
        #expect(try await second.count("note WHERE id = 'n1'") == 1)
    }

    @Test("deletes that were inferred, and are too many, wait for a word; captured ones never do")
    func braked() async throws {
        let (first, second) = try await pair()
        try await first.sql(
            """
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 150)
            INSERT INTO note (id, title) SELECT 'm' || i, 'x' FROM n
            """)
        try await first.sync()
        try await second.sync()
        try await first.sql(Self.rebuild(and: "DELETE FROM note WHERE id LIKE 'm%'; DELETE FROM note WHERE id = 'n1'"))
        try await first.sync()
        try await second.sync()
        #expect(try await second.count("note") == 154)
        let held = try await first.engine().inferredEdits()
        #expect(held == [InferredEdits(table: "note", updates: 0, deletes: 151)])
        #expect(try await first.engine().status().rows.deletes == 151)
        try await second.sql("UPDATE note SET title = 'theirs' WHERE id = 'm7'")
        try await second.sync()
        try await first.sync()
        #expect(try await first.count("note") == 3, "what waits stays as it was written")
        try await first.engine().confirmInferredEdits()
        try await first.sync()
        try await second.sync()
        #expect(try await second.count("note") == first.count("note"))
        #expect(try await first.engine().inferredEdits().isEmpty)
        try await expectSum(first)
    }

    @Test("the server's rows may be taken instead")
    func takesTheServers() async throws {
        let (first, _) = try await pair()
        try await first.sql("DELETE FROM note WHERE id = 'none'")
        try await first.sql("DROP TABLE note; \(noteSchema)")
        try await first.sync()
        #expect(try await first.engine().inferredEdits() == [InferredEdits(table: "note", updates: 0, deletes: 4)])
        try await first.engine().discardInferredEdits(in: "note")
        #expect(try await first.count("note") == 4)
        try await first.sync()
        #expect(try await first.engine().verify().isClean)
        try await expectSum(first)
    }

    @Test("a migration that the app announces passes the brake")
    func announced() async throws {
        let (first, second) = try await pair()
        try await first.writer.write { db in
            try SyncEngine.removeCapture(db)
            try db.execute(sql: "DELETE FROM note")
        }
        try await first.sync()
        try await second.sync()
        #expect(try await second.count("note") == 0)
    }

    @Test("a key's column may get another name; a key of other columns is refused, and the app goes on writing")
    func keys() async throws {
        let (first, second) = try await pair()
        try await first.sql(
            "ALTER TABLE note RENAME COLUMN id TO uid; INSERT INTO note (uid, title) VALUES ('n5', 'e')")
        try await first.sync()
        try await second.sync()
        #expect(try await second.count("note") == 5)
        try await expectSum(first)
        try await first.sql(
            """
            CREATE TABLE fresh (uid TEXT, title TEXT, PRIMARY KEY (uid, title));
            INSERT INTO fresh SELECT uid, title FROM note; DROP TABLE note; ALTER TABLE fresh RENAME TO note
            """)
        let error = await #expect(throws: SyncError.self) { try await first.sync() }
        #expect(error?.code == .tableUnsupported)
        try await first.sql("INSERT INTO note (uid, title) VALUES ('n6', 'written all the same')")
    }

    @Test("a table that vanished is told, and holds nothing up")
    func vanished() async throws {
        let directory = try TestDirectory()
        let server = try Device.server(in: directory)
        let device = try await Device(
            noteSchema + "CREATE TABLE tag (id TEXT PRIMARY KEY, name TEXT);", tables: ["note", "tag"], server: server,
            in: directory)
        try await device.sql("INSERT INTO tag VALUES ('t', 'x'); INSERT INTO note (id) VALUES ('n')")
        try await device.sync()
        try await device.sql(
            """
            UPDATE tag SET name = 'y'; DROP TABLE tag;
            INSERT INTO tidemark_blocked(entity, record, blocker_entity, blocker_record, reason)
              VALUES ('tag', 't', 'note', 'x', 'awaiting_id');
            """)
        let engine = try SyncEngine(
            for: device.writer, tables: [.table("note")], scopes: [Device.scope], transport: device.wire)
        try await engine.syncNow()
        let status = try await engine.status()
        #expect((status.missingTables, status.pending + status.blocked) == (["tag"], 0))
    }

    @Test("a row that waits for a decision waits through another loss of capture")
    func heldThroughAnotherLoss() async throws {
        let (first, second) = try await pair()
        try await first.sql("DROP TABLE note; \(noteSchema)")
        try await first.sync()
        try await first.sql(Self.rebuild(and: "INSERT INTO note (id, title) VALUES ('n9', 'new')"))
        try await first.sync()
        try await second.sync()
        #expect(try await second.count("note") == 5)
        #expect(try await first.engine().inferredEdits() == [InferredEdits(table: "note", updates: 0, deletes: 4)])
        try await expectSum(first)
    }

    @Test(
        "a row that was inserted unseen and edited in sight is an insert, through another loss too", arguments: [1, 2])
    func insertedThenEdited(losses: Int) async throws {
        let (first, second) = try await pair()
        for loss in 0..<losses {
            try await first.sql(Self.rebuild(and: loss == 0 ? "INSERT INTO note (id, title) VALUES ('n9', 'new')" : ""))
            try await first.engine().install()
            try await first.sql("UPDATE note SET body = 'edited \(loss)' WHERE id = 'n9'")
            try await expectSum(first)
        }
        try await first.sync()
        try await second.sync()
        #expect(
            try await second.rows("SELECT title, body FROM note WHERE id = 'n9'") == [#""new"|"edited \#(losses - 1)""#]
        )
        #expect(try await first.engine().rejectedOperations().isEmpty)
        try await expectSum(first)
    }

    @Test("triggers that were made again from their own text hide nothing")
    func bulkLoad() async throws {
        let (first, second) = try await pair()
        try await first.writer.write { db in
            let triggers = try Row.fetchAll(
                db, sql: "SELECT name, sql FROM sqlite_master WHERE type = 'trigger' AND name LIKE 'tidemark_%'")
            for trigger in triggers { try db.execute(sql: "DROP TRIGGER \"\(trigger["name"] as String)\"") }
            try db.execute(sql: "INSERT INTO note (id, title) VALUES ('bulk', 'x')")
            for trigger in triggers { try db.execute(sql: trigger["sql"]) }
        }
        try await first.sync()
        try await second.sync()
        #expect(try await second.count("note WHERE id = 'bulk'") == 1)
    }

    @Test("a column that goes and comes back with a rebuild is fetched anew")
    func columnComesBack() async throws {
        let (first, second) = try await pair()
        try await first.sql(Self.rebuild("body TEXT, rank INTEGER"))
        try await first.sync()
        try await first.sql(
            """
            CREATE TABLE fresh (id TEXT PRIMARY KEY, title TEXT, rank INTEGER);
            INSERT INTO fresh (id, title) SELECT id, title FROM note; DROP TABLE note;
            ALTER TABLE fresh RENAME TO note
            """)
        try await first.sync()
        try await first.sql(
            """
            CREATE TABLE fresh (id TEXT PRIMARY KEY, title TEXT, rank INTEGER, body TEXT DEFAULT 'none');
            INSERT INTO fresh (id, title) SELECT id, title FROM note; DROP TABLE note;
            ALTER TABLE fresh RENAME TO note
            """)
        try await first.sync()
        try await second.sync()
        #expect(try await first.engine().verify().isClean)
        #expect(try await first.rows(Self.all) == second.rows(Self.all))
    }
}
