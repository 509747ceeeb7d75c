#if Server
    import Foundation
    import GRDB
    import NIOHTTP1
    import PostgresCluster
    import Testing
    import TidemarkPostgres
    import TidemarkSQLite
    import TidemarkWire

    @testable import TidemarkCommand
    @testable import TidemarkServer

    /// What an operator erases, with servers and devices of their own processes.
    @Suite(.serialized) struct ErasureTests {
        let bench: CommandBench
        init() throws { bench = try CommandBench() }

        /// Stands in what is erased and nowhere else.
        private static let marker = "XYZZY-0451"

        /// Makes an erasure last, so that it is still under way when somebody looks.
        private static func slowDeletes(counting steps: Int) -> String {
            """
            CREATE TRIGGER slow BEFORE DELETE ON change
            BEGIN
                SELECT count(*) FROM (
                    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < \(steps)) SELECT i FROM n);
            END
            """
        }

        private func erase(_ store: String, _ flags: [String]) async throws -> (status: Int32, report: EraseReport?) {
            let result = try await bench.run(["erase", "--store", store, "--json"] + flags)
            let decoder = JSONDecoder()
            decoder.dateDecodingStrategy = .iso8601
            return (result.status, try? decoder.decode(EraseReport.self, from: Data(result.output.utf8)))
        }

        private func isInFile(_ text: String) throws -> Bool {
            try ["s", "s-wal"].contains { name in
                let path = bench.path(name)
                guard FileManager.default.fileExists(atPath: path) else { return false }
                return try Data(contentsOf: URL(filePath: path)).range(of: Data(text.utf8)) != nil
            }
        }

        private func makeDevices(_ names: String...) throws {
            for name in names {
                try bench.sql(name, "CREATE TABLE task (id TEXT PRIMARY KEY NOT NULL, title TEXT)")
            }
        }

        private func syncErased(_ name: String, _ server: ServerProcess, _ token: String) async throws {
            let result = try await bench.run(
                ["sync", bench.path(name), "--server", server.url, "--scope", "w:1", "--table", "task"], token: token)
            #expect(result.status == 1)
            #expect(result.errors.contains("scope_erased") && result.errors.contains("hint: "), "\(result.errors)")
            #expect(try bench.tasks(name) == [])
        }

        /// Each way to ask for a scope.
        private func expectRefused(_ scope: String, _ url: String, _ token: String) async throws {
            let caller = Caller(url: url, token: token)
            let reads = [
                "/sync/changes", "/sync/snapshot", "/sync/records/task?id=t1", "/sync/digest", "/sync/events",
                "/rest/task", "/rest/task/t1", "/task/delta",
            ]
            for path in reads {
                let answer = try await caller.get(path + (path.contains("?") ? "&" : "?") + "scope=\(scope)")
                #expect((answer.status, answer.code) == (403, .scopeErased), "\(path): \(answer.text)")
            }
            for (operations, path) in [([upsert("n", #""title":"x""#)], "/sync"), ([], "/sync"), ([], "/sync/push")] {
                let answer = try await caller.push(operations, scope: scope, path: path)
                #expect((answer.status, answer.code) == (403, .scopeErased), "\(path): \(answer.text)")
            }
            let item = #"{"entity":"task","id":"n","itemUpdateStamp":9,"data":{"title":"x"}}"#
            for items in ["", item] {
                let stamped = try await caller.post(
                    "/sync/stamped?scope=\(scope)", #"{"clientStamp":0,"items":[\#(items)]}"#)
                #expect((stamped.status, stamped.code) == (403, .scopeErased), "\(stamped.text)")
            }
            let put = try await caller.send(
                .PUT, "/rest/task/n?scope=\(scope)", Array(#"{"title":"x"}"#.utf8),
                [("Content-Type", "application/json")])
            #expect((put.status, put.code) == (403, .scopeErased), "\(put.text)")
            // Whoever has no permission learns nothing of it.
            let stranger = Caller(url: url, token: try await bench.token("eve", ["other"]))
            #expect(try await stranger.get("/sync/changes?scope=\(scope)").code == .scopeForbidden)
        }

        @Test("An erased scope is in no file of the store, is refused, leaves the devices and does not come back")
        func scope() async throws {
            let store = "sqlite:" + bench.path("s")
            let token = try await bench.token()
            var server = try await bench.server()
            try makeDevices("a", "b")
            let (marker, long) = (Self.marker, String(repeating: Self.marker + " ", count: 1000))
            try bench.sql("a", "INSERT INTO task VALUES ('t1', '\(marker) 1'), ('t2', '\(long)'), ('t3', 'gone')")
            try await bench.sync("a", server, token)
            try await bench.sync("b", server, token)
            // Of former versions, deletions and refusals something may be left in pages that are free.
            try bench.sql("a", "UPDATE task SET title = title || '!'; DELETE FROM task WHERE id = 't3'")
            try await bench.sync("a", server, token)
            let caller = Caller(url: server.url, token: token)
            _ = try await caller.push([upsert("o1", #""title":"stays""#)], scope: "w:2")
            try bench.sql("b", "UPDATE task SET title = 'mine' WHERE id = 't1'; INSERT INTO task VALUES ('n', 'mine')")
            #expect(try isInFile(marker))

            let rehearsed = try await erase(store, ["--scope", "w:1"])
            #expect(rehearsed.status == 3 && rehearsed.report?.erased == false)
            #expect((rehearsed.report?.changes ?? 0) > 3 && rehearsed.report?.devices == 2)
            #expect(try await caller.get("/sync/changes?scope=w:1").status == 200)
            let erased = try await erase(store, ["--scope", "w:1", "--confirm"])
            #expect(erased.status == 0 && erased.report?.erased == true && erased.report?.rewritten == true)
            #expect(erased.report?.changes == rehearsed.report?.changes && erased.report?.erasedAt != nil)
            #expect(try !isInFile(marker))
            try await expectRefused("w:1", server.url, token)
            try await syncErased("b", server, token)
            // What was not sent is kept, and told.
            #expect(try bench.sql("b", "SELECT record FROM tidemark_orphan ORDER BY record") == ["n", "t1"])
            server = try await server.restarted(bench.path("s"))
            for name in ["b", "a", "b"] { try await syncErased(name, server, token) }
            #expect(try bench.sql("a", "SELECT record FROM tidemark_orphan") == [])
            #expect(try bench.sql("b", "SELECT record FROM tidemark_orphan ORDER BY record") == ["n", "t1"])
            #expect(try await bench.held("w:2", server, token).rows == ["o1": "stays"])
            #expect(try !isInFile(marker) && isInFile("stays"))
            let again = try await erase(store, ["--scope", "w:1", "--confirm"])
            #expect(again.status == 0 && again.report?.changes == 0)
            #expect(again.report?.erasedAt == erased.report?.erasedAt)
            #expect(await server.stop() == 0)
        }

        @Test("Names that are not there, and orders that are not whole, erase nothing")
        func unknown() async throws {
            let store = "sqlite:" + bench.path("s")
            _ = try await bench.token()
            let server = try await bench.server()
            #expect(await server.stop() == 0)
            #expect(try await erase(store, ["--scope", "w:9", "--confirm"]).status == 1)
            #expect(try await erase(store, ["--scope", "w 9", "--confirm"]).status == 1)
            let nobody = try await erase(store, ["--sub", "nobody", "--confirm"])
            #expect(nobody.status == 0 && nobody.report?.scopes == 0)
            #expect(try await erase(store, ["--scope", "w:9", "--sub", "ada"]).status == 64)
            #expect(try await erase(store, ["--confirm"]).status == 64)
            #expect(try await erase("sqlite:" + bench.path("absent"), ["--sub", "ada"]).status == 1)
            #expect(!FileManager.default.fileExists(atPath: bench.path("absent")))
        }

        @Test("A kill -9 in the middle leaves the scope refused, and the same command finishes it")
        func killed() async throws {
            let path = bench.path("s")
            let store = try SQLiteStore(path: path)
            let sync = SyncServer(store: store)
            for batch in 0..<10 {
                try await sync.commit(to: "w:1") { changes in
                    for row in 0..<500 {
                        changes.upsert("task", id: RecordID("r\(batch)-\(row)") ?? "r", ["title": .text(Self.marker)])
                    }
                }
            }
            try store.close()
            try bench.sql("s", Self.slowDeletes(counting: 50_000))
            let arguments = ["erase", "--store", "sqlite:" + path, "--scope", "w:1", "--confirm"]
            let command = try ChildProcess(ServeTests.command, arguments)
            let looking = try bench.folder.database("s")
            defer { try? looking.close() }
            try await poll {
                // As a reader: a writer would wait for the erasure's turns.
                try await looking.read { db in
                    try String.fetchAll(db, sql: "SELECT name FROM scope WHERE erased_at IS NOT NULL") == ["w:1"]
                }
            }
            await command.end()
            let left = try bench.sql("s", "SELECT count(*) FROM change")
            #expect(left != ["0"], "it was over before it was killed")
            try bench.sql("s", "DROP TRIGGER slow")
            let token = try await bench.token()
            let server = try await bench.server()
            try await expectRefused("w:1", server.url, token)
            let finished = try await erase("sqlite:" + path, ["--scope", "w:1", "--confirm"])
            #expect(finished.status == 0 && finished.report.map { "\($0.changes)" } == left.first)
            #expect(try !isInFile(Self.marker))
            try await expectRefused("w:1", server.url, token)
            #expect(await server.stop() == 0)
        }

        @Test("All servers on one database refuse at once, and the other scopes go on", .timeLimit(.minutes(3)))
        func nodes() async throws {
            let cluster = try await offPool { try PostgresCluster() }
            try String(repeating: "0123456789abcdef", count: 3)
                .write(toFile: bench.path("key"), atomically: true, encoding: .utf8)
            var servers: [ServerProcess] = []
            for _ in 0..<2 {
                servers.append(
                    try await ServerProcess.start(
                        ["--listen", "127.0.0.1:0", "--secret-file", bench.path("key")],
                        environment: ["TIDEMARK_STORE": cluster.url()]))
            }
            let token = try await bench.run(
                ["token", "--secret-file", bench.path("key"), "--sub", "ada", "--scope", "w:*=rw"]
            ).output.trimmingCharacters(in: .whitespacesAndNewlines)
            try makeDevices("a", "b")
            try bench.sql("a", "INSERT INTO task VALUES ('t1', '\(Self.marker)')")
            try await bench.sync("a", servers[0], token)
            try await bench.sync("b", servers[1], token)
            _ = try await Caller(url: servers[0].url, token: token).push([upsert("o1", #""title":"o""#)], scope: "w:2")
            let erased = try await erase(cluster.url(), ["--scope", "w:1", "--confirm"])
            #expect(erased.status == 0 && erased.report?.changes == 1 && erased.report?.devices == 2)
            #expect(erased.report?.rewritten == false)
            for (server, name) in zip(servers, ["b", "a"]) {
                let caller = Caller(url: server.url, token: token)
                #expect(try await caller.get("/sync/changes?scope=w:1").code == .scopeErased)
                #expect(try await caller.push([upsert("n", #""title":"x""#)], scope: "w:1").code == .scopeErased)
                try await syncErased(name, server, token)
                #expect(try await bench.held("w:2", server, token).rows == ["o1": "o"])
            }
            let held = try await offPool {
                try cluster.psql(
                    """
                    SELECT (SELECT count(*) FROM tidemark_log.change WHERE scope = 'w:1')
                        + (SELECT count(*) FROM tidemark_log.lane WHERE scope = 'w:1')
                        + (SELECT count(*) FROM tidemark_log.device WHERE scope = 'w:1')
                    """)
            }
            #expect(held == "0")
            for server in servers { #expect(await server.stop() == 0) }
        }

        @Test("Streams of the scope end, on this node and on others, and are not opened again", .timeLimit(.minutes(3)))
        func streams() async throws {
            try await LiveServer.run(in: bench.folder) { live in
                let token = try await LiveServer.token()
                try await live.server.commit(to: "w") { $0.upsert("task", id: "t", ["title": "x"]) }
                let (events, other) = (
                    try await OpenEvents(live, "scope=w&scope=x", token), try await OpenEvents(live, "scope=x", token)
                )
                try await events.wait(for: .changes("w", 1))
                try await live.server.erase(.scope("w"))
                try await events.waitForEnd()
                #expect(
                    try await Caller(url: live.url, token: token).get("/sync/events", "scope=x&scope=w").status == 403)
                try await live.server.commit(to: "x") { $0.upsert("task", id: "t", ["title": "x"]) }
                try await other.wait(for: .changes("x", 1))
                // The server's own programs are refused like devices.
                let error = await #expect(throws: CommitError.self) {
                    try await live.server.commit(to: "w") { $0.upsert("task", id: "t", ["title": "x"]) }
                }
                #expect(error?.code == "scope_erased")
            }
        }

        @Test("Others read and write while a large scope is erased", arguments: ["sqlite", "postgres"])
        func meanwhile(kind: String) async throws {
            let path = bench.path("sync.sqlite")
            var configuration = PostgresStore.Configuration()
            configuration.schema = "erasing_" + UUID().uuidString.replacing("-", with: "").lowercased()
            let settings = configuration
            let store: any ChangeStore =
                kind == "sqlite"
                ? try SQLiteStore(path: path)
                : try await offPool {
                    try PostgresStore(url: PostgresCluster.shared.get().url(), configuration: settings)
                }
            let server = SyncServer(store: store)
            for batch in 0..<10 {
                try await server.commit(to: "large") { changes in
                    for row in 0..<500 { changes.upsert("task", id: RecordID("\(batch)-\(row)") ?? "r", ["n": 1]) }
                }
            }
            if kind == "sqlite" {
                try bench.sql("sync.sqlite", Self.slowDeletes(counting: 4_000))
            } else {
                _ = try await offPool {
                    try PostgresCluster.shared.get().psql(
                        """
                        CREATE FUNCTION \(settings.schema).wait() RETURNS trigger LANGUAGE plpgsql AS
                            'BEGIN PERFORM pg_sleep(0.2); RETURN NULL; END';
                        CREATE TRIGGER slow AFTER DELETE ON \(settings.schema).change
                            EXECUTE FUNCTION \(settings.schema).wait()
                        """)
                }
            }
            try await LiveServer.serve(server) { live in
                let caller = Caller(url: live.url, token: try await LiveServer.token())
                _ = try await caller.push([upsert("t0", #""n":0"#)])
                let erasing = Task { try await server.erase(.scope("large")) }
                // Refused from the first step on, long before the last.
                while try await caller.get("/sync/changes", "scope=large&limit=1").status == 200 {}
                let before = try await store.read("large") { try $0.countKept(by: nil).changes }
                #expect(before > 0, "it was over before anybody else had a turn")
                #expect(try await caller.push([upsert("t1", #""n":1"#)], lane: "lane-0002").status == 200)
                #expect(try await caller.get("/sync/changes", "scope=w").changes.count == 2)
                #expect(try await store.read("large") { try $0.countKept(by: nil).changes } > 0, "they had to wait")
                #expect(try await erasing.value.changes == 5000)
                async let purged: Void = server.purge()
                #expect(try await caller.push([upsert("t2", #""n":2"#)], lane: "lane-0003").status == 200)
                #expect(try await caller.get("/sync/changes", "scope=w").changes.count == 3)
                try await purged
            }
            if let store = store as? SQLiteStore { try store.close() }
            if let store = store as? PostgresStore { try await offPool { store.close() } }
        }
    }
#endif
