#if Server
    import Foundation
    import GRDB
    import Testing

    @testable import TidemarkCommand

    /// A real device that is killed in the middle of its first filling, again and again (A6).
    @Suite(.serialized) struct BootstrapKillTests {
        let folder: TemporaryFolder
        init() throws { folder = try TemporaryFolder() }

        private static let rows = 6000

        private func device(_ name: String, rows: Int = 0) throws {
            let database = try folder.database(name)
            defer { try? database.close() }
            try database.write { db in
                try db.execute(sql: "CREATE TABLE task (id TEXT PRIMARY KEY NOT NULL, title TEXT, n INTEGER)")
                for index in 0..<rows {
                    try db.execute(sql: "INSERT INTO task VALUES (?, 'title', ?)", arguments: ["t\(index)", index])
                }
            }
        }

        private func read<T: Sendable>(_ name: String, _ body: (Database) throws -> T) throws -> T {
            let database = try folder.database(name)
            defer { try? database.close() }
            return try database.read(body)
        }

        private func command(_ arguments: [String], token: String = "") throws -> ChildProcess {
            try ChildProcess(ServeTests.command, arguments, environment: ["TIDEMARK_TOKEN": token])
        }

        @Test(.timeLimit(.minutes(2))) func killedAtAnyPage() async throws {
            try device("a", rows: Self.rows)
            try device("b")
            let arguments = ["token", "--store", "sqlite:" + folder.path("s"), "--sub", "ada", "--scope", "w:*=rw"]
            let token = try await command(arguments).result().output.trimmingCharacters(in: .whitespacesAndNewlines)
            let server = try await ServerProcess.start(folder.path("s"))
            let tables = ["--server", server.url, "--scope", "w:1", "--table", "task"]
            #expect(try await command(["sync", folder.path("a")] + tables, token: token).result().status == 0)

            var reached = 0
            var kills = 0
            while kills < 30 {
                let sync = try command(["sync", folder.path("b"), "--page", "10"] + tables, token: token)
                try await Task.sleep(for: .milliseconds(60 + kills * 23 % 90))
                await sync.end()
                kills += 1
                let (rows, held) = try read("b") { db -> (Int?, Int) in
                    guard try db.tableExists("tidemark_bootstrap") else { return (0, 0) }
                    return (
                        try Int.fetchOne(db, sql: "SELECT rows FROM tidemark_bootstrap"),
                        try Int.fetchOne(db, sql: "SELECT count(*) FROM task") ?? 0
                    )
                }
                // Neither begun nor ended, or else ended.
                guard let rows = rows ?? (held == 0 ? 0 : nil) else { break }
                // Rows and the place of the walk are never apart, and the walk never begins anew.
                #expect(rows == held)
                #expect(rows >= reached)
                reached = rows
            }
            #expect(reached > 0, "it was never caught in the middle")
            #expect(try await command(["sync", folder.path("b")] + tables, token: token).result().status == 0)
            let sum = "SELECT count(*) || ' ' || sum(n) FROM task"
            #expect(
                try read("b") { try String.fetchOne($0, sql: sum) } == read("a") { try String.fetchOne($0, sql: sum) })
            #expect(await server.stop() == 0)
        }
    }
#endif
