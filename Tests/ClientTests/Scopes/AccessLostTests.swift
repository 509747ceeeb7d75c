import Foundation
import GRDB
import Testing
import TidemarkServer
import TidemarkTesting
import TidemarkWire

@testable import Tidemark

@Suite("Access that is lost takes exactly its rows, and replays edits once they are back (I7, I9, T10, T24, T25)")
struct AccessLostTests {
    /// A device with two rows in a and one in b, all of it known to the server.
    private func start() async throws -> (MultiScopeWorld, Device) {
        let world = try MultiScopeWorld()
        let device = try await world.device("d", scopes: ["w:a", "w:b"])
        try await device.sql(
            """
            INSERT INTO item (id, w, title) VALUES ('i', 'a', 'x'), ('j', 'a', 'x'), ('k', 'a', 'x'), ('o', 'b', 'x')
            """)
        try await device.sync()
        return (world, device)
    }

    /// Asks while the scope is not granted: that scope's error comes, the other one is in sync.
    private func syncWithout(_ scope: Scope, _ device: Device, saying what: String = "") async throws {
        let error = await #expect(throws: SyncError.self) { try await device.sync() }
        #expect(error?.code == .scopeForbidden)
        #expect(error?.scope == scope)
        #expect(what.isEmpty || error?.detail.contains(what) == true, "\(error?.detail ?? "")")
    }

    @Test("edits that were not sent are kept, the scope's rows go, and all comes back with the access")
    func lostAndRegained() async throws {
        let (world, device) = try await start()
        try await device.sql("UPDATE item SET title = 'sealed' WHERE id = 'i'")
        await device.wire.loseRequest()
        _ = try? await device.sync(["w:a"])
        try await device.sql(
            """
            UPDATE item SET note = 'mine' WHERE id = 'i'; DELETE FROM item WHERE id = 'j';
            INSERT INTO item (id, w, title) VALUES ('n', 'a', 'new'), ('p', 'b', 'new')
            """)
        await world.withdrawn.insert("w:a")
        let gone = "3 rows of the scope left this device; 3 unsent edits are orphaned, and come back with the access."
        try await syncWithout("w:a", device, saying: gone)
        #expect(try await device.items() == ["o b x", "p b new"])
        #expect(try await world.held("w:b").keys.sorted() == ["o", "p"])
        #expect(try await device.isConfirmed())
        for table in ["known_version", "cascade", "refetch"] {
            #expect(try await device.count("tidemark_\(table)") == 0)
        }
        #expect(try await device.count("tidemark_lane WHERE scope = 'w:a'") == 0)

        let engine = try device.engine()
        let edits = try await engine.orphanedEdits()
        #expect(edits.map { "\($0.kind) \($0.record)" }.sorted() == ["delete j", "insert n", "update i"])
        #expect(edits.first { $0.record == "i" }?.fields == ["title": "sealed", "note": "mine"])
        let status = try await engine.status()
        #expect(status.orphaned == 3)
        #expect(status.scopes["w:a"]?.accessLost != nil)
        #expect(status.scopes["w:b"]?.accessLost == nil)
        // Asking again takes nothing more, and others go on meanwhile.
        try await syncWithout("w:a", device)
        try await world.server.commit(to: "w:a") { $0.upsert("item", id: "i", ["rank": 1]) }
        try await world.server.commit(to: "w:a") { $0.upsert("item", id: "k", ["title": "theirs"]) }

        await world.withdrawn.remove("w:a")
        try await device.sync()
        #expect(try await device.items() == ["i a sealed", "k a theirs", "n a new", "o b x", "p b new"])
        let held = try await world.held("w:a")
        #expect(held.keys.sorted() == ["i", "k", "n"])
        #expect(held["i"]?["note"] == "mine")
        #expect(try await device.engine().orphanedEdits().isEmpty)
        #expect(try await device.engine().status().scopes["w:a"]?.accessLost == nil)
        #expect(try await device.isConfirmed())
    }

    @Test("an edit that cannot be replayed stays in the list with its reason, until the app lets go of it")
    func notReplayed() async throws {
        let (world, device) = try await start()
        try await device.sql("UPDATE item SET title = 'mine' WHERE id = 'i'; UPDATE item SET slug = 's' WHERE id = 'j'")
        await world.withdrawn.insert("w:a")
        try await syncWithout("w:a", device)
        try await world.server.commit(to: "w:a") { $0.delete("item", id: "i") }
        try await device.sql("UPDATE item SET slug = 's' WHERE id = 'o'")
        await world.withdrawn.remove("w:a")
        try await device.sync()
        #expect(try await device.items() == ["j a x", "k a x", "o b x"])
        let left = try await device.engine().orphanedEdits()
        #expect(left.map(\.record) == ["i", "j"])
        #expect(left.allSatisfy { $0.reason?.isEmpty == false })
        for edit in left { try await device.engine().discard(edit) }
        #expect(try await device.engine().orphanedEdits().isEmpty)
        #expect(try await device.isConfirmed())
    }

    @Test("a row on its way out of the lost scope arrives; one on its way in is back where it was, and moves later")
    func moves() async throws {
        let (world, device) = try await start()
        try await device.sql(
            "UPDATE item SET w = 'b', title = 'away' WHERE id = 'i'; UPDATE item SET w = 'a' WHERE id = 'o'")
        await world.withdrawn.insert("w:a")
        try await syncWithout("w:a", device)
        #expect(try await device.items() == ["i b away", "o b x"])
        _ = try? await device.sync()
        #expect(try await world.held("w:b").keys.sorted() == ["i", "o"])
        let orphaned = try await device.engine().orphanedEdits().map { "\($0.kind) \($0.record)" }
        #expect(orphaned.sorted() == ["delete i", "insert o"])
        await world.withdrawn.remove("w:a")
        for _ in 0..<2 { try await device.sync() }
        #expect(try await world.held("w:a").keys.sorted() == ["j", "k", "o"])
        #expect(try await world.held("w:b").keys.sorted() == ["i"])
        #expect(try await device.items() == ["i b away", "j a x", "k a x", "o a x"])
        #expect(try await device.isConfirmed())
    }

    @Test("losing the new scope between the halves of a move puts the row back")
    func betweenHalves() async throws {
        let (world, device) = try await start()
        try await device.sql("UPDATE item SET w = 'b' WHERE id = 'i'")
        await device.wire.loseRequest()
        _ = try? await device.sync(["w:b"])
        #expect(try await device.count("tidemark_quarantine WHERE move = 1") == 1)
        await world.withdrawn.insert("w:b")
        try await syncWithout("w:b", device)
        #expect(try await device.items() == ["i a x", "j a x", "k a x"])
        #expect(try await world.held("w:a").keys.sorted() == ["i", "j", "k"])
        #expect(try await device.isConfirmed())
        await world.withdrawn.remove("w:b")
        for _ in 0..<2 { try await device.sync() }
        #expect(try await device.items() == ["i b x", "j a x", "k a x", "o b x"])
        #expect(try await world.held("w:a").keys.sorted() == ["j", "k"])
        #expect(try await device.isConfirmed())
    }

    @Test("losing the old scope between the halves of a move keeps the delete for later")
    func departureReplayed() async throws {
        let (world, device) = try await start()
        try await device.sql("UPDATE item SET w = 'b' WHERE id = 'i'")
        try await device.sync(["w:b"])
        await world.withdrawn.insert("w:a")
        try await syncWithout("w:a", device)
        #expect(try await device.items() == ["i b x", "o b x"])
        #expect(try await device.engine().orphanedEdits().map { "\($0.kind) \($0.record)" } == ["delete i"])
    }

    private static func forbidden(_ headers: [String: String]) -> Wire.Step {
        { _, _ in
            TransportResponse(status: 403, headers: headers, body: Problem(.scopeForbidden, "d").body())
        }
    }

    @Test(
        "an answer that is not surely this server's own takes nothing, nor does a token that expired or only reads",
        arguments: 0..<5)
    func nothingLess(kind: Int) async throws {
        let directory = try TestDirectory()
        let server = try Device.server(in: directory)
        let device = try await Device(noteSchema, tables: ["note"], server: server, in: directory)
        try await device.sql("INSERT INTO note (id, title) VALUES ('n', 'x')")
        try await device.sync()
        try await device.sql("UPDATE note SET title = 'mine'")
        let ours = [ProtocolVersion.header: "1", "Content-Type": Problem.contentType]
        let step: Wire.Step =
            switch kind {
            case 0: Self.forbidden([ProtocolVersion.header: "1", "Content-Type": "text/html"])
            case 1: Self.forbidden(["Content-Type": Problem.contentType])
            case 2: { _, _ in TransportResponse(status: 403, headers: ours, body: Array("<html>".utf8)) }
            case 3:
                { _, _ in
                    TransportResponse(status: 401, headers: ours, body: Problem(.unauthenticated, "d").body())
                }
            default:
                { _, _ in
                    TransportResponse(status: 403, headers: ours, body: Problem(.scopeReadOnly, "d").body())
                }
            }
        await device.wire.next(step)
        _ = try? await device.sync()
        #expect(try await device.rows("SELECT title FROM note") == ["\"mine\""])
        #expect(try await device.count("tidemark_orphan") == 0)
        try await device.sync()
        #expect(try await device.sealed().isEmpty)
    }

    /// A device whose token only reads until the scope is removed from what is withdrawn.
    private func reader() async throws -> (Device, pen: Withdrawn) {
        let directory = try TestDirectory()
        let server = try Device.server(in: directory)
        let device = try await Device(noteSchema, tables: ["note"], server: server, in: directory)
        let pen = Withdrawn()
        await pen.insert(Device.scope)
        await device.wire.connect(
            to: InProcessTransport(to: server) { scope in
                (try? await pen.access(to: scope)) ?? .read(as: "ada")
            })
        return (device, pen)
    }

    @Test(
        "an edit that was refused because the token only read is sent by itself once it may be (I10)",
        .hangLimit)
    func writingGrantedLater() async throws {
        let (device, pen) = try await reader()
        try await device.sql("INSERT INTO note (id, title) VALUES ('n', 'x'), ('m', 'y')")
        var configuration = SyncConfiguration()
        (configuration.tick, configuration.pollInterval) = (.milliseconds(50), .milliseconds(20))
        let clock = CountingClock(longerThan: .milliseconds(20))
        let engine = try device.engine(configuration)
        let running = Dependencies.$current.withValue(clock) { Task { try await engine.run() } }
        // So many rests of the scope: the start, and its own looks at what is pending, are over.
        try await clock.wait(for: 5)
        #expect(await device.wire.bodies.contains { $0.contains("\"number\":") })
        #expect(try await device.count("tidemark_operation WHERE finished_at IS NOT NULL") == 0)
        await pen.remove(Device.scope)
        try await poll { try await device.count("tidemark_operation WHERE finished_at IS NOT NULL") == 2 }
        running.cancel()
    }

    @Test("a scope that is woken while a request is out sends refused edits again with the next one")
    func wokenWhileRefused() async throws {
        let (device, pen) = try await reader()
        try await device.sql("INSERT INTO note (id, title) VALUES ('n', 'x')")
        let engine = try device.engine()
        await device.wire.next { request, inner in try await inner.send(request) }
        await device.wire.next { request, inner in
            await pen.remove(Device.scope)
            await engine.wake()
            return try await inner.send(request)
        }
        try await engine.syncNow()
        let bodies = await device.wire.bodies
        #expect(bodies.map { $0.contains("\"number\":") } == [true, false, true], "\(bodies)")
    }

    @Test("a table whose scope is constant goes as a whole, and comes back")
    func constant() async throws {
        let directory = try TestDirectory()
        let device = try await Device(noteSchema, tables: ["note"], in: directory)
        try await device.sql("INSERT INTO note (id, title) VALUES ('n', 'x'), ('m', 'y')")
        try await device.sync()
        try await device.sql("UPDATE note SET title = 'mine' WHERE id = 'n'")
        await device.wire.next(
            Self.forbidden([ProtocolVersion.header: "1", "Content-Type": Problem.contentType]))
        _ = try? await device.sync()
        #expect(try await device.count("note") == 0)
        #expect(try await device.count("tidemark_orphan") == 1)
        try await device.sync()
        #expect(try await device.rows("SELECT id, title FROM note ORDER BY id") == ["\"m\"|\"y\"", "\"n\"|\"mine\""])
        #expect(try await device.count("tidemark_shadow_note") == 0)
    }

    @Test(
        "a scope that was never granted keeps what was made for it, and is asked for again by itself",
        .hangLimit)
    func neverHeld() async throws {
        let world = try MultiScopeWorld()
        let device = try await world.device("d", scopes: ["w:a"])
        await world.withdrawn.insert("w:a")
        try await device.sql("INSERT INTO item (id, w, title) VALUES ('i', 'a', 'x')")
        try await syncWithout("w:a", device)
        #expect(try await device.items() == ["i a x"])
        var configuration = SyncConfiguration()
        configuration.tick = .milliseconds(20)
        let engine = try SyncEngine(
            for: device.writer, tables: [.table("item", scope: MultiScopeWorld.rule)], scopes: ["w:a"],
            transport: device.wire, configuration: configuration)
        let running = Task { try await engine.run() }
        for await status in engine.statusUpdates where status.lastError?.code == .scopeForbidden { break }
        await world.withdrawn.remove("w:a")
        for await status in engine.statusUpdates where status.scopes["w:a"]?.complete == 1 { break }
        running.cancel()
        try await running.value
        #expect(try await world.held("w:a").keys.sorted() == ["i"])
    }

    @Test("a row without a key is on this device alone, and stays")
    func nameless() async throws {
        let (world, device) = try await start()
        try await device.sql("INSERT INTO item (id, w, title) VALUES (NULL, 'a', 'mine')")
        try await device.sync()
        await world.withdrawn.insert("w:a")
        try await syncWithout("w:a", device)
        #expect(try await device.rows("SELECT id, title FROM item ORDER BY id") == [#"NULL|"mine""#, #""o"|"x""#])
        await world.withdrawn.remove("w:a")
        for _ in 0..<2 { try await device.sync() }
        #expect(try await device.count("item") == 5)
    }

    @Test("following one scope more fills that one alone, old rows and all")
    func granted() async throws {
        let (world, device) = try await start()
        let other = try await world.device("e", scopes: ["w:b"])
        try await other.sync()
        let before = await other.wire.requests.count
        try await other.sync(["w:a", "w:b"])
        #expect(try await other.items() == (try await device.items()))
        let requests = await other.wire.requests.dropFirst(before)
        #expect(!requests.contains { $0.path == "/sync/snapshot" && $0.query.contains { $0.value == "w:b" } })
        #expect(requests.contains { $0.path == "/sync/snapshot" && $0.query.contains { $0.value == "w:a" } })
    }

    @Test("a scope that the app leaves goes the same way, and only once no engine follows it here")
    func leave() async throws {
        let (world, device) = try await start()
        try await device.sql("UPDATE item SET title = 'mine' WHERE id = 'i'")
        let error = await #expect(throws: SyncError.self) { try await device.engine().leave("w:a") }
        #expect(error?.code == .configurationInvalid)
        try await device.engine(scopes: ["w:b"]).leave("w:a")
        #expect(try await device.items() == ["o b x"])
        #expect(try await world.held("w:a").count == 3)
        try await device.sync(["w:b"])
        try await device.sync()
        #expect(try await device.items() == ["i a mine", "j a x", "k a x", "o b x"])
        #expect(try await world.held("w:a")["i"]?["title"] == "mine")
        #expect(try await device.isConfirmed())
    }
}
