import Foundation
import GRDB
import Testing
import TidemarkServer
import TidemarkWire

@testable import Tidemark

private let bank = """
    CREATE TABLE account (id TEXT PRIMARY KEY, balance INTEGER NOT NULL, note TEXT);
    CREATE TABLE transfer (id TEXT PRIMARY KEY, amount INTEGER, source TEXT REFERENCES account(id) ON DELETE CASCADE);
    """

private struct Refused: Error {}

extension Device {
    fileprivate static func bank(
        _ name: String = "a", server: SyncServer, in directory: TestDirectory
    ) async throws -> Device {
        try await Device(
            ClientTests.bank, tables: ["account", "transfer"], server: server, in: directory, name: name)
    }

    fileprivate static func strict(_ directory: TestDirectory, operations: Int = 1000) throws -> SyncServer {
        var limits = Limits()
        limits.recordBytes = 300
        limits.operations = operations
        return SyncServer(store: try store(in: directory), limits: limits)
    }

    /// Moves an amount; a note that is too long for the server makes it fail there.
    fileprivate func move(_ amount: Int, _ id: String, note: String = "") async throws {
        try await engine().atomically { db in
            try db.execute(
                sql: "UPDATE account SET balance = balance - ?, note = ? WHERE id = 'x'", arguments: [amount, note])
            try db.execute(sql: "UPDATE account SET balance = balance + ? WHERE id = 'y'", arguments: [amount])
            try db.execute(sql: "INSERT INTO transfer VALUES (?, ?, 'x')", arguments: [id, amount])
        }
    }

    fileprivate var balances: [String] {
        get async throws { try await rows("SELECT balance FROM account ORDER BY id") }
    }
}

private let long = String(repeating: "n", count: 400)

@Suite("Atomic groups: all edits of a block, or none, on the server and on every device")
struct GroupTests {
    private func world(operations: Int = 1000) async throws -> (Device, Device) {
        let directory = try TestDirectory()
        let server = try Device.strict(directory, operations: operations)
        let here = try await Device.bank("a", server: server, in: directory)
        let there = try await Device.bank("b", server: server, in: directory)
        try await here.sql("INSERT INTO account VALUES ('x', 100, ''), ('y', 0, '')")
        try await here.sync()
        try await there.sync()
        return (here, there)
    }

    @Test("a group travels whole, in one request, between what was edited before and after")
    func applied() async throws {
        let (here, there) = try await world()
        try await here.sql("INSERT INTO account VALUES ('w', 1, '')")
        try await here.move(10, "t1")
        try await here.sql("INSERT INTO account VALUES ('z', 2, '')")
        try await here.sync()
        try await there.sync()
        #expect(try await there.balances == ["1", "90", "10", "2"])
        #expect(try await there.count("transfer") == 1)
        let body = try #require(await here.wire.bodies.last { $0.contains("group") })
        #expect(body.components(separatedBy: "\"group\":").count == 4)
        #expect(try await here.count("tidemark_shadow_account") == 0)
    }

    @Test("where one edit is refused, all are taken off the screen and rejected together")
    func refused() async throws {
        let (here, there) = try await world()
        try await here.move(10, "t1", note: long)
        try await here.sql("INSERT INTO account VALUES ('z', 2, '')")
        #expect(try await here.balances == ["90", "10", "2"])
        try await here.sync()
        #expect(try await here.balances == ["100", "0", "2"])
        #expect(try await here.count("transfer") == 0)
        let refused = try await here.engine().rejectedOperations()
        #expect(refused.count == 3)
        #expect(Set(refused.map(\.group)).count == 1 && refused[0].group != nil)
        #expect(refused.map(\.code).sorted() == ["group_failed", "group_failed", "record_too_large"])
        try await there.sync()
        #expect(try await there.balances == ["100", "0", "2"])
        #expect(try await here.count("tidemark_shadow_account") == 0)
    }

    @Test("groups that share an unsent record become one; edits beside them ride along")
    func merged() async throws {
        let (here, there) = try await world()
        try await here.move(10, "t1")
        try await here.move(20, "t2")
        try await here.sql("UPDATE account SET note = 'plain' WHERE id = 'y'")
        try await here.sync()
        let body = try #require(await here.wire.bodies.last { $0.contains("group") })
        #expect(body.components(separatedBy: "\"group\":").count == 5)
        #expect(Set(body.matches(of: /"group":"(\w+)"/).map { String($0.1) }).count == 1)
        try await there.sync()
        #expect(try await there.balances == ["70", "30"])
    }

    @Test("a group waits for the verdict of a record that is on its way, and is then sent whole")
    func inFlight() async throws {
        let (here, there) = try await world()
        try await here.sql("UPDATE account SET note = 'first' WHERE id = 'y'")
        await here.wire.next { request, inner in
            let answer = try await inner.send(request)
            try await here.move(10, "t1")
            return answer
        }
        try await here.sync()
        try await there.sync()
        #expect(try await there.balances == ["90", "10"])
        let groups = await here.wire.bodies.filter { $0.contains("\"group\"") }
        #expect(groups.count == 1)
    }

    @Test("it is not split by a small request or by what stands before it", arguments: [1, 2, 3])
    func limits(operations: Int) async throws {
        let (here, there) = try await world()
        for index in 0..<4 {
            try await here.sql("INSERT INTO account VALUES ('w\(index)', 1, '')")
            if index == 1 { try await here.move(10, "t1") }
        }
        var configuration = SyncConfiguration()
        configuration.operationLimit = operations
        try await here.engine(configuration).syncNow()
        for body in await here.wire.bodies where body.contains("\"group\"") {
            #expect(body.components(separatedBy: "\"group\":").count == 4)
        }
        try await there.sync()
        #expect(try await there.balances == ["1", "1", "1", "1", "90", "10"])
    }

    @Test("one that no request of the server's can carry is rejected whole, and others go on")
    func tooLarge() async throws {
        let (here, there) = try await world(operations: 2)
        try await here.move(10, "t1")
        try await here.sql("INSERT INTO account VALUES ('z', 2, '')")
        let engine = try here.engine()
        for _ in 0..<4 { _ = try? await engine.syncNow() }
        #expect(try await here.balances == ["100", "0", "2"])
        #expect(try await here.engine().rejectedOperations().count == 3)
        try await there.sync()
        #expect(try await there.balances == ["100", "0", "2"])
    }

    @Test("an edit that cannot be put on the wire holds its group back, and mending it sends all")
    func unsendable() async throws {
        let (here, there) = try await world()
        try await here.engine().atomically { db in
            try db.execute(sql: "UPDATE account SET balance = 90 WHERE id = 'x'")
            try db.execute(sql: "UPDATE account SET balance = 10, note = CAST(x'ff' AS TEXT) WHERE id = 'y'")
        }
        try await here.sync()
        let refused = try await here.engine().rejectedOperations()
        #expect(refused.count == 2 && Set(refused.map(\.group)).count == 1 && refused[0].group != nil)
        #expect(await here.wire.bodies.last?.contains("\"operations\":[]") == true)
        #expect(try await here.balances == ["90", "10"])
        try await here.sql("UPDATE account SET note = 'mended' WHERE id = 'y'")
        try await here.sync()
        try await there.sync()
        #expect(try await there.balances == ["90", "10"])
        #expect(try await here.engine().rejectedOperations().isEmpty)
    }

    @Test("letting go of one that never left lets go of all")
    func discarded() async throws {
        let (here, _) = try await world()
        try await here.engine().atomically { db in
            try db.execute(sql: "UPDATE account SET balance = 90 WHERE id = 'x'")
            try db.execute(sql: "UPDATE account SET balance = 10, note = CAST(x'ff' AS TEXT) WHERE id = 'y'")
        }
        try await here.sync()
        let engine = try here.engine()
        try await engine.discard(try #require(try await engine.rejectedOperations().first))
        #expect(try await engine.rejectedOperations().isEmpty)
        #expect(try await here.balances == ["100", "0"])
    }

    @Test("a gap in the lane moves a group as it is, and a lost answer repeats it as it was")
    func moved() async throws {
        let (here, there) = try await world()
        try await here.move(10, "t1")
        await here.wire.next { request, inner in
            _ = try await inner.send(request)
            throw Refused()
        }
        await #expect(throws: SyncError.self) { try await here.sync() }
        try await here.move(5, "t2")
        try await here.sync()
        try await there.sync()
        #expect(try await there.balances == ["85", "15"])
        #expect(try await there.count("transfer") == 2)
    }

    @Test("a block that throws, lies in two scopes or is too large writes nothing")
    func impossible() async throws {
        let (here, _) = try await world()
        await #expect(throws: Refused.self) {
            try await here.engine().atomically { db in
                try db.execute(sql: "UPDATE account SET balance = 0")
                throw Refused()
            }
        }
        let error = await #expect(throws: SyncError.self) {
            try await here.engine().atomically { db in
                for index in 0...1000 {
                    try db.execute(sql: "INSERT INTO account VALUES (?, 0, '')", arguments: ["m\(index)"])
                }
            }
        }
        #expect(error?.code == .groupImpossible)
        let engine = try SyncEngine(
            for: here.writer,
            tables: [.table("account", scope: .constant("w:1")), .table("transfer", scope: .constant("w:2"))],
            scopes: ["w:1", "w:2"], transport: here.wire)
        let crossing = await #expect(throws: SyncError.self) {
            try await engine.atomically { db in
                try db.execute(sql: "UPDATE account SET balance = 1; INSERT INTO transfer VALUES ('t', 1, 'x')")
            }
        }
        #expect(crossing?.code == .groupImpossible)
        #expect(try await here.balances == ["100", "0"])
        #expect(try await here.count("tidemark_shadow_account") == 0)
        #expect(try await here.count("transfer") == 0)
    }

    @Test("edits of a cascade, a REPLACE or a trigger in the block belong to the group; savepoints undone do not")
    func indirect() async throws {
        let (here, there) = try await world()
        try await here.sql(
            """
            INSERT INTO transfer VALUES ('t1', 1, 'x');
            CREATE TRIGGER audit AFTER DELETE ON account WHEN NOT EXISTS (SELECT 1 FROM tidemark_applying)
            BEGIN UPDATE account SET note = 'lone' WHERE id = 'y'; END;
            """)
        try await here.sync()
        try await here.engine().atomically { db in
            try db.execute(sql: "DELETE FROM account WHERE id = 'x'")
            try db.inSavepoint {
                try db.execute(sql: "INSERT INTO account VALUES ('gone', 0, '')")
                return .rollback
            }
        }
        try await here.sync()
        let body = try #require(await here.wire.bodies.last { $0.contains("\"group\"") })
        #expect(body.components(separatedBy: "\"group\":").count == 4)
        try await there.sync()
        #expect(try await there.rows("SELECT id, note FROM account") == [#""y"|"lone""#])
        #expect(try await there.count("transfer") == 0)
    }

    @Test("new records under temporary ids, and what names them, go in one group")
    func identity() async throws {
        let directory = try TestDirectory()
        let server = try Device.server(
            in: directory, entities: [.state("account", ids: .server), .state("transfer")])
        let here = try await Device.bank("a", server: server, in: directory)
        let there = try await Device.bank("b", server: server, in: directory)
        try await here.engine().atomically { db in
            try db.execute(
                sql: "INSERT INTO account VALUES ('local-1', 5, ''); INSERT INTO transfer VALUES ('t', 5, 'local-1')")
        }
        try await here.sync()
        try await there.sync()
        #expect(try await there.rows("SELECT source FROM transfer") == there.rows("SELECT id FROM account"))
        #expect(try await here.rows("SELECT * FROM transfer") == there.rows("SELECT * FROM transfer"))
        #expect(try await there.count("account WHERE id LIKE 'local%'") == 0)
    }
}
