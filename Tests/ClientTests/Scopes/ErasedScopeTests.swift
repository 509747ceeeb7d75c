import Foundation
import Testing
import TidemarkTesting
import TidemarkWire

@testable import Tidemark
@testable import TidemarkServer

@Suite("A scope that was erased on the server")
struct ErasedScopeTests {
    @Test("an erased scope takes its rows, orphans what was not sent, and revives nothing")
    func scope() async throws {
        let world = try MultiScopeWorld()
        let device = try await world.device("d", scopes: ["w:a", "w:b"])
        try await device.sql("INSERT INTO item (id, w, title) VALUES ('i', 'a', 'x'), ('j', 'a', 'x'), ('o', 'b', 'x')")
        try await device.sync()
        try await device.sql(
            "UPDATE item SET title = 'mine' WHERE id IN ('i', 'o'); INSERT INTO item (id, w) VALUES ('n', 'a')")
        let erasure = try await world.server.erase(.scope("w:a"))
        #expect(erasure.changes == 2 && erasure.devices == 1)
        let engine = try device.engine()
        for _ in 0..<3 {
            let error = await #expect(throws: SyncError.self) { try await engine.syncNow() }
            #expect(error?.code == .scopeErased && error?.scope == "w:a" && error?.recovery == .needsApp)
            #expect(error?.hint == ProblemCode.scopeErased.hint)
            #expect(try await device.items() == ["o b mine"])
            #expect(
                try await engine.orphanedEdits().map { "\($0.kind) \($0.record)" }.sorted() == ["insert n", "update i"])
        }
        let status = try await engine.status()
        #expect(status.scopes["w:a"]?.accessLost != nil && status.scopes["w:b"]?.accessLost == nil)
        #expect(status.lastError?.code == .scopeErased)
        #expect(try await world.held("w:b")["o"]?["title"] == "mine")
        for edit in try await engine.orphanedEdits() { try await engine.discard(edit) }
        #expect(try await device.isConfirmed())
    }

    @Test("a 403 of the server's with a code that is not known takes nothing, and is asked again")
    func unknownCode() async throws {
        let world = try MultiScopeWorld()
        let device = try await world.device("d", scopes: ["w:a"])
        try await device.sql("INSERT INTO item (id, w, title) VALUES ('i', 'a', 'x')")
        try await device.sync()
        try await device.sql("UPDATE item SET title = 'mine' WHERE id = 'i'")
        await device.wire.next { _, _ in
            TransportResponse(
                status: 403, headers: [ProtocolVersion.header: "1", "Content-Type": Problem.contentType],
                body: Array(#"{"code":"of_a_later_server","detail":"d","status":403}"#.utf8))
        }
        let error = await #expect(throws: SyncError.self) { try await device.sync() }
        #expect(error?.recovery == .wait)
        #expect(try await device.items() == ["i a mine"])
        try await device.sync()
        #expect(try await world.held("w:a")["i"]?["title"] == "mine")
    }

    private static let schema =
        RestorableServer.schema + "CREATE TABLE audit (id TEXT PRIMARY KEY, what TEXT);"

    @Test("a device whose user was erased comes back as a new one: no edit is lost, and none is done twice")
    func returning() async throws {
        let world = try RestorableServer(entities: [.state("note"), .events("audit"), .state("tag", ids: .server)])
        let device = try await world.device(
            "a", schema: Self.schema, synced: [.table("note"), .table("tag"), .table("audit")])
        try await device.sql(
            "INSERT INTO note VALUES ('answered', 'x', NULL, 1); INSERT INTO audit VALUES ('e1', 'x')")
        try await device.sync()
        try await device.sql(
            """
            UPDATE note SET rank = 2 WHERE id = 'answered'; INSERT INTO note VALUES ('unheard', 'x', NULL, 1);
            INSERT INTO audit VALUES ('e2', 'x'); INSERT INTO tag VALUES (\(number(1)), 't')
            """)
        await device.wire.loseAnswer()
        _ = try? await device.sync()
        try await world.server.commit(to: "w:1") { $0.upsert("note", id: "answered", ["title": "theirs"]) }
        try await device.sql(
            """
            INSERT INTO note VALUES ('unsent', 'x', NULL, 1); UPDATE note SET body = 'mine' WHERE id = 'answered';
            INSERT INTO audit VALUES ('e3', 'x')
            """)
        let erasure = try await world.server.erase(.principal("ada"))
        #expect(erasure.devices == 1 && erasure.lanes > 0 && erasure.verdicts > 0 && erasure.assignedIDs == 1)
        #expect(erasure.changes == 0 && erasure.erasedAt == nil)
        for _ in 0..<3 { try await device.sync() }
        let expected = [#""answered theirs mine 2""#, #""unheard x - 1""#, #""unsent x - 1""#]
        let rows = "SELECT id || ' ' || title || ' ' || coalesce(body, '-') || ' ' || rank FROM note ORDER BY id"
        let fresh = try await world.device(
            "b", schema: Self.schema, synced: [.table("note"), .table("tag"), .table("audit")])
        try await fresh.sync()
        let tags = try await fresh.rows("SELECT * FROM tag")
        #expect(tags.count == 1)
        for each in [device, fresh] {
            #expect(try await each.rows(rows) == expected)
            #expect(try await each.rows("SELECT id FROM audit ORDER BY id") == [#""e1""#, #""e2""#, #""e3""#])
            #expect(try await each.rows("SELECT * FROM tag") == tags)
        }
        #expect(try await world.leftovers() == 0)
        let status = try await device.engine().status()
        #expect(status.isConfirmed && status.rejected == 0 && status.orphaned == 0)
    }
}
