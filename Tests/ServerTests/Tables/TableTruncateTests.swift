import Foundation
import PostgresCluster
import Testing
import TidemarkPostgres
import TidemarkWire

@testable import TidemarkServer

@Suite("A table that is emptied", .serialized)
struct TableTruncateTests {
    /// Brings records into the log that no edit has made, with rows of their history beside them.
    private func log(_ count: Int, _ scope: String, on bench: TableBench, of entity: String = "task") async throws {
        let home = bench.postgres.schema
        try await bench.sql(
            """
            INSERT INTO \(home).scope (head, last_time, name, entities)
            VALUES (\(2 * count), 1, '\(scope)', '\(entity)');
            INSERT INTO \(home).change (version, time, kind, scope, entity, record, payload, superseded_by)
            SELECT g, 1, 0, '\(scope)', '\(entity)', convert_to(((g + 1) / 2)::text, 'UTF8'), '{}',
                CASE WHEN g % 2 = 1 THEN g + 1 END FROM generate_series(1, \(2 * count)) g
            """)
    }

    @Test("Its records are noted in steps, scope by scope", .timeLimit(.minutes(5)))
    func steps() async throws {
        let bench = try await TableBench(nodes: 2)
        let capture = "\(bench.postgres.schema).capture"
        try await bench.sql("CREATE TABLE ~.todo (id int PRIMARY KEY)")
        try await bench.attach("todo")
        try await log(30_000, "a", on: bench)
        for scope in 0..<30 { try await log(1, "b\(scope)", on: bench, of: "other") }
        try await log(3, "c", on: bench)
        try await bench.sql("TRUNCATE ~.todo")
        try await bench.sql("TRUNCATE ~.todo")
        let first = try await bench.store.capturedScopes(after: nil, limit: 9)
        #expect(first == ["a"])
        let noted = Int(try await bench.sql("SELECT count(*) FROM \(capture) WHERE scope <> ''")) ?? 0
        #expect(0 < noted && noted <= 20_000)
        // Whoever looks goes on where the last one was.
        let deadline = ContinuousClock.now + .seconds(40)
        while try await bench.sql("SELECT count(*) FROM \(capture) WHERE scope = ''") != "0",
            ContinuousClock.now < deadline
        {
            for node in bench.nodes { _ = try await node.capturedScopes(after: nil, limit: 9) }
        }
        let all = try await bench.sql(
            "SELECT scope, count(*), count(DISTINCT record) FROM \(capture) GROUP BY 1 ORDER BY 1")
        #expect(all == "a|30000|30000\nc|3|3")
    }

    @Test("One whose records cannot be noted holds up nobody else", .timeLimit(.minutes(5)))
    func failing() async throws {
        let bench = try await TableBench()
        let home = bench.postgres.schema
        try await bench.sql("CREATE TABLE ~.todo (id int PRIMARY KEY); CREATE TABLE ~.note (id int PRIMARY KEY)")
        try await bench.attach("todo")
        try await bench.attach("note", as: "note")
        try await log(1, "bad", on: bench)
        try await bench.sql(
            #"UPDATE \#(home).change SET record = '\xff'; TRUNCATE ~.todo; INSERT INTO ~.note VALUES (1)"#)
        _ = try? await bench.server.drainCapture()
        #expect(try await bench.records() == ["note/1": [:]])
        #expect(try await bench.store.attachedTables().map(\.notes) == [1, 0])
    }
}
