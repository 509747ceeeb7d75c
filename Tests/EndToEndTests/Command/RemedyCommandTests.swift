#if Server
    import Foundation
    import Testing
    import TidemarkServer

    @testable import TidemarkCommand

    /// `tidemark devices remedy` as an operator meets it, with a real server and a real device.
    @Suite(.serialized) struct RemedyCommandTests {
        let bench: CommandBench
        init() throws { bench = try CommandBench() }

        private var store: [String] { ["--store", "sqlite:" + bench.path("s")] }

        private func remedy(_ flags: String...) async throws -> (status: Int32, output: String, errors: String) {
            try await bench.run(["devices", "remedy"] + flags + store)
        }

        private func devices() async throws -> DevicesReport {
            let decoder = JSONDecoder()
            decoder.dateDecodingStrategy = .iso8601
            let (status, output, errors) = try await bench.run(["devices", "--json"] + store)
            #expect(status == 0, "\(errors)")
            return try decoder.decode(DevicesReport.self, from: Data(output.utf8))
        }

        @Test("A device is stopped, says so with its edits kept, and goes on when it is cleared")
        func stop() async throws {
            try bench.sql("a", "CREATE TABLE task (id TEXT PRIMARY KEY NOT NULL, title TEXT)")
            try bench.sql("a", "INSERT INTO task VALUES ('t', 'Milk')")
            let token = try await bench.token()
            let server = try await bench.server()
            try await bench.sync("a", server, token)
            let name = try #require(try await devices().devices.first).client
            let asked = try await remedy("stop", "--message", "Please update.", "--device", name)
            #expect(asked.status == 0 && asked.output.contains("stop pending"), "\(asked.output)\(asked.errors)")
            #expect(try await devices().devices.first?.remedy?.outcome == nil)
            try bench.sql("a", "UPDATE task SET title = 'Oat milk'")
            let tables = ["--scope", "w:1", "--table", "task"]
            let sync = ["sync", bench.path("a"), "--server", server.url] + tables
            let stopped = try await bench.run(sync, token: token)
            #expect(stopped.status == 1 && stopped.errors.contains("Please update."), "\(stopped.errors)")
            #expect(stopped.errors.contains("stopped_by_operator"))
            let line = try #require(try await devices().devices.first?.remedy)
            #expect(line.kind == "stop" && line.message == "Please update." && line.outcome == "done")
            #expect(line.toldAt != nil)
            let list = try await bench.run(["devices"] + store)
            #expect(list.output.contains("stop done, "), "\(list.output)")
            #expect(try await remedy("clear", "--device", name, "--scope", "w:1").status == 0)
            try await bench.sync("a", server, token)
            #expect(try await devices().devices.first?.remedy?.outcome == "done")
            #expect(try await bench.held("w:1", server, token).rows == ["t": "Oat milk"])
        }

        @Test("A remedy that cannot be asked for is refused, and the refusal says what to do")
        func edges() async throws {
            _ = try await bench.token()
            let server = try await bench.server()
            for flags in [
                ["sing", "--device", "d"], ["stop", "--device", "d"], ["refill"],
                ["refill", "--device", "d", "--message", "m"],
                ["verify", "--device", "d", "--interval", "1m"], ["slow-down", "--device", "d", "--interval", "soon"],
            ] {
                #expect(try await bench.run(["devices", "remedy"] + flags + store).status == 64, "\(flags)")
            }
            let unknown = try await remedy("refill", "--device", "phone-0815")
            #expect(unknown.status == 1 && unknown.errors.contains("phone-0815") && unknown.errors.contains("hint:"))
            let long = try await remedy("slow-down", "--device", "d", "--interval", "2d")
            #expect(long.status == 1 && long.errors.contains("24 hours"))
            let control = try await remedy("stop", "--device", "d", "--message", "a\u{1b}[2J")
            #expect(control.status == 1 && !control.errors.contains("\u{1b}[2J"))
            _ = server
        }
    }
#endif
