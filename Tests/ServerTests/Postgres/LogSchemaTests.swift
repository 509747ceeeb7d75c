import Foundation
import PostgresCluster
import Testing

@testable import TidemarkPostgres
@testable import TidemarkServer

@Suite("The log's schema and the roles of others")
struct LogSchemaTests {
    @Test("A log whose schema bears a role's name is not made", .timeLimit(.minutes(5)))
    func rolesName() async throws {
        let bench = try await TableBench()
        let role = bench.postgres.schema + "_r"
        try await bench.sql("CREATE ROLE \(role) LOGIN; GRANT CREATE ON DATABASE postgres TO \(role)")
        let error = await #expect(throws: PostgresError.self) {
            try await offPool { try bench.postgres.node(user: role) { $0.schema = role } }
        }
        #expect(error?.code == .schema && error?.message.contains("would make its own tables in it") == true)
        let node = try await offPool { try bench.postgres.node(user: role) { $0.schema = role + "_log" } }
        node.close()
        #expect(PostgresStore.Configuration().schema == "tidemark_log")
    }

    @Test("A store that an earlier build has made under the former name is used on", .timeLimit(.minutes(5)))
    func former() async throws {
        let cluster = try await offPool { try PostgresCluster() }
        let bench = try PostgresBench(cluster)
        func schemas() throws -> String {
            try cluster.psql("SELECT string_agg(nspname, ' ') FROM pg_namespace WHERE nspname LIKE 'tidemark%'")
        }
        let new = try await offPool { try bench.node { $0.schema = PostgresStore.Configuration().schema } }
        new.close()
        #expect(try schemas() == "tidemark_log")
        _ = try cluster.psql("ALTER SCHEMA tidemark_log RENAME TO tidemark")
        let former = try await offPool { try bench.node { $0.schema = PostgresStore.Configuration().schema } }
        #expect(former.tokenKey == new.tokenKey)
        former.close()
        #expect(try schemas() == "tidemark")
    }
}
