#if Server
    import Foundation
    import GRDB
    import Testing

    @testable import TidemarkCommand

    /// `tidemark conflicts`: what met somebody else's edit, and what a person decides of it.
    @Suite(.serialized) struct ConflictsCommandTests {
        let bench: CommandBench
        init() throws { bench = try CommandBench() }

        /// Two devices edit the same field of the same row; the second to sync finds the other's edit there.
        private func meet(_ server: ServerProcess, _ token: String) async throws -> String {
            for name in ["a", "b"] {
                try bench.sql(name, "CREATE TABLE task (id TEXT PRIMARY KEY, title TEXT, rank INTEGER)")
            }
            try bench.sql("a", "INSERT INTO task VALUES ('t', 'first', 1)")
            for name in ["a", "b"] { try await bench.sync(name, server, token) }
            try bench.sql("a", "UPDATE task SET title = 'ours' WHERE id = 't'")
            try bench.sql("b", "UPDATE task SET title = 'yours' WHERE id = 't'")
            for name in ["b", "a"] { _ = try await sync(name, server, token) }
            return bench.path("a")
        }

        private func sync(
            _ name: String, _ server: ServerProcess, _ token: String
        ) async throws -> (status: Int32, output: String, errors: String) {
            try await bench.run(["sync", bench.path(name), "--server", server.url], token: token)
        }

        private func list(_ file: String, _ flags: [String] = []) async throws -> [MetEdit] {
            let listed = try await bench.run(["conflicts", file, "--json"] + flags)
            let decoder = JSONDecoder()
            decoder.dateDecodingStrategy = .iso8601
            return try decoder.decode([MetEdit].self, from: Data(listed.output.utf8))
        }

        @Test("a conflict that the policy resolved is listed, decided anew and taken off", .timeLimit(.minutes(5)))
        func resolved() async throws {
            let token = try await bench.token()
            let server = try await bench.server()
            let file = try await meet(server, token)
            let met = try #require(try await list(file).first)
            #expect(met.table == "task" && met.record == "t" && !met.isOpen && met.rule == "lastWriteWins")
            #expect(met.fields.map(\.mine) == ["'ours'"] && met.fields.map(\.theirs) == ["'yours'"], "\(met)")
            let shown = try await bench.run(["conflicts", file])
            #expect(shown.status == 0, "\(shown)")
            #expect(shown.output.contains("  title: 'ours' here, 'yours' elsewhere, 'ours' stands"), "\(shown.output)")
            #expect(try await list(file, ["--open"]).isEmpty)

            let taken = try await bench.run(["conflicts", file, "--take-theirs", "\(met.number)"])
            #expect(taken.output.hasPrefix("\(met.number): task t: what was set elsewhere stands"), "\(taken)")
            #expect(try await sync("a", server, token).status == 0)
            #expect(try await bench.held("w:1", server, token).rows == ["t": "yours"])
            let merged = try await bench.run(
                ["conflicts", file, "--merge", "\(met.number)", "--set", "title=both", "--set", "rank=7"])
            #expect(merged.output.contains("rank 7, title 'both' stands"), "\(merged)")
            #expect(try await sync("a", server, token).status == 0)
            #expect(try await bench.held("w:1", server, token).rows == ["t": "both"])
            #expect(try bench.sql("a", "SELECT CAST(rank AS TEXT) FROM task") == ["7"])

            let gone = try await bench.run(["conflicts", file, "--dismiss", "\(met.number)"])
            #expect(gone.status == 0 && gone.output.hasPrefix("\(met.number): task t is off the list"), "\(gone)")
            #expect(try await !list(file).map(\.number).contains(met.number))
            let unknown = try await bench.run(["conflicts", file, "--keep-mine", "\(met.number)"])
            #expect(unknown.status == 1 && unknown.errors.contains("there is no conflict"), "\(unknown)")
            #expect(await server.stop() == 0)
        }

        @Test("an open conflict makes the exit code 3 until it is decided", .timeLimit(.minutes(5)))
        func open() async throws {
            try Data("entities:\n  task: {conflict: manual}\n".utf8)
                .write(to: URL(filePath: bench.path("tidemark.yaml")))
            let token = try await bench.token()
            let server = try await ServerProcess.start([
                "--listen", "127.0.0.1:0", "--store", "sqlite:" + bench.path("s"), "--config",
                bench.path("tidemark.yaml"),
            ])
            let file = try await meet(server, token)
            let synced = try await sync("a", server, token)
            #expect(synced.status == 3 && synced.output.contains("undecided: 1 conflict;"), "\(synced)")
            let listed = try await bench.run(["conflicts", file, "--open"])
            #expect(listed.status == 3, "\(listed)")
            #expect(listed.output.contains("  title: 'ours' here, 'yours' elsewhere, undecided stands"), "\(listed)")
            let number = try #require(try await list(file).first?.number)
            let early = try await bench.run(["conflicts", file, "--dismiss", "\(number)"])
            #expect(early.status == 1 && early.errors.contains("is open"), "\(early)")
            #expect(try await bench.run(["conflicts", file, "--keep-mine", "\(number)"]).status == 0)
            #expect(try await sync("a", server, token).status == 0)
            #expect(try await bench.held("w:1", server, token).rows == ["t": "ours"])
            #expect(await server.stop() == 0)
        }

        @Test("a row that gave way to the server's at the first sync is told by the sync", .timeLimit(.minutes(5)))
        func firstSync() async throws {
            let token = try await bench.token()
            let server = try await bench.server()
            for name in ["a", "b"] {
                try bench.sql(name, "CREATE TABLE task (id INTEGER PRIMARY KEY, title TEXT)")
                try bench.sql(name, "INSERT INTO task(title) VALUES ('of \(name)')")
            }
            try await bench.sync("a", server, token)
            let synced = try await bench.run(
                ["sync", bench.path("b"), "--server", server.url, "--scope", "w:1", "--table", "task"], token: token)
            #expect(synced.output.contains("conflicts: 1 edit or row of this file met somebody else's"), "\(synced)")
            let shown = try await bench.run(["conflicts", bench.path("b")])
            #expect(shown.output.contains("  title: 'of b' here, 'of a' elsewhere, 'of a' stands"), "\(shown)")
            #expect(try await bench.run(["conflicts", bench.path("none")]).status == 1)
            #expect(try await bench.run(["conflicts", bench.path("b"), "--merge", "1"]).status == 64)
            #expect(await server.stop() == 0)
        }
    }
#endif
