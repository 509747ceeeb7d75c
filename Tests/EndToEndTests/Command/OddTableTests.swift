#if Server
    import Foundation
    import Testing

    @testable import TidemarkCommand

    /// The command line on tables that nobody here named.
    @Suite(.serialized) struct OddTableTests {
        let bench: CommandBench
        init() throws { bench = try CommandBench() }

        @Test(.timeLimit(.minutes(5))) func tablesWithNamesOfAllKinds() async throws {
            let server = try await bench.server()
            let schema = """
                CREATE TABLE "Order Details" (id TEXT PRIMARY KEY, "unit price" REAL);
                CREATE TABLE "a/b?c=%41+#" (id TEXT PRIMARY KEY, "x,y" TEXT); CREATE TABLE MiXed (id TEXT PRIMARY KEY);
                """
            let tables = ["--table", "order details", "--table", "a/b?c=%41+#", "--table", "mixed"]
            try bench.sql("a", schema)
            try bench.sql("b", schema)
            try bench.sql(
                "a",
                """
                INSERT INTO "Order Details" VALUES ('1', 2.5); INSERT INTO "a/b?c=%41+#" VALUES ('1', 'x'), ('2', 'y');
                INSERT INTO mixed VALUES ('1');
                """)
            for name in ["a", "b"] {
                let result = try await bench.trySync(name, server, tables)
                #expect(result.status == 0, "\(result.errors)")
            }
            #expect(try bench.sql("b", "SELECT CAST(\"unit price\" AS TEXT) FROM \"Order Details\"") == ["2.5"])
            // What differs is asked for by name.
            try bench.sql(
                "b",
                """
                INSERT INTO tidemark_applying VALUES (1); UPDATE "a/b?c=%41+#" SET "x,y" = 'flipped' WHERE id = '2';
                DELETE FROM tidemark_applying;
                """)
            let repaired = try await bench.run(
                ["verify", bench.path("b"), "--server", server.url, "--repair"], token: try await bench.token())
            #expect(repaired.status == 0, "\(repaired.output) \(repaired.errors)")
            #expect(try bench.sql("b", "SELECT \"x,y\" FROM \"a/b?c=%41+#\" ORDER BY id") == ["x", "y"])
            #expect(await server.stop() == 0)
        }

        @Test(.timeLimit(.minutes(5))) func whatCannotBeSyncedIsSaidInOneGo() async throws {
            let server = try await bench.server()
            try bench.sql(
                "a",
                """
                CREATE TABLE note (id TEXT PRIMARY KEY, body TEXT); CREATE VIRTUAL TABLE search USING fts5(body);
                CREATE VIEW seen AS SELECT 1; CREATE TABLE keyless (a TEXT);
                """)
            let none = try await bench.trySync("a", server)
            #expect(none.status == 1 && none.errors.contains("its tables: note\n"), "\(none.errors)")
            let all = try await bench.trySync(
                "a", server,
                ["search", "search_data", "seen", "keyless", "nowhere", "note"].flatMap { ["--table", $0] })
            #expect(all.status == 1 && all.errors.contains("(table_unsupported)"))
            for table in ["search", "search_data", "seen", "keyless", "nowhere"] {
                #expect(all.errors.contains("'\(table)'"), "\(table): \(all.errors)")
            }
            #expect(!all.errors.contains("'note'") && all.errors.contains("its tables: note\n"))
            // The file is as it was, and the app's own writes go on.
            try bench.sql("a", "INSERT INTO search VALUES ('tide')")
            #expect(
                try bench.sql("a", "SELECT CAST(count(*) AS TEXT) FROM sqlite_master WHERE name LIKE 'tidemark%'") == [
                    "0"
                ])
            #expect(await server.stop() == 0)
        }

        @Test(.timeLimit(.minutes(5))) func warningsAreSaidOnce() async throws {
            let server = try await bench.server()
            let trigger = (1...9).map {
                "CREATE TRIGGER touch\($0) AFTER UPDATE ON list BEGIN UPDATE list SET name = 'x' WHERE id = 0; END;"
            }
            try bench.sql(
                "a",
                "CREATE TABLE list (id INTEGER PRIMARY KEY, name TEXT); INSERT INTO list(name) VALUES ('x');"
                    + trigger.joined())
            func warnings(_ output: String) -> [Substring] {
                output.split(separator: "\n").filter { $0.hasPrefix("warning") }
            }
            let first = try await bench.trySync("a", server, ["--table", "list"])
            #expect(first.status == 0)
            #expect(warnings(first.output).count == 2)
            #expect(first.output.contains("'list'") && first.output.contains("and 6 others"), "\(first.output)")
            #expect(warnings(try await bench.trySync("a", server).output).isEmpty)
            let status = try await bench.run(["status", bench.path("a")], token: "")
            #expect(warnings(status.output).count == 2)
            try bench.sql("a", "DROP TRIGGER touch9")
            #expect(warnings(try await bench.trySync("a", server).output).count == 2)
            #expect(await server.stop() == 0)
        }

        @Test("every command exits with 3 where a row cannot be taken", .timeLimit(.minutes(5)))
        func quarantined() async throws {
            let server = try await bench.server()
            try bench.sql("a", "CREATE TABLE t (id TEXT PRIMARY KEY, n); INSERT INTO t VALUES ('1', 1), ('2', -2)")
            try bench.sql("b", "CREATE TABLE t (id TEXT PRIMARY KEY, n CHECK (n > 0))")
            #expect(try await bench.trySync("a", server, ["--table", "t"]).status == 0)
            #expect(try await bench.trySync("b", server, ["--table", "t"]).status == 3)
            let token = try await bench.token()
            for command in [["verify", bench.path("b"), "--server", server.url], ["status", bench.path("b")]] {
                let told = try await bench.run(command, token: token)
                #expect(told.status == 3 && told.output.contains("1 quarantined"), "\(told)")
            }
            let told = try await bench.run(["verify", bench.path("b"), "--server", server.url, "--json"], token: token)
            #expect(told.output.contains(#""isClean":true,"isConfirmed":false"#), "\(told.output)")
            #expect(await server.stop() == 0)
        }
    }
#endif
