#if Server
    import Foundation
    import GRDB
    import PostgresCluster
    import Testing
    import Tidemark
    import TidemarkAsyncHTTPClient

    @testable import TidemarkCommand

    /// SQLite files in a folder, a server beside them, and the command line for both.
    struct CommandBench {
        let folder: TemporaryFolder
        init() throws { folder = try TemporaryFolder() }

        func path(_ name: String) -> String { folder.path(name) }

        /// Runs SQL as another program does; the file is closed behind it.
        @discardableResult
        func sql(_ name: String, _ sql: String) throws -> [String] {
            let database = try folder.database(name)
            defer { try? database.close() }
            return try database.write { db in
                if sql.hasPrefix("SELECT") { return try String.fetchAll(db, sql: sql) }
                try db.execute(sql: sql)
                return []
            }
        }

        /// The file as it stands now, under another name.
        func copy(_ name: String, as other: String) throws {
            let files = FileManager.default
            for suffix in ["", "-wal", "-journal"] {
                let (from, to) = (path(name) + suffix, path(other) + suffix)
                if files.fileExists(atPath: to) { try files.removeItem(atPath: to) }
                if files.fileExists(atPath: from) { try files.copyItem(atPath: from, toPath: to) }
            }
        }

        func token(_ sub: String = "ada", _ scopes: [String] = ["w:*"]) async throws -> String {
            let grants = scopes.flatMap { ["--scope", $0 + "=rw"] }
            return try await run(["token", "--store", "sqlite:" + path("s"), "--sub", sub, "--make-secret"] + grants)
                .output
                .trimmingCharacters(in: .whitespacesAndNewlines)
        }

        func server() async throws -> ServerProcess { try await ServerProcess.start(path("s")) }

        /// Makes the file `key`, with which tokens of servers over a cluster are signed.
        func makeKey() throws {
            try String(repeating: "0123456789abcdef", count: 3)
                .write(toFile: path("key"), atomically: true, encoding: .utf8)
        }

        /// A server over the store in a cluster.
        func server(on cluster: PostgresCluster) async throws -> ServerProcess {
            try await ServerProcess.start(
                ["--listen", "127.0.0.1:0", "--secret-file", path("key")],
                environment: ["TIDEMARK_STORE": cluster.url()])
        }

        /// Syncs the table `task` of a device's file with the scope `w:1`.
        func sync(_ name: String, _ server: ServerProcess, _ token: String) async throws {
            let tables = ["--scope", "w:1", "--table", "task"]
            let result = try await run(["sync", path(name), "--server", server.url] + tables, token: token)
            #expect(result.status == 0, "\(name): \(result.output)\(result.errors)")
        }

        /// Syncs a device's file with the scope `w:1`, and says what became of it.
        func trySync(
            _ name: String, _ server: ServerProcess, _ more: [String] = []
        ) async throws -> (status: Int32, output: String, errors: String) {
            try await run(
                ["sync", path(name), "--server", server.url, "--scope", "w:1"] + more, token: try await token())
        }

        /// Each task of a device's file: its id and title.
        func tasks(_ name: String) throws -> [String] {
            try sql(name, "SELECT id || ' ' || title FROM task ORDER BY id")
        }

        func run(
            _ arguments: [String], token: String = ""
        ) async throws -> (status: Int32, output: String, errors: String) {
            try await ChildProcess(ServeTests.command, arguments, environment: ["TIDEMARK_TOKEN": token]).result()
        }

        /// What the server holds of a scope: each record's id and title, and the newest version.
        func held(
            _ scope: String, _ server: ServerProcess, _ token: String
        ) async throws -> (
            rows: [String: String], head: Int64
        ) {
            let answer = try await Caller(url: server.url, token: token).get("/sync/changes?scope=\(scope)&limit=1000")
            #expect(answer.status == 200)
            var rows: [String: String] = [:]
            for change in answer.changes where change["type"] as? String == "upsert" {
                let data = change["data"] as? [String: Any]
                rows[change["id"] as? String ?? ""] = data?["title"] as? String ?? "-"
            }
            return (rows, (answer.member("head") as? NSNumber)?.int64Value ?? -1)
        }
    }
#endif
