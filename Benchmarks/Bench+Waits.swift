import Foundation
import GRDB
import Synchronization
import Tidemark
import TidemarkSQLite
import TidemarkServer
import TidemarkTesting

extension Bench {
    // MARK: What the app waits for while rows arrive (A11)

    /// The longest of the app's own reads and writes while all rows arrive: on a device that is empty, on one that is
    /// filled anew beside the rows that it has, and as a delta in pages.
    func waits() async throws {
        print("\nThe app's own reads and writes while \(rows) rows arrive, longest wait:")
        try await inDirectory { directory in
            let server = SyncServer(store: try SQLiteStore(path: directory.appending(path: "server.sqlite").path))
            let first = try device("a.sqlite", in: directory)
            let sender = try engine(first, server)
            try await sender.syncNow()
            let second = try device("b.sqlite", in: directory)
            let receiver = try engine(second, server)
            try await receiver.syncNow()
            try fill(first)
            _ = try await sender.syncNow()
            try await waits("a delta", second) { _ = try await receiver.syncNow() }
            let third = try device("c.sqlite", in: directory)
            try await waits("the first fill", third) { _ = try await engine(third, server).syncNow() }
            // A device without a checkpoint is filled anew, beside the rows that it has.
            try await second.write { db in
                try db.execute(sql: "UPDATE tidemark_scope SET checkpoint = NULL, complete = NULL")
            }
            try await waits("a fill beside the rows that are there", second) {
                _ = try await engine(second, server).syncNow()
            }
        }
    }

    private func waits(_ name: String, _ pool: DatabasePool, _ work: () async throws -> Void) async throws {
        try await pool.write { db in
            try db.execute(sql: "CREATE TABLE IF NOT EXISTS draft (id TEXT PRIMARY KEY, title TEXT)")
        }
        let isOver = Ending()
        async let reads = Self.longest(until: isOver) { try await Self.read(pool) }
        async let writes = Self.longest(until: isOver) { try await Self.write(pool) }
        let all = try await seconds(work)
        isOver.raise()
        let read = try await reads
        let write = try await writes
        print(
            "  " + name.padding(toLength: 42, withPad: " ", startingAt: 0), String(format: "%8.3f s in all;", all),
            String(format: "read %.3f s, write %.3f s", read, write))
    }

    private static func read(_ pool: DatabasePool) async throws {
        let rows = try await pool.read { db in
            try Row.fetchAll(db, sql: "SELECT * FROM task ORDER BY id DESC LIMIT 20").count
        }
        precondition(rows <= 20)
    }

    /// Writes to a table that is not synced: one that is would have something to send whenever the sync is about to
    /// end, so that the sync would go on for as long as the writes do.
    private static func write(_ pool: DatabasePool) async throws {
        let title = UUID().uuidString
        try await pool.write { db in
            try db.execute(sql: "INSERT OR REPLACE INTO draft (id, title) VALUES ('own', ?)", arguments: [title])
        }
    }

    private static func longest(until isOver: Ending, _ access: () async throws -> Void) async throws -> Double {
        var longest = 0.0
        while !isOver.isRaised {
            longest = max(longest, try await seconds(access))
            try await Task.sleep(for: .milliseconds(2))
        }
        return longest
    }

    // MARK: What changed fields save (A9)

    /// One field of every row is edited; the bytes and seconds in which another device hears of it, by how wide rows
    /// are, with whole rows and with changed fields.
    func fields() async throws {
        print("\nOne field of \(rows / 10) rows is edited elsewhere:")
        for width in [100, 300, 1000, 4000] {
            for isPartial in [false, true] {
                try await inDirectory { directory in
                    let store = try SQLiteStore(path: directory.appending(path: "server.sqlite").path)
                    let server = SyncServer(store: store)
                    let pools = [try device("a.sqlite", in: directory), try device("b.sqlite", in: directory)]
                    let wire = WholeRows(InProcessTransport(to: server) { _ in .readWrite(as: "ada") }, isPartial)
                    let engines = try pools.map { pool in
                        try SyncEngine(for: pool, tables: [.table("task")], scopes: ["s"], transport: wire)
                    }
                    try await engines[0].install()
                    try await pools[0].write { db in
                        let statement = try db.makeStatement(
                            sql: "INSERT INTO task (id, title, note) VALUES (?, 't', ?)")
                        for index in 0..<rows / 10 {
                            try statement.execute(arguments: ["t\(index)", String(repeating: "n", count: width)])
                        }
                    }
                    for engine in engines { _ = try await engine.syncNow() }
                    try await pools[0].write { db in try db.execute(sql: "UPDATE task SET done = 1") }
                    _ = try await engines[0].syncNow()
                    var bytes = 0
                    let time = try await seconds { bytes = try await engines[1].syncNow().bytesReceived }
                    report("  rows of \(width) bytes, \(isPartial ? "changed fields" : "whole rows")", rows / 10, time)
                    print("    \(bytes / (rows / 10)) bytes a row")
                }
            }
        }
    }
}

/// Whether what is measured has ended.
private final class Ending: Sendable {
    private let state = Mutex(false)

    var isRaised: Bool { state.withLock { $0 } }

    func raise() { state.withLock { $0 = true } }
}

/// A wire over which a device may not ask for changed fields.
private struct WholeRows: Transport {
    let inner: InProcessTransport
    let isPartial: Bool

    init(_ inner: InProcessTransport, _ isPartial: Bool) { (self.inner, self.isPartial) = (inner, isPartial) }

    func send(_ request: TransportRequest) async throws -> TransportResponse {
        guard !isPartial else { return try await inner.send(request) }
        var request = request
        let body = String(decoding: request.body, as: UTF8.self)
        request.body = Array(body.replacing(",\"partial\":true", with: "").utf8)
        return try await inner.send(request)
    }
}
