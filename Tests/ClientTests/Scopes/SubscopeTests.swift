import Foundation
import GRDB
import Testing
import TidemarkServer
import TidemarkTesting
import TidemarkWire

@testable import Tidemark

@Suite("Tables in a sub-scope sync and fail apart from the rest of their scope, by its permission (A3)")
struct SubscopeTests {
    private static let entities: [EntityDeclaration] = [.state("part", subscope: "parts")]

    /// A device of a world whose parts are in a sub-scope of each scope.
    private func start(
        scopes: [Scope] = ["w:a", "w:b"], subscope: String? = "parts"
    ) async throws -> (world: MultiScopeWorld, device: Device) {
        let world = try MultiScopeWorld(entities: Self.entities)
        return (world, try await world.device("d", scopes: scopes, subscope: subscope))
    }

    private func engine(
        _ device: Device, _ scopes: [Scope] = ["w:a", "w:b"], subscope: String? = "parts",
        over wire: (any Transport)? = nil
    ) throws -> SyncEngine {
        try SyncEngine(
            for: device.writer,
            tables: [
                .table("item", scope: MultiScopeWorld.rule),
                .table("part", scope: MultiScopeWorld.rule, subscope: subscope),
            ], scopes: scopes, transport: wire ?? device.wire)
    }

    /// A wire on which one scope's requests are lost, and declarations lack what old ones lacked.
    private actor Poor: Transport {
        private let wire: Wire
        private var lost: String?
        private var forgets = false

        init(_ wire: Wire) { self.wire = wire }

        func lose(_ scope: Scope?) { lost = scope?.name }
        func forgetSubscopes() { forgets = true }

        func send(_ request: TransportRequest) async throws -> TransportResponse {
            if let lost {
                let isNamed = request.query.contains { $0.name == "scope" && $0.value == lost }
                let body = String(decoding: request.body, as: UTF8.self)
                if isNamed || body.contains("\"scope\":\"\(lost)\"") { throw Wire.Lost() }
            }
            var response = try await wire.send(request)
            if forgets, request.path == "/sync/declarations" {
                let body = String(decoding: response.body, as: UTF8.self)
                response.body = Array(body.replacing(",\"subscope\":\"parts\"", with: "").utf8)
            }
            return response
        }
    }

    /// Ids of the records that a scope holds on the server.
    private func records(_ scope: Scope, _ world: MultiScopeWorld) async throws -> [String] {
        let bytes = try await world.server.changes(in: scope, since: nil, limit: 5000, access: .read(as: "ada"))
        let answer = try JSONSerialization.jsonObject(with: Data(bytes)) as? [String: Any]
        return (answer?["changes"] as? [[String: Any]] ?? []).compactMap { $0["id"] as? String }.sorted()
    }

    private static let rows = """
        INSERT INTO item (id, w, title) VALUES ('i', 'a', 'x');
        INSERT INTO part VALUES ('p', 'a', 'i'), ('q', 'b', NULL);
        """

    @Test("each has a log and a checkpoint of its own, and one that fails leaves the other up to date")
    func apart() async throws {
        let (world, device) = try await start()
        try await device.sql(Self.rows)
        let wire = Poor(device.wire)
        let engine = try engine(device, over: wire)
        try await engine.syncNow()
        #expect(try await records("w:a", world) == ["i"])
        #expect(try await records("w:a~parts", world) == ["p"])
        #expect(try await records("w:b~parts", world) == ["q"])
        let status = try await engine.status()
        #expect(status.scopes.keys.sorted() == ["w:a", "w:a~parts", "w:b", "w:b~parts"])
        #expect(try await device.count("tidemark_scope WHERE checkpoint IS NOT NULL") == 4)

        try await world.server.commit(to: "w:a") { $0.upsert("item", id: "i", ["title": "theirs"]) }
        try await world.server.commit(to: "w:a~parts") { $0.upsert("part", id: "r", ["w": "a"]) }
        await wire.lose("w:a~parts")
        try await device.sql("UPDATE item SET note = 'mine'; UPDATE part SET item = NULL WHERE id = 'p'")
        await #expect(throws: SyncError.self) { try await engine.syncNow() }
        #expect(try await device.items() == ["i a theirs"])
        #expect(try await world.held("w:a")["i"]?["note"] == "mine")
        #expect(try await device.count("part") == 2)
        #expect(try await engine.status().scopes["w:a"]?.lastError == nil)
        #expect(try await engine.status().scopes["w:a~parts"]?.lastError != nil)
        let waiting = try await engine.status()
        #expect(waiting.pending + waiting.sent == 1)

        await wire.lose(nil)
        try await engine.syncNow()
        #expect(try await device.count("part") == 3)
        #expect(try await device.isConfirmed())
    }

    @Test("the host is asked about the scope alone, and lost access takes both, edits are orphaned, until it is back")
    func permission() async throws {
        let (world, device) = try await start()
        try await device.sql(Self.rows)
        let engine = try engine(device)
        try await engine.syncNow()
        try await device.sql("UPDATE part SET item = NULL WHERE id = 'p'; UPDATE item SET note = 'late'")
        await world.withdrawn.insert("w:a")
        await #expect(throws: SyncError.self) { try await engine.syncNow() }
        #expect(try await device.items() == [])
        #expect(try await device.count("part") == 1)
        #expect(try await engine.orphanedEdits().map(\.record).sorted() == ["i", "p"])
        #expect(try await engine.status().scopes["w:a~parts"]?.accessLost != nil)
        await world.withdrawn.remove("w:a")
        for _ in 0..<2 { try await engine.syncNow() }
        #expect(try await engine.orphanedEdits().isEmpty)
        #expect(try await world.held("w:a")["i"]?["note"] == "late")
        #expect(try await device.count("part WHERE item IS NULL") == 2)
    }

    @Test("an app and a server that put a table into different ones are told, and an old app's edits are kept")
    func mismatch() async throws {
        let (world, device) = try await start(subscope: nil)
        try await device.sql(Self.rows)
        for other in [nil, "other"] as [String?] {
            let error = await #expect(throws: SyncError.self) {
                try await engine(device, subscope: other).syncNow()
            }
            #expect(error?.code == .declarationMismatch)
            #expect(error?.description.contains("'parts'") == true)
        }
        // An app that has never heard of sub-scopes compares nothing.
        let wire = Poor(device.wire)
        await wire.forgetSubscopes()
        let old = try engine(device, subscope: nil, over: wire)
        try await old.syncNow()
        let refused = try await old.rejectedOperations()
        #expect(refused.map(\.code) == ["scope_mismatch", "scope_mismatch"])
        #expect(refused.contains { $0.detail.contains("w:a~parts") })
        #expect(try await records("w:a", world) == ["i"])
        #expect(refused.map(\.record).sorted() == ["p", "q"])
        await #expect(throws: CommitError.self) {
            try await world.server.commit(to: "w:a") { $0.upsert("part", id: "z", ["w": "a"]) }
        }
        await #expect(throws: CommitError.self) {
            try await world.server.commit(to: "w:a~parts") { $0.upsert("item", id: "z", ["w": "a"]) }
        }
    }

    @Test("names that are none, or that name a sub-scope where a scope belongs, are refused as the engine is made")
    func names() async throws {
        let (_, device) = try await start()
        func refused(_ tables: [SyncedTable], _ scopes: [Scope]) -> String? {
            do {
                _ = try SyncEngine(for: device.writer, tables: tables, scopes: scopes, transport: device.wire)
                return nil
            } catch { return (error as? SyncError)?.description }
        }
        let long = Scope(String(repeating: "w", count: 125))!
        #expect(refused([.table("part", subscope: "a b")], ["w:a"])?.contains("'a b'") == true)
        #expect(refused([.table("part", subscope: "parts")], ["w:a~parts"])?.contains("sub-scope") == true)
        #expect(refused([.table("part", scope: .constant("w:a~parts"))], ["w:a"])?.contains("w:a~parts") == true)
        #expect(refused([.table("part", subscope: "parts")], [long])?.contains("too long") == true)
        #expect(refused([.table("part", scope: .column("w", prefix: "w~"))], ["w:a"])?.contains("'w~'") == true)
        #expect(refused([.table("part", subscope: "parts")], ["w:a"]) == nil)
    }

    @Test("a column names scopes, never a sub-scope: such a row cannot travel")
    func column() async throws {
        let (world, device) = try await start()
        let engine = try engine(device)
        try await engine.syncNow()
        try await device.sql(
            "INSERT INTO item (id, w) VALUES ('i', 'a~parts'); INSERT INTO part VALUES ('p', 'a~parts', NULL)")
        try await engine.syncNow()
        #expect(try await engine.rejectedOperations().map(\.code) == ["unsendable_value", "unsendable_value"])
        #expect(try await records("w:a~parts", world) == [])
    }

    @Test("a child does not wait for a parent outside its sub-scope, and goes with one that is deleted elsewhere")
    func references() async throws {
        let (world, device) = try await start()
        let wire = Poor(device.wire)
        let engine = try engine(device, over: wire)
        try await engine.syncNow()
        await wire.lose("w:a")
        try await device.sql(
            "INSERT INTO item (id, w, title) VALUES ('i', 'a', 'x'); INSERT INTO part VALUES ('p', 'a', 'i')")
        await #expect(throws: SyncError.self) { try await engine.syncNow() }
        #expect(try await records("w:a~parts", world) == ["p"])
        #expect(try await records("w:a", world) == [])
        await wire.lose(nil)
        try await engine.syncNow()
        #expect(try await records("w:a", world) == ["i"])

        try await world.server.commit(to: "w:a") { $0.delete("item", id: "i") }
        for _ in 0..<2 { try await engine.syncNow() }
        #expect(try await device.count("part") == 0)
        #expect(try await device.isConfirmed())
    }

    @Test("a row moves from scope to scope, within its sub-scopes")
    func move() async throws {
        let (world, device) = try await start()
        try await device.sql(Self.rows)
        let engine = try engine(device)
        try await engine.syncNow()
        try await device.sql("UPDATE part SET w = 'b' WHERE id = 'p'")
        for _ in 0..<2 { try await engine.syncNow() }
        #expect(try await records("w:a~parts", world) == [])
        #expect(try await records("w:b~parts", world) == ["p", "q"])
        #expect(try await device.isConfirmed())
    }

    @Test("a record of a sub-scope is held by its scope's name; leaving a scope takes its sub-scopes along")
    func holding() async throws {
        let (world, device) = try await start(scopes: ["w:a"])
        try await world.server.commit(to: "w:b~parts") { $0.upsert("part", id: "q", ["w": "b"]) }
        try await world.server.commit(to: "w:b") { $0.upsert("item", id: "j", ["w": "b"]) }
        try await device.sql("INSERT INTO part VALUES ('p', 'a', NULL)")
        let first = try engine(device, ["w:a"])
        try await first.syncNow()
        let hold = try await first.hold("part", id: "q", in: "w:b")
        #expect(hold.scope == "w:b~parts")
        #expect(try await device.count("part") == 2)
        await #expect(throws: SyncError.self) { try await first.leave("w:b") }
        await hold.release()
        #expect(try await device.count("part") == 1)

        try await engine(device).syncNow()
        #expect(try await device.count("part") == 2)
        #expect(try await device.count("item") == 1)
        let last = try engine(device, ["w:a"])
        try await last.leave("w:b")
        #expect(try await device.count("part") == 1)
        #expect(try await device.count("item") == 0)
        #expect(try await device.count("tidemark_scope WHERE checkpoint IS NOT NULL AND name GLOB 'w:b*'") == 0)
    }

    @Test(
        "in the next version of an app a table goes into a sub-scope: what is there comes, what was not sent is told",
        .records("capture watched, unseen insert", "capture watched, unseen seed"))
    func nextVersion() async throws {
        let world = try MultiScopeWorld()
        let device = try await world.device("d", scopes: ["w:a", "w:b"])
        try await device.sql(Self.rows)
        try await engine(device, subscope: nil).syncNow()
        #expect(try await records("w:a", world) == ["i", "p"])
        try await device.sql("UPDATE part SET item = NULL WHERE id = 'p'")

        // The operator's program moves the records, and the server declares the sub-scope from then on.
        let declared = SyncServer(store: try Device.store(in: world.directory), entities: Self.entities)
        try await declared.commit(to: "w:a~parts") { $0.upsert("part", id: "p", ["w": "a", "item": "i"]) }
        try await declared.commit(to: "w:b~parts") { $0.upsert("part", id: "q", ["w": "b"]) }
        for (scope, id) in [("w:a", "p"), ("w:b", "q")] as [(Scope, RecordID)] {
            try await declared.commit(to: scope) { $0.delete("part", id: id) }
        }
        await device.wire.connect(to: InProcessTransport(to: declared) { _ in .readWrite(as: "ada") })
        let next = try engine(device)
        for _ in 0..<3 { try await next.syncNow() }
        #expect(try await device.count("part") == 2)
        #expect(try await next.orphanedEdits().isEmpty)
        #expect(try await device.count("part WHERE item IS NULL") == 2)
        #expect(try await device.count("tidemark_shadow_part") == 0)
        let late = try await declared.changes(in: "w:a~parts", since: nil, limit: 9, access: .read(as: "ada"))
        #expect(String(decoding: late, as: UTF8.self).contains(#""item":null"#))
    }

    @Test("an app that is ahead of its server keeps its rows and edits, offline too, until the server agrees")
    func ahead() async throws {
        let world = try MultiScopeWorld()
        let device = try await world.device("d", scopes: ["w:a", "w:b"])
        try await device.sql(Self.rows)
        try await engine(device, subscope: nil).syncNow()
        try await device.sql("UPDATE part SET item = NULL WHERE id = 'p'")
        let wire = Poor(device.wire)
        let offline = try engine(device, over: wire)
        try await offline.install()
        #expect(try await device.count("part") == 2)
        let error = await #expect(throws: SyncError.self) { try await engine(device).syncNow() }
        #expect(error?.code == .declarationMismatch)
        #expect(try await device.count("part") == 2)
        #expect(try await device.count("tidemark_orphan") == 0)
        #expect(try await device.count("tidemark_shadow_part WHERE tidemark_mark IS NOT NULL") == 1)
    }

    @Test("a sub-scope that the server stops to declare, or calls otherwise, takes no rows from a running engine")
    func undeclared() async throws {
        let (world, device) = try await start()
        try await device.sql(Self.rows)
        let engine = try engine(device)
        try await engine.syncNow()
        for entities in [[], [.state("part", subscope: "pieces")]] as [[EntityDeclaration]] {
            let other = SyncServer(store: try Device.store(in: world.directory), entities: entities)
            await device.wire.connect(to: InProcessTransport(to: other) { _ in .readWrite(as: "ada") })
            for _ in 0..<2 { await #expect(throws: SyncError.self) { try await engine.syncNow() } }
            #expect(try await engine.status().scopes["w:a~parts"]?.lastError?.code == .declarationMismatch)
            #expect(try await device.count("part") == 2)
        }
    }

    @Test("records that move into a sub-scope on the server take nothing along that refers to them")
    func movedParents() async throws {
        let world = try MultiScopeWorld()
        let device = try await world.device("d", scopes: ["w:a"])
        try await device.sql("INSERT INTO item (id, w) VALUES ('i', 'a'); INSERT INTO part VALUES ('p', 'a', 'i')")
        try await device.sync()
        let declared = SyncServer(
            store: try Device.store(in: world.directory), entities: [.state("item", subscope: "things")])
        try await declared.commit(to: "w:a~things") { $0.upsert("item", id: "i", ["w": "a"]) }
        try await declared.commit(to: "w:a") { $0.delete("item", id: "i") }
        // This app has never heard of sub-scopes: the item leaves it, and its part stays.
        try await device.sync()
        #expect(try await device.items() == [])
        #expect(try await device.count("part") == 1)
        #expect(try await records("w:a", world) == ["p"])
    }
}
