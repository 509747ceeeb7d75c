import Foundation
import PostgresCluster
import Testing
import TidemarkWire

@testable import TidemarkPostgres
@testable import TidemarkServer

@Suite("Tables that change while they are attached", .serialized)
struct TableAlterationTests {
    /// Attaches once more.
    private func again(
        _ bench: TableBench, _ table: String = "todo", _ place: PostgresStore.TablePlan.Place = .scope("s"),
        columns: PostgresStore.TablePlan.Columns = .all, wins: Bool = false
    ) async throws {
        var plan = bench.plan(table, "task", place, columns: columns)
        plan.tableWins = wins
        _ = try await bench.store.attach(plan)
        while try await !bench.store.fill("task", limit: 2).isLast {}
        try await bench.drain()
    }

    @Test("A column that was added travels without detaching, also of rows that were there", .timeLimit(.minutes(5)))
    func added() async throws {
        let bench = try await TableBench(nodes: 2)
        try await bench.sql("CREATE TABLE ~.todo (id int PRIMARY KEY, title text); INSERT INTO ~.todo VALUES (1, 'A')")
        try await bench.attach("todo", columns: .named(read: [], write: ["title"]))
        try await bench.sql("ALTER TABLE ~.todo ADD COLUMN note text DEFAULT 'n', ADD COLUMN hidden text DEFAULT 'h'")
        try await bench.sql("INSERT INTO ~.todo VALUES (2, 'B', 'b')")
        try await bench.drain()
        #expect(try await bench.fields("2") == ["title": "B"])
        try await again(bench, columns: .named(read: ["note"], write: ["title"]))
        #expect(
            try await bench.records()
                == ["task/1": ["title": "A", "note": "n"], "task/2": ["title": "B", "note": "b"]])
        // Another node, which may have read the table before, goes on by what it is now.
        try await again(bench, columns: .named(read: [], write: ["title", "note"]))
        let answer = try await bench.exchange([upsert(1, "3", #"{"title":"C","note":"c"}"#)], node: 1)
        #expect(answer.statuses == ["applied"], "\(answer.results)")
        #expect(try await bench.sql("SELECT note, hidden FROM ~.todo WHERE id = 3") == "c|h")
        // A second attach that is the same appends nothing.
        let head = try await bench.store.read("s") { $0.state.head }
        try await again(bench, columns: .named(read: [], write: ["title", "note"]))
        #expect(try await bench.store.read("s") { $0.state.head } == head)
    }

    @Test(
        "Another column of the key's or the scope's type is another key or scope, not a renamed one",
        .timeLimit(.minutes(5)))
    func swapped() async throws {
        let bench = try await TableBench()
        try await bench.sql("CREATE TABLE ~.todo (a int, b int, x text, y text, PRIMARY KEY (a, b))")
        let place = PostgresStore.TablePlan.Place.column("x", prefix: "list:")
        try await bench.attach("todo", place)
        await #expect(throws: TableError.self) { try await again(bench, "todo", .column("y", prefix: "list:")) }
        try await bench.sql("ALTER TABLE ~.todo DROP CONSTRAINT todo_pkey, ADD PRIMARY KEY (b, a)")
        await #expect(throws: TableError.self) { try await again(bench, "todo", place) }
        try await bench.sql("ALTER TABLE ~.todo DROP CONSTRAINT todo_pkey, ADD PRIMARY KEY (a, b)")
        try await bench.sql("ALTER TABLE ~.todo RENAME COLUMN x TO z")
        try await again(bench, "todo", .column("z", prefix: "list:"))
    }

    @Test("Names of columns, of the key and of the table are told, and followed", .timeLimit(.minutes(5)))
    func renamed() async throws {
        let bench = try await TableBench()
        try await bench.sql(
            """
            CREATE TABLE ~.todo (id int PRIMARY KEY, list_id int, title text); INSERT INTO ~.todo VALUES (1, 7, 'A')
            """)
        let place = PostgresStore.TablePlan.Place.column("list_id", prefix: "list:")
        try await bench.attach("todo", place)
        func problem() async throws -> String { try await bench.store.attachedTables().first?.problem ?? "" }
        try await bench.sql("ALTER TABLE ~.todo RENAME COLUMN title TO name")
        #expect(try await problem().contains("has no column title any more"))
        try await bench.sql("INSERT INTO ~.todo VALUES (2, 7, 'B')")
        try await again(bench, "todo", place)
        #expect(try await problem().isEmpty)
        #expect(try await bench.fields("2", "list:7") == ["list_id": 7, "name": "B"])
        try await bench.sql("ALTER TABLE ~.todo RENAME TO task; ALTER TABLE ~.task SET SCHEMA public")
        #expect(try await problem().contains("is public.task now"))
        try await bench.sql("ALTER TABLE public.task SET SCHEMA ~; UPDATE ~.task SET name = 'C'")
        try await again(bench, "task", place)
        #expect(try await bench.fields("2", "list:7") == ["list_id": 7, "name": "C"])
        // The triggers name the key and the scope's column.
        try await bench.sql(
            "ALTER TABLE ~.task RENAME COLUMN id TO task_id; ALTER TABLE ~.task RENAME COLUMN list_id TO list")
        #expect(try await problem().contains("task_id") == false)
        #expect(try await problem().contains("has no column id, list_id any more"))
        try await again(bench, "task", .column("list", prefix: "list:"))
        try await bench.sql("UPDATE ~.task SET name = 'D'; INSERT INTO ~.task VALUES (3, 7, 'new')")
        try await bench.drain()
        #expect(try await bench.fields("3", "list:7") == ["list": 7, "name": "new"])
        try await bench.sql("DROP TABLE ~.task")
        #expect(try await problem().contains("does not bear the triggers any more"))
    }

    @Test("Another key, scope or table is no change of columns", .timeLimit(.minutes(5)))
    func others() async throws {
        let bench = try await TableBench()
        try await bench.sql(
            """
            CREATE TABLE ~.todo (id int PRIMARY KEY, list int, n text);
            CREATE TABLE ~.next (id int PRIMARY KEY, n text)
            """
        )
        try await bench.attach("todo", columns: .named(read: [], write: ["n"]))
        for (table, place) in [
            ("todo", PostgresStore.TablePlan.Place.scope("t")), ("todo", .column("list", prefix: "list:")),
            ("next", .scope("s")),
        ] {
            let error = await #expect(throws: TableError.self) { try await again(bench, table, place) }
            #expect(error?.code == .alreadyAttached, "\(table) \(place)")
        }
        try await bench.sql(
            """
            ALTER TABLE ~.todo DROP CONSTRAINT todo_pkey, ALTER id TYPE text; ALTER TABLE ~.todo ADD PRIMARY KEY (id)
            """)
        let error = await #expect(throws: TableError.self) { try await again(bench) }
        #expect(error?.code == .alreadyAttached)
    }

    @Test("A table that is partitioned is one table, whatever becomes of its partitions", .timeLimit(.minutes(5)))
    func partitioned() async throws {
        let bench = try await TableBench()
        try await bench.sql(
            """
            CREATE TABLE ~.payment (at date, id int, amount numeric(8, 2), PRIMARY KEY (at, id))
                PARTITION BY RANGE (at);
            CREATE TABLE ~.p1 PARTITION OF ~.payment FOR VALUES FROM ('2026-01-01') TO ('2026-02-01');
            CREATE TABLE ~.p2 PARTITION OF ~.payment FOR VALUES FROM ('2026-02-01') TO ('2026-03-01')
                PARTITION BY HASH (id);
            CREATE TABLE ~.p2a PARTITION OF ~.p2 FOR VALUES WITH (modulus 1, remainder 0);
            INSERT INTO ~.payment VALUES ('2026-01-05', 1, 1), ('2026-02-05', 2, 2)
            """)
        try await bench.attach("payment")
        let first = #"task/["2026-01-05",1]"#
        #expect(
            try await bench.records() == [first: ["amount": "1.00"], #"task/["2026-02-05",2]"#: ["amount": "2.00"]])
        try await bench.sql(
            """
            CREATE TABLE ~.p3 PARTITION OF ~.payment FOR VALUES FROM ('2026-03-01') TO ('2026-04-01');
            INSERT INTO ~.payment VALUES ('2026-03-05', 3, 3); INSERT INTO ~.p2a VALUES ('2026-02-06', 4, 4);
            UPDATE ~.payment SET at = '2026-03-06' WHERE id = 2; TRUNCATE ~.p1
            """)
        try await bench.drain()
        let ids = ["2026-02-06\",4", "2026-03-05\",3", "2026-03-06\",2"]
        #expect(try await bench.records().keys.sorted() == ids.map { #"task/[""# + $0 + "]" })
        let answer = try await bench.exchange([upsert(1, #"[\"2026-01-07\",9]"#, #"{"amount":"9"}"#)])
        #expect(answer.statuses == ["applied"], "\(answer.results)")
        #expect(try await bench.sql("SELECT * FROM ~.p1") == "2026-01-07|9|9.00")
        // Rows that come or go with a partition are noticed when the table is compared.
        try await bench.sql(
            """
            ALTER TABLE ~.payment DETACH PARTITION ~.p2; CREATE TABLE ~.p4 (LIKE ~.p3 INCLUDING ALL);
            INSERT INTO ~.p4 VALUES ('2026-04-01', 5, 5);
            ALTER TABLE ~.payment ATTACH PARTITION ~.p4 FOR VALUES FROM ('2026-04-01') TO ('2026-05-01')
            """)
        try await again(bench, "payment", wins: true)
        #expect(
            try await bench.records().keys.sorted()
                == ["2026-01-07\",9", "2026-03-05\",3", "2026-03-06\",2", "2026-04-01\",5"].map {
                    #"task/[""# + $0 + "]"
                })
        try await bench.sql("TRUNCATE ~.p4")
        try await bench.drain()
        #expect(try await bench.records().count == 3)
        try await bench.store.detach("task")
        #expect(
            try await bench.sql(
                """
                SELECT count(*) FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
                WHERE c.relnamespace = '~'::regnamespace AND tgname LIKE 'tidemark%'
                """) == "0")
    }
}
