import Foundation
import PostgresCluster
import Testing
import TidemarkWire

@testable import TidemarkPostgres
@testable import TidemarkServer

@Suite("Servers read of attached tables what their role may see", .serialized)
struct TableReadingTests {
    @Test("Rows that the servers' role may not see are not gone", .timeLimit(.minutes(5)))
    func hiddenRows() async throws {
        let bench = try await TableBench()
        let (role, home) = (bench.postgres.schema + "_srv", bench.postgres.schema)
        try await bench.sql(
            "CREATE TABLE ~.todo (id int PRIMARY KEY, title text); INSERT INTO ~.todo VALUES (1, 'A'), (2, 'B')")
        try await bench.attach("todo")
        try await bench.sql(
            """
            CREATE ROLE \(role) LOGIN; GRANT USAGE ON SCHEMA ~, \(home) TO \(role); GRANT ALL ON ~.todo TO \(role);
            GRANT ALL ON ALL TABLES IN SCHEMA \(home) TO \(role);
            ALTER TABLE ~.todo ENABLE ROW LEVEL SECURITY; CREATE POLICY own ON ~.todo TO \(role) USING (id = 1);
            UPDATE ~.todo SET title = title || '!'
            """)
        let node = try await offPool { try bench.postgres.node(user: role) }
        defer { node.close() }
        let server = SyncServer(store: node, configuration: .still)
        while try await server.drainCapture() > 0 {}
        #expect(try await bench.records() == ["task/1": ["title": "A"], "task/2": ["title": "B"]])
        #expect(try await bench.store.attachedTables().map(\.notes) == [2])
        // A role that sees them all takes them over.
        try await bench.drain()
        #expect(try await bench.records() == ["task/1": ["title": "A!"], "task/2": ["title": "B!"]])
    }

    @Test("Records of the log that no row of the table can be stop nothing", .timeLimit(.minutes(5)))
    func foreignKeys() async throws {
        let bench = try await TableBench()
        let ids = ["first", "99999999999", "007", "1"]
        let logged = try await bench.exchange(ids.enumerated().map { upsert($0 + 1, $1, #"{"title":"log"}"#) })
        #expect(Set(logged.statuses) == ["applied"])
        try await bench.sql("CREATE TABLE ~.todo (id int PRIMARY KEY, title text); INSERT INTO ~.todo VALUES (1, 'A')")
        var plan = bench.plan("todo", "task", .scope("s"))
        plan.tableWins = true
        _ = try await bench.store.attach(plan)
        while try await !bench.store.fill("task").isLast {}
        try await bench.drain()
        #expect(try await bench.records() == ["task/1": ["title": "A"]])
        #expect(try await bench.store.attachedTables().map(\.notes) == [0])
    }

    @Test("A key that becomes wider while its table is attached goes on being read", .timeLimit(.minutes(5)))
    func widerKey() async throws {
        let bench = try await TableBench()
        try await bench.sql("CREATE TABLE ~.todo (id int PRIMARY KEY, list_id int, title text)")
        try await bench.attach("todo", .column("list_id", prefix: "list:"))
        try await bench.sql(
            """
            ALTER TABLE ~.todo ALTER id TYPE bigint; INSERT INTO ~.todo VALUES (5000000000, 1, 'far')
            """)
        try await bench.drain()
        #expect(try await bench.fields("5000000000", "list:1")?["title"] as? String == "far")
        let base = try await bench.store.read("list:1") { $0.state.head }
        let answer = try await bench.exchange(
            [
                upsert(1, "5000000000", #"{"title":"edited"}"#, base: base),
                upsert(2, "6000000000", #"{"title":"new"}"#),
            ],
            scope: "list:1")
        #expect(answer.statuses == ["applied", "applied"], "\(answer.results)")
        #expect(try await bench.sql("SELECT title FROM ~.todo ORDER BY id") == "edited\nnew")
    }

    @Test("Rows that are larger than a record are not read at all", .timeLimit(.minutes(5)))
    func largeRows() async throws {
        let bench = try await TableBench()
        try await bench.sql("CREATE TABLE ~.todo (id int PRIMARY KEY, list_id int, doc json, raw bytea)")
        try await bench.attach("todo", .column("list_id", prefix: "list:"))
        try await bench.sql(
            """
            INSERT INTO ~.todo SELECT g, 1, NULL, convert_to(repeat('x', 600000), 'UTF8') FROM generate_series(1, 20) g;
            UPDATE ~.todo SET doc = to_json(repeat('y', 600000)) WHERE id IN (2, 3);
            UPDATE ~.todo SET list_id = 2 WHERE id = 3
            """)
        let taken = try await bench.store.write("list:1") { writer in
            var taken: [String: CapturedRecord] = [:]
            _ = try (writer as? any TableScopeWriter)?.drainCapture(limit: 99, recordBytes: 1_000_000) {
                taken[$0.key] = $0
            }
            return taken
        }
        #expect(taken.count == 20 && taken["1"]?.fields?.count ?? 0 > 800_000)
        #expect(taken["2"]?.unsendable == .tooLarge && taken["2"]?.fields == nil && taken["2"]?.isElsewhere == false)
        #expect(taken["3"]?.unsendable == nil && taken["3"]?.fields == nil && taken["3"]?.isElsewhere == true)
        #expect(taken.values.filter { $0.fields != nil }.count == 18)
    }

    @Test("Only so many bytes of rows are read at once")
    func parts() throws {
        let keys = (0..<6).map { [UInt8($0)] }
        var sizes = RowSizes()
        #expect(sizes.parts(of: keys, limit: 10).map(\.count) == [6])
        for (key, size) in zip(keys, [3, 7, 1, 50, 0, 4]) { sizes.add(size, of: key) }
        #expect(sizes.parts(of: keys, limit: 10).map(\.count) == [2, 1, 1, 2])
        // One that is larger than a part may be the first.
        #expect(sizes.parts(of: Array(keys[3...]), limit: 10).map(\.count) == [1, 2])
        #expect(sizes.parts(of: [], limit: 10).map(\.count) == [0])
    }

    @Test("The list says why a table is not read", .timeLimit(.minutes(5)))
    func reasons() async throws {
        let bench = try await TableBench()
        try await bench.sql("CREATE TABLE ~.todo (id int PRIMARY KEY, title text)")
        try await bench.attach("todo")
        #expect(try await bench.store.attachedTables().map(\.problem) == [nil])
        try await bench.sql("ALTER TABLE ~.todo RENAME title TO name")
        let problem = try await bench.store.attachedTables().first?.problem
        #expect(problem?.contains("title") == true, "\(problem ?? "-")")
    }
}
