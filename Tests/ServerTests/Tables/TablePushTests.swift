import Foundation
import PostgresCluster
import Testing
import TidemarkPostgres
import TidemarkWire

@testable import TidemarkServer

@Suite("Devices' edits land in attached tables", .serialized)
struct TablePushTests {
    private func insert(_ number: Int, _ id: String, _ fields: String, entity: String = "task") -> String {
        upsert(number, id, fields, entity: entity)
    }

    @Test("Inserts, edits of single columns and deletes", .timeLimit(.minutes(5)))
    func landed() async throws {
        let bench = try await TableBench()
        try await bench.sql(
            """
            CREATE TABLE ~.todo (id text PRIMARY KEY, list_id int NOT NULL, title text,
                done boolean NOT NULL DEFAULT false, made timestamptz NOT NULL DEFAULT '2026-01-01Z')
            """)
        try await bench.attach("todo", .column("list_id", prefix: "list:"))
        let answer = try await bench.exchange(
            [insert(1, "a", #"{"title":"A","list_id":7}"#), insert(2, "b", #"{"title":"B"}"#)], scope: "list:7")
        #expect(answer.statuses == ["applied", "applied"], "\(answer.results)")
        #expect(try await bench.sql("SELECT id, list_id, title, done FROM ~.todo ORDER BY 1") == "a|7|A|f\nb|7|B|f")
        // What the table has filled in comes back.
        try await bench.drain()
        #expect(
            try await bench.fields("b", "list:7")
                == ["title": "B", "list_id": 7, "done": 0, "made": "2026-01-01T00:00:00.000000Z"])
        // Another program has written another column, which nobody has taken over yet.
        try await bench.sql("UPDATE ~.todo SET done = true WHERE id = 'a'")
        let base = try await bench.store.read("list:7") { $0.state.head }
        let edits = try await bench.exchange(
            [
                upsert(3, "a", #"{"title":"A2"}"#, base: base),
                #"{"lane":"lane-aaaa","number":4,"type":"delete","entity":"task","id":"b","baseVersion":\#(base)}"#,
            ], scope: "list:7")
        #expect(edits.statuses == ["merged", "applied"], "\(edits.results)")
        #expect(try await bench.sql("SELECT id, title, done FROM ~.todo") == "a|A2|t")
        try await bench.drain()
        #expect(try await bench.fields("a", "list:7")?["done"] as? Int == 1)
        #expect(try await bench.sql("SELECT count(*) FROM \(bench.postgres.schema).capture") == "0")
    }

    @Test("A constraint refuses its row and no other", .timeLimit(.minutes(5)))
    func refused() async throws {
        let bench = try await TableBench()
        try await bench.sql(
            """
            CREATE TABLE ~.list (id int PRIMARY KEY); INSERT INTO ~.list VALUES (1);
            CREATE TABLE ~.todo (id int PRIMARY KEY, list_id int REFERENCES ~.list DEFERRABLE INITIALLY DEFERRED,
                rank int UNIQUE CHECK (rank > 0), title varchar(5) NOT NULL, at timestamptz);
            CREATE FUNCTION ~.polite() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                IF NEW.title = 'rude' THEN RAISE EXCEPTION 'Be kind.'; END IF; RETURN NEW; END $$;
            CREATE TRIGGER polite BEFORE INSERT OR UPDATE ON ~.todo FOR EACH ROW EXECUTE FUNCTION ~.polite()
            """)
        try await bench.attach("todo")
        let edits = [
            #"{"title":"ok","rank":1,"list_id":1}"#, #"{"title":"fk","list_id":9}"#, #"{"title":"twin","rank":1}"#,
            #"{"title":"low","rank":0}"#, #"{"rank":5}"#, #"{"title":"much too long"}"#, #"{"title":"rude"}"#,
            #"{"title":"x","rank":"many"}"#, #"{"title":"x","rank":{"$blob":"AA=="}}"#, #"{"title":"x","nope":1}"#,
            #"{"title":"x","at":"soon"}"#, #"{"title":"a\u0000b"}"#, #"{"title":"last","rank":2}"#,
        ]
        let answer = try await bench.exchange(edits.enumerated().map { insert($0 + 1, "\($0 + 1)", $1) })
        let codes = answer.results.indices.map { answer.errorCode($0) ?? answer.statuses[$0] }
        #expect(
            codes == [
                "applied", "reference_violated", "not_unique", "check_failed", "value_missing", "value_refused",
                "table_refused", "value_refused", "value_refused", "column_unknown", "value_refused", "value_refused",
                "applied",
            ])
        #expect((answer.results[6]["error"] as? [String: Any])?["detail"] as? String == "Be kind.")
        #expect(try await bench.sql("SELECT id FROM ~.todo ORDER BY 1") == "1\n13")
        #expect(try await bench.records().count == 2)
        #expect(try await bench.server.rejections().count == 11)
        // A spelling that is not the key's own would be another record for the devices.
        let spelled = try await bench.exchange([insert(14, "007", #"{"title":"x"}"#)])
        #expect(spelled.errorCode(0) == "value_refused")
    }

    @Test("A group is taken whole or not at all, in the table too", .timeLimit(.minutes(5)))
    func group() async throws {
        let bench = try await TableBench()
        try await bench.sql("CREATE TABLE ~.todo (id int PRIMARY KEY, n int CHECK (n > 0))")
        try await bench.attach("todo")
        let group = #","group":"g""#
        let answer = try await bench.exchange([
            upsert(1, "1", #"{"n":1}"#, extra: group), upsert(2, "2", #"{"n":0}"#, extra: group),
            insert(3, "3", #"{"n":3}"#),
        ])
        #expect(answer.statuses == ["rejected", "rejected", "applied"])
        #expect([answer.errorCode(0), answer.errorCode(1)] == ["group_failed", "check_failed"])
        #expect(try await bench.sql("SELECT id FROM ~.todo") == "3")
    }

    @Test("Nobody reaches a row of another scope by its id", .timeLimit(.minutes(5)))
    func otherScope() async throws {
        let bench = try await TableBench()
        try await bench.sql(
            """
            CREATE TABLE ~.todo (id int PRIMARY KEY, list_id int, title text);
            INSERT INTO ~.todo VALUES (1, 1, 'secret')
            """)
        try await bench.attach("todo", .column("list_id", prefix: "list:"))
        let answer = try await bench.exchange(
            [
                insert(1, "1", #"{"title":"stolen"}"#), insert(2, "2", #"{"title":"x","list_id":1}"#),
                delete(3, "1", base: 1), insert(4, "3", #"{"title":"mine"}"#),
            ], scope: "list:2")
        #expect(
            answer.results.indices.map { answer.errorCode($0) ?? answer.statuses[$0] }
                == ["not_unique", "scope_mismatch", "applied", "applied"])
        let elsewhere = try await bench.exchange([insert(1, "9", #"{"title":"x"}"#)], scope: "user:1")
        #expect(elsewhere.errorCode(0) == "scope_mismatch")
        let spelled = try await bench.exchange([insert(1, "9", #"{"title":"x"}"#)], scope: "list:02")
        #expect(spelled.errorCode(0) == "scope_mismatch")
        #expect(try await bench.sql("SELECT * FROM ~.todo ORDER BY 1") == "1|1|secret\n3|2|mine")
    }

    @Test("A table may be scoped by its key", .timeLimit(.minutes(5)))
    func scopedByKey() async throws {
        let bench = try await TableBench()
        try await bench.sql(
            "CREATE TABLE ~.profile (id int PRIMARY KEY, name text); INSERT INTO ~.profile VALUES (1, 'Ada')")
        try await bench.attach("profile", .column("id", prefix: "user:"))
        #expect(try await bench.records("user:1") == ["task/1": ["name": "Ada"]])
        let own = try await bench.exchange([insert(1, "2", #"{"name":"Bob"}"#)], scope: "user:2")
        #expect(own.statuses == ["applied"], "\(own.results)")
        let other = try await bench.exchange([insert(2, "1", #"{"name":"Bob"}"#)], scope: "user:2")
        #expect(other.errorCode(0) == "scope_mismatch")
        #expect(try await bench.sql("SELECT * FROM ~.profile ORDER BY 1") == "1|Ada\n2|Bob")
    }

    @Test("Rows that a device's delete takes along are in the same answer", .timeLimit(.minutes(5)))
    func cascade() async throws {
        let bench = try await TableBench()
        try await bench.sql(
            """
            CREATE TABLE ~.list (id int PRIMARY KEY);
            CREATE TABLE ~.todo (id int PRIMARY KEY, list_id int REFERENCES ~.list ON DELETE CASCADE);
            INSERT INTO ~.list VALUES (1); INSERT INTO ~.todo VALUES (1, 1), (2, 1)
            """)
        try await bench.attach("list")
        try await bench.attach("todo", as: "todo")
        let base = try await bench.store.read("s") { $0.state.head }
        let answer = try await bench.exchange([delete(1, "1", base: base)])
        #expect(answer.statuses == ["applied"], "\(answer.results)")
        #expect(answer.head == base + 3)
        let left = try await bench.store.read("s") { reader in
            try ["1", "2"].compactMap { try reader.newest(entity: "todo", record: $0)?.payload }
        }
        #expect(left.isEmpty)
        #expect(try await bench.sql("SELECT count(*) FROM \(bench.postgres.schema).capture") == "0")
    }

    @Test(
        "A push meets what others have written, and devices hear of what triggers make of it", .timeLimit(.minutes(5)))
    func met() async throws {
        let bench = try await TableBench()
        // Triggers that find their tables by the role's own path.
        try await bench.sql(
            """
            ALTER ROLE tidemark IN DATABASE postgres SET search_path = ~;
            CREATE TABLE ~.list (id int PRIMARY KEY, todos int NOT NULL DEFAULT 0);
            CREATE TABLE ~.todo (id int PRIMARY KEY, list_id int, title text);
            CREATE FUNCTION ~.tidy() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                NEW.title := upper(NEW.title); UPDATE list SET todos = todos + 1 WHERE id = NEW.list_id;
                RETURN NEW; END $$;
            CREATE TRIGGER tidy BEFORE INSERT ON ~.todo FOR EACH ROW EXECUTE FUNCTION ~.tidy();
            INSERT INTO ~.list VALUES (1)
            """)
        try await bench.attach("todo")
        try await bench.attach("list", as: "list")
        // Sessions that were there before do not have the new path.
        let node = try await offPool { try bench.postgres.node() }
        defer { node.close() }
        let server = SyncServer(store: node, configuration: .still)
        let first = insert(1, "1", #"{"title":"a","list_id":1}"#)
        let body = #"{"scope":"s","clientId":"device-aaaa","acked":{},"operations":[\#(first)]}"#
        let pushed = try Answer(
            try await server.exchange(Array(body.utf8), mode: .pushAndPull) { _ in .readWrite(as: "ada") })
        try await bench.sql("ALTER ROLE tidemark IN DATABASE postgres RESET search_path")
        #expect(pushed.statuses == ["applied"], "\(pushed.results)")
        try await bench.drain()
        #expect(try await bench.fields("1") == ["title": "A", "list_id": 1])
        #expect(try await bench.fields("1", entity: "list") == ["todos": 1])
        // An edit of what another program has just written overwrites it, and says so.
        let base = try await bench.store.read("s") { $0.state.head }
        try await bench.sql("UPDATE ~.todo SET title = 'theirs'")
        let edit = try await bench.exchange([upsert(2, "1", #"{"title":"mine"}"#, base: base)])
        let overwrote = edit.results.first?["overwrote"] as? [[String: Any]]
        #expect(overwrote?.first?["theirs"] as? String == "theirs", "\(edit.results)")
        #expect(try await bench.sql("SELECT title FROM ~.todo") == "mine")
        // A row that another program has just deleted stays deleted.
        let later = try await bench.store.read("s") { $0.state.head }
        try await bench.sql("DELETE FROM ~.todo")
        let late = try await bench.exchange([upsert(3, "1", #"{"title":"late"}"#, base: later)])
        #expect(late.errorCode(0) == "record_deleted")
        #expect(try await bench.sql("SELECT count(*) FROM ~.todo") == "0")
    }

    @Test("Devices and other programs write the same rows on several nodes, and end alike", .timeLimit(.minutes(2)))
    func together() async throws {
        let bench = try await TableBench(nodes: 3)
        try await bench.sql(
            """
            CREATE TABLE ~.todo (id int PRIMARY KEY, a int, b int);
            INSERT INTO ~.todo SELECT g, 0, 0 FROM generate_series(1, 30) g
            """)
        try await bench.attach("todo")
        try await withThrowingTaskGroup(of: Void.self) { group in
            let drains = bench.servers.map { server in
                Task { while !Task.isCancelled { _ = try? await server.drainCapture() } }
            }
            defer { for drain in drains { drain.cancel() } }
            for device in 0..<3 {
                group.addTask {
                    for number in 1...60 {
                        let id = (number * 7 + device * 11) % 40 + 1
                        let edit = upsert(
                            number, "\(id)", #"{"a":\#(device * 1000 + number)}"#, lane: "lane-aaa\(device)")
                        _ = try await available {
                            try await bench.exchange([edit], client: "device-aaa\(device)", node: device)
                        }
                    }
                }
            }
            for writer in 0..<2 {
                group.addTask {
                    try await bench.sql(
                        """
                        DO $$ BEGIN FOR i IN 1..200 LOOP
                            UPDATE ~.todo SET b = i * 10 + \(writer) WHERE id = 1 + (random() * 39)::int;
                            IF i % 20 = 0 THEN DELETE FROM ~.todo WHERE id = 1 + (random() * 39)::int; END IF;
                            COMMIT;
                        END LOOP; END $$
                        """)
                }
            }
            try await group.waitForAll()
        }
        try await bench.drain()
        let rows = try await bench.sql("SELECT id || ' ' || coalesce(a, -1) || ' ' || coalesce(b, -1) FROM ~.todo")
        let found = try await bench.records().map { name, fields in
            "\(name.dropFirst(5)) \(fields["a"] as? Int ?? -1) \(fields["b"] as? Int ?? -1)"
        }
        #expect(found.sorted() == rows.split(separator: "\n").map(String.init).sorted())
        #expect(Set(found).count == found.count && !found.isEmpty)
    }
}
