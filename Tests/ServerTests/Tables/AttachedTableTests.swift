import Foundation
import PostgresCluster
import Testing
import TidemarkPostgres
import TidemarkWire

@testable import TidemarkServer

@Suite("Attaching tables and detaching them", .serialized)
struct AttachedTableTests {
    /// What the catalogue says of everything in the other programs' schema, and of the functions in the store's.
    private func catalogue(_ bench: TableBench) async throws -> String {
        let home = bench.postgres.schema
        return try await bench.sql(
            """
            SELECT c.oid::regclass || ' ' || a.attname || ' ' || a.atttypid::regtype || ' ' || a.attnotnull
                || coalesce(pg_get_expr(d.adbin, d.adrelid), '') FROM pg_class c
                JOIN pg_attribute a ON a.attrelid = c.oid
                LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
                WHERE c.relnamespace = '~'::regnamespace AND NOT a.attisdropped
            UNION ALL SELECT tgrelid::regclass || ' ' || tgname || ' ' || tgenabled::text FROM pg_trigger
                WHERE tgrelid IN (SELECT oid FROM pg_class WHERE relnamespace = '~'::regnamespace)
            UNION ALL SELECT oid::regprocedure::text FROM pg_proc
                WHERE pronamespace IN ('~'::regnamespace, '\(home)'::regnamespace)
            UNION ALL SELECT oid::regclass || ' ' || coalesce(relacl::text, '') || relkind::text::text FROM pg_class
                WHERE relnamespace IN ('~'::regnamespace, '\(home)'::regnamespace)
            UNION ALL SELECT refobjid::regclass || ' is needed ' || count(*) FROM pg_depend
                WHERE refclassid = 'pg_class'::regclass
                AND refobjid IN (SELECT oid FROM pg_class WHERE relnamespace = '~'::regnamespace) GROUP BY refobjid
            ORDER BY 1
            """)
    }

    @Test("Detaching leaves nothing behind, and the table and the log as they were", .timeLimit(.minutes(5)))
    func detached() async throws {
        let bench = try await TableBench()
        try await bench.sql(
            """
            CREATE TABLE ~.list (id int PRIMARY KEY);
            CREATE TABLE ~.todo (id int PRIMARY KEY, list_id int REFERENCES ~.list, title text DEFAULT 'x');
            CREATE INDEX ON ~.todo (list_id); INSERT INTO ~.list VALUES (1); INSERT INTO ~.todo VALUES (1, 1, 'A')
            """)
        let before = try await catalogue(bench)
        try await bench.attach("todo", .column("list_id", prefix: "list:"))
        #expect(try await catalogue(bench) != before)
        try await bench.sql("INSERT INTO ~.todo VALUES (2, 1, 'B')")
        try await bench.drain()
        try await bench.store.detach("task")
        #expect(try await catalogue(bench) == before)
        try await bench.sql("INSERT INTO ~.todo VALUES (3, 1, 'C')")
        try await bench.drain()
        #expect(try await bench.sql("SELECT count(*) FROM ~.todo") == "3")
        #expect(try await bench.records("list:1").count == 2)
        #expect(try await bench.sql("SELECT count(*) FROM \(bench.postgres.schema).capture") == "0")
        // The log alone takes what devices send now.
        #expect(try await bench.exchange([upsert(1, "4", #"{"any":1}"#)], scope: "list:1").statuses == ["applied"])
    }

    @Test("A scope's column that was made goes again only where that is asked for", .timeLimit(.minutes(5)))
    func scopeColumn() async throws {
        let bench = try await TableBench()
        try await bench.sql("CREATE TABLE ~.todo (id int PRIMARY KEY, title text); INSERT INTO ~.todo VALUES (1, 'A')")
        let before = try await bench.sql("SELECT count(*) FROM pg_attribute WHERE attrelid = '~.todo'::regclass")
        let place = PostgresStore.TablePlan.Place.newColumn("scope", initially: "w:1")
        try await bench.attach("todo", place)
        #expect(try await bench.records("w:1") == ["task/1": ["title": "A", "scope": "w:1"]])
        try await bench.sql("INSERT INTO ~.todo VALUES (2, 'B', 'w:2')")
        try await bench.drain()
        #expect(try await bench.records("w:2").count == 1)
        try await bench.store.detach("task")
        #expect(try await bench.sql("SELECT scope FROM ~.todo ORDER BY id") == "w:1\nw:2")
        try await bench.sql("ALTER TABLE ~.todo DROP COLUMN scope")
        var plan = bench.plan("todo", "task", place)
        plan.tableWins = true
        _ = try await bench.store.attach(plan)
        try await bench.store.detach("task", dropsScopeColumn: true)
        let columns =
            "SELECT string_agg(attname, ' ') FROM pg_attribute WHERE attrelid = '~.todo'::regclass "
            + "AND attnum > 0 AND NOT attisdropped"
        #expect(try await bench.sql(columns) == "id title" && !before.isEmpty)
    }

    @Test("Attached again, the table has the say over what happened meanwhile", .timeLimit(.minutes(5)))
    func again() async throws {
        let bench = try await TableBench()
        try await bench.sql(
            "CREATE TABLE ~.todo (id int PRIMARY KEY, title text); INSERT INTO ~.todo VALUES (1, 'A'), (2, 'B')")
        try await bench.attach("todo")
        try await bench.store.detach("task")
        try await bench.sql("DELETE FROM ~.todo WHERE id = 1; UPDATE ~.todo SET title = 'C'")
        var plan = bench.plan("todo", "task", .scope("s"))
        await expectError(.entityInUse) { _ = try await bench.store.attach(plan) }
        plan.tableWins = true
        _ = try await bench.store.attach(plan)
        while try await !bench.store.fill("task").isLast {}
        try await bench.drain()
        #expect(try await bench.records() == ["task/2": ["title": "C"]])
    }

    private func expectError(
        _ code: TableError.Code, sourceLocation: SourceLocation = #_sourceLocation, _ work: () async throws -> Void
    ) async {
        do {
            try await work()
            Issue.record("nothing was thrown", sourceLocation: sourceLocation)
        } catch let error as TableError {
            #expect(error.code == code, "\(error)", sourceLocation: sourceLocation)
            #expect(!error.hint.isEmpty, sourceLocation: sourceLocation)
        } catch { Issue.record(error, sourceLocation: sourceLocation) }
    }

    @Test("A table that cannot be attached is refused with a reason, and left alone", .timeLimit(.minutes(5)))
    func refused() async throws {
        let bench = try await TableBench()
        try await bench.sql(
            """
            CREATE TABLE ~.keyless (a int); CREATE TABLE ~.pair (a int, b real, PRIMARY KEY (a, b));
            CREATE TABLE ~.span (id interval PRIMARY KEY); CREATE TABLE ~.lists (id int PRIMARY KEY, tags text[]);
            CREATE UNLOGGED TABLE ~.brief (id int PRIMARY KEY); CREATE VIEW ~.seen AS SELECT 1 AS id;
            CREATE TABLE ~.parted (id int PRIMARY KEY) PARTITION BY HASH (id);
            CREATE TABLE ~.part PARTITION OF ~.parted FOR VALUES WITH (modulus 1, remainder 0);
            CREATE TABLE ~.fine (id int PRIMARY KEY);
            CREATE TABLE ~.late (id int PRIMARY KEY DEFERRABLE); CREATE TABLE ~.ruled (id int PRIMARY KEY);
            CREATE RULE away AS ON INSERT TO ~.ruled DO ALSO NOTHING;
            CREATE TABLE ~.heir () INHERITS (~.lists); CREATE TABLE ~.hidden (id int PRIMARY KEY);
            ALTER TABLE ~.hidden ENABLE ROW LEVEL SECURITY; ALTER TABLE ~.hidden FORCE ROW LEVEL SECURITY
            """)
        let before = try await catalogue(bench)
        for (table, code) in [
            ("none", TableError.Code.tableUnknown), ("keyless", .keyUnsupported), ("pair", .keyUnsupported),
            ("span", .keyUnsupported), ("brief", .tableUnsupported), ("seen", .tableUnsupported),
            ("part", .tableUnsupported), ("lists", .tableUnsupported), ("heir", .tableUnsupported),
            ("late", .keyUnsupported), ("ruled", .tableUnsupported),
        ] {
            await expectError(code) { _ = try await bench.store.attach(bench.plan(table, "task", .scope("s"))) }
        }
        let plan = bench.plan("fine", "task", .column("none", prefix: ""))
        await expectError(.columnUnknown) { _ = try await bench.store.attach(plan) }
        await expectError(.nameInvalid) {
            _ = try await bench.store.attach(bench.plan("fine", " nine", .scope("s")))
        }
        try await bench.sql("CREATE TABLE ~.tagged (id int PRIMARY KEY, tags regclass, name text)")
        await expectError(.columnUnsupported) {
            _ = try await bench.store.attach(bench.plan("tagged", "task", .scope("s")))
        }
        try await bench.sql("DROP TABLE ~.tagged")
        #expect(try await catalogue(bench) == before)
        try await bench.attach("fine")
        await expectError(.alreadyAttached) {
            _ = try await bench.store.attach(bench.plan("fine", "other", .scope("s")))
        }
        await expectError(.notAttached) { try await bench.store.detach("other") }
    }

    @Test("A role that does not own a table cannot attach it", .timeLimit(.minutes(5)))
    func foreign() async throws {
        let bench = try await TableBench()
        let role = bench.postgres.schema
        try await bench.sql(
            """
            CREATE TABLE ~.todo (id int PRIMARY KEY); CREATE ROLE \(role) LOGIN; GRANT ALL ON SCHEMA ~ TO \(role);
            GRANT ALL ON ~.todo TO \(role); CREATE SCHEMA \(role)_log AUTHORIZATION \(role)
            """)
        let store = try await offPool {
            try bench.postgres.node(user: role) { $0.schema = role + "_log" }
        }
        defer { store.close() }
        await expectError(.notOwner) { _ = try await store.attach(bench.plan("todo", "task", .scope("s"))) }
    }

    @Test("A program whose role has no rights in the log's schema is captured like any other", .timeLimit(.minutes(5)))
    func otherRoles() async throws {
        let bench = try await TableBench()
        let role = bench.postgres.schema + "_app"
        try await bench.sql(
            """
            CREATE TABLE ~.todo (id int PRIMARY KEY, title text); CREATE ROLE \(role);
            GRANT USAGE ON SCHEMA ~ TO \(role);
            GRANT INSERT, SELECT ON ~.todo TO \(role)
            """)
        try await bench.attach("todo")
        try await bench.sql("SET ROLE \(role); INSERT INTO ~.todo VALUES (1, 'mine')")
        // A replication's writes, too.
        try await bench.sql("SET session_replication_role = replica; INSERT INTO ~.todo VALUES (2, 'replayed')")
        try await bench.drain()
        #expect(try await bench.records().count == 2)
    }

    @Test("A table that its owner has dropped or altered holds up nobody else", .timeLimit(.minutes(5)))
    func broken() async throws {
        let bench = try await TableBench()
        try await bench.sql(
            """
            CREATE TABLE ~.todo (id int PRIMARY KEY, title text); CREATE TABLE ~.note (id int PRIMARY KEY, body text)
            """)
        try await bench.attach("todo")
        try await bench.attach("note", as: "note")
        try await bench.sql("INSERT INTO ~.todo VALUES (1, 'x'); ALTER TABLE ~.todo RENAME COLUMN title TO name")
        try await bench.sql("INSERT INTO ~.note VALUES (1, 'y')")
        try await bench.drain()
        #expect(try await bench.records() == ["note/1": ["body": "y"]])
        let answer = try await bench.exchange([
            upsert(1, "5", #"{"title":"t"}"#), upsert(2, "5", #"{"body":"b"}"#, entity: "note"),
        ])
        #expect(answer.statuses == ["rejected", "applied"] && answer.errorCode(0) == "table_refused")
        try await bench.sql("ALTER TABLE ~.todo RENAME COLUMN name TO title")
        try await bench.drain()
        #expect(try await bench.fields("1") == ["title": "x"])
        try await bench.sql("DROP TABLE ~.todo")
        try await bench.drain()
        try await bench.store.detach("task")
        #expect(try await bench.store.attachedTables().map(\.entity) == ["note"])
    }
}
