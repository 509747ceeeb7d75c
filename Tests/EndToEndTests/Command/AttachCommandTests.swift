#if Server
    import Foundation
    import PostgresCluster
    import Testing

    @testable import TidemarkCommand

    /// `tidemark attach` and `detach` as an operator meets them, with servers and devices of their own processes.
    @Suite(.serialized) struct AttachCommandTests {
        let bench: CommandBench
        let cluster: PostgresCluster
        init() async throws {
            bench = try CommandBench()
            cluster = try await offPool { try PostgresCluster() }
            try bench.makeKey()
        }

        @discardableResult
        private func psql(_ sql: String) async throws -> String {
            try await offPool { [cluster] in try cluster.psql(sql) }
        }

        private func tidemark(_ arguments: [String]) async throws -> (status: Int32, output: String, errors: String) {
            try await bench.run(arguments + ["--store", cluster.url()])
        }

        /// Syncs a device until its file says what it should.
        private func sync(
            _ name: String, _ server: ServerProcess, _ token: String, until rows: [String],
            sourceLocation: SourceLocation = #_sourceLocation
        ) async throws {
            let deadline = ContinuousClock.now + .seconds(30)
            var found: [String] = []
            repeat {
                let result = try await bench.run(
                    ["sync", bench.path(name), "--server", server.url, "--scope", "list:1", "--table", "todo"],
                    token: token)
                #expect(result.status == 0, "\(result.output)\(result.errors)", sourceLocation: sourceLocation)
                found = try bench.sql(name, "SELECT id || ' ' || title || ' ' || done FROM todo ORDER BY id")
            } while found != rows && ContinuousClock.now < deadline
            #expect(found == rows, sourceLocation: sourceLocation)
        }

        @Test(.timeLimit(.minutes(2))) func aTableOfOnesOwnIsOnTheDevices() async throws {
            try await psql(
                """
                CREATE TABLE todo (id text PRIMARY KEY, list_id int NOT NULL, title text NOT NULL CHECK (title <> 'no'),
                    done boolean NOT NULL DEFAULT false);
                INSERT INTO todo VALUES ('t1', 1, 'from SQL'), ('t2', 1, 'from SQL'), ('x', 2, 'not yours')
                """)
            let first = try await bench.server(on: cluster)
            let attached = try await tidemark([
                "attach", "--table", "public.todo", "--entity", "todo", "--scope-column", "list_id", "--scope-prefix",
                "list:", "--all-columns", "--json",
            ])
            #expect(attached.status == 0, "\(attached.errors)")
            let report = try JSONDecoder().decode(AttachReport.self, from: Data(attached.output.utf8))
            #expect(
                report.rows == 3 && report.placeless == 0 && report.attached.columns.count == 3
                    && report.attached.filled)
            let token = try await bench.run(
                ["token", "--secret-file", bench.path("key"), "--sub", "ada", "--scope", "list:1=rw"]
            ).output.trimmingCharacters(in: .whitespacesAndNewlines)
            for name in ["a", "b"] {
                try bench.sql(
                    name,
                    "CREATE TABLE todo (id TEXT PRIMARY KEY NOT NULL, list_id INTEGER NOT NULL, title TEXT, "
                        + "done INTEGER NOT NULL DEFAULT 0)")
            }
            try await sync("a", first, token, until: ["t1 from SQL 0", "t2 from SQL 0"])
            try bench.sql("a", "INSERT INTO todo VALUES ('t3', 1, 'from a', 1)")
            try bench.sql("a", "UPDATE todo SET title = 'by a' WHERE id = 't1'")
            try await sync("a", first, token, until: ["t1 by a 0", "t2 from SQL 0", "t3 from a 1"])
            #expect(
                try await psql("SELECT id, title, done FROM todo WHERE list_id = 1 ORDER BY id")
                    == "t1|by a|f\nt2|from SQL|f\nt3|from a|t")
            // One server goes in the middle of it; what is noted meanwhile is the next one's.
            await first.process.end()
            try await psql("UPDATE todo SET done = true WHERE id = 't1'; DELETE FROM todo WHERE id = 't2'")
            let second = try await bench.server(on: cluster)
            try await sync("b", second, token, until: ["t1 by a 1", "t3 from a 1"])
            // What the table does not take stays with its device, and is told to both sides.
            try bench.sql("b", "INSERT INTO todo VALUES ('t4', 1, 'no', 0)")
            _ = try await bench.run(
                ["sync", bench.path("b"), "--server", second.url, "--scope", "list:1", "--table", "todo"], token: token)
            let refused = try await bench.run(["rejected", bench.path("b")])
            #expect(refused.status == 3 && refused.output.contains("check_failed"), "\(refused)")
            #expect(try await tidemark(["rejected"]).output.contains("todo_title_check"))
            let detached = try await tidemark(["detach", "--entity", "todo"])
            #expect(detached.status == 0 && detached.output.hasPrefix("detached public.todo;"), "\(detached)")
            #expect(try await tidemark(["attach"]).output == "no table is attached\n")
            #expect(try await psql("SELECT count(*) FROM pg_trigger WHERE tgname LIKE 'tidemark%'") == "0")
            #expect(await second.stop() == 0)
        }

        @Test(.timeLimit(.minutes(5))) func aFillThatWasKilledGoesOn() async throws {
            try await psql(
                """
                CREATE TABLE todo (id int PRIMARY KEY, title text);
                INSERT INTO todo SELECT g, 'row ' || g FROM generate_series(1, 12000) g
                """)
            let arguments = ["attach", "--table", "todo", "--scope", "s", "--all-columns", "--store", cluster.url()]
            let process = try ChildProcess(ServeTests.command, arguments)
            let deadline = ContinuousClock.now + .seconds(30)
            var filled = ""
            while filled.isEmpty, ContinuousClock.now < deadline {
                filled = (try? await psql("SELECT filled_to FROM tidemark_log.attached_table")) ?? ""
            }
            await process.end()
            #expect(!filled.isEmpty)
            let again = try await bench.run(arguments + ["--json"])
            #expect(again.status == 0, "\(again.errors)")
            #expect(
                try await psql(
                    "SELECT count(*), max(head) FROM tidemark_log.change c, tidemark_log.scope WHERE c.kind = 0")
                    == "12000|12000")
            let third = try await bench.run(arguments)
            #expect(third.status == 0 && third.output.contains("\n0 rows were there before"), "\(third)")
        }

        @Test(.timeLimit(.minutes(2))) func aServerThatIsKilledLeavesTheRestToOthers() async throws {
            try await psql("CREATE TABLE todo (id int PRIMARY KEY, title text)")
            #expect(try await tidemark(["attach", "--table", "todo", "--scope", "w:1", "--all-columns"]).status == 0)
            let token = try await bench.run(
                ["token", "--secret-file", bench.path("key"), "--sub", "ada", "--scope", "w:1=rw"]
            ).output.trimmingCharacters(in: .whitespacesAndNewlines)
            let last = try await bench.server(on: cluster)
            for round in 1...4 {
                let first = try await bench.server(on: cluster)
                let program = Task {
                    try await psql(
                        """
                        DO $$ BEGIN FOR i IN 1..2000 LOOP
                            INSERT INTO todo VALUES (i % 300, \(round) || '-' || i)
                                ON CONFLICT (id) DO UPDATE SET title = excluded.title;
                            IF i % 7 = 0 THEN DELETE FROM todo WHERE id = i % 31; END IF; COMMIT; END LOOP; END $$
                        """)
                }
                try await Task.sleep(for: .milliseconds(100 * round))
                await first.process.end()
                _ = try await program.value
            }
            let rows = Set(
                try await psql("SELECT id || ' ' || title FROM todo").split(separator: "\n").map(String.init))
            let deadline = ContinuousClock.now + .seconds(30)
            var held: Set<String> = []
            repeat {
                held = Set(try await bench.held("w:1", last, token).rows.map { "\($0.key) \($0.value)" })
            } while held != rows && ContinuousClock.now < deadline
            #expect(held == rows && rows.count > 200)
            #expect(await last.stop() == 0)
        }

        @Test(.timeLimit(.minutes(5))) func whatIsForgottenIsTold() async throws {
            try await psql("CREATE TABLE todo (id int PRIMARY KEY, title text)")
            #expect(try await tidemark(["attach", "--table", "todo", "--scope", "s", "--all-columns"]).status == 0)
            try await psql("INSERT INTO todo VALUES (1, 'a'), (2, 'b'); ALTER TABLE todo RENAME TO other")
            let listed = try await tidemark(["attach"])
            #expect(listed.output.contains("  2 notes that no server"), "\(listed)")
            #expect(listed.output.contains("is public.other now: give it"), "\(listed)")
            let detached = try await tidemark(["detach", "--entity", "todo"])
            #expect(detached.status == 0 && detached.output.contains("2 writes were not taken over: "), "\(detached)")
            #expect(try await psql("SELECT count(*) FROM pg_trigger WHERE tgname LIKE 'tidemark%'") == "0")
        }

        @Test(.timeLimit(.minutes(5))) func allTablesOfASchemaAndWhatDevicesMakeForThem() async throws {
            try await psql(
                """
                CREATE TABLE "Order Details" ("OrderID" int, "ProductID" int, "UnitPrice" numeric(10, 2),
                    "Discount" real, PRIMARY KEY ("OrderID", "ProductID"));
                CREATE TABLE region (id smallint PRIMARY KEY, name char(9), logo bytea, opened date, secret text);
                CREATE TABLE keyless (name text); INSERT INTO region VALUES (1, 'North', '\\x00', '2026-11-21', 's');
                INSERT INTO "Order Details" VALUES (1, 2, 12.50, 0.25)
                """)
            let arguments = ["attach", "--all", "--scope", "s", "--read", "UnitPrice,logo,opened", "--write", "name"]
            let all = try await tidemark(arguments)
            #expect(all.status == 3 && all.errors.contains("1 of 3 tables is not attached"), "\(all)")
            #expect(all.errors.contains("public.Order Details: 1 row taken over\n"), "\(all)")
            #expect(all.output.contains("public.keyless is not attached: public.keyless has no primary key"))
            #expect(all.output.contains("UnitPrice: exact numbers; declare TEXT on devices"), "\(all)")
            #expect(all.output.contains("id: a number; two devices"))
            try await psql("DROP TABLE keyless; ALTER TABLE region ADD COLUMN motto text")
            var again = try await tidemark(arguments)
            #expect(again.status == 0, "\(again)")
            again = try await tidemark(["attach", "--table", "region", "--scope", "s", "--all-columns"])
            #expect(again.status == 0 && again.output.contains("motto"), "\(again)")
            let printed = try await tidemark(["attach", "--print-sqlite"])
            #expect(
                printed.output == """
                    CREATE TABLE "Order Details" (
                      "OrderID" INTEGER NOT NULL,
                      "ProductID" INTEGER NOT NULL,
                      "UnitPrice" TEXT, -- numeric: exact; a NUMERIC or REAL column would hold another value
                      PRIMARY KEY ("OrderID", "ProductID")
                    );
                    CREATE TABLE "region" (
                      "id" INTEGER PRIMARY KEY NOT NULL,
                      "name" TEXT,
                      "logo" BLOB,
                      "opened" TEXT, -- date
                      "secret" TEXT,
                      "motto" TEXT
                    );

                    """, "\(printed)")
            let one = try await tidemark(["attach", "--print-sqlite", "--table", "region"])
            #expect(printed.output.hasSuffix(one.output) && !one.output.contains("Order"))
            try bench.sql("device", printed.output)
            let server = try await bench.server(on: cluster)
            let token = try await bench.run(
                ["token", "--secret-file", bench.path("key"), "--sub", "ada", "--scope", "s=rw"]
            ).output.trimmingCharacters(in: .whitespacesAndNewlines)
            let sync = ["--server", server.url, "--scope", "s", "--table", "Order Details", "--table", "region"]
            let synced = try await bench.run(["sync", bench.path("device")] + sync, token: token)
            #expect(synced.status == 0, "\(synced)")
            #expect(try bench.sql("device", "SELECT \"UnitPrice\" FROM \"Order Details\"") == ["12.50"])
            let verified = try await bench.run(
                ["verify", bench.path("device"), "--server", server.url], token: token)
            #expect(verified.status == 0 && verified.output.contains("0 differ"), "\(verified)")
            #expect(await server.stop() == 0)
        }

        @Test(.timeLimit(.minutes(2))) func rowsThatCannotTravelAreTold() async throws {
            try await psql(
                """
                CREATE TABLE reading (id int PRIMARY KEY, value double precision);
                INSERT INTO reading VALUES (1, 0.5), (2, 'NaN'), (3, 'NaN')
                """)
            let attached = try await tidemark(["attach", "--table", "reading", "--scope", "s", "--all-columns"])
            #expect(
                attached.status == 0
                    && attached.output.contains("\n2 rows cannot travel: `tidemark rejected --store …` lists each"),
                "\(attached)")
            #expect(try await tidemark(["rejected"]).output.contains("The column value holds NaN"))
        }

        @Test func mistakesAreToldWithAWayOut() async throws {
            let sqlite = try await bench.run(
                ["attach", "--store", "sqlite:" + bench.path("s"), "--table", "t", "--scope", "s"])
            #expect(sqlite.status == 1 && sqlite.errors.contains("\nhint: "), "\(sqlite.errors)")
            let missing = try await tidemark(["attach", "--table", "nothing", "--scope", "s", "--all-columns"])
            #expect(missing.status == 1 && missing.errors.contains("there is no table 'nothing'"), "\(missing.errors)")
            #expect(try await tidemark(["attach", "--table", "nothing"]).status == 64)
            #expect(try await tidemark(["detach"]).status == 64)
            try "entities: {todo: {ids: server}}".write(
                toFile: bench.path("yaml"), atomically: true, encoding: .utf8)
            let ids = try await tidemark(
                ["attach", "--table", "todo", "--scope", "s", "--config", bench.path("yaml")])
            #expect(ids.status == 1 && ids.errors.contains("ids: server"), "\(ids.errors)")
            try await psql("CREATE TABLE one (id int PRIMARY KEY, name text); CREATE TABLE keyless (name text)")
            let typed = try await tidemark(["attach", "--all", "--scope", "s", "--read", "nme"])
            #expect(typed.status == 1 && typed.errors.contains("no table of the schema has the column nme"), "\(typed)")
            let some = try await tidemark(["attach", "--all", "--scope", "s", "--read", "name", "--json"])
            #expect(some.status == 3 && some.output.contains(#""code":"key_unsupported""#), "\(some)")
            let keyless = try await tidemark([
                "attach", "--table", "keyless", "--scope", "s", "--read", "name", "--json",
            ])
            #expect(keyless.status == 1 && keyless.errors.contains(#""code":"key_unsupported""#), "\(keyless)")
            let printed = try await tidemark(["attach", "--print-sqlite", "--table", "nothing"])
            #expect(printed.errors.contains("hint: `tidemark attach` lists those that are"), "\(printed)")
            for command in ["attach", "detach"] {
                let help = try await bench.run([command, "--help"])
                #expect(help.status == 0 && help.output.contains("EXAMPLES") && help.output.contains("--json"))
            }
        }
    }
#endif
