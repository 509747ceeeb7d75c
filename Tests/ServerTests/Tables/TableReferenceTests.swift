import Foundation
import Testing
import TidemarkPostgres
import TidemarkWire

@testable import TidemarkServer

@Suite("A device's row refers to rows of its scope, or to those that its author may read", .serialized)
struct TableReferenceTests {
    /// Two lists, each with a project and a task of the operator's.
    private func bench() async throws -> TableBench {
        let bench = try await TableBench()
        try await bench.sql(
            """
            CREATE TABLE ~.project (id text PRIMARY KEY, list_id int, name text);
            CREATE TABLE ~.todo (id text PRIMARY KEY, list_id int, title text, project_id text REFERENCES ~.project,
                parent_id varchar(9) COLLATE "C" REFERENCES ~.todo);
            INSERT INTO ~.project VALUES ('p1', 1, 'theirs'), ('p2', 2, 'mine');
            INSERT INTO ~.todo VALUES ('t1', 1, 'theirs', 'p1'), ('t2', 2, 'mine', 'p2')
            """)
        try await bench.attach("project", as: "project", .column("list_id", prefix: "list:"))
        try await bench.attach("todo", as: "todo", .column("list_id", prefix: "list:"))
        return bench
    }

    @Test("A row of another scope and one that is not there are refused alike", .timeLimit(.minutes(5)))
    func otherScope() async throws {
        let bench = try await bench()
        for (column, other) in [("project_id", "p1"), ("parent_id", "t1")] {
            let there = try await bench.verdict("todo", "a", #"{"\#(column)":"\#(other)"}"#, scope: "list:2")
            let nowhere = try await bench.verdict("todo", "a", #"{"\#(column)":"none"}"#, scope: "list:2")
            #expect(there == nowhere && there.contains(#""code":"reference_violated""#), "\(there)")
            let head = try await bench.store.read("list:2") { $0.state.head }
            let edit = try await bench.verdict(
                "todo", "t2", #"{"\#(column)":"\#(other)"}"#, scope: "list:2", base: head)
            let lost = try await bench.verdict("todo", "t2", #"{"\#(column)":"none"}"#, scope: "list:2", base: head)
            #expect(edit == lost && edit == there, "\(edit)")
        }
        #expect(try await bench.sql("SELECT id, project_id FROM ~.todo ORDER BY 1") == "t1|p1\nt2|p2")
        // So nobody keeps a row of theirs.
        try await bench.drain()
        let head = try await bench.store.read("list:1") { $0.state.head }
        let deletes = try await bench.exchange(
            [delete(1, "t1", base: head, entity: "todo"), delete(2, "p1", base: head, entity: "project")],
            scope: "list:1")
        #expect(deletes.statuses == ["applied", "applied"], "\(deletes.results)")
    }

    @Test("Rows of one's own scope, the row itself and nothing may be referred to", .timeLimit(.minutes(5)))
    func ownScope() async throws {
        let bench = try await bench()
        let answer = try await bench.exchange(
            [
                upsert(1, "p3", #"{"name":"new"}"#, entity: "project"),
                upsert(2, "a", #"{"project_id":"p3","parent_id":"t2"}"#, entity: "todo"),
                upsert(3, "b", #"{"project_id":"p2","parent_id":"b"}"#, entity: "todo"),
                upsert(4, "c", #"{"project_id":null,"parent_id":"a"}"#, entity: "todo"),
                upsert(5, "d", #"{"title":"none"}"#, entity: "todo"),
            ], scope: "list:2")
        #expect(answer.statuses == Array(repeating: "applied", count: 5), "\(answer.results)")
        #expect(
            try await bench.sql("SELECT id, project_id, parent_id FROM ~.todo WHERE list_id = 2 ORDER BY 1")
                == "a|p3|t2\nb|p2|b\nc||a\nd||\nt2|p2|")
    }

    @Test("References that the operator's programs have made stay, also of a row that a device edits")
    func operators() async throws {
        let bench = try await bench()
        try await bench.sql("UPDATE ~.todo SET project_id = 'p1' WHERE id = 't2'")
        try await bench.drain()
        let head = try await bench.store.read("list:2") { $0.state.head }
        let edit = try await bench.exchange(
            [upsert(1, "t2", #"{"title":"edited","project_id":"p1"}"#, base: head, entity: "todo")], scope: "list:2")
        #expect(edit.statuses == ["applied"], "\(edit.results)")
        try await bench.server.commit(to: "list:2") { $0.upsert("todo", id: "c", ["project_id": "p1"]) }
        let service = try await bench.exchange(
            [upsert(1, "d", #"{"project_id":"p1"}"#, entity: "todo")], scope: "list:2", client: "program-aaaa"
        ) { _ in Access(.readWrite, principal: "program", isService: true) }
        #expect(service.statuses == ["applied"], "\(service.results)")
        #expect(
            try await bench.sql("SELECT id, title FROM ~.todo WHERE list_id = 2 AND project_id = 'p1' ORDER BY 1")
                == "c|\nd|\nt2|edited")
        // A program's push beside it leaves nobody else free.
        let device = try await bench.verdict("todo", "e", #"{"project_id":"p1"}"#, scope: "list:2")
        #expect(device.contains("reference_violated"), "\(device)")
    }

    @Test("A table of one scope may be referred to by who may read that scope", .timeLimit(.minutes(5)))
    func shared() async throws {
        let bench = try await TableBench()
        try await bench.sql(
            """
            CREATE TABLE ~.product (id int PRIMARY KEY, name text); INSERT INTO ~.product VALUES (1, 'Tea');
            CREATE TABLE ~.purchase (id text PRIMARY KEY, user_id text, product_id bigint REFERENCES ~.product)
            """)
        try await bench.attach("product", as: "product", .scope("catalog"))
        try await bench.attach("purchase", as: "purchase", .column("user_id", prefix: "user:"))
        let reader: @Sendable (Scope) -> Access = { $0 == "catalog" ? .read(as: "ada") : .readWrite(as: "ada") }
        let other: @Sendable (Scope) -> Access = { $0 == "catalog" ? .none : .readWrite(as: "eve") }
        let fields = #"{"product_id":1}"#
        // Whoever comes first makes the server ask.
        let there = try await bench.verdict("purchase", "e1", fields, scope: "user:eve", authorize: other)
        let nowhere = try await bench.verdict(
            "purchase", "e1", #"{"product_id":2}"#, scope: "user:eve", authorize: other)
        #expect(there == nowhere && there.contains("reference_violated"), "\(there)")
        let granted = try await bench.verdict("purchase", "a1", fields, scope: "user:ada", authorize: reader)
        #expect(granted.contains("applied"), "\(granted)")
        let missing = try await bench.verdict(
            "purchase", "a2", #"{"product_id":2}"#, scope: "user:ada", authorize: reader)
        #expect(missing == there)
        #expect(try await bench.sql("SELECT * FROM ~.purchase") == "a1|ada|1")
        // Nobody is asked for more than a push needs.
        let plain = try await bench.verdict("purchase", "a3", "{}", scope: "user:ada") { scope in
            scope == "user:ada" || scope == "catalog" ? .readWrite(as: "ada") : .none
        }
        #expect(plain.contains("applied"), "\(plain)")
    }

    @Test("A row that the scope's own column refers to is granted with the scope", .timeLimit(.minutes(5)))
    func scopeColumn() async throws {
        let bench = try await TableBench()
        try await bench.sql(
            """
            CREATE TABLE ~.list (id int PRIMARY KEY, owner text);
            CREATE TABLE ~.item (no int, list_id int REFERENCES ~.list, id int PRIMARY KEY, next int,
                UNIQUE (list_id, no), FOREIGN KEY (list_id, next) REFERENCES ~.item (list_id, no));
            INSERT INTO ~.list VALUES (1, 'eve'), (2, 'eve'); INSERT INTO ~.item VALUES (1, 1, 1)
            """)
        try await bench.attach("list", as: "list", .column("owner", prefix: "user:"))
        try await bench.attach("item", as: "item", .column("list_id", prefix: "list:"))
        let answer = try await bench.exchange(
            [
                upsert(1, "2", #"{"no":2}"#, entity: "item"), upsert(2, "3", #"{"no":3,"next":2}"#, entity: "item"),
                upsert(3, "4", #"{"no":4,"next":4}"#, entity: "item"),
                upsert(4, "5", #"{"no":5,"next":1}"#, entity: "item"),
            ], scope: "list:2")
        let last = answer.errorCode(3)
        #expect(answer.statuses == ["applied", "applied", "applied", "rejected"], "\(answer.results)")
        #expect(last == "reference_violated")
    }

    @Test("A key that refers is a reference like any other", .timeLimit(.minutes(5)))
    func key() async throws {
        let bench = try await TableBench()
        try await bench.sql(
            """
            CREATE TABLE ~.card (id uuid PRIMARY KEY, team text);
            CREATE TABLE ~.cover (id uuid PRIMARY KEY REFERENCES ~.card, team text, hue text);
            INSERT INTO ~.card VALUES ('00000000-0000-0000-0000-000000000001', 'a'),
                ('00000000-0000-0000-0000-000000000002', 'b')
            """)
        try await bench.attach("card", as: "card", .column("team", prefix: "team:"))
        try await bench.attach("cover", as: "cover", .column("team", prefix: "team:"))
        let verdicts = try await [1, 2, 3].asyncMap { number in
            try await bench.verdict(
                "cover", "00000000-0000-0000-0000-00000000000\(number)", #"{"hue":"red"}"#, scope: "team:b")
        }
        #expect(verdicts[0] == verdicts[2] && verdicts[0].contains("reference_violated"), "\(verdicts)")
        #expect(verdicts[1].contains("applied"), "\(verdicts)")
    }

    @Test("A table that no device sees is referred to as its constraint has it", .timeLimit(.minutes(5)))
    func notAttached() async throws {
        let bench = try await TableBench()
        try await bench.sql(
            """
            CREATE TYPE ~.size AS ENUM ('s', 'l');
            CREATE TABLE ~.kind (id int PRIMARY KEY, "Si""ze's" ~.size UNIQUE, team text);
            CREATE TABLE ~.todo (id int PRIMARY KEY, kind ~.size REFERENCES ~.kind ("Si""ze's"),
                hidden ~.size REFERENCES ~.kind ("Si""ze's"));
            INSERT INTO ~.kind VALUES (1, 's', 'a'), (2, 'l', 'b')
            """)
        try await bench.attach("todo", columns: .named(read: ["hidden"], write: ["kind"]))
        let there = try await bench.exchange([upsert(1, "1", #"{"kind":"s"}"#)])
        #expect(there.statuses == ["applied"], "\(there.results)")
        try await bench.sql("DELETE FROM ~.kind WHERE id = 2")
        let nowhere = try await bench.exchange([upsert(2, "2", #"{"kind":"l"}"#)])
        #expect(nowhere.errorCode(0) == "reference_violated", "\(nowhere.results)")
        // What is not among the columns that devices write is not for them to choose.
        let hidden = try await [#""s""#, #""l""#].asyncMap { value in
            try await bench.verdict("task", "3", #"{"hidden":\#(value)}"#, scope: "s", base: nil)
        }
        #expect(try await bench.sql("SELECT count(*) FROM ~.todo WHERE hidden IS NOT NULL") == "0", "\(hidden)")
        // Attached now, with a name that wants quotes, and of a type that PostgreSQL compares in its own way.
        try await bench.attach("kind", as: "kind", .column("team", prefix: "team:"))
        let refused = try await bench.exchange([upsert(3, "4", #"{"kind":"s"}"#)])
        #expect(refused.errorCode(0) == "reference_violated", "\(refused.results)")
        try await bench.sql("UPDATE ~.kind SET team = NULL")
        #expect(try await bench.exchange([upsert(4, "4", #"{"kind":"s"}"#)]).errorCode(0) == "reference_violated")
    }

    @Test("A column that the database computes refers to what its author has chosen", .timeLimit(.minutes(5)))
    func computed() async throws {
        let bench = try await TableBench()
        try await bench.sql(
            """
            CREATE TABLE ~.kind (id text PRIMARY KEY, team text);
            CREATE TABLE ~.todo (id int PRIMARY KEY, team text, word text,
                kind text GENERATED ALWAYS AS (lower(word)) STORED REFERENCES ~.kind);
            INSERT INTO ~.kind VALUES ('x', 'a'), ('y', 'b')
            """)
        for table in ["kind", "todo"] { try await bench.attach(table, as: table, .column("team", prefix: "team:")) }
        let verdicts = try await ["X", "Y", "Z"].asyncMap { word in
            try await bench.verdict("todo", "1", #"{"word":"\#(word)"}"#, scope: "team:a")
        }
        #expect(verdicts[0].contains("applied") && verdicts[1] == verdicts[2], "\(verdicts)")
        #expect(verdicts[1].contains("reference_violated"), "\(verdicts)")
    }

    @Test("A type that PostgreSQL compares in its own way is compared so here", .timeLimit(.minutes(5)))
    func ownType() async throws {
        let bench = try await TableBench()
        try await bench.sql(
            """
            CREATE TYPE ~.size AS ENUM ('s', 'l');
            CREATE TABLE ~.kind (id int PRIMARY KEY, "Si""ze's" ~.size UNIQUE, team text);
            CREATE TABLE ~.todo (id int PRIMARY KEY, team text, kind ~.size REFERENCES ~.kind ("Si""ze's"));
            INSERT INTO ~.kind VALUES (1, 's', 'a'), (2, 'l', 'b')
            """)
        for table in ["kind", "todo"] { try await bench.attach(table, as: table, .column("team", prefix: "team:")) }
        let answer = try await bench.exchange(
            [upsert(1, "1", #"{"kind":"s"}"#, entity: "todo"), upsert(2, "2", #"{"kind":"l"}"#, entity: "todo")],
            scope: "team:a")
        #expect(answer.statuses == ["applied", "rejected"], "\(answer.results)")
        #expect(answer.errorCode(1) == "reference_violated")
    }

    @Test("A value that is taken is refused alike, whoever's scope has it", .timeLimit(.minutes(5)))
    func taken() async throws {
        let bench = try await TableBench()
        try await bench.sql(
            """
            CREATE TABLE ~.todo (id int PRIMARY KEY, list_id int, slug text UNIQUE);
            INSERT INTO ~.todo VALUES (1, 1, 'one'), (2, 2, 'two'), (3, 3, 'three')
            """)
        try await bench.attach("todo", .column("list_id", prefix: "list:"))
        let some: @Sendable (Scope) -> Access = { $0 == "list:1" ? .none : .readWrite(as: "ada") }
        let slugs = try await ["one", "two", "three"].asyncMap { slug in
            try await bench.verdict("task", "9", #"{"slug":"\#(slug)"}"#, scope: "list:2", authorize: some)
        }
        #expect(Set(slugs).count == 1 && slugs[0].contains(#""code":"not_unique""#), "\(slugs)")
        let keys = try await ["1", "3"].asyncMap { id in
            try await bench.verdict("task", id, #"{"slug":"new"}"#, scope: "list:2", authorize: some)
        }
        #expect(Set(keys).count == 1 && keys[0].contains(#""code":"not_unique""#), "\(keys)")
        #expect(try await bench.sql("SELECT count(*) FROM ~.todo") == "3")
    }

    @Test("A row that a trigger passes over is not said to be another one's", .timeLimit(.minutes(5)))
    func passedOver() async throws {
        let bench = try await TableBench()
        try await bench.sql(
            """
            CREATE TABLE ~.todo (id int PRIMARY KEY, title text);
            CREATE FUNCTION ~.never() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;
            CREATE TRIGGER never BEFORE INSERT ON ~.todo FOR EACH ROW EXECUTE FUNCTION ~.never()
            """)
        try await bench.attach("todo")
        let answer = try await bench.exchange([upsert(1, "1", #"{"title":"x"}"#)])
        #expect(answer.errorCode(0) == "table_refused", "\(answer.results)")
    }
}

extension Sequence where Self: Sendable, Element: Sendable {
    fileprivate func asyncMap<Result>(_ body: (Element) async throws -> Result) async throws -> [Result] {
        var results: [Result] = []
        for element in self { results.append(try await body(element)) }
        return results
    }
}
