#if Server
    import Foundation
    import PostgresCluster
    import Testing

    @testable import TidemarkCommand

    /// Servers that share a store in PostgreSQL, as processes of their own.
    @Suite(.serialized) struct SharedStoreTests {
        let bench: CommandBench
        let cluster: PostgresCluster
        init() async throws {
            bench = try CommandBench()
            cluster = try await offPool { try PostgresCluster() }
            try bench.makeKey()
        }

        @Test(.timeLimit(.minutes(2))) func anyServerWillDo() async throws {
            let (first, second) = (try await bench.server(on: cluster), try await bench.server(on: cluster))
            let token = try await bench.run(
                ["token", "--secret-file", bench.path("key"), "--sub", "ada", "--scope", "w:*=rw"]
            ).output.trimmingCharacters(in: .whitespacesAndNewlines)
            for name in ["a", "b"] {
                try bench.sql(name, "CREATE TABLE task (id TEXT PRIMARY KEY NOT NULL, title TEXT)")
            }
            try bench.sql("a", "INSERT INTO task VALUES ('t1', 'from a'), ('t2', 'from a')")
            try await bench.sync("a", first, token)
            try bench.sql("b", "INSERT INTO task VALUES ('t3', 'from b')")
            try await bench.sync("b", second, token)
            // A device that meets another server goes on where it was.
            try bench.sql("b", "UPDATE task SET title = 'by b' WHERE id = 't1'; DELETE FROM task WHERE id = 't2'")
            try await bench.sync("b", first, token)
            await first.process.end()
            try await bench.sync("a", second, token)
            #expect(try bench.tasks("a") == ["t1 by b", "t3 from b"])
            // The store goes and comes back under a server that stays.
            try await offPool { [cluster] in try cluster.restart() }
            try bench.sql("a", "INSERT INTO task VALUES ('t4', 'after')")
            try await bench.sync("a", second, token)
            try await bench.sync("b", second, token)
            #expect(try bench.tasks("b") == ["t1 by b", "t3 from b", "t4 after"])
            #expect(try await bench.held("w:1", second, token).rows.count == 3)
            #expect(await second.stop() == 0)
            let compacted = try await bench.run(["compact", "--store", cluster.url()])
            #expect(compacted.status == 0, "\(compacted.errors)")
            let rejected = try await bench.run(["rejected", "--store", cluster.url(), "--json"])
            #expect(rejected.status == 0, "\(rejected.errors)")
        }

        @Test(.timeLimit(.minutes(2))) func partitionsAreMadeWithTheStore() async throws {
            for (number, isToldOf) in [("3", false), ("4", true)] {
                let server = try await ServerProcess.start(
                    ["--listen", "127.0.0.1:0", "--secret-file", bench.path("key"), "--partitions", number],
                    environment: ["TIDEMARK_STORE": cluster.url()])
                #expect(await server.stop() == 0)
                let log = server.process.standardError
                #expect(log.contains("keeps the partitions") == isToldOf, "\(log)")
            }
            let parts = try await offPool { [cluster] in
                try cluster.psql("SELECT count(*) FROM pg_inherits WHERE inhparent = 'tidemark_log.change'::regclass")
            }
            #expect(parts == "3")
        }
    }
#endif
