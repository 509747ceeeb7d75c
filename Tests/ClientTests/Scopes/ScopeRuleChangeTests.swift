import Foundation
import GRDB
import Testing
import TidemarkServer
import TidemarkTesting
import TidemarkWire

@testable import Tidemark

@Suite("Another rule in the next version of the app (T27)")
struct ScopeRuleChangeTests {
    private func engine(
        _ device: Device, _ rule: SyncedTable.ScopeRule, _ scopes: [Scope]
    ) throws -> SyncEngine {
        try SyncEngine(
            for: device.writer, tables: [.table("item", scope: rule)], scopes: scopes, transport: device.wire)
    }

    @Test("a constant that becomes a column keeps the rows that are in the same scope, edits and all")
    func constantToColumn() async throws {
        let world = try MultiScopeWorld()
        let device = try await world.device("d", scopes: ["w:a"])
        try await engine(device, .constant("w:a"), ["w:a"]).syncNow()
        try await device.sql("INSERT INTO item (id, w, title) VALUES ('i', 'a', 'x'), ('j', 'a', 'x')")
        try await engine(device, .constant("w:a"), ["w:a"]).syncNow()
        try await device.sql(
            "UPDATE item SET title = 'mine' WHERE id = 'i'; INSERT INTO item (id, w) VALUES ('n', 'b')")
        try await device.sync(["w:a", "w:b"])
        #expect(try await world.held("w:a").keys.sorted() == ["i", "j"])
        #expect(try await world.held("w:a")["i"]?["title"] == "mine")
        // A row that the new rule puts elsewhere was meant for those who see w:a: it goes to nobody else by itself.
        #expect(try await world.held("w:b").isEmpty)
        let edits = try await device.engine().orphanedEdits()
        #expect(edits.map(\.record) == ["n"])
        #expect(edits.allSatisfy { $0.reason?.isEmpty == false })
        #expect(try await device.items() == ["i a mine", "j a x"])
        #expect(try await device.isConfirmed())
    }

    @Test("an edited row that is quarantined when the rule changes stays, edit and all, and is no delete")
    func quarantined() async throws {
        let world = try MultiScopeWorld()
        let device = try await world.device("d", scopes: ["w:a"])
        let before = SyncedTable.ScopeRule.constant("w:a")
        try await engine(device, before, ["w:a"]).syncNow()
        try await device.sql("INSERT INTO item (id, w, title) VALUES ('j', 'a', 'x')")
        try await engine(device, before, ["w:a"]).syncNow()
        try await device.sql("UPDATE item SET title = 'mine'")
        await device.wire.loseRequest()
        _ = try? await engine(device, before, ["w:a"]).syncNow()
        // Not sealed while the title has no verdict; then another record takes the value, and comes first.
        try await device.sql("UPDATE item SET slug = 's'")
        try await world.server.commit(to: "w:a") { $0.upsert("item", id: "i", ["w": "a", "slug": "s"]) }
        let reader = try SyncEngine(
            for: device.writer, tables: [.table("item", scope: before)], scopes: ["w:a"],
            transport: InProcessTransport(to: world.server) { _ in .read(as: "ada") })
        _ = try? await reader.syncNow()
        #expect(try await device.items() == ["i a -"])
        #expect(try await device.count("tidemark_quarantine") == 1)
        for _ in 0..<2 { try await device.sync(["w:a"]) }
        let held = try await world.held("w:a")
        #expect(held.keys.sorted() == ["i", "j"])
        #expect(held["j"]?["title"] == "mine")
        #expect(held["j"]?["slug"] == "s")
        try await device.sql("UPDATE item SET slug = NULL WHERE id = 'i'")
        for _ in 0..<2 { try await device.sync(["w:a"]) }
        #expect(try await device.items() == ["i a -", "j a mine"])
        #expect(try await device.isConfirmed())
    }

    @Test("the verdict on an edit whose row went with the old rule leaves nothing behind that hides the record")
    func answeredLater() async throws {
        let world = try MultiScopeWorld()
        let device = try await world.device("d", scopes: ["w:a"])
        let before = SyncedTable.ScopeRule.constant("w:a")
        try await engine(device, before, ["w:a"]).syncNow()
        try await device.sql("INSERT INTO item (id, w, title) VALUES ('i', 'b', 'x')")
        try await engine(device, before, ["w:a"]).syncNow()
        try await device.sql("UPDATE item SET title = 'sealed'")
        await device.wire.loseRequest()
        _ = try? await engine(device, before, ["w:a"]).syncNow()
        for _ in 0..<2 { try await device.sync(["w:a", "w:b"]) }
        #expect(try await world.held("w:a")["i"]?["title"] == "sealed")
        #expect(try await device.count("tidemark_shadow_item") == 0)
        #expect(try await device.count("tidemark_operation WHERE finished_at IS NULL") == 0)
        try await world.server.commit(to: "w:a") { $0.upsert("item", id: "i", ["w": "a"]) }
        try await device.sync(["w:a", "w:b"])
        #expect(try await device.items() == ["i a sealed"])
    }

    @Test("a scope that is not followed just now gets its rows under the new rule when it is followed again")
    func followedLater() async throws {
        let world = try MultiScopeWorld()
        let device = try await world.device("d", scopes: ["w:a", "w:b"])
        try await device.sql("INSERT INTO item (id, w, title) VALUES ('i', 'a', 'x'), ('o', 'b', 'x')")
        try await device.sync()
        try await engine(device, .constant("w:a"), ["w:a"]).syncNow()
        #expect(try await device.items() == ["i a x"])
        try await device.sync(["w:a"])
        try await device.sync()
        #expect(try await device.items() == ["i a x", "o b x"])
        #expect(try await device.isConfirmed())
    }

    @Test("a group of which one edit has to wait waits whole, over tables, and none of it is sent alone")
    func group() async throws {
        let world = try MultiScopeWorld()
        let device = try await world.device("d", scopes: ["w:a"])
        func engine(_ rule: SyncedTable.ScopeRule) throws -> SyncEngine {
            try SyncEngine(
                for: device.writer, tables: [.table("item", scope: rule), .table("part", scope: .constant("w:a"))],
                scopes: ["w:a"], transport: device.wire)
        }
        let before = try engine(.constant("w:a"))
        try await before.syncNow()
        try await device.sql(
            """
            INSERT INTO item (id, w, title) VALUES ('i', 'a', 'x'), ('j', 'b', 'x'), ('k', 'a', 'x');
            INSERT INTO part VALUES ('p', 'a', 'i')
            """)
        try await before.syncNow()
        try await before.atomically { db in
            try db.execute(sql: "UPDATE item SET title = 'mine' WHERE id IN ('i', 'j')")
            try db.execute(sql: "UPDATE part SET item = 'k'")
        }
        try await device.sql("UPDATE item SET title = 'alone' WHERE id = 'k'")
        let after = try engine(MultiScopeWorld.rule)
        for _ in 0..<2 { try await after.syncNow() }
        #expect(try await world.held("w:a").mapValues { $0["title"] } == ["i": "x", "j": "x", "k": "alone"])
        #expect(try await device.items() == ["i a x", "k a alone"])
        #expect(try await device.count("part WHERE item = 'i'") == 1)
        let edits = try await after.orphanedEdits()
        #expect(edits.map(\.record).sorted() == ["i", "j", "p"])
        #expect(Set(edits.map(\.group)).count == 1)
        #expect(edits.allSatisfy { $0.reason != nil })
        #expect(try await device.count("tidemark_shadow_item") + device.count("tidemark_shadow_part") == 0)
    }

    @Test("the new rule's column may come with the same migration, also while edits wait")
    func newColumn() async throws {
        let device = try await Device(noteSchema, tables: ["note"])
        try await device.sync()
        try await device.sql("INSERT INTO note (id, title) VALUES ('n', 'x')")
        try await device.sync()
        try await device.sql("UPDATE note SET title = 'mine'; ALTER TABLE note ADD COLUMN w TEXT DEFAULT '1'")
        let engine = try SyncEngine(
            for: device.writer, tables: [.table("note", scope: .column("w", prefix: "w:"))], scopes: [Device.scope],
            transport: device.wire)
        for _ in 0..<2 { try await engine.syncNow() }
        #expect(try await device.rows("SELECT id, title, w FROM note") == [#""n"|"mine"|"1""#])
        #expect(await device.wire.bodies.contains { $0.contains(#""title":"mine""#) })
        #expect(try await device.count("tidemark_shadow_note") == 0)
    }

    @Test("another constant takes nothing along: rows of the old scope go from the device, unsent edits are kept")
    func otherConstant() async throws {
        let world = try MultiScopeWorld()
        let device = try await world.device("d", scopes: ["w:a"])
        let (before, after) = (SyncedTable.ScopeRule.constant("w:a"), SyncedTable.ScopeRule.constant("w:b"))
        try await world.server.commit(to: "w:b") { $0.upsert("item", id: "theirs", ["title": "t"]) }
        try await engine(device, before, ["w:a", "w:b"]).syncNow()
        try await device.sql("INSERT INTO item (id, title) VALUES ('i', 'x'), ('j', 'x')")
        try await engine(device, before, ["w:a", "w:b"]).syncNow()
        try await device.sql("UPDATE item SET title = 'sealed' WHERE id = 'i'")
        await device.wire.loseRequest()
        _ = try? await engine(device, before, ["w:a"]).syncNow()
        try await device.sql("UPDATE item SET title = 'not sealed' WHERE id = 'j'")
        for _ in 0..<2 { try await engine(device, after, ["w:a", "w:b"]).syncNow() }
        #expect(try await device.items() == ["theirs - t"])
        // What was sealed went where it was meant to go, and blocks nothing.
        #expect(try await world.held("w:a")["i"]?["title"] == "sealed")
        #expect(try await world.held("w:b").keys.sorted() == ["theirs"])
        #expect(try await device.isConfirmed())
        let edits = try await engine(device, after, ["w:a", "w:b"]).orphanedEdits()
        #expect(Set(edits.map(\.record)) == ["i", "j"])
        // Back to the old rule: the rows come again, and the edits are made again.
        for _ in 0..<2 { try await engine(device, before, ["w:a", "w:b"]).syncNow() }
        #expect(try await world.held("w:a")["j"]?["title"] == "not sealed")
        #expect(try await device.items() == ["i - sealed", "j - not sealed"])
    }

    @Test("operations of a scope that nobody follows any more are orphaned with the rest, and stand in nobody's way")
    func notFollowed() async throws {
        let world = try MultiScopeWorld()
        let device = try await world.device("d", scopes: ["w:a"])
        try await engine(device, .constant("w:a"), ["w:a"]).syncNow()
        try await device.sql("INSERT INTO item (id, title) VALUES ('i', 'x')")
        await device.wire.loseRequest()
        _ = try? await engine(device, .constant("w:a"), ["w:a"]).syncNow()
        #expect(try await device.count("tidemark_operation WHERE finished_at IS NULL") == 1)
        try await engine(device, .constant("w:b"), ["w:b"]).syncNow()
        #expect(try await device.isConfirmed())
        #expect(try await engine(device, .constant("w:b"), ["w:b"]).orphanedEdits().map(\.record) == ["i"])
        try await device.sql("INSERT INTO item (id, title) VALUES ('i', 'again')")
        try await engine(device, .constant("w:b"), ["w:b"]).syncNow()
        #expect(try await world.held("w:b")["i"]?["title"] == "again")
    }
}
