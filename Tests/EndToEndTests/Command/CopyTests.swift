#if Server
    import Foundation
    import Testing

    /// Files that are copied and put back, with processes of their own (I11).
    @Suite(.serialized) struct CopyTests {
        let bench: CommandBench
        init() throws { bench = try CommandBench() }

        private func rows(_ name: String) throws -> [String] {
            try bench.sql(name, "SELECT id || ' ' || title || ' ' || n FROM task ORDER BY id")
        }

        @Test(.timeLimit(.minutes(5))) func copiedAndPutBack() async throws {
            let token = try await bench.token()
            let server = try await bench.server()
            try bench.sql("a", "CREATE TABLE task (id TEXT PRIMARY KEY NOT NULL, title TEXT, n INTEGER DEFAULT 0)")
            try bench.sql("a", "INSERT INTO task (id, title) VALUES ('t1', 'x'), ('t2', 'x'), ('t3', 'x')")
            try await bench.sync("a", server, token)
            // An edit that is not sent yet goes along with the copy, and is done once.
            try bench.sql("a", "UPDATE task SET title = 'both' WHERE id = 't1'")
            try bench.copy("a", as: "c")
            try bench.copy("a", as: "older")
            try bench.sql("a", "UPDATE task SET n = 1 WHERE id = 't2'; INSERT INTO task VALUES ('fa', 'a', 0)")
            try bench.sql("c", "UPDATE task SET title = 'c' WHERE id = 't2'; INSERT INTO task VALUES ('fc', 'c', 0)")
            let head = try await bench.held("w:1", server, token).head
            for name in ["a", "c", "a", "c"] { try await bench.sync(name, server, token) }
            let expected = ["fa a 0", "fc c 0", "t1 both 0", "t2 c 1", "t3 x 0"]
            #expect(try rows("a") == expected)
            #expect(try rows("c") == expected)
            #expect(try await bench.held("w:1", server, token).head == head + 5)

            // The older file comes back in the place of `a`: it knows nothing of what was sent from there.
            try bench.sql("c", "DELETE FROM task WHERE id = 't3'")
            try await bench.sync("c", server, token)
            try bench.copy("older", as: "a")
            try bench.sql("a", "UPDATE task SET n = 7 WHERE id = 't1'; INSERT INTO task VALUES ('later', 'a', 0)")
            for name in ["a", "c", "a"] { try await bench.sync(name, server, token) }
            let last = ["fa a 0", "fc c 0", "later a 0", "t1 both 7", "t2 c 1"]
            #expect(try rows("a") == last)
            #expect(try rows("c") == last)
            #expect(try await bench.held("w:1", server, token).head == head + 8, "nothing is done twice")
            #expect(await server.stop() == 0)
        }
    }
#endif
