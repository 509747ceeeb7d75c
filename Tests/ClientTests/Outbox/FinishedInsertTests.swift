import GRDB
import Testing
import TidemarkServer
import TidemarkWire

@testable import Tidemark

@Suite("Inserts that the server took stand in their rows alone")
struct FinishedInsertTests {
    private static let eager = {
        var configuration = SyncConfiguration()
        configuration.packedTogether = 1
        return configuration
    }()

    private func sync(_ device: Device) async throws { try await device.engine(Self.eager).syncNow() }

    private func insert(_ count: Int, _ device: Device) async throws {
        try await device.sql(
            """
            WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < \(count))
            INSERT INTO note(id, title, rank) SELECT 'n' || i, 'title ' || i, i FROM n
            """)
    }

    @Test("they leave the outbox when their scope is up to date, where there are enough of them")
    func packed() async throws {
        let server = try RestorableServer()
        let device = try await server.device("a")
        try await insert(100, device)
        try await device.sync()
        #expect(try await device.count("tidemark_operation") == 0)
        #expect(try await device.count("tidemark_finished") == 100)
        #expect(try await device.count("tidemark_finished_run") == 1)
        try await device.sql("INSERT INTO note(id, title) VALUES ('late', 'one')")
        try await device.sync()
        #expect(try await device.count("tidemark_operation") == 1)
    }

    @Test("a server that has lost everything gets all of them back as they were", arguments: [true, false])
    func lost(isGone: Bool) async throws {
        let server = try RestorableServer()
        let (a, b) = (try await server.device("a"), try await server.device("b"))
        try await server.backUp()
        try await insert(80, a)
        try await sync(a)
        try await sync(b)
        if isGone { try await server.lose() } else { try await server.restore() }
        #expect(try await a.engine().syncNow().pushed == 80)
        try await sync(b)
        #expect(try await server.contents().allSatisfy { $0.count == 80 })
        #expect(try await server.leftovers() == 0)
    }

    @Test("edits and deletes of such rows are replayed behind the inserts, which say what they said")
    func edited() async throws {
        let server = try RestorableServer()
        let (a, b) = (try await server.device("a"), try await server.device("b"))
        try await server.backUp()
        try await insert(70, a)
        try await sync(a)
        try await sync(b)
        try await a.sql("UPDATE note SET title = 'mine' WHERE id = 'n1'; DELETE FROM note WHERE id = 'n2'")
        try await b.sql("UPDATE note SET body = 'theirs' WHERE id IN ('n1', 'n3'); DELETE FROM note WHERE id = 'n4'")
        for device in [a, b, a] { try await sync(device) }
        let members = "SELECT CAST(members AS TEXT) FROM tidemark_operation WHERE is_insert ORDER BY record"
        let filled = try await a.rows(members)
        #expect(filled.count == 4)
        for (index, text) in filled.enumerated() { #expect(text.contains("title \(index + 1)")) }
        #expect(filled.allSatisfy { !$0.contains("theirs") })
        let before = try await a.rows("SELECT * FROM note ORDER BY id")
        try await server.restore()
        for device in [a, b, a, b] { try await sync(device) }
        #expect(try await a.rows("SELECT * FROM note ORDER BY id") == before)
        #expect(try await server.contents().allSatisfy { $0 == contents(of: before) })
        #expect(try await server.leftovers() == 0)
    }

    private func contents(of rows: [String]) -> [String] { rows.map { "\"n\"|" + $0 } }

    @Test("they are dropped when their time is over, and with their scope")
    func dropped() async throws {
        let server = try RestorableServer()
        let device = try await server.device("a")
        try await insert(64, device)
        try await sync(device)
        try await device.sql("UPDATE tidemark_finished_run SET finished_at = 1")
        try await sync(device)
        #expect(try await device.count("tidemark_finished") == 0)
        #expect(try await device.count("tidemark_finished_run") == 0)
    }

    @Test("a column that came since is no part of what is replayed")
    func widened() async throws {
        let server = try RestorableServer()
        let device = try await server.device("a")
        try await insert(64, device)
        try await sync(device)
        try await device.sql("ALTER TABLE note ADD COLUMN extra TEXT DEFAULT 'none'")
        try await sync(device)
        try await device.sql("UPDATE note SET rank = 0 WHERE id = 'n1'")
        try await sync(device)
        let text = try await device.rows("SELECT CAST(members AS TEXT) FROM tidemark_operation WHERE is_insert")
        #expect(text.count == 1)
        #expect(text.allSatisfy { !$0.contains("extra") })
    }
}
