import Foundation
import GRDB
import Testing
import TidemarkServer
import TidemarkTesting
import TidemarkWire

@testable import Tidemark

@Suite("A record that an answer has no room for is fetched, or comes again")
struct AnswerLimitTests {
    /// Two devices with six notes of 10 KB each, on a server that tells two of them at once.
    private func devices(_ note: EntityDeclaration = .state("note")) async throws -> (a: Device, b: Device) {
        let directory = try TestDirectory()
        var limits = Limits()
        limits.resultBytes = 25_000
        let server = SyncServer(store: try Device.store(in: directory), entities: [note], limits: limits)
        let a = try await Device(noteSchema, tables: ["note"], server: server, in: directory, name: "a")
        let b = try await Device(noteSchema, tables: ["note"], server: server, in: directory, name: "b")
        try await a.sql(
            """
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 6)
            INSERT INTO note (id, body, rank) SELECT 'n' || i, printf('%.10000c', 'x'), 0 FROM n
            """)
        try await a.sync()
        try await b.sync()
        try await a.sql("UPDATE note SET title = 'a'")
        try await a.sync()
        return (a, b)
    }

    @Test("edits that met others end in the same rows everywhere, and nothing is left to do")
    func merged() async throws {
        let (a, b) = try await devices()
        try await b.sql("UPDATE note SET rank = 1")
        try await b.sync()
        let answers = await b.wire.answers.joined()
        #expect(answers.contains(#""status":"merged""#) && answers.contains(#""status":"settled""#))
        try await a.sync()
        try await b.sync()
        for device in [a, b] {
            let rows = try await device.rows("SELECT id, title, rank, length(body) FROM note ORDER BY id")
            #expect(rows == (1...6).map { #""n\#($0)"|"a"|1|10000"# })
            #expect(try await device.count("tidemark_shadow_note") == 0)
            #expect(try await device.count("tidemark_refetch") == 0)
            #expect(try await device.sealed().isEmpty)
        }
    }

    @Test("edits whose verdicts had no room are replayed like any, should the history be lost (I11)")
    func brought() async throws {
        var limits = Limits()
        limits.resultBytes = 25_000
        let (server, a, b) = try await RestorableServer.pair(limits: limits)
        try await a.sql(
            """
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 6)
            INSERT INTO note (id, body, rank) SELECT 'n' || i, printf('%.10000c', 'x'), 0 FROM n
            """)
        for device in [a, b] { try await device.sync() }
        try await a.sql("UPDATE note SET title = 'a'")
        try await a.sync()
        try await server.backUp()
        try await b.sql("UPDATE note SET rank = 1")
        try await b.sync()
        #expect(await b.wire.answers.joined().contains(#""status":"settled""#))
        try await server.restore()
        for device in [a, b, a] { try await device.sync() }
        for device in [a, b] {
            let rows = try await device.rows("SELECT id, title, rank FROM note ORDER BY id")
            #expect(rows == (1...6).map { #""n\#($0)"|"a"|1"# })
        }
    }

    @Test("rows that move arrive, though their verdicts had no room")
    func moves() async throws {
        var limits = Limits()
        limits.resultBytes = 25_000
        let rule = EntityRule("item") { edit in
            guard !edit.isDelete, case .text(let note)? = edit.mine["note"] else { return .accept }
            return .set(["note": .text(note + "+")])
        }
        let spread = try MultiScopeWorld(rules: [rule], limits: limits)
        let device = try await spread.device("a")
        try await device.sql(
            """
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 6)
            INSERT INTO item (id, w, title, note) SELECT 'i' || i, 'a', printf('%.10000c', 'x'), 'n' FROM n
            """)
        try await device.sync()
        try await device.sql("UPDATE item SET w = 'b'")
        for _ in 0..<3 { try await device.sync() }
        let answers = await device.wire.answers.filter { $0.contains(#""scope":"w:b""#) }
        #expect(answers.joined().contains(#""status":"settled""#))
        #expect(try await spread.held("w:b").values.allSatisfy { $0["note"] == "n++" })
        #expect(try await spread.held("w:b").count == 6)
        #expect(try await spread.held("w:a").isEmpty)
        #expect(try await device.count("item WHERE w = 'b' AND note = 'n++'") == 6)
        #expect(try await device.isConfirmed())
    }

    @Test("conflicts that could not be told at once are told one after the other, and no edit is lost")
    func conflicts() async throws {
        let (_, b) = try await devices(.state("note", conflict: .manual))
        try await b.sql("UPDATE note SET title = 'b'")
        for _ in 0..<4 { try await b.sync() }
        let conflicts = try await b.engine().conflicts()
        #expect(Set(conflicts.map(\.record)) == Set((1...6).map { "n\($0)" }))
        #expect(conflicts.allSatisfy { $0.isOpen && !$0.isDeletedElsewhere && $0.fields[0].theirs == "a" })
    }
}

@Suite("A record whose first answer was lost with the store's history")
struct LostInsertTests {
    @Test("gets an id, not its temporary one, and other devices see only that")
    func unanswered() async throws {
        let server = try RestorableServer(entities: [.state("note", ids: .server)])
        let synced: [SyncedTable] = [.table("note", ids: .server), .table("tag")]
        let (a, b) = (
            try await server.device("a", synced: synced), try await server.device("b", synced: synced)
        )
        try await a.sql("INSERT INTO tag VALUES (1, 'old')")
        try await a.sync()
        try await server.backUp()
        try await a.sql("INSERT INTO tag VALUES (2, 'answered')")
        try await a.sync()
        try await a.sql("INSERT INTO note (id, title) VALUES ('local-0123456789abcdef', 'unanswered')")
        await a.wire.loseAnswer()
        await #expect(throws: SyncError.self) { try await a.sync() }
        try await server.restore()
        try await a.sync()
        try await b.sync()
        let rows = try await a.rows("SELECT id, title FROM note")
        #expect(rows.count == 1 && rows.allSatisfy { !$0.contains("local-") && $0.contains("unanswered") }, "\(rows)")
        #expect(try await b.rows("SELECT id, title FROM note") == rows)
        for device in [a, b] { #expect(try await device.sealed().isEmpty) }
    }
}
