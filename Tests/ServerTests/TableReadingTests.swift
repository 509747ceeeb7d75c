import Foundation
import PostgresCluster
import Testing
import TidemarkPostgres
import TidemarkWire

@testable import TidemarkServer

@Suite("What servers can and cannot read of attached tables", .serialized)
struct TableReadingTests {
    @Test("Rows that the servers' role may not see are not gone", .timeLimit(.minutes(1)))
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
        let server = SyncServer(store: node)
        while try await server.takeCaptured() > 0 {}
        #expect(try await bench.records() == ["task/1": ["title": "A"], "task/2": ["title": "B"]])
        #expect(try await bench.store.attachedTables().map(\.waiting) == [2])
        // A role that sees them all takes them over.
        try await bench.settle()
        #expect(try await bench.records() == ["task/1": ["title": "A!"], "task/2": ["title": "B!"]])
    }
}
