import GRDB
import Testing
import TidemarkServer
import TidemarkWire

@testable import Tidemark

/// No row that the server has is deleted where an insert of this device is undone.
@Suite("References to an insert that is undone (I1, I13)")
struct UndoneReferenceTests {
    private let directory: TestDirectory

    init() throws { directory = try TestDirectory() }

    private func pair(
        _ schema: String, _ tables: [String], entities: [EntityDeclaration] = []
    ) async throws -> (server: SyncServer, here: Device, there: Device) {
        let server = try Device.server(in: directory, entities: entities)
        let here = try await Device(schema, tables: tables, server: server, in: directory, name: "here")
        let there = try await Device(schema, tables: tables, server: server, in: directory, name: "there")
        return (server, here, there)
    }

    @Test(
        "a row dangles on as it does on the server, where the server's own row refers to the record",
        arguments: ["CASCADE", "SET NULL", "SET DEFAULT", "RESTRICT"], [true, false])
    func serversOwn(action: String, isForbidden: Bool) async throws {
        let (server, here, there) = try await pair(
            """
            CREATE TABLE user (id TEXT PRIMARY KEY, name TEXT);
            CREATE TABLE task (id TEXT PRIMARY KEY, user TEXT DEFAULT 'u1' REFERENCES user ON DELETE \(action));
            CREATE TABLE step (id TEXT PRIMARY KEY, task TEXT REFERENCES task ON DELETE CASCADE);
            """, ["user", "task", "step"], entities: isForbidden ? [.state("user", direction: .pull)] : [])
        _ = try await server.commit(to: Device.scope) {
            $0.upsert("task", id: "t", ["user": "u7"])
            $0.upsert("step", id: "s", ["task": "t"])
        }
        try await here.sync()
        // A placeholder for whom the server has in another scope.
        try await here.sql("INSERT INTO user VALUES ('u7', \(isForbidden ? "'?'" : "CAST(x'ff' AS TEXT)"))")
        let engine = try here.engine()
        try await engine.syncNow()
        if !isForbidden { try await engine.discard(try #require(try await engine.rejectedOperations().first)) }
        #expect(try await here.count("tidemark_shadow_task") == 0)
        try await Device.sync(here, there)
        for device in [here, there] {
            #expect(try await device.rows("SELECT id, user FROM task") == [#""t"|"u7""#])
            #expect(try await device.count("step") == 1)
            #expect(try await device.count("user") == 0)
        }
        #expect(try await engine.verify().isClean)
    }

    @Test("a row that this device made stays, where somebody else had it refer to the record")
    func setByAnother() async throws {
        let (server, here, there) = try await pair(
            """
            CREATE TABLE user (id TEXT PRIMARY KEY, name TEXT);
            CREATE TABLE task (id TEXT PRIMARY KEY, user TEXT REFERENCES user ON DELETE CASCADE);
            """, ["user", "task"], entities: [.state("user", direction: .pull)])
        try await here.sql("INSERT INTO task VALUES ('t', NULL)")
        try await here.sync()
        _ = try await server.commit(to: Device.scope) { $0.upsert("task", id: "t", ["user": "u7"]) }
        try await here.sync()
        try await here.sql("INSERT INTO user VALUES ('u7', '?')")
        try await Device.sync(here, there)
        for device in [here, there] {
            #expect(try await device.rows("SELECT id, user FROM task") == [#""t"|"u7""#])
        }
        #expect(try await here.engine().verify().isClean)
    }

    private static let folders = """
        CREATE TABLE folder (id TEXT PRIMARY KEY, name TEXT, parent TEXT REFERENCES folder ON DELETE CASCADE);
        CREATE TABLE doc (
          id TEXT PRIMARY KEY, folder TEXT REFERENCES folder ON DELETE CASCADE, title TEXT);
        CREATE TABLE draft (id TEXT PRIMARY KEY, doc TEXT REFERENCES doc ON DELETE CASCADE);
        """

    /// Folders come from the server only, which has one with a document in it.
    private func folders() async throws -> (server: SyncServer, here: Device, there: Device) {
        let found = try await pair(
            Self.folders, ["folder", "doc", "draft"], entities: [.state("folder", direction: .pull)])
        _ = try await found.server.commit(to: Device.scope) {
            $0.upsert("folder", id: "f", ["name": "top"])
            $0.upsert("doc", id: "d", ["folder": "f"])
            $0.upsert("draft", id: "r", ["doc": "d"])
        }
        try await found.here.sync()
        return found
    }

    private static let insert = "INSERT INTO folder (id, name) VALUES ('n', 'new')"
    private static let move = "UPDATE folder SET parent = 'n' WHERE id = 'f'"

    private func expect(_ here: Device, _ there: Device, title: String, refused: [String]) async throws {
        try await Device.sync(here, there)
        for device in [here, there] {
            #expect(try await device.rows("SELECT id, parent FROM folder") == [#""f"|NULL"#])
            #expect(try await device.rows("SELECT id, folder FROM doc") == [#""d"|"f""#])
            #expect(try await device.count("draft") == 1)
        }
        #expect(try await there.rows("SELECT title FROM doc") == [title])
        let engine = try here.engine()
        #expect(try await engine.rejectedOperations().map(\.record).sorted() == refused)
        #expect(try await engine.verify().isClean)
    }

    @Test("a record that was moved goes back to where the server has it, and its other edit is sent")
    func moved() async throws {
        let (_, here, there) = try await folders()
        try await here.sql("\(Self.insert); UPDATE doc SET folder = 'n', title = 'mine'")
        try await here.sync()
        try await expect(here, there, title: #""mine""#, refused: ["n"])
    }

    @Test("a group with the insert is refused whole, with what the insert takes along")
    func group() async throws {
        let (_, here, there) = try await folders()
        try await here.engine().atomically { db in
            try db.execute(sql: "\(Self.insert); INSERT INTO doc VALUES ('x', 'n', 't')")
            try db.execute(sql: "UPDATE doc SET title = 'mine' WHERE id = 'd'")
        }
        for _ in 0..<2 { try await here.sync() }
        #expect(try await here.count("doc") == 1)
        try await expect(here, there, title: "NULL", refused: ["d", "n", "x"])
        #expect(try await here.rows("SELECT title FROM doc") == [#""mine""#])
    }

    @Test("a group keeps the edit of a record that was moved in it, and stays refused")
    func movedInGroup() async throws {
        let (_, here, there) = try await folders()
        try await here.engine().atomically { db in
            try db.execute(sql: "\(Self.insert); \(Self.move); UPDATE doc SET folder = 'n', title = 'mine'")
        }
        for _ in 0..<2 { try await here.sync() }
        try await expect(here, there, title: "NULL", refused: ["d", "f", "n"])
        #expect(try await here.rows("SELECT title FROM doc") == [#""mine""#])
    }

    @Test("a group that is refused for it waits for the verdict on an earlier edit of one of its records")
    func underWay() async throws {
        let (_, here, there) = try await folders()
        try await here.sql("UPDATE doc SET title = 'one'")
        await here.wire.loseAnswer()
        await #expect(throws: SyncError.self) { try await here.sync() }
        try await here.sql(Self.insert)
        try await here.engine().atomically { db in
            try db.execute(sql: "\(Self.move); UPDATE doc SET title = 'two'")
        }
        for _ in 0..<2 { try await here.sync() }
        try await expect(here, there, title: #""one""#, refused: ["d", "f", "n"])
        #expect(try await here.rows("SELECT title FROM doc") == [#""two""#])
        let engine = try here.engine()
        try await engine.retry(try #require(try await engine.rejectedOperations().first { $0.record == "d" }))
        try await engine.syncNow()
        #expect(try await here.rows("SELECT title FROM doc") == [#""two""#])
    }

    @Test("a refused edit holds what was edited, and nothing that may be another when it is tried again")
    func retried() async throws {
        let (server, here, there) = try await folders()
        _ = try await server.commit(to: Device.scope) {
            $0.upsert("folder", id: "g", ["name": "other"])
            $0.upsert("doc", id: "d", ["title": "one"])
        }
        try await here.sync()
        try await here.engine().atomically { db in
            try db.execute(sql: "\(Self.insert); UPDATE doc SET folder = 'n'")
        }
        try await here.sync()
        _ = try await server.commit(to: Device.scope) { $0.upsert("doc", id: "d", ["title": "two"]) }
        try await here.sync()
        let engine = try here.engine()
        let refused = try #require(try await engine.rejectedOperations().first { $0.record == "d" })
        try await engine.retry(refused, changing: ["folder": "g"])
        try await Device.sync(here, there)
        for device in [here, there] {
            #expect(try await device.rows("SELECT folder, title FROM doc") == [#""g"|"two""#])
        }
    }

    @Test("a group that is refused already stays so, where a record in it had been moved")
    func refusedBefore() async throws {
        let (_, here, there) = try await folders()
        try await here.sql("UPDATE folder SET name = 'x'; \(Self.insert)")
        try await here.engine().atomically { db in
            try db.execute(sql: "UPDATE folder SET name = 'y' WHERE id = 'f'")
            try db.execute(sql: "UPDATE doc SET folder = 'n', title = 'mine'")
        }
        for _ in 0..<2 { try await here.sync() }
        try await expect(here, there, title: "NULL", refused: ["d", "f", "n"])
        #expect(try await here.rows("SELECT title FROM doc") == [#""mine""#])
    }

    @Test("a move that is under way stands, where the record was moved once more")
    func movedTwice() async throws {
        let (server, here, there) = try await folders()
        _ = try await server.commit(to: Device.scope) { $0.upsert("folder", id: "g", ["name": "other"]) }
        try await here.sync()
        try await here.sql("UPDATE doc SET folder = 'g'")
        await here.wire.loseAnswer()
        await #expect(throws: SyncError.self) { try await here.sync() }
        try await here.sql("\(Self.insert); UPDATE doc SET folder = 'n'")
        for _ in 0..<2 { try await Device.sync(here, there) }
        for device in [here, there] { #expect(try await device.rows("SELECT folder FROM doc") == [#""g""#]) }
        #expect(try await here.engine().verify().isClean)
    }

    @Test("a new row that goes with another one of its group is listed")
    func takenAlong() async throws {
        let (_, here, there) = try await folders()
        try await here.engine().atomically { db in
            try db.execute(sql: "\(Self.insert); INSERT INTO folder (id, name, parent) VALUES ('m', 'below', 'n')")
        }
        for _ in 0..<2 { try await here.sync() }
        try await expect(here, there, title: "NULL", refused: ["m", "n"])
    }

    @Test("a new event is refused with its group")
    func event() async throws {
        let (_, here, there) = try await pair(
            "CREATE TABLE note (id TEXT PRIMARY KEY, body TEXT); CREATE TABLE audit (id TEXT PRIMARY KEY, what TEXT);",
            ["note", "audit"], entities: [EntityDeclaration("audit", kind: .events)])
        try await here.engine().atomically { db in
            try db.execute(sql: "INSERT INTO note VALUES ('n', CAST(x'ff' AS TEXT))")
            try db.execute(sql: "INSERT INTO audit VALUES ('a', 'made')")
        }
        for _ in 0..<2 { try await Device.sync(here, there) }
        #expect(try await there.count("audit") == 0)
        #expect(try await here.count("audit") == 1)
        #expect(try await here.engine().rejectedOperations().map(\.record).sorted() == ["a", "n"])
    }

    @Test("what this device has sent goes with the refused insert that it refers to, also out of the history's blocks")
    func sent() async throws {
        for isPacked in [false, true] {
            let directory = try TestDirectory()
            let rule = EntityRule("album") { _ in .reject(code: "no", detail: "No.") }
            let server = try Device.server(in: directory, rules: [rule])
            let schema = """
                CREATE TABLE album (id TEXT PRIMARY KEY, slug TEXT UNIQUE);
                CREATE TABLE photo (id TEXT PRIMARY KEY, album TEXT REFERENCES album(slug) ON DELETE CASCADE);
                """
            let here = try await Device(
                schema, tables: ["album", "photo"], server: server, in: directory, name: "here")
            let there = try await Device(
                schema, tables: ["album", "photo"], server: server, in: directory, name: "there")
            let count = isPacked ? OutboxHistory.blockLimit : 1
            // A reference by another column than the key waits for nothing.
            try await here.sql(
                """
                INSERT INTO album VALUES ('a', 's');
                WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < \(count))
                INSERT INTO photo SELECT 'p' || i, 's' FROM n
                """)
            for _ in 0..<2 { try await here.sync() }
            #expect(try await here.count("tidemark_history") == (isPacked ? 1 : 0))
            _ = try await server.commit(to: Device.scope) { $0.upsert("photo", id: "q", ["album": "s"]) }
            try await here.sync()
            let engine = try here.engine()
            try await engine.discard(try #require(try await engine.rejectedOperations().first))
            try await Device.sync(here, there)
            for device in [here, there] { #expect(try await device.rows("SELECT id FROM photo") == [#""q""#]) }
        }
    }

    @Test("a group of another scope is refused in its own turn, and none of its rows is lost")
    func otherScope() async throws {
        let server = try Device.server(in: directory, entities: [.state("folder", direction: .pull)])
        let rule = SyncedTable.ScopeRule.column("w", prefix: "w:")
        let schema = """
            CREATE TABLE folder (id TEXT PRIMARY KEY, w TEXT, parent TEXT REFERENCES folder ON DELETE CASCADE);
            CREATE TABLE doc (id TEXT PRIMARY KEY, w TEXT, folder TEXT REFERENCES folder ON DELETE CASCADE, title TEXT);
            """
        let tables = ["folder", "doc"].map { SyncedTable.table($0, scope: rule) }
        let here = try await Device(
            schema, server: server, in: directory, name: "here", synced: tables, scopes: ["w:a", "w:b"])
        let there = try await Device(
            schema, server: server, in: directory, name: "there", synced: tables, scopes: ["w:a", "w:b"])
        _ = try await server.commit(to: "w:b") {
            $0.upsert("folder", id: "f", ["w": "b"])
            $0.upsert("doc", id: "d", ["w": "b", "folder": "f"])
        }
        try await here.sync()
        try await here.sql("INSERT INTO folder (id, w) VALUES ('n', 'a')")
        try await here.engine().atomically { db in
            try db.execute(sql: "UPDATE folder SET parent = 'n' WHERE id = 'f'; UPDATE doc SET title = 'mine'")
        }
        for _ in 0..<2 { try await Device.sync(here, there) }
        for device in [here, there] {
            #expect(try await device.rows("SELECT id, parent FROM folder") == [#""f"|NULL"#])
            #expect(try await device.rows("SELECT id FROM doc") == [#""d""#])
        }
        #expect(try await there.rows("SELECT title FROM doc") == ["NULL"])
        let engine = try here.engine()
        let refused = try await engine.rejectedOperations().map { "\($0.record) \($0.scope)" }
        #expect(refused.sorted() == ["d w:b", "f w:b", "n w:a"])
        #expect(try await engine.verify().isClean)
    }
}
