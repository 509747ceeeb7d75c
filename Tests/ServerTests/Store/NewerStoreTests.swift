import Foundation
import GRDB
import PostgresCluster
import Testing
import TidemarkPostgres
import TidemarkSQLite

@testable import TidemarkServer

/// A server that goes back to the version before. One on SQLite had gone on with such a store, past what the newer one
/// counts.
@Suite("A store that a newer version has written is refused, and stays as it is")
struct NewerStoreTests {
    private func write(_ bench: Bench, _ sql: String) throws {
        let file = try DatabaseQueue(path: bench.directory.appending(path: "sync.sqlite").path)
        try file.write { db in try db.execute(sql: sql) }
        try file.close()
    }

    @Test("a newer store in SQLite is refused, and is read again once it is an older one")
    func file() async throws {
        let bench = try Bench()
        _ = try await bench.exchange([upsert(1, "r1", #"{"n":1}"#)])
        #expect(throws: NewerStore.self) {
            try bench.reopen { _ in try write(bench, "INSERT INTO grdb_migrations VALUES ('later')") }
        }
        try write(bench, "DELETE FROM grdb_migrations WHERE identifier = 'later'")
        let again = try SQLiteStore(path: bench.directory.appending(path: "sync.sqlite").path)
        #expect(try await again.read("s") { $0.state.head } == 1)
        try again.close()
    }

    @Test("a newer store in PostgreSQL is refused, and stays as it is")
    func schema() async throws {
        let bench = try PostgresBench()
        let node = try bench.node()
        _ = try await node.write("s") { try $0.append(.upsert("a", #"{"n":1}"#), at: 1) }
        node.close()
        let (cluster, schema) = (bench.cluster, bench.schema)
        try await offPool {
            _ = try cluster.psql("UPDATE \(schema).meta SET number = number + 2 WHERE key = 'schema'")
        }
        let refusal = #expect(throws: PostgresError.self) { try bench.node() }
        #expect(refusal?.code == .schema && refusal?.message.contains("newer") == true)
        try await offPool {
            _ = try cluster.psql("UPDATE \(schema).meta SET number = number - 2 WHERE key = 'schema'")
        }
        let again = try bench.node()
        defer { again.close() }
        #expect(try await again.read("s") { $0.state.head } == 1)
    }
}
