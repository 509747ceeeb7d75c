#if Server
    import Foundation
    import GRDB
    import Testing

    @testable import TidemarkCommand

    /// The commands on a device's file name what does not travel, with the reason, and what was decided.
    @Suite(.serialized) struct FileAdviceTests {
        let bench: CommandBench
        init() throws { bench = try CommandBench() }

        private func report(_ name: String) async throws -> FileReport {
            let status = try await bench.run(["status", bench.path(name), "--json"])
            let decoder = JSONDecoder()
            decoder.dateDecodingStrategy = .iso8601
            return try decoder.decode(FileReport.self, from: Data(status.output.utf8))
        }

        @Test("a table that was made after --all is named until it is synced", .timeLimit(.minutes(5)))
        func unsynced() async throws {
            try bench.sql("a", "CREATE TABLE task (id TEXT PRIMARY KEY)")
            let server = try await bench.server()
            let first = try await bench.trySync("a", server, ["--all"])
            #expect(first.status == 0 && !first.output.contains("not synced"), "\(first)")
            try bench.sql("a", "CREATE TABLE later (id TEXT PRIMARY KEY); CREATE TABLE keyless (a)")
            // Other commands leave the file to the one that set it up.
            let token = try await bench.token()
            #expect(try await bench.run(["verify", bench.path("a"), "--server", server.url], token: token).status == 0)
            let line = "1 table is not synced: later. Add it with --table later or --all.\n"
            let second = try await bench.trySync("a", server)
            let status = try await bench.run(["status", bench.path("a")])
            #expect(second.status == 0 && second.output.contains(line), "\(second)")
            #expect(status.status == 0 && status.output.contains(line), "\(status)")
            #expect(try await report("a").unsynced == ["later"])
            let json = try await bench.trySync("a", server, ["--json"])
            #expect(json.output.contains(#""unsynced":["later"]"#), "\(json)")
            #expect(try await bench.trySync("a", server, ["--table", "later"]).output.contains("not synced") == false)
            #expect(try await report("a").unsynced == [])
            // The app chooses its tables: the command does not name the others.
            try bench.sql("a", "CREATE TABLE more (id TEXT PRIMARY KEY)")
            try bench.sql("a", "UPDATE tidemark_meta SET value = '0' WHERE key = 'set_up_by_command'")
            #expect(try await report("a").unsynced == [])
            #expect(await server.stop() == 0)
        }

        @Test("rows without a key are told with their number, the columns and the remedy", .timeLimit(.minutes(5)))
        func nameless() async throws {
            try bench.sql(
                "a",
                """
                CREATE TABLE usage (name TEXT, code TEXT, part INTEGER, PRIMARY KEY (name, code, part));
                INSERT INTO usage VALUES ('a', NULL, 1), ('b', NULL, NULL), ('c', 'x', 1);
                """)
            let server = try await bench.server()
            #expect(try await bench.trySync("a", server, ["--all"]).status == 3)
            let status = try await bench.run(["status", bench.path("a")])
            #expect(status.status == 3)
            #expect(
                status.output.contains("unable to travel: 2 rows of usage: NULL in columns 'code', 'part' of the key"),
                "\(status.output)")
            #expect(status.output.contains("  hint: give each row a value there"))
            let unable = try await report("a").unable
            #expect(unable.map(\.table) == ["usage"] && unable.map(\.rows) == [2])
            #expect(unable.first?.columns == ["code", "part"] && unable.first?.hint.isEmpty == false)
            #expect(await server.stop() == 0)
        }

        @Test("a decision about a refused edit is said, and an unknown column refused", .timeLimit(.minutes(5)))
        func decisions() async throws {
            try bench.sql(
                "a", "CREATE TABLE task (id TEXT PRIMARY KEY, v); INSERT INTO task VALUES ('', 1), ('a' || char(9), 2)")
            let server = try await bench.server()
            #expect(try await bench.trySync("a", server, ["--all"]).status == 3)
            let file = bench.path("a")
            let unknown = try await bench.run(["rejected", file, "--retry", "1", "--set", "nocol=1"])
            #expect(unknown.status == 1 && unknown.errors.contains("Table 'task' has no column 'nocol'."), "\(unknown)")
            #expect(unknown.errors.contains("Its columns outside the key: v."), "\(unknown)")
            let key = try await bench.run(["rejected", file, "--retry", "1", "--set", "id=x"])
            #expect(key.status == 1 && key.errors.contains("of the key"), "\(key)")
            let retried = try await bench.run(["rejected", file, "--retry", "1", "--set", "v=7"])
            #expect(
                retried.output.hasPrefix(#"1: the insert of task [""] goes again with the next sync, with v 7"# + "\n"),
                "\(retried)")
            #expect(try bench.sql("a", "SELECT CAST(v AS TEXT) FROM task WHERE id = ''") == ["7"])
            let discarded = try await bench.run(["rejected", file, "--discard", "2"])
            #expect(
                discarded.output.hasPrefix(#"2: the insert of task ["a\t"] was let go, the row is not kept"# + "\n"),
                "\(discarded)")
            #expect(try bench.sql("a", "SELECT id FROM task") == [""])
            #expect(await server.stop() == 0)
        }

        @Test("a comparison that finds something says how it is put right", .timeLimit(.minutes(5)))
        func repair() async throws {
            try bench.sql(
                "a", "CREATE TABLE task (id TEXT PRIMARY KEY, title TEXT); INSERT INTO task VALUES ('1', 'x')")
            let server = try await bench.server()
            #expect(try await bench.trySync("a", server, ["--all"]).status == 0)
            let token = try await bench.token()
            let verify = ["verify", bench.path("a"), "--server", server.url]
            #expect(try await bench.run(verify, token: token).output.contains("--repair") == false)
            try bench.sql(
                "a",
                """
                INSERT INTO tidemark_applying VALUES (1); UPDATE task SET title = 'y'; DELETE FROM tidemark_applying
                """)
            let found = try await bench.run(verify, token: token)
            #expect(found.status == 3 && found.output.contains("--repair fetches what differs"), "\(found)")
            let repaired = try await bench.run(verify + ["--repair"], token: token)
            #expect(repaired.status == 0 && !repaired.output.contains("--repair"), "\(repaired)")
            #expect(await server.stop() == 0)
        }
    }
#endif
