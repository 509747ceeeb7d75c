#if Server
    import Foundation
    import Testing

    @testable import TidemarkCommand

    /// Two programs on one file, of which the one that syncs it is killed.
    @Suite(.serialized) struct SharedFileKillTests {
        let bench: CommandBench
        init() throws { bench = try CommandBench() }

        private func watch(_ server: ServerProcess, _ token: String) throws -> ChildProcess {
            try ChildProcess(
                ServeTests.command, ["sync", bench.path("a"), "--server", server.url, "--watch"],
                environment: ["TIDEMARK_TOKEN": token])
        }

        /// Returns what the server holds once it is so much.
        private func held(_ count: Int, _ server: ServerProcess, _ token: String) async throws -> [String] {
            var rows: [String: String] = [:]
            try await poll(every: .milliseconds(100)) {
                rows = try await bench.held("w:1", server, token).rows
                return rows.count >= count
            }
            return rows.keys.sorted()
        }

        @Test(
            "one of two watches syncs the file; when it is killed the other one sends what is written next",
            .timeLimit(.minutes(5)))
        func killed() async throws {
            try bench.sql("a", "CREATE TABLE task (id TEXT PRIMARY KEY NOT NULL, title TEXT)")
            let server = try await bench.server()
            let token = try await bench.token()
            try await bench.sync("a", server, token)
            let lease = "SELECT value FROM tidemark_meta WHERE key = 'lease'"
            #expect(try bench.sql("a", lease).isEmpty)
            let first = try watch(server, token)
            try await poll(every: .milliseconds(100)) { try !bench.sql("a", lease).isEmpty }
            let second = try watch(server, token)
            let waits = try await second.line(startingWith: "synced by another process: ")
            #expect(waits != nil, "\(second.standardOutput)")
            try bench.sql("a", "INSERT INTO task VALUES ('1', 'one')")
            #expect(try await held(1, server, token) == ["1"])
            await first.end()
            try bench.sql("a", "INSERT INTO task VALUES ('2', 'two')")
            #expect(try await held(2, server, token) == ["1", "2"])
            second.signal(SIGINT)
            #expect(await second.wait() == 0)
            #expect(try bench.sql("a", lease).isEmpty, "who stops yields its turn")
            #expect(await server.stop() == 0)
        }
    }
#endif
