import Foundation
import PostgresCluster
import Testing
import TidemarkPostgres
import TidemarkWire

@testable import TidemarkServer

@Suite("Log and table agree, whatever a table makes of a device's write", .serialized)
struct TableDriftTests {
    private func trigger(_ name: String, _ events: String, _ body: String, answer: String = "NEW") -> String {
        """
        CREATE FUNCTION ~.\(name)() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \(body) RETURN \(answer); END $$;
        CREATE TRIGGER \(name) BEFORE \(events) ON ~.todo FOR EACH ROW EXECUTE FUNCTION ~.\(name)();
        """
    }

    @Test("A trigger that puts a column back", .timeLimit(.minutes(5)))
    func putBack() async throws {
        let bench = try await TableBench()
        try await bench.sql(
            "CREATE TABLE ~.todo (id int PRIMARY KEY, price int); INSERT INTO ~.todo VALUES (1, 100);"
                + trigger("fixed", "UPDATE", "NEW.price := OLD.price;"))
        try await bench.attach("todo")
        let base = try await bench.store.read("s") { $0.state.head }
        let answer = try await bench.exchange([upsert(1, "1", #"{"price":1}"#, base: base)])
        // In the same answer, since the device believes in its own edit until it is told.
        #expect(answer.changes.map(\.data) == [["price": 100]], "\(answer.results)")
        #expect(try await bench.fields("1") == ["price": 100])
        #expect(try await bench.sql("SELECT count(*) FROM \(bench.postgres.schema).capture") == "0")
    }

    @Test("Values that PostgreSQL spells in another way, and those that it computes", .timeLimit(.minutes(5)))
    func respelled() async throws {
        let bench = try await TableBench()
        try await bench.sql(
            """
            CREATE TABLE ~.todo (id int PRIMARY KEY, doc jsonb, price numeric(10, 2), at timestamptz, n int,
                twice int GENERATED ALWAYS AS (n * 2) STORED);
            INSERT INTO ~.todo VALUES (1, '{"a": 1}', 12.5, '2026-11-21T18:00:00Z', 1)
            """)
        try await bench.attach("todo")
        let before = try #require(try await bench.fields("1"))
        for (number, fields) in [
            #"{"doc":"{\"a\":1}"}"#, #"{"price":"12.5"}"#, #"{"at":"2026-11-21T19:00:00+01:00"}"#, #"{"twice":7}"#,
        ].enumerated() {
            let base = try await bench.store.read("s") { $0.state.head }
            let answer = try await bench.exchange([upsert(number + 1, "1", fields, base: base)])
            #expect(answer.changes.map(\.data) == [before], "\(fields) \(answer.results)")
            #expect(try await bench.fields("1") == before, "\(fields)")
        }
    }

    @Test("A trigger that puts a new row into another scope", .timeLimit(.minutes(5)))
    func movedAway() async throws {
        let bench = try await TableBench()
        try await bench.sql(
            "CREATE TABLE ~.todo (id int PRIMARY KEY, list_id int, title text);"
                + trigger("sort", "INSERT", "NEW.list_id := 2;"))
        try await bench.attach("todo", .column("list_id", prefix: "list:"))
        _ = try await bench.exchange([upsert(1, "1", #"{"title":"A"}"#)], scope: "list:1")
        try await bench.drain()
        #expect(try await bench.records("list:1").isEmpty)
        #expect(try await bench.records("list:2") == ["task/1": ["list_id": 2, "title": "A"]])
    }

    @Test("A row whose key becomes another one", .timeLimit(.minutes(5)))
    func otherKey() async throws {
        let bench = try await TableBench()
        try await bench.sql(
            "CREATE TABLE ~.todo (id varchar(4) PRIMARY KEY, title text); INSERT INTO ~.todo VALUES ('abcd', 'old');"
                + trigger("number", "INSERT", "IF NEW.id = 'x' THEN NEW.id := 'y'; END IF;"))
        try await bench.attach("todo")
        _ = try await bench.exchange([upsert(1, "abcd ", #"{"title":"B"}"#), upsert(2, "x", #"{"title":"X"}"#)])
        try await bench.drain()
        #expect(try await bench.sql("SELECT id, title FROM ~.todo ORDER BY 1") == "abcd|B\ny|X")
        #expect(try await bench.records() == ["task/abcd": ["title": "B"], "task/y": ["title": "X"]])
    }

    @Test("A trigger that keeps a row from being deleted", .timeLimit(.minutes(5)))
    func keptRow() async throws {
        let bench = try await TableBench()
        try await bench.sql(
            "CREATE TABLE ~.todo (id int PRIMARY KEY, title text); INSERT INTO ~.todo VALUES (1, 'kept');"
                + trigger("keep", "DELETE", "", answer: "NULL"))
        try await bench.attach("todo")
        let base = try await bench.store.read("s") { $0.state.head }
        let answer = try await bench.exchange([delete(1, "1", base: base)])
        #expect(answer.changes.map(\.data) == [["title": "kept"]], "\(answer.results)")
        #expect(try await bench.fields("1") == ["title": "kept"])
    }

    @Test("As many edits as a request may hold are looked at in its own transaction", .timeLimit(.minutes(5)))
    func full() async throws {
        let bench = try await TableBench()
        try await bench.sql(
            "CREATE TABLE ~.todo (id int PRIMARY KEY, title text);"
                + trigger("tidy", "INSERT", "NEW.title := upper(NEW.title);"))
        try await bench.attach("todo")
        let answer = try await bench.exchange((1...450).map { upsert($0, "\($0)", #"{"title":"a"}"#) })
        #expect(Set(answer.statuses) == ["applied"])
        #expect(try await bench.sql("SELECT count(*) FROM \(bench.postgres.schema).capture") == "0")
        #expect(Set(try await bench.records().values) == [["title": "A"]])
    }

    @Test("An operator that another role has made is not asked whether keys are equal", .timeLimit(.minutes(5)))
    func foreignOperator() async throws {
        let bench = try await TableBench()
        let role = bench.postgres.schema + "_srv"
        try await bench.sql(
            """
            CREATE TABLE ~.todo (id varchar(9) PRIMARY KEY, list varchar(9), title text); CREATE TABLE ~.spied (t text);
            CREATE FUNCTION ~.spy(varchar, text) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN
                INSERT INTO ~.spied VALUES (current_user); RETURN $1::text OPERATOR(pg_catalog.=) $2; END $$;
            CREATE OPERATOR ~.= (LEFTARG = varchar, RIGHTARG = text, FUNCTION = ~.spy);
            CREATE ROLE \(role) SUPERUSER LOGIN; ALTER ROLE \(role) SET search_path = ~
            """)
        try await bench.attach("todo", .column("list", prefix: "list:"))
        let node = try await offPool { try bench.postgres.node(user: role) }
        defer { node.close() }
        let server = SyncServer(store: node, configuration: .still)
        let edits = [
            upsert(1, "a", #"{"title":"A"}"#), upsert(2, "b", #"{"title":"B"}"#),
            upsert(3, "a", #"{"title":"C"}"#, base: 1), delete(4, "b", base: 2),
        ].joined(separator: ",")
        let body = #"{"scope":"list:1","clientId":"device-aaaa","acked":{},"operations":[\#(edits)]}"#
        let answer = try Answer(
            try await server.exchange(Array(body.utf8), mode: .pushAndPull) { _ in .readWrite(as: "ada") })
        #expect(answer.statuses.allSatisfy { $0 != "rejected" }, "\(answer.results)")
        #expect(try await bench.sql("SELECT id, title FROM ~.todo") == "a|C")
        #expect(try await bench.sql("SELECT count(*) FROM ~.spied") == "0")
    }
}
