import GRDB
import Testing
import TidemarkServer
import TidemarkWire

@testable import Tidemark

/// The library writes to the app's tables without their foreign keys, in whichever transaction.
@Suite("A row that gives way to another one takes no child with it (I2, I13)")
struct GivingWayTests {
    private static let actions = ["CASCADE", "RESTRICT", "SET NULL", "NO ACTION DEFERRABLE INITIALLY DEFERRED"]

    /// Two devices get items with a unique slug, and a part of each, from the server.
    private struct World {
        let server: SyncServer
        let here: Device
        let there: Device

        init(
            _ action: String = "CASCADE", trigger: String = "", _ entities: [EntityDeclaration] = [],
            rules: [EntityRule] = []
        ) async throws {
            let directory = try TestDirectory()
            server = try Device.server(in: directory, entities: entities, rules: rules)
            let schema = """
                CREATE TABLE item (id TEXT PRIMARY KEY, title TEXT, slug TEXT UNIQUE);
                CREATE TABLE part (id TEXT PRIMARY KEY, item TEXT REFERENCES item(id) ON DELETE \(action));
                \(trigger)
                """
            here = try await Device(schema, tables: ["item", "part"], server: server, in: directory, name: "here")
            there = try await Device(schema, tables: ["item", "part"], server: server, in: directory, name: "there")
            _ = try await server.commit(to: Device.scope) {
                $0.upsert("item", id: "i5", ["title": "t", "slug": "five"])
                $0.upsert("item", id: "i6", ["title": "t", "slug": "six"])
                $0.upsert("part", id: "p5", ["item": "i5"])
                $0.upsert("part", id: "p6", ["item": "i6"])
            }
            try await here.sync()
        }

        /// An edit that cannot be sent is refused here, while other records are edited.
        func refuse(_ others: String) async throws -> RejectedOperation {
            try await here.sql("UPDATE item SET slug = 'new', title = CAST(x'ff' AS TEXT) WHERE id = 'i5'; \(others)")
            try await here.sync()
            return try #require(try await here.engine().rejectedOperations().first)
        }

        /// No part was lost on the way, here or elsewhere, and none was edited.
        func expectParts(_ expected: [String] = ["p5 i5", "p6 i6"]) async throws {
            let parts = "SELECT id || ' ' || coalesce(item, '-') FROM part ORDER BY id"
            #expect(try await here.rows(parts) == expected.map { "\"\($0)\"" })
            #expect(try await here.count("tidemark_shadow_part") == 0)
            try await Device.sync(here, there, here)
            #expect(try await there.rows(parts) == expected.map { "\"\($0)\"" })
            #expect(try await here.engine().verify().isClean)
        }
    }

    @Test("where an edit that was discarded has left its value to another row", arguments: actions)
    func discarded(action: String) async throws {
        let world = try await World(action)
        let refused = try await world.refuse("UPDATE item SET slug = 'five' WHERE id = 'i6'")
        try await world.here.engine().discard(refused)
        #expect(try await world.here.rows("SELECT id, slug FROM item") == [#""i6"|"five""#])
        #expect(try await world.here.engine().status().quarantined == 1)
        try await world.here.sql("UPDATE item SET slug = 'six' WHERE id = 'i6'")
        try await world.expectParts()
        #expect(
            try await world.here.rows("SELECT id, title, slug FROM item ORDER BY id")
                == [#""i5"|"t"|"five""#, #""i6"|"t"|"six""#])
    }

    @Test(
        "where an edit is undone of a table that only comes down, or of a field that only the server writes",
        arguments: [
            EntityDeclaration.state("item", direction: .pull), EntityDeclaration.state("item", serverFields: ["slug"]),
        ], actions)
    func undone(item: EntityDeclaration, action: String) async throws {
        let world = try await World(action, [item])
        try await world.here.sql(
            "UPDATE item SET slug = NULL WHERE id = 'i5'; UPDATE item SET slug = 'five' WHERE id = 'i6'")
        try await world.here.sync()
        try await world.expectParts()
        #expect(
            try await world.here.rows("SELECT id, slug FROM item ORDER BY id") == [#""i5"|"five""#, #""i6"|"six""#])
    }

    @Test("and a child that is put back while its parent is away stays in its table", arguments: actions)
    func childOfQuarantined(action: String) async throws {
        let world = try await World(action, [.state("part", direction: .pull)])
        _ = try await world.server.commit(to: Device.scope) { $0.upsert("item", id: "i1", ["slug": "five"]) }
        try await world.here.sync()
        #expect(try await world.here.engine().status().quarantined == 1)
        try await world.here.sql("UPDATE part SET item = 'i6' WHERE id = 'p5'")
        try await world.here.sync()
        try await world.expectParts()
        #expect(try await world.here.engine().status().quarantined == 1)
    }

    @Test("and the word on an older refused insert of its record deletes no child of it")
    func olderInsert() async throws {
        let world = try await World(
            rules: [
                EntityRule("item") { edit in
                    edit.proposed["title"] == "bad" ? .reject(code: "title_bad", detail: "Bad.") : .accept
                }
            ])
        try await world.here.sql("INSERT INTO item (id, title) VALUES ('i7', 'bad')")
        try await world.here.sync()
        let refused = try #require(try await world.here.engine().rejectedOperations().first)
        _ = try await world.server.commit(to: Device.scope) {
            $0.upsert("item", id: "i7", ["title": "t", "slug": "seven"])
            $0.upsert("part", id: "p7", ["item": "i7"])
        }
        try await world.here.sync()
        _ = try await world.server.commit(to: Device.scope) { $0.upsert("item", id: "i1", ["slug": "seven"]) }
        try await world.here.sync()
        #expect(try await world.here.engine().status().quarantined == 1)
        try await world.here.engine().discard(refused)
        try await world.expectParts(["p5 i5", "p6 i6", "p7 i7"])
    }

    @Test("and one that was quarantined with an edit is so no more where the edit is discarded and it fits again")
    func fitsAgain() async throws {
        let world = try await World()
        let refused = try await world.refuse("UPDATE item SET slug = 'five' WHERE id = 'i6'")
        _ = try await world.server.commit(to: Device.scope) { $0.upsert("item", id: "i1", ["slug": "new"]) }
        try await world.here.sync()
        #expect(try await world.here.engine().status().quarantined == 1)
        try await world.here.sql("UPDATE item SET slug = NULL WHERE id = 'i6'")
        try await world.here.engine().discard(refused)
        #expect(try await world.here.engine().status().quarantined == 0)
        try await world.expectParts()
        #expect(try await world.here.rows("SELECT slug FROM item WHERE id = 'i5'") == [#""five""#])
    }

    @Test(
        "an insert that may not travel goes at once, and a reference that no action ends dangles",
        arguments: ["RESTRICT", "NO ACTION DEFERRABLE INITIALLY DEFERRED"])
    func undoneInsert(action: String) async throws {
        let world = try await World(action, [.state("item", direction: .pull)])
        try await world.here.sql(
            "INSERT INTO item (id, title) VALUES ('i9', 'mine'); INSERT INTO part VALUES ('p9', 'i9')")
        try await world.here.sync()
        #expect(try await world.here.engine().rejectedOperations().map(\.record) == ["i9"])
        #expect(try await world.here.count("item") == 2)
        try await world.expectParts(["p5 i5", "p6 i6", "p9 i9"])
    }

    @Test("a group that is discarded takes nothing along that is below a row which goes back to its place")
    func subtree() async throws {
        let directory = try TestDirectory()
        let schema = """
            CREATE TABLE folder (id TEXT PRIMARY KEY, name TEXT, parent TEXT REFERENCES folder ON DELETE CASCADE);
            """
        let server = try Device.server(in: directory)
        let here = try await Device(schema, tables: ["folder"], server: server, in: directory, name: "here")
        try await here.sql("INSERT INTO folder VALUES ('f', 'top', NULL), ('g', 'below', 'f'), ('h', 'lowest', 'g')")
        let engine = try here.engine()
        try await engine.syncNow()
        for named in ["f", "n"] {
            try await engine.atomically { db in
                try db.execute(sql: "INSERT INTO folder VALUES ('n', CAST(x'ff' AS TEXT), NULL)")
                try db.execute(sql: "UPDATE folder SET parent = 'n' WHERE id = 'f'")
            }
            try await engine.syncNow()
            try await engine.discard(
                try #require(try await engine.rejectedOperations().first { $0.record == named }))
            try await engine.syncNow()
            #expect(try await here.rows("SELECT id FROM folder ORDER BY id") == [#""f""#, #""g""#, #""h""#])
            #expect(try await engine.verify().isClean)
        }
    }

    @Test("a group gives each row that the server has its unique value back, whatever held it")
    func values() async throws {
        let world = try await World()
        let engine = try world.here.engine()
        try await engine.atomically { db in
            try db.execute(sql: "UPDATE item SET slug = NULL WHERE id = 'i5'")
            try db.execute(sql: "UPDATE item SET slug = 'five' WHERE id = 'i6'")
            try db.execute(sql: "UPDATE item SET slug = 'six' WHERE id = 'i5'")
            try db.execute(sql: "INSERT INTO item VALUES ('i9', CAST(x'ff' AS TEXT), NULL)")
        }
        try await engine.syncNow()
        try await engine.discard(try #require(try await engine.rejectedOperations().first))
        #expect(
            try await world.here.rows("SELECT id, slug FROM item ORDER BY id") == [#""i5"|"five""#, #""i6"|"six""#])
        #expect(try await engine.status().quarantined == 0)
        try await world.expectParts()
    }

    @Test(
        "an insert that is discarded takes no child of another record that holds the value referred to",
        arguments: ["i1", "z1"])
    func valueOfAnother(other: RecordID) async throws {
        let schema = """
            CREATE TABLE item (id TEXT PRIMARY KEY, title TEXT, slug TEXT COLLATE NOCASE UNIQUE);
            CREATE TABLE part (id TEXT PRIMARY KEY, item TEXT REFERENCES item(slug) ON DELETE CASCADE);
            """
        let directory = try TestDirectory()
        let server = try Device.server(in: directory)
        let here = try await Device(schema, tables: ["item", "part"], server: server, in: directory, name: "here")
        try await here.sql("INSERT INTO item VALUES ('i9', CAST(x'ff' AS TEXT), 'S')")
        _ = try await server.commit(to: Device.scope) {
            $0.upsert("item", id: other, ["slug": "s"])
            $0.upsert("part", id: "p1", ["item": "s"])
        }
        let engine = try here.engine()
        try await engine.syncNow()
        try await engine.discard(try #require(try await engine.rejectedOperations().first))
        #expect(try await here.rows("SELECT id FROM part") == [#""p1""#])
        #expect(try await here.count("tidemark_shadow_part") == 0)
    }

    @Test("an insert that is discarded takes no child of its record in another scope")
    func otherScope() async throws {
        let world = try MultiScopeWorld()
        let (here, there) = (try await world.device("here"), try await world.device("there"))
        try await here.sql("INSERT INTO item (id, w, title) VALUES ('i9', 'a', CAST(x'ff' AS TEXT))")
        try await there.sql("INSERT INTO item (id, w) VALUES ('i9', 'b'); INSERT INTO part VALUES ('p9', 'b', 'i9')")
        try await Device.sync(there, here)
        let engine = try here.engine()
        try await engine.discard(try #require(try await engine.rejectedOperations().first))
        try await Device.sync(here, there)
        #expect(try await there.count("part") == 1)
        #expect(try await here.rows("SELECT id, w FROM item") == [#""i9"|"b""#])
        #expect(try await here.count("part") == 1)
    }

    @Test("an edit that is discarded takes no child of a record that has moved to another scope")
    func moved() async throws {
        let world = try MultiScopeWorld()
        let (here, there) = (try await world.device("here", scopes: ["w:a"]), try await world.device("there"))
        try await there.sql("INSERT INTO item (id, w) VALUES ('i5', 'a'); INSERT INTO part VALUES ('p5', 'a', 'i5')")
        try await Device.sync(there, here)
        try await here.sql("UPDATE item SET title = CAST(x'ff' AS TEXT)")
        try await here.sync()
        try await there.sql("UPDATE item SET w = 'b'")
        try await Device.sync(there, here)
        let engine = try here.engine()
        try await engine.discard(try #require(try await engine.rejectedOperations().first))
        try await Device.sync(here, there)
        #expect(try await there.count("part") == 1)
        #expect(try await here.count("part") == 1)
    }

    @Test(
        "what goes back with a discarded insert is captured where a trigger of the app's forbids its delete",
        arguments: ["RAISE(ABORT, 'not empty')", "RAISE(IGNORE)"])
    func forbidden(raise: String) async throws {
        let here = try await Device(
            """
            CREATE TABLE folder (id TEXT PRIMARY KEY, name TEXT, parent TEXT REFERENCES folder ON DELETE CASCADE);
            CREATE TRIGGER keep BEFORE DELETE ON folder WHEN OLD.id = 'n' BEGIN SELECT \(raise); END;
            """, tables: ["folder"])
        try await here.sql("INSERT INTO folder VALUES ('f', 'top', NULL), ('g', 'below', 'f')")
        let engine = try here.engine()
        try await engine.syncNow()
        try await here.sql("INSERT INTO folder VALUES ('n', CAST(x'ff' AS TEXT), NULL)")
        try await engine.syncNow()
        try await here.sql("UPDATE folder SET parent = 'n' WHERE id = 'f'")
        try await engine.discard(try #require(try await engine.rejectedOperations().first))
        #expect(try await here.rows("SELECT id, parent FROM folder") == [#""f"|NULL"#, #""g"|"f""#])
        try await engine.syncNow()
        #expect(try await engine.verify().isClean)
    }

    @Test("a child whose column compares otherwise than its parent's goes with its own parent only")
    func collation() async throws {
        let world = try await Pair(
            schema: "CREATE TABLE note (id TEXT PRIMARY KEY, up TEXT COLLATE NOCASE REFERENCES note ON DELETE CASCADE)")
        try await world.here.sql("INSERT INTO note VALUES ('A', NULL), ('a', NULL), ('c', 'a'), ('d', 'A')")
        try await Device.sync(world.here, world.there)
        try await world.there.sql("DELETE FROM note WHERE id = 'A'")
        try await Device.sync(world.there, world.here)
        #expect(try await world.here.rows("SELECT id FROM note ORDER BY id") == [#""a""#, #""c""#])
    }

    @Test("a group with a parent and its child is discarded whole, whichever of them is named", arguments: actions)
    func group(action: String) async throws {
        for named in ["i9", "p9"] {
            let world = try await World(action)
            let engine = try world.here.engine()
            try await engine.atomically { db in
                try db.execute(sql: "INSERT INTO item (id, title) VALUES ('i9', CAST(x'ff' AS TEXT))")
                try db.execute(sql: "INSERT INTO part VALUES ('p9', 'i9')")
                try db.execute(sql: "UPDATE part SET item = 'i9' WHERE id = 'p5'")
            }
            try await engine.syncNow()
            let refused = try await engine.rejectedOperations()
            #expect(refused.map(\.record).sorted() == ["i9", "p5", "p9"])
            try await engine.discard(try #require(refused.first { $0.record == named }))
            #expect(try await engine.rejectedOperations().isEmpty)
            #expect(try await world.here.count("item") == 2)
            try await engine.syncNow()
            try await world.expectParts()
        }
    }

    @Test("an insert that was discarded while it was quarantined does not come back, and its children go with it")
    func quarantinedInsert() async throws {
        let world = try await World()
        try await world.here.sql(
            "INSERT INTO item VALUES ('i9', CAST(x'ff' AS TEXT), 's'); INSERT INTO part VALUES ('p9', 'i9')")
        _ = try await world.server.commit(to: Device.scope) { $0.upsert("item", id: "i1", ["slug": "s"]) }
        try await world.here.sync()
        #expect(try await world.here.engine().status().quarantined == 1)
        let refused = try #require(try await world.here.engine().rejectedOperations().first)
        try await world.here.engine().discard(refused)
        #expect(try await world.here.engine().status().quarantined == 0)
        try await world.here.sql("UPDATE item SET slug = NULL WHERE id = 'i1'")
        try await world.here.sync()
        try await world.expectParts()
        #expect(try await world.here.count("item") == 3)
    }

    @Test("where a trigger of the app's has made room for a row", arguments: actions)
    func trigger(action: String) async throws {
        let world = try await World(
            action,
            trigger: """
                CREATE TRIGGER room BEFORE UPDATE OF slug ON item
                BEGIN UPDATE item SET slug = NULL WHERE slug = NEW.slug AND id <> NEW.id; END;
                """)
        let refused = try await world.refuse("UPDATE item SET slug = 'five' WHERE id = 'i6'")
        try await world.here.engine().discard(refused)
        #expect(try await world.here.rows("SELECT id, slug FROM item") == [#""i5"|"five""#])
        #expect(try await world.here.engine().status().quarantined == 1)
        for shape in try await world.here.installed().shapes where shape.isGuarded {
            #expect(try await world.here.count("tidemark_touched_\(shape.name)") == 0)
        }
        try await world.here.sql("UPDATE item SET slug = 'other' WHERE id = 'i5'")
        try await world.expectParts()
    }

    @Test("where writes that nobody saw are discarded", arguments: actions)
    func inferred(action: String) async throws {
        let world = try await World(action)
        // More of them than are taken for the user's without a question.
        try await world.here.sql(
            """
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < \(UncapturedScan.updateBound))
            INSERT INTO item (id, title) SELECT 'j' || i, 't' FROM n
            """)
        try await world.here.sync()
        for name in try await world.here.rows(
            "SELECT name FROM sqlite_master WHERE type = 'trigger' AND name GLOB 'tidemark_capture_*'")
        {
            try await world.here.sql("DROP TRIGGER \(name)")
        }
        try await world.here.sql(
            """
            UPDATE item SET title = 'unseen'; UPDATE item SET slug = NULL WHERE id = 'i5';
            UPDATE item SET slug = 'five' WHERE id = 'i6'
            """)
        try await world.here.sync()
        #expect(try await world.here.engine().inferredEdits().map(\.updates) == [UncapturedScan.updateBound + 2])
        try await world.here.engine().discardInferredEdits()
        try await world.expectParts()
        #expect(
            try await world.here.rows("SELECT id, slug FROM item WHERE id < 'j' ORDER BY id")
                == [#""i5"|"five""#, #""i6"|"six""#])
    }
}
