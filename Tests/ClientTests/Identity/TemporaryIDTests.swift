import Foundation
import GRDB
import Testing
import TidemarkCore
import TidemarkServer
import TidemarkWire

@testable import Tidemark

@Suite("Identity: temporary ids give way to the server's, everywhere and in one transaction (A17, F6)")
struct TemporaryIDTests {
    private let all = """
        SELECT o.id, o.customer = c.id, l.order_id, r.order_id, r.extra, d.order_id FROM "order" o
        JOIN customer c LEFT JOIN line l LEFT JOIN remark r LEFT JOIN draft d
        """

    @Test("keys, foreign keys, composite and self references, JSON paths and tables apart follow the verdict")
    func verdict() async throws {
        let directory = try TestDirectory()
        let server = try Device.server(in: directory, entities: shopEntities)
        let here = try await Device.shop("a", server: server, in: directory)
        let there = try await Device.shop("b", server: server, in: directory)
        try await here.makeOrder(number(1))
        try await here.sql(#"INSERT INTO "order" VALUES (\#(number(2)), 'local-c', 'second', \#(number(1)))"#)
        try await here.sync()
        try await here.expectNoTemporaryIDs()
        let (first, second) = (try await here.assigned(number(1)), try await here.assigned(number(2)))
        let extra = #"{\"orders\":[{\"id\":\#(first)},{\"id\":\"\#(first)\"}]}"#
        #expect(
            try await here.rows(all + " WHERE o.id = \(first)")
                == [#"\#(first)|1|\#(first)|\#(first)|"\#(extra)"|\#(first)"#])
        #expect(
            try await here.rows(#"SELECT id, replaces FROM "order" ORDER BY title"#)
                == ["\(first)|NULL", "\(second)|\(first)"])
        #expect(try await here.rows("PRAGMA foreign_key_check") == [])
        // Nothing is left to send, and nothing was sent twice.
        let bodies = await here.wire.bodies.filter { $0.contains(#""number":"#) }
        #expect(bodies.count == 1)
        for table in ["order", "customer", "line", "remark"] {
            #expect(try await here.count("tidemark_shadow_\(table)") == 0, "\(table)")
        }
        try await there.sync()
        for table in ["customer", "\"order\"", "line", "remark"] {
            let theirs = try await there.rows("SELECT * FROM \(table) ORDER BY 1")
            let mine = try await here.rows("SELECT * FROM \(table) ORDER BY 1")
            #expect(theirs == mine, "\(table)")
        }
        #expect(try await there.count("\"order\"") == 2)
        try await there.expectNoTemporaryIDs()
        try await here.sync()
        #expect(try await here.count("\"order\"") == 2)
    }

    @Test("an answer that is lost is no matter: the replay says the id, and so does a pull without one")
    func lostAnswer() async throws {
        let device = try await Device.shop()
        try await device.sync()
        try await device.makeOrder(number(1))
        await device.wire.loseAnswer()
        await #expect(throws: SyncError.self) { try await device.sync() }
        // What happens meanwhile is edited under the temporary id.
        try await device.sql(
            #"UPDATE "order" SET title = 'changed'; INSERT INTO line VALUES (\#(number(1)), 2, 'milk')"#)
        try await device.sync()
        try await device.expectNoTemporaryIDs()
        let id = try await device.assigned(number(1))
        #expect(try await device.rows(#"SELECT id, title FROM "order""#) == ["\(id)|\"changed\""])
        #expect(try await device.rows("SELECT order_id, number FROM line") == ["\(id)|1", "\(id)|2"])
        #expect(try await device.count("tidemark_shadow_order") == 0)
    }

    @Test("verdicts that are cut off leave the idmap to tell, before the rows that use it")
    func idmap() async throws {
        let device = try await Device.shop()
        try await device.sync()
        try await device.makeOrder(number(1))
        await device.wire.loseAnswer()
        await #expect(throws: SyncError.self) { try await device.sync() }
        // The next exchange carries the page only: its operations are put back to where they were.
        await device.wire.next { request, inner in
            var bare = request
            let body = String(decoding: request.body, as: UTF8.self)
            let start = try #require(body.range(of: "\"operations\":["))
            bare.body = Array((body[..<start.upperBound] + "]}").utf8)
            return try await inner.send(bare)
        }
        try await device.sync()
        try await device.expectNoTemporaryIDs()
        #expect(try await device.count("tidemark_operation WHERE finished_at IS NULL") == 4)
        try await device.sync()
        #expect(try await device.rows(#"SELECT id FROM "order""#) == ["\(device.assigned(number(1)))"])
        #expect(try await device.count("tidemark_operation WHERE finished_at IS NULL") == 0)
        #expect(try await device.count("tidemark_shadow_order") == 0)
        #expect(try await device.count("line") == 1)
    }

    @Test("a restored copy that makes the same record again gets the same one, whatever it pulled first")
    func restored() async throws {
        let directory = try TestDirectory()
        let server = try Device.server(in: directory, entities: shopEntities)
        let device = try await Device.shop("a", server: server, in: directory)
        try await device.makeOrder(number(1))
        let copy = directory.url.appending(path: "copy.sqlite").path
        try await device.writer.writeWithoutTransaction { db in try db.execute(sql: "VACUUM INTO '\(copy)'") }
        try await device.sync()
        try await device.sql(#"UPDATE "order" SET title = 'later'"#)
        try await device.sync()
        let restored = try await Device(
            "SELECT 1", tables: [], server: server, in: directory, name: "copy", synced: shopTables)
        try await restored.sync()
        try await restored.sync()
        try await restored.expectNoTemporaryIDs()
        let id = try await device.assigned(number(1))
        #expect(try await restored.rows(#"SELECT id FROM "order""#) == ["\(id)"])
        #expect(try await restored.rows("SELECT order_id FROM line") == ["\(id)"])
        try await device.sync()
        #expect(
            try await restored.rows(#"SELECT * FROM "order""#) == device.rows(#"SELECT * FROM "order""#))
    }

    @Test("a child that is edited before its parent is made is sealed behind it")
    func parentsFirst() async throws {
        let device = try await Device.shop()
        try await device.sql(
            """
            PRAGMA defer_foreign_keys = ON;
            INSERT INTO line VALUES (\(number(1)), 1, 'tea');
            INSERT INTO "order" VALUES (\(number(1)), NULL, 'a', NULL);
            """)
        try await device.sync()
        try await device.expectNoTemporaryIDs()
        #expect(try await device.rows("SELECT order_id FROM line") == ["\(device.assigned(number(1)))"])
        let bodies = await device.wire.bodies.filter { $0.contains(#""number":"#) }
        #expect(bodies.count == 1)
    }

    @Test("new records that name each other, or themselves, get their ids and then their names")
    func circle() async throws {
        let directory = try TestDirectory()
        let server = try Device.server(in: directory, entities: shopEntities)
        let here = try await Device.shop("a", server: server, in: directory)
        let there = try await Device.shop("b", server: server, in: directory)
        try await here.sql(
            """
            INSERT INTO "order" VALUES (\(number(1)), NULL, 'a', NULL), (\(number(2)), NULL, 'b', \(number(1))),
              (\(number(3)), NULL, 'c', \(number(3)));
            UPDATE "order" SET replaces = \(number(2)) WHERE id = \(number(1));
            """)
        try await here.sync()
        try await there.sync()
        try await here.expectNoTemporaryIDs()
        let rows = try await here.rows(
            #"SELECT title, (SELECT title FROM "order" p WHERE p.id = o.replaces) FROM "order" o ORDER BY 1"#)
        #expect(rows == [#""a"|"b""#, #""b"|"a""#, #""c"|"c""#])
        #expect(try await there.rows(#"SELECT * FROM "order""#) == here.rows(#"SELECT * FROM "order""#))
        #expect(try await here.count("tidemark_shadow_order") == 0)
    }

    @Test("a row that names a refused record waits, visibly, and goes on when that one does")
    func refusedParent() async throws {
        let directory = try TestDirectory()
        var limits = Limits()
        limits.recordBytes = 300
        let server = SyncServer(store: try Device.store(in: directory), entities: shopEntities, limits: limits)
        let device = try await Device.shop("a", server: server, in: directory)
        try await device.sql(
            """
            INSERT INTO "order" VALUES (\(number(1)), NULL, '\(String(repeating: "x", count: 400))', NULL);
            INSERT INTO line VALUES (\(number(1)), 1, 'tea');
            INSERT INTO customer VALUES ('local-1', 'Ada');
            INSERT INTO remark VALUES ('r1', NULL, NULL, 'see', '{"orders":[{"id":\(number(1))}]}');
            """)
        try await device.sync()
        try await device.sync()
        let engine = try device.engine()
        #expect(try await engine.status().blocked == 2)
        let refused = try await engine.rejectedOperations()
        #expect(refused.map(\.entity) == ["order"])
        #expect(refused.first?.dependants.map(\.entity) == ["line"])
        #expect(try await engine.state(of: "line", id: #"[{"$int":"\#(number(1))"},1]"#) != .confirmed)
        // Nothing is sent in vain meanwhile.
        let before = await device.wire.bodies.count
        try await device.sync()
        let idle = await device.wire.bodies.dropFirst(before)
        #expect(idle.allSatisfy { $0.contains(#""operations":[]"#) })
        #expect(try await device.rows("SELECT id FROM customer").allSatisfy { !$0.contains("local") })
        try await device.sql(#"INSERT INTO "order" VALUES (\#(number(1)), NULL, 'short', NULL)"#)
        try await device.sync()
        try await device.sync()
        let id = try await device.assigned(number(1))
        #expect(try await device.rows("SELECT order_id FROM line") == ["\(id)"])
        #expect(try await engine.rejectedOperations().isEmpty)
        #expect(try await engine.status().blocked == 0)
        #expect(try await device.rows("SELECT extra FROM remark") == [#""{\"orders\":[{\"id\":\#(id)}]}""#])
        #expect(try await device.count("tidemark_shadow_line") == 0)
    }

    @Test("a screen that holds a temporary id finds its row, and a late use of it is put right")
    func lateUse() async throws {
        let device = try await Device.shop()
        try await device.makeOrder(number(1))
        let engine = try device.engine()
        #expect(try await engine.canonicalID(of: String(number(1)), in: "order") == String(number(1)))
        try await device.sync()
        let assigned = try await device.assigned(number(1))
        #expect(try await engine.canonicalID(of: String(number(1)), in: "order") == String(assigned))
        let id = try await device.writer.read { db in try SyncEngine.canonicalID(db, of: number(1), in: "order") }
        #expect(id == assigned)
        #expect(try await engine.canonicalID(of: "local-c", in: "customer") != "local-c")
        #expect(try await engine.state(of: "order", id: String(number(1))) == .confirmed)
        try await device.sql(
            """
            PRAGMA defer_foreign_keys = ON;
            INSERT INTO line VALUES (\(number(1)), 2, 'late');
            INSERT INTO "order" VALUES (\(number(1)), NULL, 'again', NULL);
            """)
        try await device.sync()
        try await device.sync()
        try await device.expectNoTemporaryIDs()
        #expect(try await device.rows("SELECT order_id, number FROM line") == ["\(assigned)|1", "\(assigned)|2"])
        #expect(try await device.rows(#"SELECT id, title FROM "order""#) == ["\(assigned)|\"again\""])
        #expect(try await device.count("tidemark_shadow_order") == 0)
    }

    @Test("ids of other devices' records mean nothing here, even where they were called the same")
    func foreign() async throws {
        let directory = try TestDirectory()
        let server = try Device.server(in: directory, entities: shopEntities)
        let here = try await Device.shop("a", server: server, in: directory)
        let there = try await Device.shop("b", server: server, in: directory)
        try await there.sync()
        try await here.makeOrder(number(1))
        try await there.makeOrder(number(1))
        try await there.sql(#"UPDATE "order" SET title = 'theirs'"#)
        try await here.sync()
        await there.wire.loseAnswer()
        await #expect(throws: SyncError.self) { try await there.sync() }
        try await there.sync()
        try await here.sync()
        let (mine, theirs) = (try await here.assigned(number(1)), try await there.assigned(number(1)))
        #expect(
            try await here.rows(#"SELECT id, title FROM "order" ORDER BY title"#)
                == ["\(mine)|\"first\"", "\(theirs)|\"theirs\""])
        for table in ["customer", "\"order\"", "line", "remark"] {
            let theirs = try await there.rows("SELECT * FROM \(table) ORDER BY 1")
            let mine = try await here.rows("SELECT * FROM \(table) ORDER BY 1")
            #expect(theirs == mine, "\(table)")
        }
        #expect(try await there.rows("SELECT order_id FROM draft") == ["\(theirs)"])
    }

    @Test("after a lost history a record gets its id again, whoever is there first", arguments: [false, true])
    func replayed(othersFirst: Bool) async throws {
        let server = try RestorableServer(entities: shopEntities)
        let here = try await server.device("a", schema: shopSchema, synced: shopTables)
        let there = try await server.device("b", schema: shopSchema, synced: shopTables)
        for device in [here, there] { try await device.sync() }
        try await server.backUp()
        try await here.makeOrder(number(1))
        for device in [here, there] { try await device.sync() }
        let (first, other) = (try await here.assigned(number(1)), try await there.assigned(number(2)))
        #expect(try await there.rows(#"SELECT id FROM "order""#) == ["\(first)"])
        try await server.restore()
        // An edit that names the lost record before it is back, and a new record between.
        try await there.sql(#"UPDATE remark SET text = 'theirs', extra = '{"orders":[{"id":\#(first)}]}'"#)
        try await there.sql(#"INSERT INTO "order" VALUES (\#(number(2)), NULL, 'other', \#(first))"#)
        if othersFirst { try await there.sync() }
        for _ in 0..<3 { for device in [here, there] { try await device.sync() } }
        let orders = #"SELECT id, title, replaces FROM "order" ORDER BY title"#
        #expect(
            try await here.rows(orders) == ["\(first)|\"first\"|NULL", "\(other)|\"other\"|\(first)"])
        for table in ["customer", "\"order\"", "line", "remark"] {
            let theirs = try await there.rows("SELECT * FROM \(table) ORDER BY 1")
            let mine = try await here.rows("SELECT * FROM \(table) ORDER BY 1")
            #expect(theirs == mine, "\(table)")
        }
        #expect(try await here.rows("SELECT order_id FROM draft") == ["\(first)"])
        #expect(try await there.rows("SELECT order_id FROM line") == ["\(first)"])
        #expect(
            try await here.rows("SELECT text, extra FROM remark")
                == [#""theirs"|"{\"orders\":[{\"id\":\#(first)}]}""#])
        for device in [here, there] { try await device.expectNoTemporaryIDs() }
    }

    @Test("ids and references that a table cannot have are refused with what to change")
    func impossible() async throws {
        let directory = try TestDirectory()
        let server = try Device.server(in: directory, entities: [.state("pair", ids: .server)])
        let device = try await Device(
            "CREATE TABLE pair (a TEXT, b TEXT, PRIMARY KEY (a, b))", tables: ["pair"], server: server, in: directory)
        let error = await #expect(throws: SyncError.self) { try await device.sync() }
        #expect(error?.code == .tableUnsupported)
        let wrong: [(SyncedTable, SyncError.Code)] = [
            (.table("pair", ids: .server), .tableUnsupported),
            (.table("pair", references: [.json("c", path: "$", to: "pair")]), .tableUnsupported),
            (.table("pair", references: [.json("b", path: "$", to: "pair")]), .tableUnsupported),
            (.table("pair", ids: .client), .declarationMismatch),
        ]
        for (table, code) in wrong {
            let engine = try SyncEngine(
                for: device.writer, tables: [table], scopes: [Device.scope], transport: device.wire)
            let error = await #expect(throws: SyncError.self) { try await engine.syncNow() }
            #expect(error?.code == code, "\(table)")
        }
    }

    @Test("rows with ids of their own are refused by the server, and announced as a warning")
    func ownIDs() async throws {
        let device = try await Device.shop()
        try await device.sql("INSERT INTO customer VALUES ('mine', 'Ada')")
        let engine = try device.engine()
        try await engine.install()
        #expect(try await engine.status().warnings.contains { $0.contains("customer") && $0.contains("TemporaryID") })
        try await device.sync()
        #expect(try await engine.rejectedOperations().map(\.code) == ["id_not_assigned"])
    }

    @Test("rows that were there before get no warning until the server was asked for them")
    func ownIDsBefore() async throws {
        let server = try RestorableServer(entities: shopEntities)
        let row = "INSERT INTO customer VALUES ('mine', 'Ada');"
        let device = try await server.device("a", schema: shopSchema + row, synced: shopTables)
        let engine = try device.engine()
        func isWarned() async throws -> Bool {
            try await engine.install()
            return try await engine.status().warnings.contains { $0.contains("customer") && $0.contains("TemporaryID") }
        }
        #expect(try await !isWarned())
        try await device.sync()
        #expect(try await engine.rejectedOperations().map(\.code) == ["id_not_assigned"])
    }

    @Test("many new records get their ids with one answer, in a table without an index too")
    func many() async throws {
        let device = try await Device.shop()
        try await device.writer.write { db in
            for index in 0..<800 {
                let id = number(Int64(index))
                try db.execute(sql: "INSERT INTO \"order\" VALUES (?, NULL, 'x', NULL)", arguments: [id])
                try db.execute(
                    sql: "INSERT INTO remark VALUES (?, NULL, NULL, 'x', ?)",
                    arguments: ["r\(index)", #"{"orders":[{"id":\#(id)}]}"#])
            }
        }
        try await device.sync()
        try await device.expectNoTemporaryIDs()
        #expect(try await device.count(#""order" WHERE id > 0"#) == 800)
    }
}
