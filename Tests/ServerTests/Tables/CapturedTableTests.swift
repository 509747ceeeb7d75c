import Foundation
import PostgresCluster
import Testing
import TidemarkPostgres
import TidemarkWire

@testable import TidemarkServer

@Suite("Other programs write to attached tables", .serialized)
struct CapturedTableTests {
    @Test("Rows that are there become the first snapshot, and later ones the delta", .timeLimit(.minutes(5)))
    func captured() async throws {
        let bench = try await TableBench()
        try await bench.sql(
            """
            CREATE TABLE ~.todo (id bigint PRIMARY KEY, title text NOT NULL, done boolean DEFAULT false);
            INSERT INTO ~.todo SELECT g, 'old ' || g FROM generate_series(1, 10) g
            """)
        try await bench.attach("todo")
        #expect(try await bench.records().count == 10)
        #expect(try await bench.fields("7") == ["title": "old 7", "done": 0])
        let list = try await bench.store.attachedTables()
        #expect(list.map(\.entity) == ["task"] && list.allSatisfy { $0.isFilled && $0.notes == 0 })
        try await bench.sql(
            """
            INSERT INTO ~.todo VALUES (11, 'new', true); UPDATE ~.todo SET done = true WHERE id = 1;
            UPDATE ~.todo SET title = title WHERE id = 2; DELETE FROM ~.todo WHERE id = 3;
            UPDATE ~.todo SET id = 40 WHERE id = 4
            """)
        let head = try await bench.server.changes(in: "s", since: nil, limit: 1, access: .read(as: "ada"))
        try await bench.drain()
        let records = try await bench.records()
        #expect(records["task/11"] == ["title": "new", "done": 1])
        #expect(records["task/1"] == ["title": "old 1", "done": 1])
        #expect(records["task/3"] == nil && records["task/4"] == nil)
        #expect(records["task/40"] == ["title": "old 4", "done": 0])
        // 11 and 40 came, 1 changed, 3 and 4 went; what stayed as it was made nothing.
        let after = try await bench.server.changes(in: "s", since: nil, limit: 1, access: .read(as: "ada"))
        #expect(try Answer(after).head == Answer(head).head + 5)
    }

    @Test("A row whose scope changes leaves the one and comes into the other", .timeLimit(.minutes(5)))
    func moved() async throws {
        let bench = try await TableBench()
        try await bench.sql(
            """
            CREATE TABLE ~.todo (id text PRIMARY KEY, list_id int, title text);
            INSERT INTO ~.todo VALUES ('a', 1, 'A'), ('b', 1, 'B'), ('c', 2, 'C'), ('d', NULL, 'D')
            """)
        let place = PostgresStore.TablePlan.Place.column("list_id", prefix: "list:")
        let table = try await bench.attach("todo", place)
        #expect(table.scopeColumn == "list_id" && table.columns == ["list_id", "title"])
        #expect(try await bench.records("list:1").keys.sorted() == ["task/a", "task/b"])
        #expect(try await bench.records("list:2") == ["task/c": ["list_id": 2, "title": "C"]])
        try await bench.sql(
            """
            UPDATE ~.todo SET list_id = 2 WHERE id = 'a'; UPDATE ~.todo SET list_id = NULL WHERE id = 'b';
            UPDATE ~.todo SET list_id = 1 WHERE id = 'd'
            """)
        try await bench.drain()
        #expect(try await bench.records("list:1").keys.sorted() == ["task/d"])
        #expect(try await bench.records("list:2").keys.sorted() == ["task/a", "task/c"])
        let gone = try await bench.server.changes(in: "list:1", since: nil, limit: 50, access: .read(as: "ada"))
        #expect(try Answer(gone).changes.filter { $0.type == "upsert" }.count == 1)
        let moved = try await bench.store.read("list:1") { try $0.newest(entity: "task", record: "a") }
        #expect(moved?.payload == nil && moved != nil)
    }

    @Test("TRUNCATE deletes what the log has", .timeLimit(.minutes(5)))
    func truncated() async throws {
        let bench = try await TableBench()
        try await bench.sql(
            """
            CREATE TABLE ~.todo (id uuid PRIMARY KEY, title text);
            INSERT INTO ~.todo SELECT gen_random_uuid(), 'x' FROM generate_series(1, 20)
            """)
        try await bench.attach("todo")
        #expect(try await bench.records().count == 20)
        try await bench.sql("TRUNCATE ~.todo; INSERT INTO ~.todo VALUES (gen_random_uuid(), 'first of many')")
        try await bench.drain()
        #expect(try await bench.records().values.map { $0["title"] as? String } == ["first of many"])
    }

    @Test("A write that a program undoes is never seen, and one in parts comes once", .timeLimit(.minutes(5)))
    func undone() async throws {
        let bench = try await TableBench()
        try await bench.sql("CREATE TABLE ~.todo (id int PRIMARY KEY, title text)")
        try await bench.attach("todo")
        try await bench.sql("BEGIN; INSERT INTO ~.todo VALUES (1, 'no'); ROLLBACK")
        try await bench.sql("INSERT INTO ~.todo VALUES (2, 'a'); UPDATE ~.todo SET title = title || 'b'")
        try await bench.drain()
        #expect(try await bench.records() == ["task/2": ["title": "ab"]])
        let rows = try await bench.store.read("s") { try $0.seen(after: 0, through: .max, tombstonesAfter: 0) }
        #expect(rows.count == 1)
    }

    @Test("Every type's values travel, and come back as they went", .timeLimit(.minutes(5)))
    func values() async throws {
        let bench = try await TableBench()
        try await bench.sql(
            """
            CREATE TYPE ~.mood AS ENUM ('glad', 'sad');
            CREATE TABLE ~.kinds (id smallint PRIMARY KEY, small smallint, big bigint, single real, double float8,
                exact numeric(20, 4), word text, name varchar(9), code char(4), flag boolean, at timestamptz,
                local timestamp, day date, hour time, key uuid, doc jsonb, bytes bytea, mood ~.mood,
                twice bigint GENERATED ALWAYS AS (big * 2) STORED);
            INSERT INTO ~.kinds VALUES (1, -3, 9007199254740993, 0.5, 1e300, 12.50, 'é''"\\', 'x', 'ab', true,
                '2026-11-21 19:00:00.25+01', '2026-11-21 19:00', '2026-11-21', '19:00', 
                'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11', '{"b": 1, "a": [true]}', '\\x00ff', 'sad');
            INSERT INTO ~.kinds (id, at, day) VALUES (2, 'infinity', '12026-01-01');
            INSERT INTO ~.kinds (id, double) VALUES (3, '-infinity')
            """)
        try await bench.attach("kinds")
        let first = try #require(try await bench.fields("1"))
        let expected: NSDictionary = [
            "small": -3, "big": ["$int": "9007199254740993"], "single": 0.5, "double": 1e300, "exact": "12.5000",
            "word": "é'\"\\", "name": "x", "code": "ab", "flag": 1, "at": "2026-11-21T18:00:00.250000Z",
            "local": "2026-11-21T19:00:00.000000", "day": "2026-11-21", "hour": "19:00:00",
            "key": "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "doc": #"{"a": [true], "b": 1}"#,
            "bytes": ["$blob": "AP8="], "mood": "sad", "twice": ["$int": "18014398509481986"],
        ]
        for (name, value) in expected {
            #expect(first[name] as? NSObject == value as? NSObject, "\(name): \(first[name] ?? "-")")
        }
        let second = try #require(try await bench.fields("2"))
        #expect(second["double"] is NSNull && second["at"] as? String == "infinity" && second["big"] is NSNull)
        #expect(second["day"] as? String == "12026-01-01")
        #expect(try await bench.fields("3")?["double"] as? NSDictionary == ["$real": "-inf"])
        // A device's copy of the row changes nothing in it.
        let row = try await bench.sql("SELECT k::text FROM ~.kinds k WHERE id = 1")
        let copy = try await bench.store.read("s") { try $0.newest(entity: "task", record: "1")?.payload }
        let fields = String(decoding: try #require(copy), as: UTF8.self)
        try await bench.sql(
            "UPDATE ~.kinds SET (small, exact, at, doc, bytes, mood, word, flag) = (NULL, 1, now(), "
                + "'[]', '', 'glad', NULL, false) WHERE id = 1")
        let answer = try await bench.exchange([upsert(1, "1", fields)])
        #expect(answer.statuses.allSatisfy { $0 == "applied" || $0 == "merged" }, "\(answer.results)")
        #expect(try await bench.sql("SELECT k::text FROM ~.kinds k WHERE id = 1") == row)
        try await bench.drain()
        #expect(try await bench.fields("1") == first)
    }

    @Test("Rows that cannot travel are on the operator's list, and hold up nothing", .timeLimit(.minutes(5)))
    func untravelled() async throws {
        let bench = try await TableBench()
        try await bench.sql("CREATE TABLE ~.todo (id text PRIMARY KEY, title text)")
        try await bench.attach("todo")
        try await bench.sql(
            """
            INSERT INTO ~.todo VALUES (repeat('k', 200), 'long key'), ('big', repeat('x', 2000000)), ('ok', 'fine'),
                (E'a\\tb', 'control')
            """)
        try await bench.drain()
        #expect(try await bench.records() == ["task/ok": ["title": "fine"]])
        let refused = try await bench.server.rejections()
        #expect(refused.map(\.code).sorted() == ["record_too_large", "unsendable_value", "unsendable_value"])
        try await bench.sql("UPDATE ~.todo SET title = 'small' WHERE id = 'big'")
        try await bench.drain()
        #expect(try await bench.fields("big") == ["title": "small"])
    }

    @Test("Names may hold anything", .timeLimit(.minutes(5)))
    func names() async throws {
        let bench = try await TableBench()
        let table = #"To"do'; DROP TABLE x; --$$ %s"#
        let (key, column) = (#"k"e'y\ "#, #"sc"ope$1'"#)
        func quoted(_ name: String) -> String { "\"\(name.replacing("\"", with: "\"\""))\"" }
        try await bench.sql(
            """
            CREATE TABLE ~.\(quoted(table)) (
                \(quoted(key)) text PRIMARY KEY, \(quoted(column)) text, "ti""t'le $2" text);
            INSERT INTO ~.\(quoted(table)) VALUES (E'it''s "é"', 'w:1', 'before')
            """)
        try await bench.attach(table, .column(column, prefix: ""))
        let id = #"it's "é""#
        #expect(try await bench.fields(id, "w:1")?["ti\"t'le $2"] as? String == "before")
        let answer = try await bench.exchange(
            [upsert(1, "it's \\\"é\\\"", #"{"ti\"t'le $2":"after","\#("sc\\\"ope$1'")":"w:1"}"#)], scope: "w:1")
        #expect(answer.statuses.allSatisfy { $0 != "rejected" }, "\(answer.results)")
        let title = try await bench.sql(#"SELECT "ti""t'le $2" FROM ~.\#(quoted(table))"#)
        #expect(title == "after")
        try await bench.store.detach("task")
        #expect(try await bench.sql(#"SELECT count(*) FROM ~.\#(quoted(table))"#) == "1")
    }

    @Test("Several writers, several nodes: nothing is missing, nothing comes twice", .timeLimit(.minutes(2)))
    func together() async throws {
        let bench = try await TableBench(nodes: 3)
        try await bench.sql(
            """
            CREATE TABLE ~.todo (id int PRIMARY KEY, list_id int NOT NULL, n int NOT NULL);
            INSERT INTO ~.todo SELECT g, g % 4, 0 FROM generate_series(1, 300) g
            """)
        let place = PostgresStore.TablePlan.Place.column("list_id", prefix: "list:")
        _ = try await bench.store.attach(bench.plan("todo", "task", place))
        try await withThrowingTaskGroup(of: Void.self) { writers in
            let drains = bench.servers.map { server in
                Task {
                    while !Task.isCancelled { _ = try? await server.drainCapture() }
                }
            }
            defer { for drain in drains { drain.cancel() } }
            for writer in 0..<4 {
                writers.addTask {
                    try await bench.sql(
                        """
                        DO $$ BEGIN PERFORM setseed(0.\(writer + 1)); FOR i IN 1..400 LOOP
                            UPDATE ~.todo SET n = n + 1, list_id = CASE WHEN random() < 0.2
                                THEN (random() * 3)::int ELSE list_id END WHERE id = 1 + (random() * 299)::int;
                            INSERT INTO ~.todo VALUES (1000 * \(writer + 1) + i, i % 4, i);
                            DELETE FROM ~.todo WHERE id = 1000 * \(writer + 1) + (random() * 400)::int;
                            IF i % 7 = 0 THEN ROLLBACK; ELSE COMMIT; END IF;
                        END LOOP; END $$
                        """)
                }
            }
            writers.addTask { while try await !bench.store.fill("task", limit: 20).isLast {} }
            try await writers.waitForAll()
        }
        try await bench.drain()
        let rows = Set(
            try await bench.sql("SELECT list_id || ' ' || id || ' ' || n FROM ~.todo").split(separator: "\n"))
        var found: [String] = []
        for list in 0..<4 {
            let scope = Scope(stringLiteral: "list:\(list)")
            for (name, fields) in try await bench.records(scope) {
                #expect(fields["list_id"] as? Int == list)
                found.append("\(list) \(name.dropFirst(5)) \(fields["n"] as? Int ?? -1)")
            }
        }
        #expect(Set(found) == Set(rows.map(String.init)) && found.count == rows.count)
        #expect(try await bench.server.rejections().isEmpty)
    }
}
