import Foundation
import GRDB
import Tidemark
import TidemarkSQLite
import TidemarkServer
import TidemarkTesting

/// What a device's file comes to, against the same rows in plain SQLite: after they were inserted and noted, and after
/// they were pushed. Pages that are free again count in the file and not in what is in use.
extension Bench {
    private static let small = "CREATE TABLE entry (id TEXT PRIMARY KEY, title TEXT, done INTEGER)"

    private func fillSmall(_ pool: DatabasePool) throws {
        try pool.write { db in
            let statement = try db.makeStatement(sql: "INSERT INTO entry VALUES (?, ?, ?)")
            for index in 0..<rows {
                let text = String(format: "t%07d lorem ipsum dolor sit amet consectetur adip", index)
                try statement.execute(arguments: [UUID.v7().uuidString, text, index % 2])
            }
        }
    }

    private func bytes(_ pool: DatabasePool) throws -> (file: Double, used: Double) {
        try pool.writeWithoutTransaction { db in
            _ = try db.checkpoint(.truncate)
            let pages = try Int.fetchOne(db, sql: "PRAGMA page_count") ?? 0
            let free = try Int.fetchOne(db, sql: "PRAGMA freelist_count") ?? 0
            return (Double(pages), Double(pages - free))
        }
    }

    private func plainPool(_ name: String, in directory: URL) throws -> DatabasePool {
        let pool = try DatabasePool(path: directory.appending(path: name).path)
        try pool.write { db in try db.execute(sql: Self.small) }
        return pool
    }

    func size() async throws {
        print("\nA device's file, against the same rows of about 90 bytes in plain SQLite:")
        try await inDirectory { directory in
            let plain = try plainPool("plain.sqlite", in: directory)
            try fillSmall(plain)
            let base = try bytes(plain).file
            let server = SyncServer(store: try SQLiteStore(path: directory.appending(path: "server.sqlite").path))
            let pool = try plainPool("synced.sqlite", in: directory)
            let engine = try SyncEngine(
                for: pool, tables: [.table("entry")], scopes: ["s"],
                transport: InProcessTransport(to: server) { _ in .readWrite(as: "ada") })
            try await engine.install()
            try fillSmall(pool)
            try tell("inserted, not sent", pool, base)
            let pushed = try await engine.syncNow()
            try tell("pushed", pool, base)
            print("  rows that came back with their push: \(pushed.received)")
        }
    }

    private func tell(_ what: String, _ pool: DatabasePool, _ base: Double) throws {
        let size = try bytes(pool)
        print(
            "  \(what):".padding(toLength: 30, withPad: " ", startingAt: 0),
            String(format: "file %.2f×, in use %.2f×", size.file / base, size.used / base))
    }
}
