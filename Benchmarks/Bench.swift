import Foundation
import GRDB
import Tidemark
import TidemarkSQLite
import TidemarkServer
import TidemarkTesting

/// The three questions: what capture costs the app, how fast rows travel, and whether cost follows the changes alone.
struct Bench {
    static let rounds = 3
    let rows: Int

    private static let schema = """
        CREATE TABLE task (
            id TEXT PRIMARY KEY, title TEXT, done INTEGER, priority INTEGER, note TEXT, weight REAL, owner TEXT)
        """
    private static let insert = "INSERT INTO task VALUES (?, ?, ?, ?, ?, ?, ?)"

    private static func arguments(_ index: Int) -> StatementArguments {
        [
            String(format: "%08d-5f0c-7000-8000-%012d", index, index &* 7919), "Task number \(index)", index % 2,
            index % 5, String(repeating: "lorem ipsum ", count: 12), Double(index) / 3, "ada",
        ]
    }

    func inDirectory(_ work: (URL) async throws -> Void) async throws {
        let directory = FileManager.default.temporaryDirectory.appending(path: "tidemark-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: directory) }
        try await work(directory)
    }

    func device(_ name: String, in directory: URL) throws -> DatabasePool {
        let pool = try DatabasePool(path: directory.appending(path: name).path)
        try pool.write { db in try db.execute(sql: Self.schema) }
        return pool
    }

    func fill(_ pool: DatabasePool) throws {
        try pool.write { db in
            let statement = try db.makeStatement(sql: Self.insert)
            for index in 0..<rows { try statement.execute(arguments: Self.arguments(index)) }
        }
    }

    func engine(_ pool: DatabasePool, _ server: SyncServer) throws -> SyncEngine {
        try SyncEngine(
            for: pool, tables: [.table("task")], scopes: ["s"],
            transport: InProcessTransport(to: server) { _ in .readWrite(as: "ada") })
    }

    // MARK: What capture costs

    func capture() async throws {
        var plain: [Double] = []
        var captured: [Double] = []
        for _ in 0..<Self.rounds {
            try await inDirectory { directory in
                let pool = try device("plain.sqlite", in: directory)
                plain.append(try await seconds { try fill(pool) })
                let store = try SQLiteStore(path: directory.appending(path: "server.sqlite").path)
                let synced = try device("synced.sqlite", in: directory)
                try await engine(synced, SyncServer(store: store)).install()
                captured.append(try await seconds { try fill(synced) })
            }
        }
        report("insert, plain SQLite", rows, median(plain))
        report("insert, captured", rows, median(captured), against: median(plain))
    }

    // MARK: How fast rows travel

    func transfer() async throws {
        var up: [Double] = []
        var down: [Double] = []
        var read: [Double] = []
        var plain: [Double] = []
        for _ in 0..<Self.rounds {
            try await inDirectory { directory in
                let server = SyncServer(store: try SQLiteStore(path: directory.appending(path: "server.sqlite").path))
                let first = try device("a.sqlite", in: directory)
                let sender = try engine(first, server)
                try await sender.install()
                try fill(first)
                up.append(try await seconds { _ = try await sender.syncNow() })
                let baseline = try device("plain.sqlite", in: directory)
                plain.append(try await seconds { try upsertInPages(baseline) })
                let second = try device("b.sqlite", in: directory)
                let receiver = try engine(second, server)
                down.append(try await seconds { _ = try await receiver.syncNow() })
                // A pull that was driven by the records' machines would do this too (decision 14).
                read.append(
                    try await seconds {
                        let found = try await second.read { db in try RecordMachines(db).all(db, rowLimit: rows) }
                        precondition(found.machines.count == rows)
                    })
            }
        }
        report("push from a device's tables into the log", rows, median(up))
        report("upsert in pages of 1000, plain SQLite", rows, median(plain))
        report("pull from the log into a device's tables", rows, median(down), against: median(plain))
        report("read the state of each record", rows, median(read))
    }

    // MARK: What rows cost that are older than their capture

    func standing() async throws {
        var noted: [Double] = []
        var first: [Double] = []
        var second: [Double] = []
        for _ in 0..<Self.rounds {
            try await inDirectory { directory in
                let server = SyncServer(store: try SQLiteStore(path: directory.appending(path: "server.sqlite").path))
                for name in ["a.sqlite", "b.sqlite"] {
                    let pool = try device(name, in: directory)
                    try fill(pool)
                    let engine = try engine(pool, server)
                    noted.append(try await seconds { try await engine.install() })
                    let taken = try await seconds { _ = try await engine.syncNow() }
                    if name == "a.sqlite" { first.append(taken) } else { second.append(taken) }
                }
            }
        }
        report("note rows that were there before", rows, median(noted))
        report("push them, the first device", rows, median(first))
        report("hold them against the server's, the next one", rows, median(second))
    }

    private func upsertInPages(_ pool: DatabasePool) throws {
        let sql = Self.insert + " ON CONFLICT (id) DO UPDATE SET title = excluded.title, note = excluded.note"
        for page in stride(from: 0, to: rows, by: 1000) {
            try pool.write { db in
                let statement = try db.cachedStatement(sql: sql)
                for index in page..<min(page + 1000, rows) { try statement.execute(arguments: Self.arguments(index)) }
            }
        }
    }

    // MARK: Whether cost follows the changes alone

    func curve() async throws {
        print("\nA delta of 20 records, by the size of the data:")
        for size in [1000, 10_000, 100_000] where size <= rows {
            try await inDirectory { directory in
                let server = SyncServer(store: try SQLiteStore(path: directory.appending(path: "server.sqlite").path))
                let pools = [try device("a.sqlite", in: directory), try device("b.sqlite", in: directory)]
                let engines = try pools.map { try engine($0, server) }
                try await engines[0].install()
                try Bench(rows: size).fill(pools[0])
                for engine in engines { _ = try await engine.syncNow() }
                var times: [Double] = []
                for round in 0..<5 {
                    try await pools[0].write { db in
                        try db.execute(
                            sql: "UPDATE task SET title = ? WHERE rowid % ? = 0",
                            arguments: ["round \(round)", size / 20])
                    }
                    times.append(
                        try await seconds {
                            _ = try await engines[0].syncNow()
                            _ = try await engines[1].syncNow()
                        })
                }
                report("  up and down, among \(size)", 20, median(times))
            }
        }
    }
}
