import Foundation
import GRDB
import Testing
import TidemarkServer
import TidemarkTesting
import TidemarkWire

@testable import Tidemark

@Suite("Another rule in the next version of the app (T27)")
struct RuleChangeTests {
    private func engine(_ device: SpreadDevice, _ rule: SyncedTable.ScopeRule, _ scopes: [Scope]) throws -> SyncEngine {
        try SyncEngine(for: device.queue, tables: [.table("item", scope: rule)], scopes: scopes, transport: device.wire)
    }

    @Test("a constant that becomes a column keeps the rows that are in the same scope, edits and all")
    func constantToColumn() async throws {
        let world = try Spread()
        let device = try await world.device("d", scopes: ["w:a"])
        try await engine(device, .constant("w:a"), ["w:a"]).syncNow()
        try await device.sql("INSERT INTO item (id, w, title) VALUES ('i', 'a', 'x'), ('j', 'a', 'x')")
        try await engine(device, .constant("w:a"), ["w:a"]).syncNow()
        try await device.sql(
            "UPDATE item SET title = 'mine' WHERE id = 'i'; INSERT INTO item (id, w) VALUES ('n', 'b')")
        try await device.sync(["w:a", "w:b"])
        #expect(try await world.held("w:a").keys.sorted() == ["i", "j"])
        #expect(try await world.held("w:a")["i"]?["title"] == "mine")
        // A row that the new rule puts elsewhere was not sent yet: it goes there.
        #expect(try await world.held("w:b").keys.sorted() == ["n"])
        #expect(try await device.engine().setAsideEdits().isEmpty)
        #expect(try await device.items() == ["i a mine", "j a x", "n b -"])
        #expect(try await device.isSettled())
    }

    @Test("another constant takes nothing along: rows of the old scope go from the device, unsent edits are kept")
    func otherConstant() async throws {
        let world = try Spread()
        let device = try await world.device("d", scopes: ["w:a"])
        let (before, after) = (SyncedTable.ScopeRule.constant("w:a"), SyncedTable.ScopeRule.constant("w:b"))
        try await world.server.commit(to: "w:b") { $0.upsert("item", id: "theirs", ["title": "t"]) }
        try await engine(device, before, ["w:a", "w:b"]).syncNow()
        try await device.sql("INSERT INTO item (id, title) VALUES ('i', 'x'), ('j', 'x')")
        try await engine(device, before, ["w:a", "w:b"]).syncNow()
        try await device.sql("UPDATE item SET title = 'sealed' WHERE id = 'i'")
        await device.wire.next { _, _ in throw Wire.Lost() }
        _ = try? await engine(device, before, ["w:a"]).syncNow()
        try await device.sql("UPDATE item SET title = 'not sealed' WHERE id = 'j'")
        for _ in 0..<2 { try await engine(device, after, ["w:a", "w:b"]).syncNow() }
        #expect(try await device.items() == ["theirs - t"])
        // What was sealed went where it was meant to go, and blocks nothing.
        #expect(try await world.held("w:a")["i"]?["title"] == "sealed")
        #expect(try await world.held("w:b").keys.sorted() == ["theirs"])
        #expect(try await device.isSettled())
        let edits = try await engine(device, after, ["w:a", "w:b"]).setAsideEdits()
        #expect(Set(edits.map(\.record)) == ["i", "j"])
        // Back to the old rule: the rows come again, and the edits are made again.
        for _ in 0..<2 { try await engine(device, before, ["w:a", "w:b"]).syncNow() }
        #expect(try await world.held("w:a")["j"]?["title"] == "not sealed")
        #expect(try await device.items() == ["i - sealed", "j - not sealed"])
    }

    @Test("operations of a scope that nobody follows any more go aside with the rest, and stand in nobody's way")
    func notFollowed() async throws {
        let world = try Spread()
        let device = try await world.device("d", scopes: ["w:a"])
        try await engine(device, .constant("w:a"), ["w:a"]).syncNow()
        try await device.sql("INSERT INTO item (id, title) VALUES ('i', 'x')")
        await device.wire.next { _, _ in throw Wire.Lost() }
        _ = try? await engine(device, .constant("w:a"), ["w:a"]).syncNow()
        #expect(try await device.count("tidemark_operation WHERE finished_at IS NULL") == 1)
        try await engine(device, .constant("w:b"), ["w:b"]).syncNow()
        #expect(try await device.isSettled())
        #expect(try await engine(device, .constant("w:b"), ["w:b"]).setAsideEdits().map(\.record) == ["i"])
        try await device.sql("INSERT INTO item (id, title) VALUES ('i', 'again')")
        try await engine(device, .constant("w:b"), ["w:b"]).syncNow()
        #expect(try await world.held("w:b")["i"]?["title"] == "again")
    }
}
