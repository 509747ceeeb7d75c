import Foundation
import PostgresCluster
import Testing
import TidemarkPostgres
import TidemarkWire

@testable import TidemarkServer

@Suite("Attached tables among programs that wait, fail and go on", .serialized)
struct TableTroubleTests {
    /// Runs a program that stays in its transaction until it is told to commit, and waits until it is there.
    private func begin(_ sql: String, on bench: TableBench) async throws -> Task<Void, any Error> {
        try await bench.sql("CREATE TABLE ~.told (id int)")
        let program = Task {
            _ = try await bench.sql(
                """
                BEGIN; \(sql); SELECT pg_advisory_xact_lock(hashtext('~'));
                DO $$ BEGIN WHILE NOT EXISTS (SELECT FROM ~.told) LOOP PERFORM pg_sleep(0.02); END LOOP; END $$; COMMIT
                """)
        }
        let isThere = """
            SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = (hashtext('~')::bit(32)::bigint)::oid
            """
        let deadline = ContinuousClock.now + .seconds(20)
        while try await bench.sql(isThere) == "0", ContinuousClock.now < deadline {}
        return program
    }

    private func finish(_ program: Task<Void, any Error>, on bench: TableBench) async throws {
        try await bench.sql("INSERT INTO ~.told VALUES (1)")
        try await program.value
    }

    @Test("A program that takes its time holds up nobody who writes another row", .timeLimit(.minutes(5)))
    func slowProgram() async throws {
        let bench = try await TableBench()
        try await bench.sql(
            "CREATE TABLE ~.todo (id int PRIMARY KEY, title text); INSERT INTO ~.todo VALUES (1, 'old')")
        try await bench.attach("todo")
        let program = try await begin(
            "UPDATE ~.todo SET title = 'slow'; INSERT INTO ~.todo VALUES (2, 'slow')", on: bench)
        #expect(try await bench.exchange([upsert(1, "3", #"{"title":"quick"}"#)]).statuses == ["applied"])
        try await bench.sql("INSERT INTO ~.todo VALUES (4, 'quick')")
        try await bench.drain()
        #expect(try await bench.records().count == 3)
        #expect(try await bench.fields("1") == ["title": "old"])
        // Its row is waited for, and is what the edit meets then.
        let edit = Task { try await bench.exchange([upsert(2, "1", #"{"title":"edited"}"#, base: 1)]).statuses }
        try await finish(program, on: bench)
        #expect(try await edit.value != ["rejected"])
        try await bench.drain()
        #expect(try await bench.sql("SELECT id, title FROM ~.todo ORDER BY 1") == "1|edited\n2|slow\n3|quick\n4|quick")
        #expect(try await bench.fields("1") == ["title": "edited"])
        #expect(try await bench.fields("2") == ["title": "slow"])
    }

    @Test("An edit of a row that is locked for too long comes again later", .timeLimit(.minutes(5)))
    func lockedRow() async throws {
        let bench = try await TableBench()
        try await bench.sql(
            "CREATE TABLE ~.todo (id int PRIMARY KEY, title text); INSERT INTO ~.todo VALUES (1, 'old')")
        try await bench.attach("todo")
        let node = try await offPool { try bench.postgres.node { $0.lockTimeout = .milliseconds(200) } }
        defer { node.close() }
        let server = SyncServer(store: node, configuration: .still)
        let edit = upsert(1, "1", #"{"title":"edited"}"#, base: 1)
        let body = Array(#"{"scope":"s","clientId":"device-aaaa","acked":{},"operations":[\#(edit)]}"#.utf8)
        let program = try await begin("SELECT * FROM ~.todo FOR UPDATE", on: bench)
        await #expect(throws: StoreUnavailable.self) {
            _ = try await server.exchange(body, mode: .pushAndPull) { _ in .readWrite(as: "ada") }
        }
        #expect(try await bench.exchange([upsert(1, "5", #"{"title":"x"}"#)], scope: "s").statuses == ["applied"])
        try await finish(program, on: bench)
        let again = try Answer(
            try await server.exchange(
                Array(String(decoding: body, as: UTF8.self).replacing("device-aaaa", with: "device-bbbb").utf8),
                mode: .pushAndPull
            ) { _ in .readWrite(as: "ada") })
        #expect(again.statuses == ["applied"])
        #expect(try await bench.sql("SELECT title FROM ~.todo WHERE id = 1") == "edited")
    }

    @Test("An edit that waits for a program's row does not hold up other scopes", .timeLimit(.minutes(5)))
    func otherScopes() async throws {
        let bench = try await TableBench()
        try await bench.sql(
            """
            CREATE TABLE ~.todo (id int PRIMARY KEY, list_id int, title text);
            INSERT INTO ~.todo SELECT g, g, 'old' FROM generate_series(1, 6) g
            """)
        try await bench.attach("todo", .column("list_id", prefix: "list:"))
        let node = try await offPool {
            try bench.postgres.node { ($0.writers, $0.lockTimeout) = (1, .seconds(12)) }
        }
        defer { node.close() }
        let server = SyncServer(store: node, configuration: .still)
        let program = try await begin("SELECT * FROM ~.todo WHERE id = 1 FOR UPDATE", on: bench)
        // The only connection is busy until all edits are there, which then share a transaction.
        let isBusy = Guarded(false)
        let busy = Task {
            try await node.write("busy") { _ in
                isBusy.withLock { $0 = true }
                let deadline = ContinuousClock.now + .seconds(60)
                while node.waiting.writes < 6, ContinuousClock.now < deadline { Thread.sleep(forTimeInterval: 0.01) }
            }
        }
        try await poll { isBusy.withLock { $0 } }
        let edits = (1...6).map { list in
            Task {
                let edit = upsert(1, "\(list)", #"{"title":"edited"}"#, base: 1)
                let body =
                    #"{"scope":"list:\#(list)","clientId":"device-aaa\#(list)","acked":{},"operations":[\#(edit)]}"#
                return try Answer(
                    try await server.exchange(Array(body.utf8), mode: .pushAndPull) { _ in .readWrite(as: "ada") }
                ).statuses
            }
        }
        let start = ContinuousClock.now
        for edit in edits.dropFirst() { #expect(try await edit.value == ["applied"]) }
        #expect(ContinuousClock.now - start < .seconds(10))
        try await finish(program, on: bench)
        #expect(try await edits[0].value == ["applied"])
        try await busy.value
        #expect(try await bench.sql("SELECT count(*) FROM ~.todo WHERE title = 'edited'") == "6")
    }

    @Test("An edit notices a write that went past the triggers, which is looked at again", .timeLimit(.minutes(5)))
    func bypassed() async throws {
        let bench = try await TableBench()
        try await bench.sql(
            "CREATE TABLE ~.todo (id int PRIMARY KEY, title text); INSERT INTO ~.todo VALUES (1, 'old')")
        try await bench.attach("todo")
        try await bench.sql(
            """
            ALTER TABLE ~.todo DISABLE TRIGGER tidemark_capture; DELETE FROM ~.todo;
            ALTER TABLE ~.todo ENABLE ALWAYS TRIGGER tidemark_capture
            """)
        let edit = try await bench.exchange([upsert(1, "1", #"{"title":"edited"}"#, base: 1)])
        #expect(edit.errorCode(0) == "record_deleted")
        try await bench.drain()
        #expect(try await bench.records().isEmpty)
    }

    @Test("Ids that a table gives are not the server's to assign", .timeLimit(.minutes(5)))
    func assigned() async throws {
        var declaration = EntityDeclaration("task")
        declaration.ids = .server
        let bench = try await TableBench(entities: [declaration])
        try await bench.sql("CREATE TABLE ~.todo (id serial PRIMARY KEY, title text)")
        try await bench.attach("todo")
        let key = #""lane":"lane-aaaa","number":1,"type":"upsert","entity":"task""#
        let answer = try await bench.exchange([
            "{" + key + #","tempId":"-5000000000000000000","fields":{}}"#
        ])
        #expect(answer.errorCode(0) == "temporary_id_refused", "\(answer.results)")
        #expect(try await bench.sql("SELECT count(*) FROM ~.todo") == "0")
    }

    @Test("A trigger that says a feature is not supported refuses its row and no other", .timeLimit(.minutes(5)))
    func unsupported() async throws {
        let bench = try await TableBench()
        try await bench.sql(
            """
            CREATE TABLE ~.todo (id int PRIMARY KEY, title text);
            CREATE FUNCTION ~.never() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                IF NEW.title = 'x' THEN RAISE feature_not_supported; END IF; RETURN NEW; END $$;
            CREATE TRIGGER never BEFORE INSERT ON ~.todo FOR EACH ROW EXECUTE FUNCTION ~.never()
            """)
        try await bench.attach("todo")
        let answer = try await bench.exchange([upsert(1, "1", #"{"title":"x"}"#), upsert(2, "2", #"{"title":"y"}"#)])
        #expect(answer.statuses == ["rejected", "applied"] && answer.errorCode(0) == "table_refused")
        #expect(try await bench.sql("SELECT id FROM ~.todo") == "2")
    }

    @Test("Notes of a table that cannot be read stand in nobody's way", .timeLimit(.minutes(5)))
    func unreadable() async throws {
        let bench = try await TableBench()
        try await bench.sql(
            """
            CREATE TABLE ~.todo (id int PRIMARY KEY, title text); CREATE TABLE ~.note (id int PRIMARY KEY, body text)
            """)
        try await bench.attach("todo")
        try await bench.attach("note", as: "note")
        try await bench.sql(
            """
            INSERT INTO ~.todo SELECT g, 'x' FROM generate_series(1, 30) g; ALTER TABLE ~.todo DROP COLUMN title;
            INSERT INTO ~.note SELECT g, 'y' FROM generate_series(1, 30) g
            """)
        let taken = try await bench.store.write("s") { writer in
            try bench.server.drainCapture(writer, "s", limit: 20, at: 1)
                + bench.server.drainCapture(writer, "s", limit: 20, at: 2)
        }
        #expect(taken == 30)
        #expect(try await bench.records().count == 30)
        #expect(try await bench.store.attachedTables().map(\.notes) == [30, 0])
    }

    @Test("Programs and devices go on while a table is detached", .timeLimit(.minutes(5)))
    func detaching() async throws {
        let bench = try await TableBench(nodes: 2)
        try await bench.sql("CREATE TABLE ~.todo (id int PRIMARY KEY, n int); INSERT INTO ~.todo VALUES (1, 0)")
        for _ in 0..<4 {
            var plan = bench.plan("todo", "task", .scope("s"))
            plan.tableWins = true
            _ = try await available { try await bench.store.attach(plan) }
            while try await !bench.store.fill("task").isLast {}
            let program = Task {
                try await bench.sql(
                    """
                    DO $$ BEGIN FOR i IN 1..300 LOOP
                        UPDATE ~.todo SET n = n + 1 WHERE id = 1; COMMIT; END LOOP; END $$
                    """)
            }
            let device = Task {
                let client = "device-" + UUID().uuidString.prefix(8)
                for number in 1...40 {
                    let edit = upsert(number, "\(number + 10)", #"{"n":\#(number)}"#)
                    let answer = try await available {
                        try await bench.exchange([edit], client: client, node: 1)
                    }
                    #expect(answer.statuses.allSatisfy { $0 == "applied" || $0 == "merged" }, "\(answer.results)")
                }
            }
            try await bench.drain()
            _ = try await available { try await bench.store.detach("task") }
            _ = try await program.value
            try await device.value
        }
        #expect(try await bench.sql("SELECT n FROM ~.todo WHERE id = 1") == "1200")
        #expect(try await bench.sql("SELECT count(*) FROM pg_trigger WHERE tgrelid = '~.todo'::regclass") == "0")
    }

    @Test("A server of the database that goes and comes back loses nothing", .timeLimit(.minutes(2)))
    func restarted() async throws {
        let cluster = try await offPool { try PostgresCluster(isDurable: true) }
        let bench = try await TableBench(nodes: 2, cluster: cluster)
        try await bench.sql("CREATE TABLE ~.todo (id int PRIMARY KEY, n int)")
        try await bench.attach("todo")
        let drains = bench.servers.map { server in
            Task { while !Task.isCancelled { _ = try? await server.drainCapture() } }
        }
        defer { for drain in drains { drain.cancel() } }
        for round in 0..<3 {
            let program = Task {
                // Ends with the server.
                _ = try? await bench.sql(
                    """
                    DO $$ BEGIN FOR i IN 1..100000 LOOP
                        INSERT INTO ~.todo VALUES (i % 500, i) ON CONFLICT (id) DO UPDATE SET n = excluded.n;
                        IF i % 7 = 0 THEN DELETE FROM ~.todo WHERE id = i % 11; END IF; COMMIT; END LOOP; END $$
                    """)
            }
            // Whatever the program and the nodes do at that moment.
            try await Task.sleep(for: .milliseconds(300 + 200 * round))
            try await offPool { try cluster.restart() }
            _ = await program.value
        }
        try await bench.drain()
        let rows = try await bench.sql("SELECT id || ' ' || n FROM ~.todo").split(separator: "\n").map(String.init)
        let found = try await available {
            try await bench.records().map { "\($0.key.dropFirst(5)) \($0.value["n"] as? Int ?? -1)" }
        }
        #expect(found.sorted() == rows.sorted() && !rows.isEmpty)
        #expect(try await bench.sql("SELECT count(*) FROM \(bench.postgres.schema).capture") == "0")
    }
}
