import Foundation
import Synchronization
import Testing
import TidemarkSQLite
import TidemarkServer
import TidemarkTesting
import TidemarkWire

@testable import Tidemark

@Suite("A device that was away for longer than the server remembers: nothing is lost, nothing done twice (A14, I11)")
struct LongAbsenceTests {
    private static let day: Int64 = 86_400_000

    /// A server that keeps history for 30 days, by a clock of its own.
    private final class Server: Sendable {
        let directory: TestDirectory
        let server: SyncServer
        private let time: Time

        init() throws {
            directory = try TestDirectory()
            let store = try SQLiteStore(path: directory.url.appending(path: "server.sqlite").path)
            let time = Time()
            self.time = time
            var configuration = SyncServer.Configuration()
            configuration.retention = .seconds(30 * 86_400)
            configuration.now = { Date(milliseconds: time.now.withLock { $0 }) }
            server = SyncServer(store: store, configuration: configuration)
        }

        private final class Time: Sendable { let now = Mutex(wallClockMilliseconds()) }

        func pass(days: Int64) { time.now.withLock { $0 += days * LongAbsenceTests.day } }

        func device(_ name: String) async throws -> Device {
            try await Device(noteSchema, tables: ["note"], server: server, in: directory, name: name)
        }

        func head() async throws -> Int64 { try await server.head() }
    }

    @Test("Edits, deletes and a lost answer on both sides of the window")
    func away() async throws {
        let server = try Server()
        let (away, other) = (try await server.device("away"), try await server.device("other"))
        try await other.sql(
            """
            INSERT INTO note (id, title, rank)
            VALUES ('n1', 'a', 1), ('n2', 'a', 1), ('n3', 'a', 1), ('n4', 'a', 1), ('n5', 'a', 1)
            """)
        for device in [other, away, other, away] { try await device.sync() }

        // The server takes this one, and the device never hears of it.
        try await away.sql("UPDATE note SET title = 'sent' WHERE id = 'n1'")
        await away.wire.loseAnswer()
        await #expect(throws: SyncError.self) { try await away.sync() }
        try await away.sql(
            """
            UPDATE note SET body = 'mine' WHERE id = 'n2'; UPDATE note SET title = 'too late' WHERE id = 'n3';
            INSERT INTO note (id, title) VALUES ('n9', 'new')
            """)
        try await other.sql("DELETE FROM note WHERE id IN ('n3', 'n4'); UPDATE note SET rank = 2 WHERE id = 'n2'")
        for _ in 0..<2 { try await other.sync() }

        // Older than the window, but a device that is known has not seen it.
        server.pass(days: 40)
        try await other.sync()
        #expect(try await server.server.compact(trustingClock: true).expired == 0)
        server.pass(days: 91)
        try await other.sync()
        let compaction = try await server.server.compact(trustingClock: true)
        #expect(compaction.devices == 1 && compaction.expired == 2)

        let head = try await server.head()
        let before = await away.wire.requests.count
        try await away.sync()
        #expect(await away.wire.requests.dropFirst(before).contains { $0.path == "/sync/snapshot" })
        #expect(try await server.head() == head + 2, "the edit of n2 and the insert of n9, and nothing else")
        for device in [other, away, other] { try await device.sync() }
        let rows = [
            "\"n1\"|\"sent\"|NULL|1", "\"n2\"|\"a\"|\"mine\"|2", "\"n5\"|\"a\"|NULL|1", "\"n9\"|\"new\"|NULL|NULL",
        ]
        for device in [away, other] {
            #expect(try await device.rows("SELECT id, title, body, rank FROM note ORDER BY id") == rows)
            #expect(try await device.sealed() == [])
            #expect(try await device.count("tidemark_shadow_note") == 0)
        }
        #expect(try await server.head() == head + 2)
        // The edit of a record that is gone is told, with what it said.
        let engine = try away.engine()
        let refused = try await engine.rejectedOperations()
        #expect(refused.map(\.record) == ["n3"])
        #expect(refused.first?.fields["title"] == "too late")
    }
}
