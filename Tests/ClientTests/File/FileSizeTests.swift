import Foundation
import GRDB
import Testing
import TidemarkServer
import TidemarkTesting

@testable import Tidemark

@Suite("The size of a device's file", .hangLimit)
struct FileSizeTests {
    /// Rows of about 90 bytes, whose keys are UUIDs in order: so many that the library's tables, and the operations of
    /// two requests, are a small part of the file.
    private static let filled = """
        CREATE TABLE entry (id TEXT PRIMARY KEY, title TEXT, done INTEGER);
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 50000)
        INSERT INTO entry
        SELECT printf('019ac2e0-0000-7000-8000-%012x', i),
          printf('t%07d lorem ipsum dolor sit amet consectetur adip', i), i % 2 FROM n;
        """

    /// The file without its WAL. Pages that are free again count.
    private func bytes(_ pool: DatabasePool) async throws -> Int {
        try await pool.writeWithoutTransaction { db in
            _ = try db.checkpoint(.truncate)
            let pages = try Int.fetchOne(db, sql: "PRAGMA page_count") ?? 0
            let size = try Int.fetchOne(db, sql: "PRAGMA page_size") ?? 0
            return pages * size
        }
    }

    @Test("A file whose rows were all pushed has at most 1.5 times the bytes that it had without Tidemark")
    func afterFirstPush() async throws {
        let directory = try TestDirectory()
        defer { withExtendedLifetime(directory) {} }
        let pool = try DatabasePool(path: directory.url.appending(path: "device.sqlite").path)
        try await pool.write { db in try db.execute(sql: Self.filled) }
        let before = try await bytes(pool)
        let server = try Device.server(in: directory)
        let engine = try SyncEngine(
            for: pool, tables: [.table("entry")], scopes: [Device.scope],
            transport: InProcessTransport(to: server) { _ in .readWrite(as: "ada") })
        try await engine.install()
        try await engine.syncNow()
        #expect(try await engine.status().pending == 0)
        let after = try await bytes(pool)
        // `make bench` measures 1.3 times, with twice as many rows.
        #expect(Double(after) <= 1.5 * Double(before), "\(before) bytes before, \(after) after")
    }
}
