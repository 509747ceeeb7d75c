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

        private func token() async throws -> String {
            let store = ["--store", "sqlite:" + folder.path("s"), "--make-secret"]
            let arguments = ["token", "--sub", "ada", "--scope", "w:*=rw"] + store
            return try await command(arguments).result().output.trimmingCharacters(in: .whitespacesAndNewlines)
        }

        private static func arguments(_ server: ServerProcess) -> [String] {
            ["--server", server.url, "--scope", "w:1", "--table", "task"]
        }

        /// How far the filling has come; `nil` once it has ended. Rows and the place of the scan are never apart, and
        /// the scan never begins anew.
        private func progress(beyond reached: Int) throws -> Int? {
            let (rows, held) = try read("b") { db -> (Int?, Int) in
                guard try db.tableExists("tidemark_bootstrap") else { return (0, 0) }
                return (
                    try Int.fetchOne(db, sql: "SELECT rows FROM tidemark_bootstrap"),
                    try Int.fetchOne(db, sql: "SELECT count(*) FROM task") ?? 0
                )
            }
            // Neither begun nor ended, or else ended.
            guard let rows = rows ?? (held == 0 ? 0 : nil) else { return nil }
            #expect(rows == held)
            #expect(rows >= reached)
            return rows
        }

        private func expectSame(_ server: ServerProcess, _ token: String) async throws {
            let again = try command(["sync", folder.path("b")] + Self.arguments(server), token: token)
            #expect(await again.result().status == 0)
            let sum = "SELECT count(*) || ' ' || sum(n) FROM task"
            #expect(
                try read("b") { try String.fetchOne($0, sql: sum) } == read("a") { try String.fetchOne($0, sql: sum) })
        }

        @Test(.timeLimit(.minutes(2))) func killedAtAnyPage() async throws {
            try device("a", rows: Self.rows)
            try device("b")
            let token = try await token()
            let server = try await ServerProcess.start(folder.path("s"))
            let arguments = Self.arguments(server)
            #expect(try await command(["sync", folder.path("a")] + arguments, token: token).result().status == 0)

            var reached = 0
            var kills = 0
            while kills < 30 {
                let sync = try command(["sync", folder.path("b"), "--page", "10"] + arguments, token: token)
                // Not before this run has got somewhere, and then at any moment.
                for _ in 0..<500 where sync.isRunning {
                    guard let rows = try progress(beyond: reached), rows <= reached else { break }
                    try await Task.sleep(for: .milliseconds(2))
                }
                try await Task.sleep(for: .milliseconds(kills * 23 % 90))
                await sync.end()
                kills += 1
                guard let rows = try progress(beyond: reached) else {
                    if reached > 0 { break }
                    // It had come to its end before anybody looked: once more, from the beginning.
                    for end in ["", "-wal", "-shm"] {
                        try? FileManager.default.removeItem(atPath: folder.path("b") + end)
                    }
                    try device("b")
                    continue
                }
                reached = rows
            }
            #expect(reached > 0, "it was never caught in the middle")
            try await expectSame(server, token)
            #expect(await server.stop() == 0)
        }

        /// The server dies between two pages, and in the middle of one: its snapshot goes on where it was.
        @Test(.timeLimit(.minutes(2))) func serverKilledAtAnyPage() async throws {
            try device("a", rows: Self.rows)
            try device("b")
            let token = try await token()
            var server = try await ServerProcess.start(folder.path("s"))
            let arguments = Self.arguments(server)
            #expect(try await command(["sync", folder.path("a")] + arguments, token: token).result().status == 0)

            var reached = 0
            var cuts = 0
            for kill in 0..<12 {
                let sync = try command(["sync", folder.path("b"), "--page", "10"] + arguments, token: token)
                // Not before this run has got somewhere, and then at any moment.
                for _ in 0..<500 where sync.isRunning {
                    guard let rows = try progress(beyond: reached), rows <= reached else { break }
                    try await Task.sleep(for: .milliseconds(10))
                }
                try await Task.sleep(for: .milliseconds(kill * 7 % 20))
                server = try await server.restarted(folder.path("s"))
                // It gives up, or has come to the end; a page that it has is never lost.
                _ = await sync.wait()
                guard let rows = try progress(beyond: reached) else { break }
                if rows > reached { cuts += 1 }
                reached = rows
            }
            #expect(cuts > 1, "it was hardly caught in the middle")
            try await expectSame(server, token)
            #expect(await server.stop() == 0)
        }
    }
#endif
