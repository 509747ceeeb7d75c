import Foundation
import GRDB
import Testing
import TidemarkServer
import TidemarkTesting
import TidemarkWire

@testable import Tidemark

@Suite("Orphaned edits are replayed as they were meant, and take no record with them (I7, T24, T25)")
struct AccessRegainedTests {
    private static let refusal = EntityRule("item") { edit in
        edit.scope == "w:b" && !edit.isDelete ? .reject(code: "not_here", detail: "d") : .accept
    }

    /// A device with a row in a, known to the server, that follows a and b.
    private func start(_ rules: [EntityRule] = []) async throws -> (MultiScopeWorld, Device) {
        let world = try MultiScopeWorld(rules: rules)
        let device = try await world.device("d", scopes: ["w:a", "w:b"])
        try await device.sql("INSERT INTO item (id, w, title) VALUES ('i', 'a', 'x')")
        try await device.sync()
        return (world, device)
    }

    private func lose(_ scope: Scope, _ world: MultiScopeWorld, _ device: Device) async throws {
        await world.withdrawn.insert(scope)
        let error = await #expect(throws: SyncError.self) { try await device.sync([scope]) }
        #expect(error?.code == .scopeForbidden)
    }

    private func orphaned(_ device: Device) async throws -> [String] {
        try await device.engine().orphanedEdits().map { "\($0.kind) \($0.record)" }.sorted()
    }

    @Test("a move that its new scope refuses while the old one is lost leaves the row in the old one", arguments: 0..<2)
    func refusedMove(kind: Int) async throws {
        let (world, device) = try await start([Self.refusal])
        try await device.sql("UPDATE item SET w = 'b', title = 'away'")
        if kind == 1 {
            // The insert is on its way, so the row is leaving.
            await device.wire.loseRequest()
            _ = try? await device.sync(["w:b"])
            #expect(try await device.count("tidemark_quarantine WHERE move = 1") == 1)
        }
        try await lose("w:a", world, device)
        #expect(try await orphaned(device) == ["delete i"])
        try await device.sync(["w:b"])
        #expect(try await device.items() == [])
        #expect(try await device.engine().rejectedOperations().map(\.record) == ["i"])
        await world.withdrawn.remove("w:a")
        for _ in 0..<2 { try await device.sync() }
        #expect(try await world.held("w:a")["i"]?["title"] == "x")
        #expect(try await device.items() == ["i a x"])
        #expect(try await orphaned(device).isEmpty)
        #expect(try await device.isConfirmed())
    }

    @Test(
        "a move between two scopes that are both lost is made when both are there again, in either order",
        arguments: [true, false])
    func bothLost(oldFirst: Bool) async throws {
        let (world, device) = try await start()
        try await device.sql("UPDATE item SET w = 'b', title = 'away'")
        for scope in ["w:a", "w:b"] as [Scope] { try await lose(scope, world, device) }
        #expect(try await device.items() == [])
        #expect(try await orphaned(device) == ["delete i", "insert i"])
        for scope in (oldFirst ? ["w:a", "w:b"] : ["w:b", "w:a"]) as [Scope] {
            await world.withdrawn.remove(scope)
            try await device.sync([scope])
            let held = try await world.held("w:a").count + world.held("w:b").count
            #expect(held >= 1)
        }
        for _ in 0..<2 { try await device.sync() }
        #expect(try await world.held("w:a").isEmpty)
        #expect(try await world.held("w:b")["i"]?["title"] == "away")
        #expect(try await device.items() == ["i b away"])
        #expect(try await orphaned(device).isEmpty)
        #expect(try await device.isConfirmed())
    }

    @Test("a departure that is replayed is the second half of a move: children elsewhere stay")
    func departureIsMove() async throws {
        let (world, device) = try await start()
        let other = try await world.device("e", scopes: ["w:a"])
        try await device.sql("INSERT INTO part VALUES ('p', 'a', 'i')")
        for one in [device, other] { try await one.sync() }
        try await device.sql("UPDATE item SET w = 'b'")
        try await lose("w:a", world, device)
        try await device.sync(["w:b"])
        await world.withdrawn.remove("w:a")
        for _ in 0..<2 { for one in [device, other] { try await one.sync() } }
        #expect(try await world.held("w:a").isEmpty)
        #expect(try await device.items() == ["i b x"])
        for one in [device, other] { #expect(try await one.count("part") == 1) }
        #expect(await device.wire.bodies.contains { $0.contains(#""moved":true"#) })
    }

    @Test("an insert whose answer was lost, and that was deleted or moved since, does not come back with the access")
    func unanswered() async throws {
        let (world, device) = try await start()
        try await device.sql("INSERT INTO item (id, w, title) VALUES ('j', 'a', 'x'), ('k', 'a', 'x')")
        await device.wire.loseAnswer()
        _ = try? await device.sync(["w:a"])
        try await device.sql("DELETE FROM item WHERE id = 'j'; UPDATE item SET w = 'b' WHERE id = 'k'")
        try await lose("w:a", world, device)
        #expect(try await orphaned(device) == ["delete j", "delete k"])
        try await device.sync(["w:b"])
        await world.withdrawn.remove("w:a")
        for _ in 0..<2 { try await device.sync() }
        #expect(try await world.held("w:a").keys.sorted() == ["i"])
        #expect(try await world.held("w:b").keys.sorted() == ["k"])
        #expect(try await device.items() == ["i a x", "k b x"])
        #expect(try await device.isConfirmed())
    }

    private static func answer(_ code: ProblemCode) -> Wire.Step {
        { _, _ in
            TransportResponse(
                status: 403, headers: [ProtocolVersion.header: "1", "Content-Type": Problem.contentType],
                body: Problem(code, "d").body())
        }
    }

    @Test(
        "an edit under replay to a restored server is orphaned when the access goes, and comes back with it",
        arguments: [false, true])
    func replaying(afterSnapshot: Bool) async throws {
        let server = try RestorableServer()
        let a = try await server.device("a")
        try await a.sql("INSERT INTO note(id, title) VALUES ('n1', 'old'), ('n2', 'old')")
        try await a.sync()
        try await server.backUp()
        try await a.sql(
            """
            UPDATE note SET title = 'answered' WHERE id = 'n1'; DELETE FROM note WHERE id = 'n2';
            INSERT INTO note(id, title) VALUES ('m1', 'answered')
            """)
        try await a.sync()
        try await server.restore()
        await a.wire.next { request, inner in try await inner.send(request) }
        // Nothing is sent before the snapshot is in where the token only reads for a while.
        if afterSnapshot { await a.wire.next(Self.answer(.scopeReadOnly)) }
        await a.wire.next(Self.answer(.scopeForbidden))
        await #expect(throws: SyncError.self) { try await a.sync() }
        #expect(try await a.count("note") == 0)
        let edits = try await a.engine().orphanedEdits()
        #expect(edits.map { "\($0.kind) \($0.record)" }.sorted() == ["delete n2", "insert m1", "update n1"])
        #expect(edits.first { $0.record == "n1" }?.fields == ["title": "answered"])
        try await a.sync()
        for device in try await server.contents() {
            #expect(device == ["\"n\"|\"m1\"|\"answered\"|NULL|NULL", "\"n\"|\"n1\"|\"answered\"|NULL|NULL"])
        }
        #expect(try await server.leftovers() == 0)
    }

    @Test("a table that the engine does not name loses its rows too, its edits are orphaned, and all comes back")
    func unnamedTable() async throws {
        let (world, device) = try await start()
        try await device.sql("INSERT INTO part VALUES ('p', 'a', 'i'), ('q', 'b', NULL)")
        try await device.sync()
        try await device.sql("UPDATE part SET item = NULL WHERE id = 'p'; ALTER TABLE part ADD COLUMN extra TEXT")
        await world.withdrawn.insert("w:a")
        let engine = try SyncEngine(
            for: device.writer, tables: [.table("item", scope: MultiScopeWorld.rule)], scopes: ["w:a"],
            transport: device.wire)
        await #expect(throws: SyncError.self) { try await engine.syncNow() }
        #expect(try await device.count("part WHERE w = 'a'") == 0)
        #expect(try await device.count("part WHERE w = 'b'") == 1)
        #expect(try await orphaned(device) == ["update p"])
        await world.withdrawn.remove("w:a")
        try await engine.syncNow()
        #expect(try await device.count("part WHERE w = 'a'") == 0)
        for _ in 0..<2 { try await device.sync() }
        #expect(try await device.count("part WHERE id = 'p' AND item IS NULL") == 1)
        #expect(try await orphaned(device).isEmpty)
        #expect(try await device.count("tidemark_shadow_part") == 0)
    }

    @Test("rows that were kept after a delete elsewhere go with their scope, as does the list of resolved conflicts")
    func kept() async throws {
        let (world, device) = try await start()
        let table = SyncedTable.table("item", scope: MultiScopeWorld.rule, keepsDeleted: .seconds(3600))
        let engine = try SyncEngine(
            for: device.writer, tables: [table], scopes: ["w:a", "w:b"], transport: device.wire)
        try await world.server.commit(to: "w:b") { $0.upsert("item", id: "o", ["w": "b"]) }
        try await engine.syncNow()
        for (scope, id) in [("w:a", "i"), ("w:b", "o")] as [(Scope, RecordID)] {
            try await world.server.commit(to: scope) { $0.delete("item", id: id) }
        }
        try await engine.syncNow()
        #expect(try await engine.deletedRecords().count == 2)
        try await device.writer.write { db in
            for scope in ["w:a", "w:b"] as [Scope] {
                let field = Conflict.Field(name: "title", mine: "x", theirs: "y", result: "y")
                try Conflicts.add(
                    db,
                    Conflict(
                        id: 0, scope: scope, entity: "item", record: "i", rule: .lastWriteWins, fields: [field],
                        noticedAt: Date(milliseconds: 1)))
            }
        }
        await world.withdrawn.insert("w:a")
        await #expect(throws: SyncError.self) { try await engine.syncNow() }
        #expect(try await engine.deletedRecords().map(\.record) == ["o"])
        #expect(try await engine.conflicts().map(\.scope) == ["w:b"])
    }

    @Test(
        "an edit that a refused record blocks is orphaned with its scope, and is blocked by nothing any more",
        .records("block rejectedParent, orphaned", "knowledge covered, scopeLeft"))
    func held() async throws {
        let world = try MultiScopeWorld(rules: [EntityRule("item") { _ in .reject(code: "no", detail: "d") }])
        let device = try await world.device("d", scopes: ["w:a"])
        try await device.sql("INSERT INTO item (id, w) VALUES ('i', 'a'); INSERT INTO part VALUES ('p', 'a', 'i')")
        for _ in 0..<2 { try await device.sync() }
        #expect(try await device.count("tidemark_blocked") == 1)
        try await device.engine(scopes: ["w:b"]).leave("w:a")
        #expect(try await device.count("tidemark_blocked") == 0)
        #expect(try await orphaned(device) == ["insert p"])
        #expect(try await device.engine(scopes: ["w:b"]).rejectedOperations().map(\.record) == ["i"])
    }

    @Test("a group is replayed whole or not at all, and travels as one again")
    func groups() async throws {
        let (world, device) = try await start()
        try await device.engine().atomically { db in
            try db.execute(sql: "UPDATE item SET title = 'mine' WHERE id = 'i'")
            try db.execute(sql: "INSERT INTO item (id, w, title) VALUES ('n', 'a', 'mine')")
        }
        try await lose("w:a", world, device)
        let edits = try await device.engine().orphanedEdits()
        #expect(edits.map(\.record).sorted() == ["i", "n"])
        #expect(Set(edits.map(\.group)).count == 1)
        #expect(edits.allSatisfy { $0.group != nil })
        try await world.server.commit(to: "w:a") { $0.delete("item", id: "i") }
        await world.withdrawn.remove("w:a")
        try await device.sync()
        #expect(try await device.items() == [])
        #expect(try await world.held("w:a").isEmpty)
        #expect(try await device.engine().orphanedEdits().allSatisfy { $0.reason?.isEmpty == false })
        // The record is there again, so both can be done.
        try await world.server.commit(to: "w:a") { $0.upsert("item", id: "i", ["w": "a", "title": "anew"]) }
        try await device.sync()
        #expect(try await device.items() == ["i a mine", "n a mine"])
        #expect(try await world.held("w:a").count == 2)
        let body = try #require(await device.wire.bodies.last { $0.contains("\"number\"") })
        #expect(body.matches(of: /"group":/).count == 2)
        #expect(try await orphaned(device).isEmpty)
        #expect(try await device.isConfirmed())
    }

    @Test("a row that was never sent is orphaned, also where an ignored insert has blurred its mark")
    func ignoredInsert() async throws {
        let (world, device) = try await start()
        try await device.sql("INSERT INTO item (id, w, title) VALUES ('n', 'a', 'new'), ('o', 'b', 'new')")
        try await device.sql("INSERT OR IGNORE INTO item (id, w) VALUES ('n', 'a'), ('o', 'b')")
        #expect(try await device.count("tidemark_shadow_item WHERE tidemark_routing_scope = ''") == 2)
        // Nothing is sealed for a scope that no engine follows.
        try await device.engine(scopes: ["w:b"]).leave("w:a")
        #expect(try await orphaned(device) == ["insert n"])
        #expect(try await device.items() == ["o b new"])
        for _ in 0..<2 { try await device.sync() }
        #expect(try await device.items() == ["i a x", "n a new", "o b new"])
        #expect(try await world.held("w:a").keys.sorted() == ["i", "n"])
        #expect(try await device.isConfirmed())
    }

    @Test("a delete over a quarantined row is replayed too, and touches no other scope's row")
    func deleteOverQuarantined() async throws {
        let (world, device) = try await start()
        try await device.sql("DELETE FROM item WHERE id = 'i'")
        try await lose("w:a", world, device)
        try await device.sql("INSERT INTO item (id, w, title) VALUES ('i', 'b', 'other')")
        try await device.sync(["w:b"])
        await world.withdrawn.remove("w:a")
        for _ in 0..<2 { try await device.sync() }
        #expect(try await world.held("w:a").isEmpty)
        #expect(try await world.held("w:b")["i"]?["title"] == "other")
        #expect(try await device.items() == ["i b other"])
        #expect(try await device.isConfirmed())
    }
}
