import Foundation
import GRDB
import Testing
import TidemarkServer
import TidemarkWire

@testable import Tidemark

@Suite("OutboxBatcher: what was edited becomes an operation, durably, before anything is sent")
struct OutboxBatcherTests {
    @Test("values come back bit by bit through sealing, the server and another device", arguments: [false, true])
    func bitExact(usesPool: Bool) async throws {
        let directory = try TestDirectory()
        let server = try Device.server(in: directory)
        let schema = "CREATE TABLE v (id TEXT PRIMARY KEY, a, b REAL, c TEXT, d INTEGER, e BLOB)"
        let here = try await Device(
            schema, tables: ["v"], server: server, in: directory, name: "a", usesPool: usesPool)
        let there = try await Device(
            schema, tables: ["v"], server: server, in: directory, name: "b", usesPool: usesPool)
        try await here.sql(
            """
            INSERT INTO v VALUES
              ('1', 9223372036854775807, 7, 'plain', -9223372036854775808, x''),
              ('2', -1.5e300, 1.0, 'nul' || char(0) || 'behind', 9007199254740993, x'00ff10'),
              ('3', NULL, NULL, '👩‍👩‍👧 é e' || char(769), 0, NULL),
              ('4', 9e999, -9e999, '', 1, zeroblob(300)),
              ('5', '12', 0.1, '1', 12, 'text in a blob column'),
              ('6', x'c3', 5e-324, '"\\/' || char(9, 10, 13, 1, 127), 2.5, 3)
            """)
        try await here.sync()
        try await there.sync()
        let all = """
            SELECT id, typeof(a), quote(a), hex(a), typeof(b), b, hex(c), typeof(d), quote(d), typeof(e), hex(e) FROM v
            """
        let sent = try await here.rows(all)
        #expect(try await there.rows(all) == sent)
        #expect(sent.count == 6)
    }

    @Test("a sealed operation that was never sent leaves under its own key after a restart")
    func restart() async throws {
        let device = try await Device(noteSchema, tables: ["note"])
        try await device.sql("INSERT INTO note (id, title) VALUES ('n1', 'a')")
        let sealed = try await device.seal(lane: "lane-before")
        try await device.sync()
        let body = try #require(await device.wire.bodies.first)
        #expect(body.contains(#"{"lane":"lane-before","number":1,"#))
        #expect(sealed.map(\.key) == [OperationKey(lane: "lane-before", number: 1)])
        #expect(try await device.count("tidemark_operation WHERE finished_at IS NULL") == 0)
    }

    @Test("each opening has a lane of its own")
    func lanes() async throws {
        let device = try await Device(noteSchema, tables: ["note"])
        for id in ["n1", "n2"] {
            try await device.sql("INSERT INTO note (id) VALUES ('\(id)')")
            try await device.sync()
        }
        let lanes = try await device.rows("SELECT DISTINCT lane FROM tidemark_operation")
        #expect(lanes.count == 2)
        #expect(lanes.allSatisfy { $0.count >= 32 })
    }

    @Test("finished operations leave after their week; refused ones and those without a verdict stay")
    func pruning() async throws {
        let device = try await Device(noteSchema, tables: ["note"])
        try await device.sql("INSERT INTO note (id) VALUES ('old'), ('recent'), ('refused')")
        try await device.sync()
        let week = 7 * 24 * 3600 * 1000
        try await device.sql(
            """
            UPDATE tidemark_operation SET finished_at = finished_at - \(week) - 60000 WHERE record <> 'recent';
            UPDATE tidemark_operation SET state = 'rejected' WHERE record = 'refused';
            """)
        try await device.sync()
        #expect(
            try await device.rows("SELECT record FROM tidemark_operation ORDER BY 1") == ["\"recent\"", "\"refused\""])
    }

    @Test("only changed columns travel, with the version that they were edited on")
    func changedColumns() async throws {
        let device = try await Device(noteSchema, tables: ["note"])
        try await device.apply(Device.page([Device.upsert("note", "n1", 7, #"{"title":"a","body":"b"}"#)], head: 9))
        try await device.sql("UPDATE note SET body = 'c'")
        _ = try await device.seal()
        let expected = #""type":"upsert","entity":"note","id":"n1","baseVersion":9,"epoch":"e1","fields":{"body":"c"}"#
        #expect(try await device.sealed() == [expected])
    }

    @Test("an edit in flight is not lost: it is sealed after the verdict, under a new number")
    func editInFlight() async throws {
        let device = try await Device(noteSchema, tables: ["note"])
        try await device.sql("INSERT INTO note (id, title) VALUES ('n1', 'a')")
        await device.wire.next { request, inner in
            let answer = try await inner.send(request)
            try await device.sql("UPDATE note SET title = 'b'")
            return answer
        }
        try await device.sync()
        #expect(try await device.rows("SELECT title FROM note") == ["\"b\""])
        let bodies = await device.wire.bodies
        #expect(bodies.count == 2)
        #expect(bodies.last?.contains(#""number":2,"#) == true)
        #expect(bodies.last?.contains(#""fields":{"title":"b"}"#) == true)
        #expect(try await device.count("tidemark_shadow_note") == 0)
    }

    @Test("a record that cannot travel is rejected with the reason and blocks nobody")
    func unsendable() async throws {
        let device = try await Device(noteSchema, tables: ["note"])
        try await device.sql(
            """
            INSERT INTO note (id, title)
            VALUES ('bad', CAST(x'ff' AS TEXT)), ('good', 'a'), ('big', printf('%.*c', 1100000, 'x'))
            """)
        let engine = try device.engine()
        let report = try await engine.syncNow()
        #expect(report.pushed == 1)
        let rejected = try await engine.rejectedOperations()
        #expect(rejected.map(\.record).sorted() == ["bad", "big"])
        #expect(rejected.allSatisfy { $0.code == "unsendable_value" && !$0.detail.isEmpty })
        #expect(try await device.count("note") == 3)
        try await device.sql("UPDATE note SET title = 'mended' WHERE id = 'bad'")
        #expect(try await engine.syncNow().pushed == 1)
        #expect(try await engine.rejectedOperations().map(\.record) == ["big"])
    }

    @Test("keys of integers, of several columns and of tables without rowid have their ids on the wire")
    func keys() async throws {
        let directory = try TestDirectory()
        let server = try Device.server(in: directory)
        let schema = """
            CREATE TABLE number (id INTEGER PRIMARY KEY, name TEXT);
            CREATE TABLE pair (a TEXT, b INTEGER, name TEXT, PRIMARY KEY (a, b)) WITHOUT ROWID;
            CREATE TABLE bytes (id BLOB PRIMARY KEY, name TEXT);
            CREATE TABLE bare (a TEXT, b TEXT, PRIMARY KEY (a, b));
            """
        let tables = ["number", "pair", "bytes", "bare"]
        let here = try await Device(schema, tables: tables, server: server, in: directory, name: "a")
        let there = try await Device(schema, tables: tables, server: server, in: directory, name: "b")
        try await here.sql(
            """
            INSERT INTO number VALUES (-5, 'n'); INSERT INTO pair VALUES ('x"y', 3, 'p');
            INSERT INTO bytes VALUES (x'0102', 'b'); INSERT INTO bare VALUES ('a', 'b');
            """)
        try await here.sync()
        try await there.sync()
        for table in tables {
            #expect(try await there.rows("SELECT * FROM \(table)") == here.rows("SELECT * FROM \(table)"))
            #expect(try await there.count(table) == 1)
        }
        let body = try #require(await here.wire.bodies.first)
        #expect(body.contains(#""id":"-5""#))
        #expect(body.contains(#""id":"[\"x\\\"y\",3]""#))
        try await there.sql("DELETE FROM pair; UPDATE number SET name = 'm'")
        try await there.sync()
        try await here.sync()
        #expect(try await here.count("pair") == 0)
        #expect(try await here.rows("SELECT name FROM number") == ["\"m\""])
    }

    @Test("a field that only the server may write is never sent, and goes back to what it was")
    func serverField() async throws {
        let directory = try TestDirectory()
        let server = try Device.server(in: directory, entities: [.state("note", serverFields: ["body"])])
        let device = try await Device(noteSchema, tables: ["note"], server: server, in: directory)
        _ = try await server.commit(to: "w:1") {
            $0.upsert("note", id: "n1", ["title": "a", "body": "from the server"])
        }
        try await device.sync()
        try await device.sql("UPDATE note SET title = 'b', body = 'mine'")
        try await device.sync()
        #expect(try await device.rows("SELECT title, body FROM note") == ["\"b\"|\"from the server\""])
        #expect(await device.wire.bodies.allSatisfy { !$0.contains("mine") })
        #expect(try await device.count("tidemark_shadow_note") == 0)
    }
}
