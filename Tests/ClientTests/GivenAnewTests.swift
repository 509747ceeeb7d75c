import Foundation
import GRDB
import Testing
import TidemarkCore
import TidemarkServer
import TidemarkTesting
import TidemarkWire

@testable import Tidemark

@Suite("Ids given anew: what the server says means their new holders, what was done here their former ones (A17, I11)")
struct GivenAnewTests {
    private let here: Device
    private let there: Device
    private let server: RestorableServer
    private let orders = #"SELECT id, title FROM "order" ORDER BY id"#

    init() async throws {
        server = try RestorableServer(entities: shopEntities)
        here = try await server.device("a", schema: shopSchema, synced: shopTables)
        there = try await server.device("b", schema: shopSchema, synced: shopTables)
    }

    private func syncBoth() async throws {
        for _ in 0..<3 { for device in [there, here] { try await device.sync() } }
    }

    /// The snapshot of the restored server comes first, and the push that brings records back behind it.
    private func hearFirst(_ device: Device) async throws {
        let engine = try device.engine()
        await device.wire.next { request, inner in try await inner.send(request) }
        await device.wire.loseRequest()
        await #expect(throws: SyncError.self) { try await engine.syncNow() }
        try await engine.syncNow()
        let paths = await device.wire.requests.map(\.path)
        let snapshot = try #require(paths.lastIndex(of: "/sync/snapshot"))
        #expect(snapshot < paths.endIndex - 1, "\(paths.suffix(8))")
    }

    private func expectSame(_ tables: [String] = ["customer", "\"order\"", "line", "remark"]) async throws {
        for table in tables {
            let theirs = try await there.rows("SELECT * FROM \(table) ORDER BY 1, 2")
            let mine = try await here.rows("SELECT * FROM \(table) ORDER BY 1, 2")
            #expect(theirs == mine, "\(table)")
        }
        for table in ["order", "line", "remark"] {
            #expect(try await here.count("tidemark_shadow_\(table)") == 0, "\(table)")
        }
    }

    /// A lost record of this device that had the id 2, which another one has by now, and one of both that had 1.
    private func takeTwo() async throws {
        try await there.sql(
            """
            INSERT INTO "order" VALUES (\(number(1)), NULL, 'base', NULL);
            INSERT INTO remark VALUES ('r', NULL, NULL, 'text', '{"orders":[]}')
            """)
        try await syncBoth()
        try await server.backUp()
        try await here.sql(#"INSERT INTO "order" VALUES (\#(number(2)), NULL, 'former', NULL)"#)
        try await here.sync()
        #expect(try await here.rows(orders) == [#"1|"base""#, #"2|"former""#])
        try await server.restore()
        try await there.sql(#"INSERT INTO "order" VALUES (\#(number(3)), NULL, 'present', NULL)"#)
        try await there.sync()
        #expect(try await there.rows(orders) == [#"1|"base""#, #"2|"present""#])
    }

    @Test("a column or a document that came under an edit goes on naming the new holder", arguments: [false, true])
    func underEdits(isHeardFirst: Bool) async throws {
        try await takeTwo()
        try await there.sql(
            #"UPDATE remark SET extra = '{"orders":[{"id":2}]}'; UPDATE "order" SET replaces = 2 WHERE id = 1"#)
        try await there.sync()
        try await here.sql(#"UPDATE remark SET text = 'mine'; UPDATE "order" SET title = 'mine' WHERE id = 1"#)
        if isHeardFirst { try await hearFirst(here) }
        try await syncBoth()
        try await expectSame()
        #expect(try await here.rows(#"SELECT title, replaces FROM "order" WHERE id = 1"#) == [#""mine"|2"#])
        #expect(try await here.rows("SELECT text, extra FROM remark") == [#""mine"|"{\"orders\":[{\"id\":2}]}""#])
        #expect(try await here.rows(orders).suffix(2) == [#"2|"present""#, #"3|"former""#])
    }

    @Test("a column or a document that is edited here goes with the former holder", arguments: [false, true])
    func edits(isHeardFirst: Bool) async throws {
        try await takeTwo()
        try await here.sql(
            #"UPDATE remark SET extra = '{"orders":[{"id":2}]}'; UPDATE "order" SET replaces = 2 WHERE id = 1"#)
        try await there.sql(#"UPDATE remark SET text = 'theirs'; UPDATE "order" SET title = 'theirs' WHERE id = 1"#)
        try await there.sync()
        if isHeardFirst { try await hearFirst(here) }
        try await syncBoth()
        try await expectSame()
        #expect(try await here.rows(#"SELECT title, replaces FROM "order" WHERE id = 1"#) == [#""theirs"|3"#])
        #expect(try await here.rows("SELECT text, extra FROM remark") == [#""theirs"|"{\"orders\":[{\"id\":3}]}""#])
    }

    @Test("a record whose key holds the id is both: the new holder's, and the one that goes", arguments: [false, true])
    func keys(isHeardFirst: Bool) async throws {
        try await takeTwo()
        try await server.restore()
        try await here.sql("INSERT INTO line VALUES (2, 1, 'former')")
        try await there.sql(
            #"INSERT INTO line VALUES (2, 1, 'present'); UPDATE "order" SET title = 'present' WHERE id = 2"#)
        try await there.sync()
        if isHeardFirst { try await hearFirst(here) }
        try await syncBoth()
        try await expectSame()
        let lines = #"SELECT title, product FROM line l JOIN "order" o ON o.id = l.order_id ORDER BY 1"#
        #expect(try await here.rows(lines) == [#""former"|"former""#, #""present"|"present""#])
    }

    /// Of a schema with orders: a lost record of one device had the id 1, which another one's has by now.
    private func takeOne(_ schema: String, _ tables: [SyncedTable]) async throws -> (here: Device, there: Device) {
        let server = try RestorableServer(entities: [.state("order", ids: .server)])
        let here = try await server.device("a", schema: schema, synced: tables)
        let there = try await server.device("b", schema: schema, synced: tables)
        for device in [here, there] { try await device.sync() }
        try await server.backUp()
        try await here.sql(#"INSERT INTO "order" VALUES (\#(number(1)), 'former')"#)
        try await here.sync()
        try await server.restore()
        try await there.sql(#"INSERT INTO "order" VALUES (\#(number(2)), 'present')"#)
        try await there.sync()
        return (here, there)
    }

    @Test("a row that waits for its place goes on naming the new holder, and an edited one the former")
    func parked() async throws {
        let schema = """
            CREATE TABLE "order" (id INTEGER PRIMARY KEY, title TEXT);
            CREATE TABLE tag (id TEXT PRIMARY KEY, name TEXT UNIQUE, order_id INTEGER REFERENCES "order"(id));
            """
        let tables: [SyncedTable] = [.table("order"), .table("tag")]
        let (here, there) = try await takeOne(schema, tables)
        try await there.sql("INSERT INTO tag VALUES ('t', 'y', 1)")
        try await there.sync()
        try await here.sql("INSERT INTO tag VALUES ('a', 'y', NULL)")
        try await hearFirst(here)
        #expect(try await here.rows("SELECT record FROM tidemark_parked") == [#""t""#])
        try await here.sql("UPDATE tag SET name = 'z' WHERE id = 'a'")
        for _ in 0..<3 { for device in [here, there] { try await device.sync() } }
        let rows = #"SELECT t.id, t.name, o.title FROM tag t LEFT JOIN "order" o ON o.id = t.order_id ORDER BY 1"#
        for device in [here, there] {
            #expect(try await device.rows(rows) == [#""a"|"z"|NULL"#, #""t"|"y"|"present""#])
        }
    }

    @Test("an edited row that the schema refuses under the new id waits for its place, and is not taken for an edit")
    func refused() async throws {
        let schema = """
            CREATE TABLE "order" (id INTEGER PRIMARY KEY, title TEXT);
            CREATE TABLE badge (id TEXT PRIMARY KEY, owner TEXT UNIQUE);
            """
        let owner = SyncedTable.DocumentID.json("owner", path: "$.order", to: "order")
        let tables: [SyncedTable] = [.table("order"), .table("badge", references: [owner])]
        let (here, there) = try await takeOne(schema, tables)
        try await there.sql(#"INSERT INTO badge VALUES ('a', '{"order":2}')"#)
        try await there.sync()
        try await here.sql(#"INSERT INTO badge VALUES ('b', '{"order":1}')"#)
        try await hearFirst(here)
        #expect(try await here.rows("SELECT record FROM tidemark_parked") == [#""b""#])
        #expect(try await here.rows("SELECT id FROM badge") == [#""a""#])
        try await there.sql("DELETE FROM badge")
        for _ in 0..<3 { for device in [there, here] { try await device.sync() } }
        for device in [here, there] {
            #expect(try await device.rows("SELECT * FROM badge") == [#""b"|"{\"order\":2}""#])
        }
    }

    @Test("a request that is taken in two histories leaves the temporary id to the record's own, not to its namesake's")
    func twice() async throws {
        try await syncBoth()
        try await server.backUp()
        try await here.sql(#"INSERT INTO "order" VALUES (\#(number(1)), NULL, 'former', NULL)"#)
        try await here.sync()
        let isPush = #""tempId""#
        let request = try #require(
            await here.wire.requests.last { String(decoding: $0.body, as: UTF8.self).contains(isPush) })
        try await server.restore()
        try await there.sql(#"INSERT INTO "order" VALUES (\#(number(2)), NULL, 'present', NULL)"#)
        try await there.sync()
        let answer = try await InProcessTransport(to: await server.server) { _ in .readWrite(as: "ada") }.send(request)
        #expect(answer.status == 200)
        try await syncBoth()
        try await expectSame()
        #expect(try await here.rows(orders) == [#"1|"present""#, #"2|"former""#])
        #expect(try await here.engine().canonicalID(of: String(number(1)), in: "order") == "2")
    }
}
