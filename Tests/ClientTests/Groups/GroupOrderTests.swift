import Foundation
import GRDB
import Testing
import TidemarkServer
import TidemarkTesting
import TidemarkWire

@testable import Tidemark

/// Lets requests of one scope through, or not.
private actor Gate: Transport {
    private let inner: any Transport
    private var closed: Set<String> = []
    private(set) var bodies: [String] = []

    init(to inner: any Transport) { self.inner = inner }

    func close(_ scope: String) { closed.insert(scope) }
    func open() { closed = [] }

    func send(_ request: TransportRequest) async throws -> TransportResponse {
        let body = String(decoding: request.body, as: UTF8.self)
        if closed.contains(where: { body.contains("\"scope\":\"\($0)\"") }) { throw Wire.Lost() }
        if body.contains("\"number\":") { bodies.append(body) }
        return try await inner.send(request)
    }
}

private let bank = """
    CREATE TABLE transfer (
        id TEXT PRIMARY KEY, amount INTEGER, source TEXT REFERENCES account(id) ON DELETE CASCADE, memo TEXT);
    CREATE TABLE account (
        id TEXT PRIMARY KEY, balance INTEGER, note TEXT, customer TEXT REFERENCES customer(id));
    CREATE TABLE customer (id TEXT PRIMARY KEY, name TEXT);
    """

private let tables = ["transfer", "account", "customer"]

@Suite("Groups: whole in every order, and never waiting for themselves")
struct GroupOrderTests {
    private struct World {
        var here: Device
        var there: Device
        var engine: SyncEngine
        var gate: Gate
    }

    private func world(
        _ entities: [EntityDeclaration] = [], synced: [SyncedTable] = tables.map { .table($0) },
        scopes: [Scope] = [Device.scope]
    ) async throws -> World {
        let directory = try TestDirectory()
        var limits = Limits()
        limits.recordBytes = 300
        let server = SyncServer(store: try Device.store(in: directory), entities: entities, limits: limits)
        var devices: [Device] = []
        for name in ["a", "b"] {
            devices.append(
                try await Device(bank, tables: tables, server: server, in: directory, name: name, synced: nil))
        }
        let gate = Gate(to: devices[0].wire)
        let engine = try SyncEngine(for: devices[0].writer, tables: synced, scopes: scopes, transport: gate)
        try await engine.syncNow()
        return World(here: devices[0], there: devices[1], engine: engine, gate: gate)
    }

    @Test("a member that waits for another scope's record does not make the others wait for it")
    func outerScope() async throws {
        let world = try await world(
            [.state("account", ids: .server), .state("customer", ids: .server)],
            synced: [
                .table("transfer", scope: .constant("w:1")), .table("account", scope: .constant("w:1")),
                .table("customer", scope: .constant("w:2")),
            ],
            scopes: ["w:1", "w:2"])
        let (here, engine) = (world.here, world.engine)
        await world.gate.close("w:2")
        try await here.sql("INSERT INTO customer VALUES ('local-c', 'Ada')")
        try await engine.atomically { db in
            try db.execute(
                sql: """
                    INSERT INTO account VALUES ('local-a', 1, '', 'local-c');
                    INSERT INTO transfer(id, amount, source) VALUES ('t', 1, 'local-a');
                    """)
        }
        for _ in 0..<2 { _ = try? await engine.syncNow() }
        #expect(try await engine.status().blocked == 2)
        await world.gate.open()
        for _ in 0..<3 { try await engine.syncNow() }
        #expect(try await engine.status().blocked == 0)
        #expect(try await here.count("tidemark_shadow_account") + here.count("tidemark_shadow_transfer") == 0)
        let groups = await world.gate.bodies.filter { $0.contains("\"group\"") }
        #expect(groups.map { $0.components(separatedBy: "\"group\":").count } == [3])
    }

    @Test("a member that cannot be sent is listed with its group, whatever is looked at first; mended, all go")
    func unsendable() async throws {
        let world = try await world([.state("account", ids: .server)])
        let (here, engine) = (world.here, world.engine)
        try await engine.atomically { db in
            try db.execute(
                sql: """
                    INSERT INTO account VALUES ('local-a', 1, CAST(x'ff' AS TEXT), NULL);
                    INSERT INTO transfer(id, amount, source) VALUES ('t', 1, 'local-a');
                    """)
        }
        try await engine.syncNow()
        #expect(try await engine.rejectedOperations().count == 2)
        #expect(try await engine.status().blocked == 0)
        try await here.sql("UPDATE account SET note = 'mended'")
        for _ in 0..<2 { try await engine.syncNow() }
        #expect(try await engine.rejectedOperations().isEmpty)
        try await world.there.sync()
        #expect(try await world.there.count("transfer JOIN account ON account.id = source") == 1)
    }

    @Test("a member that a refused record blocks blocks all, and the list of refused edits names them")
    func held() async throws {
        let world = try await world(
            [.state("account", ids: .server)],
            synced: [
                .table("transfer", references: [.json("memo", path: "$.of", to: "account")]), .table("account"),
                .table("customer"),
            ])
        let (here, engine) = (world.here, world.engine)
        try await here.sql(
            "INSERT INTO customer VALUES ('c', '\(String(repeating: "n", count: 400))')")
        try await engine.syncNow()
        try await engine.atomically { db in
            try db.execute(
                sql: """
                    INSERT INTO account VALUES ('local-a', 1, '', NULL);
                    INSERT INTO transfer(id, amount, memo) VALUES ('t', 1, '{"of":"local-a"}');
                    """)
        }
        try await here.writer.writeWithoutTransaction { db in
            try db.execute(sql: "PRAGMA foreign_keys = OFF")
            try db.execute(sql: "UPDATE account SET customer = 'c' WHERE id = 'local-a'")
            try db.execute(sql: "PRAGMA foreign_keys = ON")
        }
        try await engine.syncNow()
        let refused = try await engine.rejectedOperations().first { $0.entity == "customer" }
        #expect(refused?.dependants.map(\.entity).sorted() == ["account", "transfer"])
        try await engine.retry(try #require(refused), changing: ["name": "Ada"])
        for _ in 0..<2 { try await engine.syncNow() }
        try await world.there.sync()
        #expect(try await world.there.count("transfer JOIN account ON account.id = memo->>'$.of'") == 1)
    }

    @Test("an ordinary edit that moves a member to another scope ends the group, and both edits travel")
    func moved() async throws {
        let spread = try MultiScopeWorld()
        let (here, there) = (try await spread.device("a"), try await spread.device("b"))
        try await here.sql("INSERT INTO item(id, w, title) VALUES ('x', 'a', 'old'), ('y', 'a', 'old')")
        for device in [here, there] { try await device.sync() }
        try await here.engine().atomically { db in try db.execute(sql: "UPDATE item SET title = 'new'") }
        try await here.sql("UPDATE item SET w = 'b' WHERE id = 'x'")
        for _ in 0..<2 { try await here.sync() }
        for _ in 0..<2 { try await there.sync() }
        #expect(try await there.items() == ["x b new", "y a new"])
        #expect(try await here.isConfirmed())
        try await here.engine().atomically { db in
            try db.execute(sql: "UPDATE item SET title = 'later' WHERE id = 'y'")
        }
    }

    @Test(
        "a group with a row that is in no scope ends, whoever's turn comes first: the row is listed, and the rest goes",
        arguments: ["w:a", "w:b"] as [Scope])
    func nowhere(first: Scope) async throws {
        let spread = try MultiScopeWorld()
        let here = try await spread.device("a")
        try await here.engine().atomically { db in
            try db.execute(sql: "INSERT INTO item(id, w, title) VALUES ('x', 'a', 'new'), ('y', NULL, 'nowhere')")
        }
        let engine = try here.engine()
        await engine.restrict(to: [first])
        try await engine.syncNow()
        for _ in 0..<2 { try await here.sync() }
        #expect(try await spread.held("w:a").keys.sorted() == ["x"])
        #expect(try await here.engine().rejectedOperations().map(\.record) == ["y"])
    }

    @Test("a group that is put off takes in the group that its records were edited in meanwhile")
    func putOff() async throws {
        let world = try await world()
        let (here, engine) = (world.here, world.engine)
        try await here.sql("INSERT INTO account VALUES ('x', 100, '', NULL), ('y', 0, '', NULL)")
        try await engine.syncNow()
        let long = String(repeating: "n", count: 400)
        try await here.sql("INSERT INTO account VALUES ('bad', 0, '\(long)', NULL)")
        try await engine.atomically { db in
            try db.execute(
                sql: """
                    UPDATE account SET balance = 99 WHERE id = 'x';
                    INSERT INTO transfer(id, amount, source) VALUES ('t', 1, 'bad');
                    """)
        }
        await here.wire.next { request, inner in
            let answer = try await inner.send(request)
            try await engine.atomically { db in
                try db.execute(
                    sql: """
                        UPDATE account SET balance = balance - 10 WHERE id = 'x';
                        UPDATE account SET balance = balance + 10 WHERE id = 'y';
                        """)
            }
            return answer
        }
        for _ in 0..<2 { try await engine.syncNow() }
        try await world.there.sync()
        #expect(try await world.there.rows("SELECT balance FROM account ORDER BY id") == ["100", "0"])
        #expect(try await here.rows("SELECT balance FROM account ORDER BY id") == ["89", "10"])
        let refused = try #require(try await engine.rejectedOperations().first)
        try await engine.retry(refused, changing: ["note": "short"])
        for _ in 0..<2 { try await engine.syncNow() }
        try await world.there.sync()
        #expect(try await world.there.rows("SELECT balance FROM account ORDER BY id") == ["0", "89", "10"])
    }

    @Test("a group waits for the records of a group that it refers to, where one of them is on its way")
    func openMember() async throws {
        let world = try await world([.state("account", ids: .server)])
        let (here, engine) = (world.here, world.engine)
        try await here.sql("INSERT INTO account VALUES ('local-y', 0, '', NULL)")
        try await engine.syncNow()
        try await here.sql("UPDATE account SET balance = 1")
        _ = try await here.seal()
        try await engine.atomically { db in
            try db.execute(sql: "INSERT INTO transfer(id, amount, source) VALUES ('t', 1, NULL)")
        }
        try await engine.atomically { db in
            try db.execute(
                sql: "UPDATE account SET balance = balance + 5; INSERT INTO account VALUES ('local-n', 0, '', NULL)")
        }
        try await here.sql("UPDATE transfer SET source = 'local-n'")
        for _ in 0..<3 { try await engine.syncNow() }
        #expect(await world.gate.bodies.dropFirst().first?.contains("\"group\"") == false)
        #expect(try await here.count("tidemark_operation WHERE state <> 'applied'") == 0)
        #expect(try await here.count("tidemark_shadow_account") + here.count("tidemark_shadow_transfer") == 0)
        try await world.there.sync()
        #expect(try await world.there.rows("SELECT balance FROM account ORDER BY balance") == ["0", "6"])
        #expect(try await engine.conflicts().isEmpty)
    }
}
