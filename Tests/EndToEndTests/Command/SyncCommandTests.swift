#if Server
    import ArgumentParser
    import Foundation
    import Testing
    import Tidemark

    @testable import TidemarkCommand

    /// `tidemark sync` as a person meets it: all tables, several scopes, progress, and words for what went wrong.
    @Suite(.serialized) struct SyncCommandTests {
        let bench: CommandBench
        init() throws { bench = try CommandBench() }

        private func sync(
            _ name: String, _ server: ServerProcess, _ more: [String], scopes: [String] = ["w:1"], token: String? = nil
        ) async throws -> (status: Int32, output: String, errors: String) {
            let named = scopes.flatMap { ["--scope", $0] }
            let usual = try await bench.token()
            return try await bench.run(
                ["sync", bench.path(name), "--server", server.url] + named + more, token: token ?? usual)
        }

        @Test("--all syncs every table that can be, and says of the others why not", .timeLimit(.minutes(5)))
        func allTables() async throws {
            try bench.sql(
                "a",
                """
                CREATE TABLE "Order Details" (id TEXT PRIMARY KEY, title TEXT); CREATE TABLE keyless (a TEXT);
                CREATE TABLE task (id TEXT PRIMARY KEY, title TEXT); CREATE VIEW seen AS SELECT 1;
                INSERT INTO task VALUES ('1', 'x'); INSERT INTO "Order Details" VALUES ('2', 'y');
                """)
            let server = try await bench.server()
            let first = try await sync("a", server, ["--all"])
            // A table that stays out is something that waits for somebody.
            #expect(first.status == 3, "\(first.errors)")
            #expect(first.errors.contains("left out: Table 'keyless' has no primary key."), "\(first.errors)")
            #expect(try await bench.held("w:1", server, bench.token()).rows == ["1": "x", "2": "y"])
            #expect(try await sync("a", server, ["--all", "--table", "task"]).status == 64)
            try bench.sql("a", "CREATE TABLE twice (tidemark_a TEXT)")
            let both = try await sync("a", server, ["--all"])
            for flaw in ["Table 'twice' has no primary key.", "Column 'tidemark_a' of table 'twice' has a reserved"] {
                #expect(both.errors.contains(flaw), "\(both.errors)")
            }
            let json = try await sync("a", server, ["--all", "--json"]).output
            #expect(json.contains(#""leftOut":[{"#) && json.contains(#""table":"twice""#), "\(json)")
            #expect(await server.stop() == 0)
        }

        @Test("--all with a scope's column takes new tables, and leaves synced ones alone", .timeLimit(.minutes(5)))
        func allByColumn() async throws {
            try bench.sql("a", "CREATE TABLE task (id TEXT PRIMARY KEY, title TEXT, list INTEGER)")
            let server = try await bench.server()
            #expect(try await sync("a", server, ["--table", "task"]).status == 0)
            try bench.sql(
                "a",
                """
                CREATE TABLE item (id TEXT PRIMARY KEY, title TEXT, list INTEGER);
                INSERT INTO item VALUES ('i', 'x', 1); INSERT INTO task VALUES ('t', 'y', 1);
                """)
            let rule = ["--all", "--scope-column", "list", "--scope-prefix", "w:"]
            let all = try await sync("a", server, rule)
            #expect(all.status == 0, "\(all.errors)")
            #expect(try await bench.held("w:1", server, bench.token()).rows == ["i": "x", "t": "y"])
            let again = try await sync("a", server, rule)
            #expect(again.status == 0, "\(again.errors)")
            #expect(await server.stop() == 0)
        }

        @Test("verify compares all scopes of a file, or those that are named", .timeLimit(.minutes(5)))
        func verifiedScopes() async throws {
            try bench.sql("a", "CREATE TABLE item (id TEXT PRIMARY KEY, title TEXT, list INTEGER)")
            try bench.sql("a", "INSERT INTO item VALUES ('1', 'x', 1), ('2', 'y', 2)")
            let server = try await bench.server()
            let rule = ["--table", "item", "--scope-column", "list", "--scope-prefix", "w:"]
            #expect(try await sync("a", server, rule, scopes: ["w:1", "w:2"]).status == 0)
            let token = try await bench.token()
            for (scopes, records) in [([], 2), (["w:1", "w:2"], 2), (["w:2"], 1)] {
                let named = scopes.flatMap { ["--scope", $0] }
                let told = try await bench.run(
                    ["verify", bench.path("a"), "--server", server.url, "--json"] + named, token: token)
                #expect(told.status == 0, "\(told)")
                let summary = try JSONDecoder().decode(VerifySummary.self, from: Data(told.output.utf8))
                #expect(summary.records == records && summary.tables.count == records, "\(told.output)")
            }
            #expect(await server.stop() == 0)
        }

        @Test("the rows of one table go into the scopes that a column names", .timeLimit(.minutes(5)))
        func scopeColumn() async throws {
            for name in ["a", "b"] {
                try bench.sql(name, "CREATE TABLE item (id TEXT PRIMARY KEY, title TEXT, list INTEGER)")
            }
            try bench.sql("a", "INSERT INTO item VALUES ('1', 'x', 1), ('2', 'y', 2), ('3', 'z', 3)")
            let server = try await bench.server()
            let token = try await bench.token()
            let rule = ["--table", "item", "--scope-column", "list", "--scope-prefix", "w:"]
            // The row of a scope that is not named waits, which the exit code tells.
            let first = try await sync("a", server, rule, scopes: ["w:1", "w:2"])
            #expect(first.status == 3, "\(first.errors)")
            #expect(try await bench.held("w:1", server, token).rows == ["1": "x"])
            #expect(try await bench.held("w:2", server, token).rows == ["2": "y"])
            #expect(try await bench.held("w:3", server, token).rows.isEmpty)
            let second = try await sync("b", server, rule, scopes: ["w:2"])
            #expect(second.status == 0, "\(second.errors)")
            #expect(try bench.sql("b", "SELECT id FROM item") == ["2"])
            // Later runs remember the rule, and are told which scopes.
            let unnamed = try await sync("a", server, [], scopes: [])
            #expect(unnamed.status == 1 && unnamed.errors.contains("--scope w:1 --scope w:2"), "\(unnamed.errors)")
            try bench.sql("a", "UPDATE item SET title = 'moved', list = 2 WHERE id = '1'")
            #expect(try await sync("a", server, [], scopes: ["w:1", "w:2"]).status == 3)
            #expect(try await bench.held("w:2", server, token).rows == ["1": "moved", "2": "y"])
            let other = try await sync("a", server, ["--table", "item", "--scope-column", "title"])
            #expect(other.status == 1 && other.errors.contains("is declared already: w:<list>"), "\(other.errors)")
            let without = try await sync("a", server, ["--table", "item", "--scope-column", "nothing"])
            #expect(without.status == 1 && without.errors.contains("no ordinary column 'nothing'"), "\(without.errors)")
            #expect(await server.stop() == 0)
        }

        @Test("the progress has totals, rates and the time that is left", .timeLimit(.minutes(5)))
        func progress() async throws {
            for name in ["a", "b"] { try bench.sql(name, "CREATE TABLE task (id TEXT PRIMARY KEY, title TEXT)") }
            let values = (0..<2500).map { "('k\($0)', 'x')" }.joined(separator: ",")
            try bench.sql("a", "INSERT INTO task VALUES \(values)")
            let server = try await bench.server()
            let up = try await sync("a", server, ["--table", "task", "--progress", "--json"])
            #expect(up.status == 0, "\(up.errors)")
            let sent = try lines(up.errors)
            #expect(sent.contains { $0.sent.total == 2500 && $0.sent.done < 2500 }, "\(sent)")
            // Rows that were captured after the first count are in the total once any of them was answered.
            #expect(sent.allSatisfy { $0.sent.done == 0 || $0.sent.total == 2500 }, "\(sent)")
            #expect(sent.contains { ($0.sent.rate ?? 0) > 0 && $0.sent.secondsLeft != nil })
            let down = try await sync("b", server, ["--table", "task", "--page", "100", "--progress", "--json"])
            #expect(down.status == 0, "\(down.errors)")
            let received = try lines(down.errors)
            #expect(received.contains { $0.received.total == 2500 && 1..<2500 ~= $0.received.done }, "\(received)")
            #expect(received.allSatisfy { $0.received.total.map { $0 == 2500 } ?? true }, "\(received)")
            // Without the flag, and on no terminal, nobody is told.
            let quiet = try await sync("b", server, [])
            #expect(quiet.errors.isEmpty, "\(quiet.errors)")
            #expect(await server.stop() == 0)
        }

        private func lines(_ errors: String) throws -> [ProgressLine] {
            try errors.split(separator: "\n").map { try JSONDecoder().decode(ProgressLine.self, from: Data($0.utf8)) }
        }

        @Test("an error under --json is JSON, and promises nothing that happens later", .timeLimit(.minutes(5)))
        func errors() async throws {
            try bench.sql("a", "CREATE TABLE keyless (a TEXT); CREATE VIEW \"v\nw\" AS SELECT 1")
            func error(_ arguments: [String]) async throws -> (status: Int32, body: ErrorReport.Body) {
                let result = try await bench.run(arguments + ["--json"], token: "x")
                #expect(result.output.isEmpty && result.errors.count { $0 == "\n" } == 1, "\(result)")
                return (result.status, try JSONDecoder().decode(ErrorReport.self, from: Data(result.errors.utf8)).error)
            }
            let nowhere = ["--server", "http://127.0.0.1:9", "--scope", "w:1"]
            let missing = try await error(["status", bench.path("nothing")])
            #expect(missing.status == 1 && missing.body.code == "failed" && missing.body.hint != nil)
            let tables = try await error(
                ["sync", bench.path("a"), "--table", "keyless", "--table", "v\nw", "--table", "none"] + nowhere)
            #expect(tables.status == 1 && tables.body.code == "table_unsupported")
            #expect(tables.body.details?.count == 3, "\(tables.body)")
            let usage = try await error(["sync", bench.path("a"), "--nonsense"])
            #expect(usage.status == 64 && usage.body.code == "usage")
            try bench.sql("b", "CREATE TABLE task (id TEXT PRIMARY KEY)")
            let offline = try await error(["sync", bench.path("b"), "--table", "task"] + nowhere)
            #expect(offline.status == 1 && offline.body.code == "network_unavailable")
            #expect(offline.body.hint?.contains("run the command again") == true)
            // For people each flaw is a line of its own.
            let told = try await bench.run(
                ["sync", bench.path("a"), "--table", "keyless", "--table", "none"] + nowhere, token: "x")
            #expect(told.errors.split(separator: "\n").count { $0.hasPrefix("  - ") } == 2, "\(told.errors)")
            #expect(!told.errors.contains("\\u000a"))
        }

        @Test("a user who loses a scope hears how much went and what is kept", .timeLimit(.minutes(5)))
        func accessLost() async throws {
            try bench.sql("a", "CREATE TABLE task (id TEXT PRIMARY KEY, title TEXT)")
            try bench.sql("a", "INSERT INTO task VALUES ('1', 'x'), ('2', 'y'), ('3', 'z')")
            let server = try await bench.server()
            try await bench.sync("a", server, bench.token())
            try bench.sql("a", "UPDATE task SET title = 'mine' WHERE id = '1'")
            let other = try await bench.token("ada", ["v:1"])
            let lost = try await sync("a", server, [], token: other)
            #expect(lost.status == 1 && lost.errors.contains("3 rows of the scope left this device"), "\(lost.errors)")
            #expect(lost.errors.contains("1 unsent edit is orphaned"), "\(lost.errors)")
            let status = try await bench.run(["status", bench.path("a")])
            #expect(status.status == 3 && status.output.contains("access was taken away"), "\(status.output)")
            #expect(status.output.contains("`tidemark orphaned` lists them"), "\(status.output)")
            let listed = try await bench.run(["orphaned", bench.path("a")])
            #expect(listed.status == 3 && listed.output.contains("task 1: update, of scope w:1"), "\(listed)")
            #expect(listed.output.contains("  title: 'mine'"), "\(listed)")
            let told = try await bench.run(["orphaned", bench.path("a"), "--json"])
            let decoder = JSONDecoder()
            decoder.dateDecodingStrategy = .iso8601
            let edits = try decoder.decode([OrphanReport].self, from: Data(told.output.utf8))
            #expect(edits.map(\.record) == ["1"] && edits[0].fields == ["title": "'mine'"], "\(told)")
            #expect(try await bench.run(["orphaned", bench.path("a"), "--discard", "999"]).status == 1)
            let early = try await bench.run(["orphaned", bench.path("a"), "--replay", "\(edits[0].number)"])
            #expect(early.status == 1 && early.errors.contains("when w:1 is synced again"), "\(early)")
            let gone = try await bench.run(["orphaned", bench.path("a"), "--discard", "\(edits[0].number)"])
            #expect(gone.status == 0 && gone.output.contains("is discarded"), "\(gone)")
            #expect(await server.stop() == 0)
        }

        @Test("a server's store is no device's file")
        func store() async throws {
            let server = try await bench.server()
            #expect(await server.stop() == 0)
            for options in [["sync", "--server", "http://127.0.0.1:9", "--scope", "w:1"], ["status"]] {
                let told = try await bench.run(options + [bench.path("s")])
                #expect(told.status == 1 && told.errors.contains("is a server's store"), "\(told)")
            }
        }

        @Test("rows of a scope that was never synced are told with its name", .timeLimit(.minutes(5)))
        func unsyncedScope() async throws {
            try bench.sql("a", "CREATE TABLE task (id TEXT PRIMARY KEY, list TEXT)")
            try bench.sql("a", "INSERT INTO task VALUES ('1', '1'), ('2', '9')")
            let server = try await bench.server()
            let token = try await bench.token("ada", ["list:1", "list:9"])
            let options = ["--table", "task", "--scope-column", "list", "--scope-prefix", "list:"]
            let first = try await bench.run(
                ["sync", bench.path("a"), "--server", server.url, "--scope", "list:1"] + options, token: token)
            let told = "rows wait for a scope that was never synced: list:9. Sync it with --scope list:9."
            #expect(first.status == 3 && first.output.contains(told), "\(first)")
            try bench.sql("a", "INSERT INTO task VALUES ('3', '9')")
            let status = try await bench.run(["status", bench.path("a")])
            #expect(status.status == 3 && status.output.contains(told), "\(status)")
            let both = try await bench.run(
                ["sync", bench.path("a"), "--server", server.url, "--scope", "list:1", "--scope", "list:9"],
                token: token)
            #expect(both.status == 0 && !both.output.contains("rows wait"), "\(both)")
            #expect(await server.stop() == 0)
        }

        @Test("a record that is too large is told with its size, the limit and the column", .timeLimit(.minutes(5)))
        func tooLarge() async throws {
            try bench.sql("a", "CREATE TABLE task (id TEXT PRIMARY KEY, title TEXT, photo BLOB)")
            try bench.sql("a", "INSERT INTO task VALUES ('1', 'x', zeroblob(1000000))")
            let server = try await bench.server()
            #expect(try await sync("a", server, ["--table", "task"]).status == 3)
            let status = try await bench.run(["status", bench.path("a")]).output
            #expect(status.contains("up to 1048576 are sent"), "\(status)")
            #expect(status.contains("'photo' with 1000000 bytes, which grow by a third"), "\(status)")
            #expect(await server.stop() == 0)
        }

        @Test("--interval is how often a watch asks for news")
        func interval() async throws {
            let file = ["a", "--server", "http://127.0.0.1:9"]
            let eager = try SyncCommand.parse(file + ["--watch", "--interval", "5s"])
            #expect(eager.syncConfiguration(hearingOf: nil).tick == .seconds(5))
            let usual = try SyncCommand.parse(file + ["--watch"])
            #expect(usual.syncConfiguration(hearingOf: nil).tick == .seconds(30))
            for wrong in [["--interval", "5s"], ["--watch", "--interval", "soon"], ["--watch", "--interval", "0"]] {
                #expect(throws: (any Error).self) { try SyncCommand.parse(file + wrong) }
            }
        }
    }
#endif
