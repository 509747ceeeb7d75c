#if Server
    import Foundation
    import GRDB
    import Testing
    import Tidemark

    @testable import TidemarkCommand

    /// `tidemark remove`: a file that was synced is an ordinary one again.
    @Suite(.serialized) struct RemoveCommandTests {
        let bench: CommandBench
        init() throws { bench = try CommandBench() }

        private static let schema = """
            CREATE TABLE task (id TEXT PRIMARY KEY, title TEXT, done INTEGER NOT NULL DEFAULT 0);
            CREATE TABLE "Order Details" (id TEXT, title TEXT, UNIQUE (title), PRIMARY KEY (id));
            CREATE TABLE tidemark_notes (mine TEXT); INSERT INTO tidemark_notes VALUES ('kept');
            CREATE INDEX task_title ON task(title);
            CREATE TRIGGER task_mine AFTER INSERT ON task BEGIN SELECT 1; END;
            INSERT INTO task VALUES ('1', 'x', 0), ('2', 'y', 1); INSERT INTO "Order Details" VALUES ('a', 'b');
            """
        private static let names = ["--table", "task", "--table", "Order Details"]

        private func objects(_ name: String) throws -> [String] {
            try bench.sql(
                name, "SELECT type || ' ' || name || ' ' || coalesce(sql, '-') FROM sqlite_master ORDER BY 1")
        }

        private func rows(_ name: String) throws -> [String] {
            try bench.sql(
                name,
                """
                SELECT id || ' ' || title || ' ' || done FROM task UNION ALL
                SELECT id || ' ' || title FROM "Order Details" UNION ALL SELECT mine FROM tidemark_notes ORDER BY 1
                """)
        }

        @Test(
            "everything goes, the app's tables stay as they were, and a later sync begins anew",
            .timeLimit(.minutes(5)))
        func everything() async throws {
            try bench.sql("a", Self.schema)
            let before = try (objects("a"), rows("a"))
            let server = try await bench.server()
            #expect(try await bench.trySync("a", server, Self.names).status == 0)
            #expect(try objects("a").count > before.0.count + 20)

            let removed = try await bench.run(["remove", bench.path("a")])
            #expect(removed.status == 0, "\(removed.errors)")
            #expect(removed.output.contains("kept with all rows: Order Details, task\n"), "\(removed.output)")
            // SQLite keeps the table in which it counts up keys, once one was needed.
            #expect(try objects("a").filter { !$0.contains("sqlite_sequence") } == before.0)
            #expect(try rows("a") == before.1)
            let again = try await bench.run(["remove", bench.path("a"), "--json"])
            let report = try JSONDecoder().decode(RemoveReport.self, from: Data(again.output.utf8))
            #expect(again.status == 0 && report.libraryTables == 0 && report.tables.isEmpty)

            try bench.sql("a", "UPDATE task SET title = 'z' WHERE id = '1'; DELETE FROM task WHERE id = '2'")
            #expect(try await bench.held("w:1", server, bench.token()).rows == ["1": "x", "2": "y", "a": "b"])
            // The rows are held against the server's, as in any file that is synced for the first time.
            #expect(try await bench.trySync("a", server, Self.names).status == 0)
            #expect(try await bench.held("w:1", server, bench.token()).rows == ["1": "x", "2": "y", "a": "b"])
            #expect(await server.stop() == 0)
        }

        @Test("unsent edits are not forgotten without --force", .timeLimit(.minutes(5)))
        func unsent() async throws {
            try bench.sql("a", Self.schema)
            let server = try await bench.server()
            #expect(try await bench.trySync("a", server, Self.names).status == 0)
            try bench.sql("a", "UPDATE task SET title = 'mine' WHERE id = '1'")
            let before = try objects("a")
            let refused = try await bench.run(["remove", bench.path("a"), "--json"])
            let error = try JSONDecoder().decode(ErrorReport.self, from: Data(refused.errors.utf8)).error
            #expect(refused.status == 1 && error.code == "unsent_edits")
            #expect(error.message.contains("1 pending") && error.hint?.contains("--force") == true)
            #expect(try objects("a") == before)
            let forced = try await bench.run(["remove", bench.path("a"), "--force"])
            #expect(forced.status == 0 && forced.output.contains("forgotten: "), "\(forced)")
            #expect(try bench.sql("a", "SELECT title FROM task WHERE id = '1'") == ["mine"])
            #expect(await server.stop() == 0)
        }

        @Test("a sync that goes on notices, and puts nothing back", .timeLimit(.minutes(5)))
        func watched() async throws {
            try bench.sql("a", Self.schema)
            let before = try objects("a")
            let server = try await bench.server()
            #expect(try await bench.trySync("a", server, Self.names).status == 0)
            let watching = try await ChildProcess(
                ServeTests.command,
                ["sync", bench.path("a"), "--server", server.url, "--watch", "--interval", "1s"],
                environment: ["TIDEMARK_TOKEN": bench.token()])
            #expect(try await watching.line(startingWith: "idle: 0 pending,") != nil)
            let removed = try await bench.run(["remove", bench.path("a")])
            #expect(removed.status == 0, "\(removed.errors)")
            let told = try await watching.line(startingWith: "stopped: ", within: .seconds(10))
            #expect(told?.contains("has taken the library out of the file") == true, "\(watching.standardOutput)")
            #expect(try objects("a").filter { !$0.contains("sqlite_sequence") } == before)
            watching.signal(SIGINT)
            #expect(await watching.wait() == 0)
        }

        @Test("a copy of a synced file's schema is told of, cleaned, and set up anew", .timeLimit(.minutes(5)))
        func schemaCopy() async throws {
            try bench.sql("a", Self.schema)
            let server = try await bench.server()
            #expect(try await bench.trySync("a", server, Self.names).status == 0)
            let schema = try bench.sql(
                "a",
                """
                SELECT sql || ';' FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite%'
                ORDER BY type = 'trigger', rowid
                """
            ).joined(separator: "\n")
            for name in ["b", "c"] { try bench.sql(name, schema) }
            let status = try await bench.run(["status", bench.path("b")])
            #expect(status.status == 0 && status.output.contains("as a copy of a schema alone"), "\(status)")
            let removed = try await bench.run(["remove", bench.path("b")])
            #expect(removed.status == 0 && removed.output.contains("no table was synced"), "\(removed)")
            #expect(try objects("b").filter { $0.contains("tidemark") }.count == 1, "the app's own tidemark_notes")
            #expect(try await bench.trySync("c", server, Self.names).status == 0)
            #expect(try bench.sql("c", "SELECT title FROM task ORDER BY id") == ["x", "y"])
            #expect(await server.stop() == 0)
        }

        @Test("a column can be dropped once the triggers are off, and they come back", .timeLimit(.minutes(5)))
        func capture() async throws {
            try bench.sql("a", Self.schema)
            let server = try await bench.server()
            #expect(try await bench.trySync("a", server, Self.names).status == 0)
            #expect(throws: DatabaseError.self) { try bench.sql("a", "ALTER TABLE task DROP COLUMN done") }
            let removed = try await bench.run(["remove", bench.path("a"), "--capture"])
            #expect(removed.status == 0 && removed.output.hasSuffix("the next sync puts them back\n"), "\(removed)")
            try bench.sql("a", "ALTER TABLE task DROP COLUMN done; INSERT INTO task VALUES ('3', 'new')")
            let status = try await bench.run(["status", bench.path("a")])
            #expect(status.output.contains("table task: it was rebuilt or lost its triggers"), "\(status.output)")
            #expect(try await bench.trySync("a", server).status == 0)
            #expect(try await bench.held("w:1", server, bench.token()).rows["3"] == "new")
            #expect(await server.stop() == 0)
        }
    }
#endif
