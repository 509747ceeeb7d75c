#if Server
    import Foundation
    import GRDB
    import Testing
    import Tidemark
    import TidemarkAsyncHTTPClient
    import TidemarkHummingbird
    import TidemarkServer
    import TidemarkWire

    @testable import TidemarkCommand

    /// Real devices: SQLite files, the real client, real HTTP, and the command line.
    @Suite(.serialized) struct DeviceTests {
        let bench: CommandBench
        init() throws { bench = try CommandBench() }

        private var folder: TemporaryFolder { bench.folder }

        @discardableResult
        private func sql(_ name: String, _ sql: String) throws -> [String] { try bench.sql(name, sql) }

        private func makeDevice(_ name: String) throws {
            try sql(
                name,
                """
                CREATE TABLE project (id TEXT PRIMARY KEY NOT NULL, name TEXT NOT NULL);
                CREATE TABLE task (
                    id TEXT PRIMARY KEY NOT NULL, project_id TEXT REFERENCES project(id) ON DELETE CASCADE, title TEXT,
                    done INTEGER NOT NULL DEFAULT 0);
                """)
        }

        private func sync(
            _ name: String, _ server: ServerProcess, _ token: String, _ more: [String] = []
        ) async throws -> (status: Int32, output: String, errors: String) {
            try await bench.run(["sync", folder.path(name), "--server", server.url] + more, token: token)
        }

        private func token() async throws -> String { try await bench.token() }

        @Test(.timeLimit(.minutes(5))) func twoFilesThroughTheCommandLine() async throws {
            try makeDevice("a")
            try makeDevice("b")
            try sql("a", "INSERT INTO project VALUES ('p', 'Home'); INSERT INTO task VALUES ('t', 'p', 'Milk', 0)")
            let token = try await token()
            let server = try await ServerProcess.start(folder.path("s"))

            let first = try await sync("a", server, token, ["--scope", "w:1"])
            #expect(first.status == 1)
            #expect(first.errors.contains("its tables: project, task"), "\(first.errors)")
            let tables = ["--scope", "w:1", "--table", "task", "--table", "project"]
            let up = try await sync("a", server, token, tables)
            #expect(up.status == 0, "\(up.errors)")
            #expect(up.output.contains("pushed 2"))
            let down = try await sync("b", server, token, tables + ["--json"])
            let summary = try JSONDecoder().decode(SyncSummary.self, from: Data(down.output.utf8))
            #expect(summary.received == 2 && summary.applied == 2 && summary.pushed == 0 && summary.isConfirmed)
            // One page of the scan that fills the file, and the exchange behind it. On the wire are at least the rows,
            // and two short answers are not longer than this.
            #expect(summary.roundTrips == 2)
            let rows = #"{"name":"Home"}{"project_id":"p","title":"Milk","done":0}"#
            #expect((rows.utf8.count..<2048).contains(summary.bytesReceived), "\(summary.bytesReceived)")
            #expect(try sql("b", "SELECT title FROM task") == ["Milk"])

            // Later runs need no tables; different fields of one record both stand.
            try sql("a", "UPDATE task SET title = 'Oat milk'")
            try sql("b", "UPDATE task SET done = 1")
            for name in ["a", "b", "a"] { #expect(try await sync(name, server, token).status == 0) }
            for name in ["a", "b"] { #expect(try sql(name, "SELECT title || done FROM task") == ["Oat milk1"]) }

            // Delete wins; the edit is kept, and the exit code says so.
            try sql("a", "DELETE FROM task")
            try sql("b", "UPDATE task SET title = 'Butter'")
            #expect(try await sync("a", server, token).status == 0)
            #expect(try await sync("b", server, token).status == 3)
            let status = try await ChildProcess(ServeTests.command, ["status", folder.path("b"), "--json"]).result()
            #expect(status.status == 3)
            let decoder = JSONDecoder()
            decoder.dateDecodingStrategy = .iso8601
            let report = try decoder.decode(FileReport.self, from: Data(status.output.utf8))
            #expect(report.rejected.map(\.code) == ["record_deleted"])
            #expect(report.measures.entities["task"].map { $0.sent > 0 && $0.bytesReceived > 0 } == true)
            #expect(report.measures.requests >= 4 && report.measures.firstData.scopes == 1)
            #expect(report.scopes.map(\.lag) == [0] && report.scopes[0].ageSeconds.map { $0 >= 0 } == true)
            #expect(report.lines.contains { $0.hasPrefix("measured since ") && $0.contains(" requests, ") })
            #expect(report.tables.map(\.table) == ["project", "task"])

            // The device's list and the operator's; what is let go leaves the device's.
            let listed = try await refused([folder.path("b"), "--json"])
            #expect(listed.edits.map(\.code) == ["record_deleted"])
            #expect(listed.edits.first?.fields == ["title": "'Butter'"])
            let operators = try await refused(["--store", "sqlite:" + folder.path("s"), "--scope", "w:1", "--json"])
            #expect(operators.status == 3)
            #expect(operators.edits.map(\.sub) == ["ada"])
            #expect(operators.edits.first?.record == "t")
            let number = try #require(listed.edits.first?.number)
            let left = try await refused([folder.path("b"), "--discard", String(number), "--json"])
            #expect(left.status == 0 && left.edits.isEmpty)
            #expect(try await refused([folder.path("b"), "--retry", "999", "--json"]).status == 1)
            #expect(await server.stop() == 0)
        }

        @Test(.timeLimit(.minutes(5))) func verifyThroughTheCommandLine() async throws {
            try makeDevice("a")
            try sql(
                "a",
                "INSERT INTO project VALUES ('p', 'Home'), ('q', 'Work'); INSERT INTO task VALUES ('t', 'p', 'Milk', 0)"
            )
            let token = try await token()
            let server = try await ServerProcess.start(folder.path("s"))
            let tables = ["--scope", "w:1", "--table", "task", "--table", "project"]
            #expect(try await sync("a", server, token, tables).status == 0)
            func verify(_ more: [String] = []) async throws -> (status: Int32, summary: VerifySummary) {
                let result = try await ChildProcess(
                    ServeTests.command, ["verify", folder.path("a"), "--server", server.url, "--json"] + more,
                    environment: ["TIDEMARK_TOKEN": token]
                ).result()
                return (
                    result.status, try JSONDecoder().decode(VerifySummary.self, from: Data(result.output.utf8))
                )
            }
            let clean = try await verify()
            #expect(clean.status == 0 && clean.summary.isClean && clean.summary.records == 3)
            try sql(
                "a",
                """
                INSERT INTO tidemark_applying VALUES (1); UPDATE project SET name = 'flipped' WHERE id = 'q';
                DELETE FROM tidemark_applying;
                """)
            let found = try await verify()
            #expect(found.status == 3 && !found.summary.isClean)
            #expect(found.summary.tables.first { $0.table == "project" }?.ids == ["q"])
            let repaired = try await verify(["--repair"])
            #expect(repaired.status == 0 && repaired.summary.repaired == 1)
            #expect(try sql("a", "SELECT name FROM project ORDER BY id") == ["Home", "Work"])
            #expect(await server.stop() == 0)
        }

        private func refused(_ arguments: [String]) async throws -> (status: Int32, edits: [RefusedEdit]) {
            let result = try await ChildProcess(ServeTests.command, ["rejected"] + arguments).result()
            let decoder = JSONDecoder()
            decoder.dateDecodingStrategy = .iso8601
            return (result.status, (try? decoder.decode([RefusedEdit].self, from: Data(result.output.utf8))) ?? [])
        }

        @Test("The command says why it cannot sync, and ends with 1")
        func whatCannotBeSynced() async throws {
            try makeDevice("a")
            try sql("a", "INSERT INTO project VALUES ('p', 'Home')")
            let token = try await token()
            let server = try await ServerProcess.start(folder.path("s"))
            let tables = ["--scope", "w:1", "--table", "project"]
            #expect(try await sync("missing", server, token, tables).status == 1)
            #expect(try await sync("a", server, token, ["--scope", "w:1", "--table", "nothing"]).status == 1)
            #expect(try await sync("a", server, token, ["--table", "project"]).errors.contains("--scope"))
            let forbidden = try await sync("a", server, token, ["--scope", "other", "--table", "project"])
            #expect(forbidden.status == 1)
            #expect(forbidden.errors.contains("scope_forbidden"), "\(forbidden.errors)")
            let stranger = try await sync("a", server, "nonsense", tables)
            #expect(stranger.status == 1)
            #expect(stranger.errors.contains("unauthenticated"), "\(stranger.errors)")
            #expect(await server.stop() == 0)
            let offline = try await sync("a", server, token, tables)
            #expect(offline.status == 1)
            #expect(offline.errors.contains("hint: "), "\(offline.errors)")
        }

        /// `--watch` carries edits of other programs both ways, until it is told to end.
        @Test(.timeLimit(.minutes(5))) func watching() async throws {
            try makeDevice("a")
            try makeDevice("b")
            let token = try await token()
            let server = try await ServerProcess.start(folder.path("s"))
            let tables = ["--scope", "w:1", "--table", "task", "--table", "project"]
            let arguments = ["sync", folder.path("a"), "--server", server.url, "--watch"] + tables
            let watcher = try ChildProcess(ServeTests.command, arguments, environment: ["TIDEMARK_TOKEN": token])
            _ = try await watcher.line(startingWith: "idle")
            try sql("a", "INSERT INTO project VALUES ('p', 'Home')")
            try await poll {
                _ = try await sync("b", server, token, tables)
                return try !sql("b", "SELECT id FROM project").isEmpty
            }
            #expect(try sql("b", "SELECT id FROM project") == ["p"])
            watcher.signal(SIGINT)
            #expect(await watcher.wait() == 0)
            #expect(await server.stop() == 0)
        }

        /// The client in this process, over AsyncHTTPClient: what it counts is what was on the wire.
        @Test("AsyncHTTPClient's transport unpacks an answer, and counts the bytes of the wire")
        func theTransport() async throws {
            try await LiveServer.run(in: folder) { server in
                let token = try await LiveServer.token()
                let caller = Caller(url: server.url, token: token)
                let text = String(repeating: "tide ", count: 2000)
                _ = try await caller.push([upsert("t1", #""text":"\#(text)""#)])
                let root = try #require(URL(string: server.url + "/"))
                var transport = AsyncHTTPClientTransport(root) { token }
                let request = TransportRequest(path: "/sync/changes", query: [.init("scope", "w")])
                let answer = try await transport.send(request)
                let wire = try await caller.get("/sync/changes?scope=w", headers: [("Accept-Encoding", "gzip")])
                #expect(answer.status == 200)
                #expect(answer.bytesReceived == wire.bytes.count)
                #expect(answer.body.count > 10_000)
                #expect(answer.header("tidemark-protocol") == "1")

                transport.answerLimit = 1000
                await #expect(throws: (any Error).self) { try await transport.send(request) }
                let refused = try await AsyncHTTPClientTransport(root) { "nonsense" }.send(request)
                #expect(refused.status == 401)
            }
        }
    }

    /// The demo, as anybody runs it.
    @Suite(.serialized) struct DemoTests {
        let folder: TemporaryFolder
        init() throws { folder = try TemporaryFolder() }

        @Test(.timeLimit(.minutes(2)), arguments: ["countries", "packages"])
        func endsInAgreement(records: String) async throws {
            let result = try await ChildProcess(
                ServeTests.command,
                ["demo", "--rows", "900", "--json", "--records", records, "--keep", folder.path(records)]
            ).result()
            #expect(result.status == 0, "\(result.errors)")
            let report = try JSONDecoder().decode(DemoReport.self, from: Data(result.output.utf8))
            // The wire was cut after 3 MiB of 8: what was sent before is not sent again, but for one part at most.
            #expect((8 << 20...9 << 20).contains(report.photoBytes))
            #expect(report.isSame && report.kills > 0 && report.rows > 300)
            #expect(report.replayed > 50 && report.repaired == 1)
            // No tick comes meanwhile: nothing but a nudge brings the edit.
            #expect(report.nudged > 0)
        }

        @Test("Each border of the demo's countries is there from both sides")
        func theCountriesFitTogether() {
            let data = DemoData.countries(limit: 10_000)
            let borders = Set(data.child.rows.compactMap(\.first))
            #expect(data.parent.rows.count > 190)
            for row in data.child.rows { #expect(borders.contains("\(row[2] ?? "")-\(row[1] ?? "")")) }
        }

        @Test("The list of installed packages is read, with what each depends on")
        func packagesAreRead() {
            let status = """
                Package: a
                Status: install ok installed
                Version: 1
                Depends: b (>= 2), nowhere | c:any, virtual
                Description: first
                 more of it

                Package: b
                Status: install ok installed
                Version: 2

                Package: c
                Status: install ok installed
                Version: 3
                Pre-Depends: a

                Package: gone
                Status: deinstall ok config-files
                Version: 1
                """
            let data = DemoData.packages(status, limit: 1000)
            #expect(data.parent.rows.map { $0[0] } == ["a", "b", "c"])
            #expect(data.child.rows.map { $0[0] } == ["a|Depends|b", "a|Depends|c", "c|Pre-Depends|a"])
            #expect(data.child.rows[0][4] == ">= 2")
        }
    }
#endif
