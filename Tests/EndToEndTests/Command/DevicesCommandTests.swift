#if Server
    import Foundation
    import Testing
    import TidemarkServer

    @testable import TidemarkCommand

    /// `tidemark devices` as an operator meets it, with a real server and real devices.
    @Suite(.serialized) struct DevicesCommandTests {
        let bench: CommandBench
        init() throws { bench = try CommandBench() }

        private func devices(_ flags: [String] = []) async throws -> (status: Int32, output: String, errors: String) {
            try await bench.run(["devices", "--store", "sqlite:" + bench.path("s")] + flags)
        }

        private func report(_ flags: [String] = []) async throws -> DevicesReport {
            let decoder = JSONDecoder()
            decoder.dateDecodingStrategy = .iso8601
            let (status, output, errors) = try await devices(flags + ["--json"])
            #expect(status == 0, "\(errors)")
            return try decoder.decode(DevicesReport.self, from: Data(output.utf8))
        }

        @Test("It tells of a device that works, of one with a refused edit, and of one that lies")
        func list() async throws {
            for name in ["a", "b"] {
                try bench.sql(name, "CREATE TABLE task (id TEXT PRIMARY KEY NOT NULL, title TEXT)")
            }
            let tokens = [try await bench.token("ada"), try await bench.token("bob")]
            let server = try await bench.server()
            try bench.sql("a", "INSERT INTO task VALUES ('t', 'Milk')")
            try await bench.sync("a", server, tokens[0])
            try await bench.sync("b", server, tokens[1])
            // Bob's edit meets Ada's deletion, and is refused.
            try bench.sql("a", "DELETE FROM task")
            try bench.sql("b", "UPDATE task SET title = 'Oat milk'")
            try await bench.sync("a", server, tokens[0])
            let tables = ["--scope", "w:1", "--table", "task"]
            for _ in 1...2 {
                let refused = try await bench.run(
                    ["sync", bench.path("b"), "--server", server.url] + tables, token: tokens[1])
                #expect(refused.status == 3, "\(refused.output)\(refused.errors)")
            }
            let lie = #"""
                {"scope":"w:1","clientId":"liar-4711","operations":[],"device":{"pending":9223372036854775807,\#
                "oldest":1e300,"app":"\#(String(repeating: "x", count: 900))","library":"a\u009b2J\u202eb",\#
                "error":"\u001b]0;x\u0007"}}
                """#
            let answer = try await Caller(url: server.url, token: tokens[1]).post("/sync", lie)
            #expect(answer.status == 200, "\(answer.text)")

            let all = try await report(["--sort", "pending"])
            #expect(all.total == 3 && all.devices.map(\.sub) == ["bob", "ada", "bob"])
            let liar = try #require(all.devices.first)
            #expect(liar.client == "liar-4711" && liar.pending == 1_000_000_000 && liar.app == nil && liar.error == nil)
            #expect(all.devices[1].pending == 0 && all.devices[1].library == "0.1.0")
            let troubled = try await report(["--with-errors", "--user", "bob", "--scope", "w:1"])
            #expect(troubled.devices.map(\.refused) == [1])
            #expect(try await report(["--seen-before", "1h"]).total == 0)
            #expect(try await report(["--behind", "1000"]).total == 0)
            #expect(try await report(["--scope", "w:2"]).total == 0)

            let (status, output, _) = try await devices(["--limit", "2", "--sort", "pending"])
            let lines = output.split(separator: "\n")
            #expect(status == 0 && lines.count == 4, "\(output)")
            #expect(lines[0].hasPrefix("user  device") && lines[3] == "… and 1 more; --limit shows more of them")
            #expect(lines[1].hasPrefix("bob   liar-4711") && !output.contains("2J"), "\(output)")
            let orders = output.unicodeScalars.filter { $0 != "\n" && ($0.value < 0x20 || 0x7f...0x9f ~= $0.value) }
            #expect(orders.isEmpty && !output.contains("\u{202e}"))
            #expect(lines[0].distance(of: "scope") == lines[1].distance(of: "w:1"))
        }

        @Test("A malformed question is refused, and a store without devices says so")
        func edges() async throws {
            #expect(try await devices().status == 1)
            _ = try await bench.token()
            let server = try await bench.server()
            let empty = try await devices()
            #expect(empty.status == 0 && empty.output == "no such device is known\n")
            for flags in [["--sort", "name"], ["--limit", "0"], ["--seen-before", "soon"]] {
                #expect(try await devices(flags).status == 64, "\(flags)")
            }
            #expect(try await devices(["--scope", "a b"]).status != 0)
            _ = server
        }
    }

    extension Substring {
        /// How many characters stand before a text.
        fileprivate func distance(of text: String) -> Int? {
            range(of: text).map { distance(from: startIndex, to: $0.lowerBound) }
        }
    }
#endif
