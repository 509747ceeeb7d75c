#if Server && os(Linux)
    import Foundation
    import GRDB
    import Testing
    import TidemarkServer

    @testable import TidemarkCommand

    /// A watch notices each write to a file, in each journal mode, once the transaction is there.
    @Suite(.timeLimit(.minutes(5))) struct FileWatchTests {
        @Test(
            "each write is seen, however it is kept and the file is named",
            arguments: ["WAL", "DELETE", "TRUNCATE", "PERSIST"], [false, true])
        func writes(mode: String, isLinked: Bool) async throws {
            let bench = try CommandBench()
            let (database, reader) = try (open(bench, mode), DatabaseQueue(path: bench.path("a")))
            let link = bench.path("links") + "-a"
            try FileManager.default.createDirectory(atPath: link, withIntermediateDirectories: true)
            try FileManager.default.createSymbolicLink(
                atPath: link + "/b", withDestinationPath: bench.path("a"))
            let watch = try #require(FileWatch(isLinked ? link + "/b" : bench.path("a")))
            for number in 1...20 {
                try await database.write { try $0.execute(sql: "INSERT INTO item DEFAULT VALUES") }
                for await _ in watch.looks {
                    let count = try await reader.read { try Int.fetchOne($0, sql: "SELECT COUNT(*) FROM item") }
                    if count == number { break }
                }
            }
        }

        @Test("neither what is read nor other files make anybody look")
        func others() async throws {
            let bench = try CommandBench()
            let database = try open(bench, "WAL")
            let watch = try #require(FileWatch(bench.path("a")))
            let looks = Guarded(0)
            let looking = Task { for await _ in watch.looks { looks.withLock { $0 += 1 } } }
            for number in 0..<20 {
                _ = try await database.read { try Int.fetchOne($0, sql: "SELECT COUNT(*) FROM item") }
                try Data("\(number)".utf8).write(to: URL(filePath: bench.path("b")))
            }
            try await Task.sleep(for: .milliseconds(400))
            #expect(looks.withLock { $0 } == 0)
            try await database.write { try $0.execute(sql: "INSERT INTO item DEFAULT VALUES") }
            try await poll { looks.withLock { $0 } > 0 }
            looking.cancel()
        }

        private func open(_ bench: CommandBench, _ mode: String) throws -> DatabaseQueue {
            let database = try DatabaseQueue(path: bench.path("a"))
            try database.writeWithoutTransaction { db in
                _ = try String.fetchOne(db, sql: "PRAGMA journal_mode = \(mode)")
                try db.execute(sql: "CREATE TABLE item (id INTEGER PRIMARY KEY)")
            }
            return database
        }
    }
#endif
