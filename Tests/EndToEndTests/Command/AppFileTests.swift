#if Server
    import Foundation
    import GRDB
    import Testing
    import Tidemark
    import TidemarkAsyncHTTPClient

    @testable import TidemarkCommand

    /// The command line on the file of an app: tables with rules of their own, rows in several scopes.
    @Suite(.serialized) struct AppFileTests {
        let bench: CommandBench
        init() throws { bench = try CommandBench() }

        private static let schema = """
            CREATE TABLE item (id TEXT PRIMARY KEY NOT NULL, w TEXT, title TEXT);
            CREATE TABLE setting (id TEXT PRIMARY KEY NOT NULL, title TEXT, links TEXT);
            """

        /// The app: it follows two scopes, syncs, and ends.
        private func app(_ server: ServerProcess, _ token: String) async throws -> SyncReport {
            let database = try bench.folder.database("a")
            defer { try? database.close() }
            return try await SyncEngine(
                for: database,
                tables: [
                    .table("item", scope: .column("w", prefix: "w:"), keepsDeleted: .seconds(3600)),
                    .table(
                        "setting", scope: .constant("w:1"),
                        references: [.json("links", path: "$[*]", to: "item")]),
                ],
                scopes: ["w:1", "w:2"],
                transport: AsyncHTTPClientTransport(try #require(URL(string: server.url + "/"))) { token }
            ).syncNow()
        }

        private func command(
            _ name: String, _ server: ServerProcess, _ token: String, _ more: [String] = []
        ) async throws -> (status: Int32, output: String, errors: String) {
            try await bench.run([name, bench.path("a"), "--server", server.url] + more, token: token)
        }

        private func rows() throws -> [String] {
            try bench.sql(
                "a",
                """
                SELECT id || ' ' || coalesce(w, '-') || ' ' || title FROM item
                UNION ALL SELECT id || ' ' || title FROM setting ORDER BY 1
                """)
        }

        private func start(_ server: ServerProcess, _ token: String) async throws {
            try bench.sql("a", Self.schema)
            try bench.sql("a", "INSERT INTO setting VALUES ('s', 'dark', NULL)")
            try bench.sql("a", "INSERT INTO item VALUES ('i1', '1', 'x'), ('i2', '2', 'x'), ('d', '1', 'x')")
            #expect(try await app(server, token).pushed == 4)
        }

        @Test(.timeLimit(.minutes(5))) func otherScopesAreLeftAlone() async throws {
            let token = try await bench.token()
            let server = try await bench.server()
            try await start(server, token)
            // Deleted elsewhere: the app keeps such rows.
            let deletion = #""type":"delete","entity":"item","id":"d","baseVersion":4"#
            let caller = Caller(url: server.url, token: token)
            let deleted = try await caller.push([deletion], scope: "w:1")
            #expect(deleted.results.first?["status"] as? String == "applied", "\(deleted.text)")
            try bench.sql(
                "a",
                """
                INSERT INTO item VALUES ('i3', '3', 'waits'), ('bad', NULL, 'nowhere');
                UPDATE item SET title = 'mine' WHERE id = 'i2';
                """)
            let rules = try bench.sql("a", "SELECT name || ': ' || rule FROM tidemark_table ORDER BY 1")
            #expect(rules == ["item: column w: w", "setting: constant w:1"])

            let several = try await command("sync", server, token)
            #expect(several.status == 1 && several.errors.contains("several scopes"), "\(several.errors)")
            let elsewhere = try await command("sync", server, token, ["--scope", "w:2", "--table", "setting"])
            #expect(elsewhere.status == 1 && elsewhere.errors.contains("hold no rows of w:2"), "\(elsewhere.errors)")
            let verified = try await command("verify", server, token, ["--scope", "w:1", "--json"])
            // All that is compared is alike; a row that cannot travel is told all the same.
            #expect(verified.status == 3, "\(verified.errors)")
            // What waits in other scopes is told by the exit code.
            #expect(try await command("sync", server, token, ["--scope", "w:1"]).status == 3)

            let refused = try await bench.run(["rejected", bench.path("a"), "--json"])
            let decoder = JSONDecoder()
            decoder.dateDecodingStrategy = .iso8601
            let edits = try decoder.decode([RefusedEdit].self, from: Data(refused.output.utf8))
            #expect(edits.map(\.record) == ["bad"])
            _ = try await bench.run(["status", bench.path("a")])

            #expect(
                try rows() == ["bad - nowhere", "i1 1 x", "i2 2 mine", "i3 3 waits", "s dark"])
            #expect(try bench.sql("a", "SELECT name || ': ' || rule FROM tidemark_table ORDER BY 1") == rules)
            #expect(try bench.sql("a", "SELECT CAST(count(*) AS TEXT) FROM tidemark_orphan") == ["0"])
            #expect(try bench.sql("a", "SELECT record FROM tidemark_deleted_row") == ["d"])
            #expect(try await bench.held("w:2", server, token).rows == ["i2": "x"])
            #expect(try await bench.held("w:3", server, token).rows.isEmpty)

            // A refused edit that is put right goes, and each scope for itself.
            let number = try String(#require(edits.first?.number))
            let values = ["--set", "w=1", "--set", "title='7'"]
            // It stands in the list until it is taken.
            #expect(try await bench.run(["rejected", bench.path("a"), "--retry", number] + values).status == 3)
            _ = try await command("sync", server, token, ["--scope", "w:1"])
            #expect(try await bench.held("w:1", server, token).rows == ["i1": "x", "s": "dark", "bad": "7"])
            _ = try await command("sync", server, token, ["--scope", "w:2"])
            #expect(try await bench.held("w:2", server, token).rows == ["i2": "mine"])
            #expect(try await bench.run(["rejected", bench.path("a")]).status == 0)
            #expect(try await app(server, token).pushed == 0)
            #expect(try await bench.held("w:3", server, token).rows.isEmpty)
            #expect(try bench.sql("a", "SELECT w FROM item WHERE id = 'i3'") == ["3"])
            #expect(await server.stop() == 0)
        }

        @Test(.timeLimit(.minutes(5))) func aMistypedScope() async throws {
            try bench.sql("a", Self.schema)
            try bench.sql("a", "INSERT INTO item VALUES ('i1', '1', 'x')")
            let token = try await bench.token()
            let server = try await bench.server()
            let wrong = try await command("sync", server, token, ["--scope", "x:1", "--table", "item"])
            #expect(wrong.status == 1 && wrong.errors.contains("scope_forbidden"))
            let right = try await command("sync", server, token, ["--scope", "w:1", "--table", "item"])
            #expect(right.status == 0, "\(right.errors)")
            #expect(try await bench.held("w:1", server, token).rows == ["i1": "x"])
            #expect(try bench.sql("a", "SELECT id FROM item") == ["i1"])
            try bench.sql("a", "UPDATE item SET title = 'y'")
            #expect(try await command("sync", server, token).status == 0)
            #expect(try await bench.held("w:1", server, token).rows == ["i1": "y"])
            // From now on the table stays where it is.
            let other = try await command("sync", server, token, ["--scope", "w:2"])
            #expect(other.status == 1 && other.errors.contains("w:1"), "\(other.errors)")
            #expect(try bench.sql("a", "SELECT id FROM item") == ["i1"])
            #expect(try await command("sync", server, token).status == 0)
            #expect(await server.stop() == 0)
        }

        /// What an app declared stays, also before it has reached a server for the first time.
        @Test(.timeLimit(.minutes(5))) func anAppThatWasNeverOnline() async throws {
            try bench.sql("a", Self.schema)
            let database = try bench.folder.database("a")
            let nowhere = try #require(URL(string: "http://127.0.0.1:9/"))
            let engine = try SyncEngine(
                for: database, tables: [.table("item")], scopes: ["w:1"],
                transport: AsyncHTTPClientTransport(nowhere) { "" })
            try await engine.install()
            try await database.write { db in try db.execute(sql: "INSERT INTO item VALUES ('i1', '1', 'x')") }
            try database.close()
            let token = try await bench.token()
            let server = try await bench.server()
            let wrong = try await command("sync", server, token, ["--scope", "w:2"])
            #expect(wrong.status == 1 && wrong.errors.contains("w:1"), "\(wrong.errors)")
            #expect(try await bench.held("w:2", server, token).rows.isEmpty)
            #expect(try await command("sync", server, token, ["--scope", "w:1"]).status == 0)
            #expect(try await bench.held("w:1", server, token).rows == ["i1": "x"])
            #expect(await server.stop() == 0)
        }

        /// Access is lost and had again over real HTTP (I7).
        @Test(.timeLimit(.minutes(5))) func lostAndRegained() async throws {
            let whole = try await bench.token("ada", ["w:1", "w:2"])
            let less = try await bench.token("ada", ["w:2"])
            let server = try await bench.server()
            try await start(server, whole)
            try bench.sql(
                "a",
                """
                UPDATE item SET title = 'mine' WHERE id IN ('i1', 'i2'); DELETE FROM item WHERE id = 'd';
                INSERT INTO item VALUES ('n', '1', 'new');
                """)
            let head = try await bench.held("w:1", server, whole).head
            let lost = try await command("sync", server, less, ["--scope", "w:1"])
            #expect(lost.status == 1 && lost.errors.contains("scope_forbidden"), "\(lost.errors)")
            #expect(try rows() == ["i2 2 mine"])
            #expect(
                try bench.sql("a", "SELECT record || ' ' || kind FROM tidemark_orphan ORDER BY 1") == [
                    "d delete", "i1 update", "n insert",
                ])
            // The other scope goes on; what is refused is told by the exit code.
            #expect(try await command("sync", server, less, ["--scope", "w:2"]).status == 3)
            #expect(try await bench.held("w:2", server, less).rows == ["i2": "mine"])
            #expect(try await command("sync", server, whole, ["--scope", "w:1"]).status == 0)
            #expect(try rows() == ["i1 1 mine", "i2 2 mine", "n 1 new", "s dark"])
            #expect(try bench.sql("a", "SELECT record FROM tidemark_orphan").isEmpty)
            let held = try await bench.held("w:1", server, whole)
            #expect(held.rows == ["i1": "mine", "n": "new", "s": "dark"])
            #expect(held.head == head + 3)
            #expect(await server.stop() == 0)
        }
    }
#endif
