import Foundation
import GRDB
import Testing
import TidemarkServer
import TidemarkTesting
import TidemarkWire

@testable import Tidemark

@Suite("A record that a screen needs is held: here at once, in sync, and gone when it is released (D4)")
struct RecordHoldTests {
    /// A device that follows w:a, and another one's rows in w:b: ten items and a part of the first.
    private func start(limits: Limits = Limits()) async throws -> (world: MultiScopeWorld, device: Device) {
        let world = try MultiScopeWorld(limits: limits)
        try await world.server.commit(to: "w:b") { changes in
            for number in 0..<10 { changes.upsert("item", id: RecordID("i\(number)")!, ["w": "b", "title": "t"]) }
            changes.upsert("part", id: "p", ["w": "b", "item": "i0"])
        }
        let device = try await world.device("d", scopes: ["w:a"])
        try await device.sql("INSERT INTO item (id, w, title) VALUES ('own', 'a', 'x')")
        try await device.sync()
        return (world, device)
    }

    /// Waits for what happens in a task of the engine's own: whatever does tells the status.
    private func eventually(_ engine: SyncEngine, _ isSo: () async throws -> Bool) async throws {
        for await _ in engine.statusUpdates where try await isSo() { return }
        try Task.checkCancellation()
    }

    private func isGone(_ device: Device) async throws -> Bool {
        for table in ["part", "tidemark_scope WHERE name = 'w:b'", "tidemark_manifest WHERE scope = 'w:b'"]
        where try await device.count(table) > 0 { return false }
        return try await device.items() == ["own a x"]
    }

    @Test("it comes by name with what it refers to, its scope behind it, edits go both ways, and all of it goes")
    func whole() async throws {
        let (world, device) = try await start()
        let engine = try device.engine()
        try await engine.syncNow()
        let before = await device.wire.requests.count
        let hold = try await engine.hold("part", id: "p", in: "w:b")
        #expect(hold.scope == "w:b")
        let asked = await device.wire.requests.dropFirst(before)
        #expect(asked.map(\.path) == ["/sync/records/part"])
        #expect(try await device.items() == ["i0 b t", "own a x"])
        #expect(try await device.count("part") == 1)

        try await engine.syncNow()
        #expect(try await device.count("item") == 11)
        try await world.server.commit(to: "w:b") { $0.upsert("item", id: "i0", ["title": "theirs"]) }
        try await device.sql("UPDATE item SET note = 'mine' WHERE id = 'i1'")
        try await engine.syncNow()
        #expect(try await device.items().first == "i0 b theirs")
        #expect(try await world.held("w:b")["i1"]?["note"] == "mine")
        #expect(try await engine.status().scopes.keys.sorted { $0.name < $1.name } == ["w:a", "w:b"])

        await hold.release()
        #expect(try await isGone(device))
        #expect(try await engine.status().scopes.count == 1)
        #expect(try await world.held("w:b").count == 10)
        try await engine.syncNow()
        #expect(try await isGone(device))
    }

    @Test("only the keys that are named are followed, and a record that nobody has is no error")
    func named() async throws {
        let (world, device) = try await start()
        defer { withExtendedLifetime(world) {} }
        let engine = try device.engine()
        let plain = try await engine.hold("PART", id: "p", in: "w:b", following: [])
        #expect(try await device.count("part") == 1)
        #expect(try await device.count("item") == 1)
        let named = try await engine.hold("part", id: "p", in: "w:b", following: ["ITEM"])
        #expect(try await device.count("item") == 2)
        let absent = try await engine.hold("part", id: "nobody", in: "w:b")
        #expect(try await device.count("part") == 1)
        for hold in [plain, named] { await hold.release() }
        #expect(try await device.count("item") == 2)
        await absent.release()
        await absent.release()
        #expect(try await isGone(device))
    }

    @Test("edits that are not sent stay, with all of the scope, until the server has them", .hangLimit)
    func unsent() async throws {
        let (world, device) = try await start()
        let engine = try device.engine()
        let hold = try await engine.hold("item", id: "i0", in: "w:b")
        try await engine.syncNow()
        try await device.sql("UPDATE item SET note = 'mine' WHERE id = 'i0'; DELETE FROM item WHERE id = 'i1'")
        await hold.release()
        #expect(try await device.count("item") == 10)
        // Sealed, and its answer lost: still without a verdict.
        await device.wire.loseAnswer()
        await device.wire.loseAnswer()
        await #expect(throws: SyncError.self) { try await engine.syncNow() }
        #expect(try await device.count("item") == 10)
        try await engine.syncNow()
        try await eventually(engine) { try await isGone(device) }
        #expect(try await world.held("w:b")["i0"]?["note"] == "mine")
        #expect(try await world.held("w:b")["i1"] == nil)
        #expect(try await engine.orphanedEdits().isEmpty)
    }

    @Test("a refused edit keeps the scope until the app lets go of it", .hangLimit)
    func refused() async throws {
        let rule = EntityRule("item") { edit in
            edit.isDelete ? .accept : .reject(code: "not_here", detail: "d")
        }
        let world = try MultiScopeWorld(rules: [rule])
        let device = try await world.device("d", scopes: ["w:a"])
        let engine = try device.engine()
        let hold = try await engine.hold("item", id: "i0", in: "w:b")
        try await device.sql("INSERT INTO item (id, w, title) VALUES ('n', 'b', 'no')")
        try await engine.syncNow()
        let rejected = try #require(try await engine.rejectedOperations().first)
        await hold.release()
        try await engine.syncNow()
        #expect(try await engine.rejectedOperations() == [rejected])
        #expect(try await device.count("tidemark_scope WHERE name = 'w:b'") == 1)
        try await engine.discard(rejected)
        try await engine.syncNow()
        try await eventually(engine) { try await device.count("tidemark_scope WHERE name = 'w:b'") == 0 }
    }

    @Test("in a scope that the engine follows it only comes sooner")
    func followed() async throws {
        let (world, device) = try await start()
        defer { withExtendedLifetime(world) {} }
        let engine = try device.engine(scopes: ["w:a", "w:b"])
        let hold = try await engine.hold("item", id: "i3", in: "w:b")
        #expect(try await device.items() == ["i3 b t", "own a x"])
        try await engine.syncNow()
        await hold.release()
        try await engine.syncNow()
        #expect(try await device.count("item") == 11)
    }

    @Test("a scope that is being filled is filled first")
    func filling() async throws {
        var limits = Limits()
        limits.pageBytes = 200
        let (world, device) = try await start(limits: limits)
        let engine = try device.engine()
        let first = try await engine.hold("item", id: "i0", in: "w:b")
        await device.wire.nextPage { request, inner in try await inner.send(request) }
        await device.wire.nextPage { _, _ in throw Wire.Lost() }
        await #expect(throws: SyncError.self) { try await engine.syncNow() }
        try await world.server.commit(to: "w:b") { $0.upsert("item", id: "late", ["w": "b", "title": "t"]) }
        let second = try await engine.hold("item", id: "late", in: "w:b")
        #expect(try await device.items().contains("late b t"))
        #expect(try await device.count("item") == 12)
        for hold in [first, second] { await hold.release() }
        #expect(try await isGone(device))
    }

    @Test("a hold of a process that has ended goes with the next engine, and its edits first", .hangLimit)
    func forgotten() async throws {
        let (world, device) = try await start()
        var engine = try device.engine()
        let hold = try await engine.hold("item", id: "i0", in: "w:b")
        try await engine.syncNow()
        try await device.sql("UPDATE item SET note = 'mine' WHERE id = 'i0'")
        // Another engine on the file that follows the scope by itself has it for good.
        engine = try device.engine()
        try await engine.install()
        #expect(try await device.count("item") == 11)
        try await engine.syncNow()
        try await eventually(engine) { try await isGone(device) }
        #expect(try await world.held("w:b")["i0"]?["note"] == "mine")
        withExtendedLifetime(hold) {}
    }

    @Test("an engine that follows the scope by itself has it for good")
    func adopted() async throws {
        let (world, device) = try await start()
        defer { withExtendedLifetime(world) {} }
        let engine = try device.engine()
        let hold = try await engine.hold("item", id: "i0", in: "w:b")
        let other = try device.engine(scopes: ["w:a", "w:b"])
        try await other.syncNow()
        await hold.release()
        #expect(try await device.count("item") == 11)
        try await device.engine().install()
        #expect(try await device.count("item") == 11)
    }

    @Test("a row that has just been moved out is still the scope's, until the server knows", .hangLimit)
    func movedOut() async throws {
        let (world, device) = try await start()
        let engine = try device.engine()
        let hold = try await engine.hold("item", id: "i0", in: "w:b")
        try await engine.syncNow()
        try await device.sql("UPDATE item SET w = 'a' WHERE id = 'i0'; UPDATE item SET w = NULL WHERE id = 'i1'")
        await hold.release()
        #expect(try await device.count("item") == 11)
        #expect(try await engine.orphanedEdits().isEmpty)
        try await device.sql("UPDATE item SET w = 'b' WHERE id = 'i1'")
        try await engine.syncNow()
        try await eventually(engine) { try await device.count("tidemark_scope WHERE name = 'w:b'") == 0 }
        #expect(try await world.held("w:a").keys.sorted() == ["i0", "own"])
        #expect(try await world.held("w:b")["i0"] == nil)
        #expect(try await device.items() == ["i0 a t", "own a x"])
    }

    @Test("a draft of no scope keeps none here")
    func nowhere() async throws {
        let (world, device) = try await start()
        defer { withExtendedLifetime(world) {} }
        let engine = try device.engine()
        let hold = try await engine.hold("item", id: "i0", in: "w:b")
        try await device.sql("INSERT INTO item (id, title) VALUES ('draft', 'x')")
        // The held scope looks at the draft first, and finds that it cannot travel.
        _ = await engine.drivers.last?.syncNow()
        #expect(try await device.count("tidemark_operation WHERE scope = 'w:b' AND lane IS NULL") == 1)
        await hold.release()
        #expect(try await device.items() == ["draft - x", "own a x"])
        #expect(try await device.count("tidemark_scope WHERE name = 'w:b'") == 0)
    }

    @Test("a scope that was left is held like any other")
    func left() async throws {
        let (world, device) = try await start()
        defer { withExtendedLifetime(world) {} }
        try await device.sync(["w:a", "w:b"])
        let engine = try device.engine()
        try await engine.leave("w:b")
        #expect(try await isGone(device))
        let hold = try await engine.hold("item", id: "i0", in: "w:b")
        try await engine.syncNow()
        #expect(try await device.count("item") == 11)
        await hold.release()
        #expect(try await isGone(device))
    }

    @Test("a held record that another engine has taken away comes back with the next sync, and goes with the hold")
    func takenAway() async throws {
        let (world, device) = try await start()
        defer { withExtendedLifetime(world) {} }
        let engine = try device.engine()
        let hold = try await engine.hold("item", id: "i0", in: "w:b")
        try await engine.syncNow()
        try await device.engine().install()
        #expect(try await isGone(device))
        try await engine.syncNow()
        #expect(try await device.count("item") == 11)
        await hold.release()
        #expect(try await isGone(device))
    }

    @Test("without the server nothing is held")
    func failing() async throws {
        let (world, device) = try await start()
        let engine = try device.engine()
        await device.wire.nextRecords { _, _ in throw Wire.Lost() }
        var error = await #expect(throws: SyncError.self) { try await engine.hold("item", id: "i0", in: "w:b") }
        #expect(error?.code == .networkUnavailable)
        #expect(try await isGone(device))
        await world.withdrawn.insert("w:b")
        error = await #expect(throws: SyncError.self) { try await engine.hold("item", id: "i0", in: "w:b") }
        #expect(error?.code == .scopeForbidden)
        #expect(try await isGone(device))
        error = await #expect(throws: SyncError.self) { try await engine.hold("item", id: "i0", in: "user:1") }
        #expect(error?.code == .configurationInvalid)
        error = await #expect(throws: SyncError.self) { try await engine.hold("nothing", id: "i0", in: "w:b") }
        #expect(error?.code == .tableUnsupported)
        try await engine.syncNow()
    }

    @Test("while the engine runs the scope comes, is followed and goes by itself", .hangLimit)
    func running() async throws {
        let (world, device) = try await start()
        let engine = try device.engine()
        let running = Task { try await engine.run() }
        let hold = try await engine.hold("item", id: "i0", in: "w:b")
        try await eventually(engine) { try await device.count("item") == 11 }
        try await device.sql("UPDATE item SET note = 'mine' WHERE id = 'i0'")
        try await eventually(engine) { try await world.held("w:b")["i0"]?["note"] == "mine" }
        await hold.release()
        try await eventually(engine) { try await isGone(device) }
        // Held again, it comes again; one that nobody keeps is released by itself.
        do {
            let again = try await engine.hold("item", id: "i0", in: "w:b")
            try await eventually(engine) { try await device.count("item") == 11 }
            withExtendedLifetime(again) {}
        }
        try await eventually(engine) { try await isGone(device) }
        running.cancel()
        _ = try? await running.value
    }
}
