import GRDB
import Testing
import TidemarkServer

@testable import Tidemark

@Suite("Uncaptured: what was written unseen meets a server that has lost the record (I11, I13)")
struct UncapturedLossTests {
    private static let table = "CREATE TABLE fresh (id TEXT PRIMARY KEY, title TEXT, body TEXT, rank INTEGER);"

    private static func rebuild(and more: String) -> String {
        """
        \(table) INSERT INTO fresh SELECT * FROM note; DROP TABLE note; ALTER TABLE fresh RENAME TO note; \(more)
        """
    }

    @Test("a record that was edited unseen and then deleted stays deleted, whoever replays it")
    func deleted() async throws {
        let server = try RestorableServer()
        let (first, second) = (try await server.device("first"), try await server.device("second"))
        try await first.sql("INSERT INTO note (id, title) VALUES ('n0', 'old')")
        for device in [first, second] { try await device.sync() }
        try await server.backUp()
        try await first.sql("INSERT INTO note (id, title) VALUES ('n1', 'lost')")
        for device in [first, second] { try await device.sync() }
        try await server.restore()
        try await first.sql(Self.rebuild(and: "UPDATE note SET title = 'unseen' WHERE id = 'n1'"))
        try await first.engine().install()
        try await first.sql("DELETE FROM note WHERE id = 'n1'")
        for device in [first, second, first, second] { try await device.sync() }
        for device in [first, second] { #expect(try await device.rows("SELECT id FROM note") == [#""n0""#]) }
    }

    @Test("rows that the app takes the server's word for go where the server has none")
    func discarded() async throws {
        let server = try RestorableServer()
        let first = try await server.device("first")
        try await server.backUp()
        try await first.sql(
            """
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1100)
            INSERT INTO note (id, title) SELECT 'm' || i, 'x' FROM n
            """)
        try await first.sync()
        try await first.sql(Self.rebuild(and: "UPDATE note SET title = 'unseen'"))
        try await first.engine().install()
        try await server.restore()
        try await first.sync()
        #expect(try await first.engine().inferredEdits().map(\.updates) == [1100])
        try await first.engine().discardInferredEdits()
        try await first.sync()
        #expect(try await first.engine().verify().isClean)
        #expect(try await first.count("note") == (try await first.engine().status().rows.confirmed))
        #expect(try await first.count("tidemark_shadow_note") == 0)
    }

    /// Two devices that hold two records which the server has lost. The second one's table was emptied unseen since,
    /// and the server has said that it has none of them.
    private static func deletedUnseen() async throws -> (server: RestorableServer, first: Device, second: Device) {
        let (server, first, second) = try await RestorableServer.pair()
        try await server.backUp()
        try await first.sql("INSERT INTO note (id, title) VALUES ('n1', 'lost'), ('n2', 'lost')")
        try await Device.sync(first, second)
        try await server.restore()
        try await second.sql("DROP TABLE note; \(table) ALTER TABLE fresh RENAME TO note")
        await second.wire.nextPage { _, _ in throw Wire.Lost() }
        try? await second.sync()
        #expect(try await second.engine().inferredEdits().map(\.deletes) == [2])
        return (server, first, second)
    }

    @Test("a row that nobody knows is not put back where the app discards its delete: the server is asked for it")
    func unknown() async throws {
        let (_, first, second) = try await Self.deletedUnseen()
        try await second.engine().discardInferredEdits()
        #expect(try await second.rows("SELECT * FROM note") == [])
        try await Device.sync(first, second)
        for device in [first, second] {
            #expect(try await device.count("note WHERE title = 'lost'") == 2)
        }
        #expect(try await second.engine().verify().isClean)
    }

    private static let refusal =
        #""status":"rejected","error":{"code":"forbidden","detail":"d","hint":"h"}"#

    /// A device on which one of two records was deleted unseen, and whose server tells nothing of it.
    private static func device() async throws -> HandServer {
        let device = try await HandServer(RestorableServer.schema, tables: [.table("note")])
        try await device.page(
            { Device.upsert("note", "n1", $0, #"{"title":"lost"}"#) },
            { Device.upsert("note", "n2", $0, #"{"title":"kept"}"#) })
        try await device.sql(rebuild(and: "DELETE FROM note WHERE id = 'n1'"))
        try await device.compare()
        return device
    }

    @Test("nor is it where its delete is refused, or nobody can say what became of it")
    func refused() async throws {
        for verdict in [Self.refusal, #""status":"settled""#] {
            let device = try await Self.device()
            try await device.answer(try await device.seal(), verdict)
            #expect(try await device.count("note") == 1)
            #expect(try await device.count("tidemark_refetch WHERE record = 'n1'") == 1)
            #expect(try await device.count("tidemark_shadow_note") == 0)
        }
    }

    @Test("such a delete outlives a second time without triggers, and can be retried when it was refused")
    func again() async throws {
        let device = try await Self.device()
        try await device.sql(Self.rebuild(and: ""))
        try await device.compare()
        let first = try #require(try await device.seal())
        #expect(first.isDelete && first.record == "n1")
        try await device.answer(first, Self.refusal)
        try await device.decide { db, schema in
            for refused in try RejectedOperation.all(db) { try refused.retry(db, schema, changing: [:]) }
        }
        let second = try #require(try await device.seal())
        #expect(second.isDelete && second.record == "n1")
        try await device.answer(second, #""status":"applied","version":VERSION"#)
        #expect(try await device.count("note") == 1)
        #expect(try await device.count("tidemark_shadow_note") == 0)
    }

    @Test("a record that is made anew in another scope over such a delete is deleted where it was")
    func elsewhere() async throws {
        let scopes: [Scope] = ["w:1", "w:2"]
        let device = try await HandServer(
            MultiScopeWorld.schema, tables: [.table("item", scope: MultiScopeWorld.rule)], scopes: scopes)
        let data = #"{"w":"1","title":"base","note":null,"slug":null}"#
        try await device.page(
            in: scopes[0], { Device.upsert("item", "i1", $0, data) }, { Device.upsert("item", "i2", $0, data) })
        try await device.page(in: scopes[1])
        try await device.sql(
            """
            CREATE TABLE kept AS SELECT * FROM item WHERE id = 'i2'; DROP TABLE item;
            CREATE TABLE item (id TEXT PRIMARY KEY, w TEXT, title TEXT, note TEXT, slug TEXT UNIQUE);
            INSERT INTO item SELECT * FROM kept; DROP TABLE kept
            """)
        try await device.compare(in: scopes[0])
        try await device.sql("INSERT INTO item (id, w, title) VALUES ('i1', '2', 'anew')")
        try await device.seal(in: scopes[0])
        let insert = try #require(try await device.seal(in: scopes[1]))
        try await device.answer(insert, #""status":"applied","version":VERSION"#, in: scopes[1])
        let delete = try #require(try await device.seal(in: scopes[0]))
        #expect(delete.isDelete && delete.record == "i1")
    }

    @Test("a row that is made anew over such a delete is an insert, whatever its columns hold")
    func madeAnew() async throws {
        let (_, first, second) = try await Self.deletedUnseen()
        try await second.sql("INSERT INTO note (id, rank) VALUES ('n1', 7); INSERT INTO note (id) VALUES ('n2')")
        try await second.sync()
        let rows = try await second.rows("SELECT * FROM note ORDER BY id")
        #expect(rows == [#""n1"|NULL|NULL|7"#, #""n2"|NULL|NULL|NULL"#])
        #expect(try await second.engine().rejectedOperations().isEmpty)
        try await Device.sync(first, second, first)
        for device in [first, second] {
            #expect(try await device.count("note") == 2)
            #expect(try await device.rows("SELECT rank FROM note WHERE id = 'n1'") == ["7"])
            #expect(try await device.engine().verify().isClean)
        }
    }

    @Test("what is discarded comes back with one sync, however many rows it is")
    func many() async throws {
        let server = try RestorableServer()
        let (first, second) = (try await server.device("first"), try await server.device("second"))
        try await first.sql(
            """
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 450)
            INSERT INTO note (id, title) SELECT 'm' || i, 'x' FROM n
            """)
        try await Device.sync(first, second)
        try await second.sql(Self.rebuild(and: "DELETE FROM note"))
        try await second.engine().install()
        try await second.engine().discardInferredEdits()
        try await second.sync()
        #expect(try await second.count("note") == 450)
    }

    @Test("a discard in a table that is only pushed asks for nothing, and holds up no other table")
    func pushed() async throws {
        let server = try RestorableServer(entities: [.state("note", direction: .push)])
        let device = try await server.device("first")
        try await device.sql("INSERT INTO note (id) VALUES ('n1'), ('n2'); INSERT INTO tag VALUES (1, 'x'), (2, 'x')")
        try await device.sync()
        try await device.sql(
            """
            \(Self.table) DROP TABLE note; ALTER TABLE fresh RENAME TO note;
            CREATE TABLE label (id INTEGER PRIMARY KEY, name TEXT); DROP TABLE tag; ALTER TABLE label RENAME TO tag
            """)
        let engine = try device.engine()
        try await engine.install()
        try await engine.discardInferredEdits()
        try await engine.syncNow()
        #expect(try await engine.status().scopes[Device.scope]?.lastError == nil)
        #expect(try await device.count("tag") == 2)
        #expect(try await device.count("note") + device.count("tidemark_refetch") == 0)
        #expect(try await engine.inferredEdits().isEmpty)
    }
}
