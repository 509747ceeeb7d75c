import GRDB
import GRDBSQLite
import Testing
import TidemarkServer
import TidemarkWire

@testable import Tidemark

/// An insert that is undone takes its own children along, and no others.
@Suite("Deletes that follow from an undone insert, or from a delete that is decided again, are captured (I1, I13)")
struct UndoneInsertTests {
    private let directory: TestDirectory

    init() throws { directory = try TestDirectory() }

    private func pair(
        _ schema: String, _ tables: [String], entities: [EntityDeclaration] = [], rules: [EntityRule] = []
    ) async throws -> (server: SyncServer, here: Device, there: Device) {
        let server = try Device.server(in: directory, entities: entities, rules: rules)
        let here = try await Device(schema, tables: tables, server: server, in: directory, name: "here")
        let there = try await Device(schema, tables: tables, server: server, in: directory, name: "there")
        return (server, here, there)
    }

    /// Discards what this device has refused, or the server.
    private func discard(_ record: String, on device: Device) async throws {
        let engine = try device.engine()
        try await engine.discard(try #require(try await engine.rejectedOperations().first { $0.record == record }))
    }

    private enum Way: CaseIterable {
        case apart, inAGroup, moveInAGroup, belowANewRow
    }

    @Test("a row of the server's that was moved under a forbidden insert is back before that is undone")
    func forbidden() async throws {
        for way in Way.allCases { try await forbidden(way) }
    }

    private func forbidden(_ way: Way) async throws {
        let directory = try TestDirectory()
        let server = try Device.server(in: directory, entities: [.state("folder", direction: .pull)])
        let schema = """
            CREATE TABLE folder (
              id TEXT PRIMARY KEY, name TEXT, parent TEXT REFERENCES folder ON DELETE CASCADE,
              shelf TEXT REFERENCES shelf ON DELETE CASCADE);
            CREATE TABLE shelf (id TEXT PRIMARY KEY, folder TEXT REFERENCES folder ON DELETE CASCADE);
            CREATE TABLE doc (id TEXT PRIMARY KEY, folder TEXT REFERENCES folder ON DELETE CASCADE, title TEXT);
            """
        let tables = ["folder", "shelf", "doc"]
        let here = try await Device(schema, tables: tables, server: server, in: directory, name: "here")
        let there = try await Device(schema, tables: tables, server: server, in: directory, name: "there")
        _ = try await server.commit(to: Device.scope) {
            $0.upsert("folder", id: "f", ["name": "top"])
            $0.upsert("doc", id: "d", ["folder": "f"])
        }
        try await here.sync()
        let insert = "INSERT INTO folder (id, name) VALUES ('n', 'new')"
        let move = "UPDATE folder SET parent = 'n' WHERE id = 'f'"
        let engine = try here.engine()
        switch way {
        case .apart: try await here.sql("\(insert); \(move)")
        case .inAGroup: try await engine.atomically { db in try db.execute(sql: "\(insert); \(move)") }
        case .moveInAGroup:
            try await here.sql(insert)
            try await engine.atomically { db in try db.execute(sql: "\(move); UPDATE doc SET title = 'mine'") }
        case .belowANewRow:
            try await here.sql(
                "\(insert); INSERT INTO shelf VALUES ('s', 'n'); UPDATE folder SET shelf = 's' WHERE id = 'f'")
        }
        try await Device.sync(here, there)
        for device in [here, there] {
            #expect(try await device.rows("SELECT id, parent, shelf FROM folder") == [#""f"|NULL|NULL"#], "\(way)")
            #expect(try await device.rows("SELECT id FROM doc") == [#""d""#], "\(way)")
        }
        #expect(try await there.rows("SELECT title FROM doc") == ["NULL"], "a group was torn apart: \(way)")
        let refused = try await engine.rejectedOperations()
        #expect(refused.map(\.record).sorted() == (way == .moveInAGroup ? ["d", "f", "n"] : ["f", "n"]), "\(way)")
        #expect(!refused.contains { $0.isDelete }, "\(way)")
        #expect(try await engine.verify().isClean, "\(way)")
    }

    @Test("a child stays whose parent is quarantined, where the two agree in a part of the key and in another column")
    func sharedKeyColumn() async throws {
        let (server, here, _) = try await pair(
            """
            CREATE TABLE item (
              tenant TEXT, id TEXT, slug TEXT, title TEXT, PRIMARY KEY (tenant, id), UNIQUE (tenant, slug));
            CREATE TABLE part (
              id TEXT PRIMARY KEY, tenant TEXT, slug TEXT,
              FOREIGN KEY (tenant, slug) REFERENCES item(tenant, slug) ON DELETE CASCADE);
            """, ["item", "part"])
        try await here.sql("INSERT INTO item VALUES ('t', 'i9', 's', CAST(x'ff' AS TEXT))")
        _ = try await server.commit(to: Device.scope) {
            $0.upsert("item", id: #"["t","z1"]"#, ["slug": "s"])
            $0.upsert("part", id: "p1", ["tenant": "t", "slug": "s"])
        }
        let engine = try here.engine()
        try await engine.syncNow()
        #expect(try await engine.status().quarantined == 1)
        try await engine.discard(try #require(try await engine.rejectedOperations().first))
        try await engine.syncNow()
        #expect(try await here.rows("SELECT id FROM part") == [#""p1""#])
        #expect(try await here.rows("SELECT id FROM item") == [#""z1""#])
        #expect(try await engine.verify().isClean)
    }

    private static let chain = """
        CREATE TABLE item (id TEXT PRIMARY KEY, title TEXT);
        CREATE TABLE part (
          id TEXT PRIMARY KEY, item TEXT REFERENCES item(id) ON DELETE CASCADE, slug TEXT UNIQUE);
        CREATE TABLE sub (id TEXT PRIMARY KEY, part TEXT REFERENCES part(slug) ON DELETE CASCADE);
        """

    @Test("a grandchild stays whose parent is quarantined")
    func grandchild() async throws {
        let (server, here, _) = try await pair(Self.chain, ["item", "part", "sub"])
        try await here.sql(
            "INSERT INTO item VALUES ('i9', CAST(x'ff' AS TEXT)); INSERT INTO part VALUES ('p9', 'i9', 's')")
        _ = try await server.commit(to: Device.scope) {
            $0.upsert("part", id: "pz", ["slug": "s"])
            $0.upsert("sub", id: "s1", ["part": "s"])
        }
        let engine = try here.engine()
        try await engine.syncNow()
        try await discard("i9", on: here)
        try await engine.syncNow()
        #expect(try await here.rows("SELECT id FROM part") == [#""pz""#])
        #expect(try await here.rows("SELECT id FROM sub") == [#""s1""#])
        #expect(try await engine.verify().isClean)
    }

    @Test("where a trigger of the app's keeps one child, the others go with their own children")
    func keptChild() async throws {
        let here = try await Device(
            Self.chain + """
                CREATE TRIGGER keep BEFORE DELETE ON part WHEN OLD.id = 'p2' BEGIN SELECT RAISE(IGNORE); END;
                """, tables: ["item", "part", "sub"])
        try await here.sql(
            """
            INSERT INTO item VALUES ('i9', CAST(x'ff' AS TEXT));
            INSERT INTO part VALUES ('p1', 'i9', 'a'), ('p2', 'i9', 'b')
            """)
        try await here.sync()
        // Not sent yet: a reference by another column than the key waits for nothing.
        try await here.sql("INSERT INTO sub VALUES ('s1', 'a'), ('s2', 'b')")
        try await discard("i9", on: here)
        #expect(try await here.rows("SELECT id FROM part") == [#""p2""#])
        #expect(try await here.rows("SELECT id FROM sub") == [#""s2""#])
        try await here.sync()
        #expect(try await here.engine().verify().isClean)
    }

    @Test(
        "a delete that is retried is the app's own: where a trigger keeps the row, nothing goes uncaptured",
        arguments: ["RAISE(ABORT, 'not empty')", "RAISE(IGNORE)"])
    func retriedDelete(raise: String) async throws {
        let (server, here, there) = try await pair(
            """
            CREATE TABLE item (id TEXT PRIMARY KEY);
            CREATE TABLE part (id TEXT PRIMARY KEY, item TEXT REFERENCES item ON DELETE CASCADE);
            CREATE TRIGGER keep BEFORE DELETE ON item WHEN EXISTS (SELECT 1 FROM part WHERE item = OLD.id)
            BEGIN SELECT \(raise); END;
            """, ["item", "part"],
            rules: [EntityRule("item") { $0.isDelete ? .reject(code: "no", detail: "No.") : .accept }])
        _ = try await server.commit(to: Device.scope) { $0.upsert("item", id: "i5", [:]) }
        try await here.sync()
        try await here.sql("DELETE FROM item")
        try await here.sync()
        _ = try await server.commit(to: Device.scope) { $0.upsert("part", id: "p9", ["item": "i5"]) }
        try await here.sync()
        let engine = try here.engine()
        let refused = try #require(try await engine.rejectedOperations().first)
        if raise == "RAISE(IGNORE)" {
            let error = await #expect(throws: SyncError.self) { try await engine.retry(refused) }
            #expect(error?.code == .writeSkipped)
        } else {
            await #expect(throws: DatabaseError.self) { try await engine.retry(refused) }
        }
        #expect(try await engine.rejectedOperations().map(\.record) == ["i5"])
        try await Device.sync(here, there)
        for device in [here, there] {
            #expect(try await device.count("item") == 1)
            #expect(try await device.count("part") == 1)
        }
        #expect(try await engine.verify().isClean)
    }

    @Test("an orphaned delete that a trigger keeps from being replayed stays orphaned")
    func orphanedDelete() async throws {
        let world = try MultiScopeWorld()
        let device = try await world.device("d", scopes: ["w:a"])
        try await device.sql("INSERT INTO item (id, w, title) VALUES ('i', 'a', 'x'), ('j', 'a', 'x')")
        try await device.sync()
        try await device.sql("DELETE FROM item WHERE id = 'j'")
        await world.withdrawn.insert("w:a")
        await #expect(throws: SyncError.self) { try await device.sync() }
        try await device.sql(
            "CREATE TRIGGER keep BEFORE DELETE ON item WHEN OLD.id = 'j' BEGIN SELECT RAISE(IGNORE); END")
        await world.withdrawn.remove("w:a")
        for _ in 0..<2 { try await device.sync() }
        let engine = try device.engine()
        #expect(try await engine.orphanedEdits().map { "\($0.kind) \($0.record)" } == ["delete j"])
        #expect(try await device.items() == ["i a x", "j a x"])
        #expect(try await engine.verify().isClean)
        try await device.sql("DROP TRIGGER keep")
        for _ in 0..<2 { try await device.sync() }
        #expect(try await engine.orphanedEdits().isEmpty)
        #expect(try await world.held("w:a").keys.sorted() == ["i"])
    }

    /// A turn of the switch for foreign keys has SQLite compile each statement anew, which takes longer each time.
    @Test("statements are compiled anew once for a batch, not for each row that is put back in it")
    func turns() async throws {
        let (_, here, _) = try await pair(noteSchema, ["note"], entities: [.state("note", serverFields: ["rank"])])
        let engine = try here.engine()
        try await engine.syncNow()
        try await here.sql(
            """
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 50)
            INSERT INTO note (id, rank) SELECT 'n' || i, 1 FROM n
            """)
        let shape = try #require(try await here.installed().shapes.first)
        let before = try await compilations(of: shape.statements.rowUpsert, on: here)
        try await engine.syncNow()
        #expect(try await here.count("note WHERE rank IS NULL") == 50)
        #expect(try await compilations(of: shape.statements.rowUpsert, on: here) - before <= 4)
    }

    private func compilations(of sql: String, on device: Device) async throws -> Int32 {
        try await device.writer.write { db in
            sqlite3_stmt_status(try db.cachedStatement(sql: sql).sqliteStatement, SQLITE_STMTSTATUS_REPREPARE, 0)
        }
    }

    /// A page prepares the statement that deletes a row while foreign keys are off, and GRDB keeps which tables that
    /// statement writes, until an observer comes or goes: one engine does all of it.
    @Test("the app's observations hear of the children that go")
    func observed() async throws {
        let (server, here, _) = try await pair(
            """
            CREATE TABLE item (id TEXT PRIMARY KEY, title TEXT);
            CREATE TABLE part (id TEXT PRIMARY KEY, item TEXT REFERENCES item ON DELETE CASCADE);
            """, ["item", "part"])
        _ = try await server.commit(to: Device.scope) { $0.upsert("item", id: "i5", [:]) }
        let engine = try here.engine()
        try await engine.syncNow()
        let changes = Locked(0)
        let watch = DatabaseRegionObservation(tracking: Table("part")).start(
            in: here.writer, onError: { Issue.record($0) }, onChange: { _ in changes.withLock { $0 += 1 } })
        defer { watch.cancel() }
        try await here.sql("INSERT INTO item VALUES ('i9', CAST(x'ff' AS TEXT)); INSERT INTO part VALUES ('p9', 'i9')")
        _ = try await server.commit(to: Device.scope) { $0.delete("item", id: "i5") }
        try await engine.syncNow()
        #expect(changes.withLock { $0 } == 1)
        try await engine.discard(try #require(try await engine.rejectedOperations().first))
        #expect(try await here.count("part") == 0)
        #expect(changes.withLock { $0 } == 2)
    }

    @Test("a decision that a trigger of the app's skips stays to be made")
    func skippedWrite() async throws {
        let (server, here, _) = try await pair(
            noteSchema, ["note"],
            rules: [EntityRule("note") { $0.mine["title"] == "bad" ? .reject(code: "no", detail: "No.") : .accept }])
        _ = try await server.commit(to: Device.scope) { $0.upsert("note", id: "n1", ["title": "t"]) }
        let engine = try here.engine()
        try await engine.syncNow()
        try await here.sql("UPDATE note SET title = 'bad'")
        try await engine.syncNow()
        try await here.sql("CREATE TRIGGER keep BEFORE UPDATE ON note BEGIN SELECT RAISE(IGNORE); END")
        let refused = try #require(try await engine.rejectedOperations().first)
        let error = await #expect(throws: SyncError.self) {
            try await engine.retry(refused, changing: ["title": .text("good")])
        }
        #expect(error?.code == .writeSkipped)
        #expect(try await engine.rejectedOperations().map(\.record) == ["n1"])
        // A trigger that skips writes which change nothing stands in the way of none.
        try await here.sql(
            """
            DROP TRIGGER keep;
            CREATE TRIGGER keep BEFORE UPDATE ON note WHEN NEW.title IS OLD.title BEGIN SELECT RAISE(IGNORE); END
            """)
        try await engine.retry(refused, changing: ["title": .text("t")])
        #expect(try await engine.rejectedOperations().isEmpty)
    }
}
