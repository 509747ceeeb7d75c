#if Server
    import Foundation
    import GRDB
    import Testing
    import Tidemark

    @testable import TidemarkCommand

    /// `tidemark status`: it looks, and leaves no trace.
    @Suite(.serialized) struct StatusCommandTests {
        let bench: CommandBench
        init() throws { bench = try CommandBench() }

        private func bytes(_ name: String) throws -> Data { try Data(contentsOf: URL(filePath: bench.path(name))) }

        @Test(
            "a status writes nothing, in either journal mode, and is told of a file that nobody may write to",
            .timeLimit(.minutes(5)), arguments: ["DELETE", "WAL"])
        func readOnly(mode: String) async throws {
            let folder = bench.path("closed")
            try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
            try bench.sql("closed/a", "CREATE TABLE task (id TEXT PRIMARY KEY, title TEXT)")
            try bench.sql("closed/a", "INSERT INTO task VALUES ('1', 'x')")
            let database = try bench.folder.database("closed/a")
            try await database.writeWithoutTransaction { db in try db.execute(sql: "PRAGMA journal_mode = \(mode)") }
            try database.close()
            let server = try await bench.server()
            try await bench.sync("closed/a", server, bench.token())
            try bench.sql("closed/a", "UPDATE task SET title = 'y'")
            let before = try bytes("closed/a")
            let files = FileManager.default
            try files.setAttributes([.posixPermissions: 0o444], ofItemAtPath: bench.path("closed/a"))
            try files.setAttributes([.posixPermissions: 0o555], ofItemAtPath: folder)
            defer { try? files.setAttributes([.posixPermissions: 0o755], ofItemAtPath: folder) }
            // Root may write where nobody may: the status has to hold itself back.
            let status = try await bench.run(["status", bench.path("closed/a"), "--json"])
            #expect(status.status == 3, "\(status.errors)")
            let decoder = JSONDecoder()
            decoder.dateDecodingStrategy = .iso8601
            let report = try decoder.decode(FileReport.self, from: Data(status.output.utf8))
            #expect(report.pending == 1 && report.tables.map(\.rows) == [1])
            #expect(try await bench.run(["rejected", bench.path("closed/a")]).status == 0)
            #expect(try bytes("closed/a") == before)
            #expect(await server.stop() == 0)
        }

        @Test("many rows that are quarantined are told in a few lines", .timeLimit(.minutes(5)))
        func bounded() async throws {
            try bench.sql("a", "CREATE TABLE task (id TEXT PRIMARY KEY, title TEXT)")
            try bench.sql("b", "CREATE TABLE task (id TEXT PRIMARY KEY, title TEXT CHECK (title = 'no'))")
            let values = (0..<300).map { "('k\($0)', 'x')" }.joined(separator: ",")
            try bench.sql("a", "INSERT INTO task VALUES \(values)")
            let server = try await bench.server()
            let token = try await bench.token()
            try await bench.sync("a", server, token)
            let tables = ["--scope", "w:1", "--table", "task"]
            _ = try await bench.run(["sync", bench.path("b"), "--server", server.url] + tables, token: token)
            let status = try await bench.run(["status", bench.path("b")])
            let lines = status.output.split(separator: "\n")
            #expect(status.status == 3 && lines.count < 12, "\(lines.count) lines")
            #expect(lines.contains { $0.contains("and 297 more: ") }, "\(status.output)")
            let json = try await bench.run(["status", bench.path("b"), "--json"])
            #expect(json.output.matches(of: /"record":"k/).count == 300)
            #expect(await server.stop() == 0)
        }

        @Test("of the edits that a refused one blocks, twenty are told")
        func dependants() {
            let operation = RejectedOperation(
                id: 1, scope: "w:1", entity: "task", record: "t1", code: "too_far", detail: "It is too far.",
                rejectedAt: Date(timeIntervalSince1970: 0),
                dependants: (1...25).map { .init(entity: "tag", record: "g\($0)") })
            let lines = RefusedEdit(operation).lines.filter { $0.contains("wait") }
            #expect(lines.count == 21 && lines[19] == "  waits for it: tag g20")
            #expect(lines.last == "  … and 5 more edits that wait for it; --json lists all")
        }
    }
#endif
