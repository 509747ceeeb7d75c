import Foundation
import GRDB
import Testing
import TidemarkServer
import TidemarkWire

@testable import Tidemark

@Suite("Verify: scopes, servers that move, and what cannot be put right")
struct VerifyScopeTests {
    @Test("each table and each scope is compared by itself; events and what is only pushed are not")
    func tables() async throws {
        let directory = try TestDirectory()
        let server = SyncServer(
            store: try Device.store(in: directory), entities: [.events("audit"), .state("log", direction: .push)])
        for scope in ["w:1", "w:2"] as [Scope] {
            try await server.commit(to: scope) { changes in
                for id in ["a", "b"] {
                    for entity in ["task", "label"] {
                        changes.upsert(entity, id: RecordID(id)!, ["x": .text(scope.name)])
                    }
                }
                changes.upsert("audit", id: RecordID("e\(scope)")!, ["x": "y"])
            }
        }
        let device = try await Device(
            ["task", "label", "audit", "log", "other"].map { "CREATE TABLE \($0) (id TEXT PRIMARY KEY, x TEXT);" }
                .joined(),
            tables: ["task", "label", "audit", "log"], server: server, in: directory)
        let tables: [SyncedTable] = [
            .table("task", scope: .constant("w:1")), .table("label", scope: .constant("w:2")),
            .table("audit", scope: .constant("w:1")), .table("log", scope: .constant("w:1")),
        ]
        let engine = try SyncEngine(for: device.writer, tables: tables, scopes: ["w:1", "w:2"], transport: device.wire)
        try await engine.syncNow()
        try await flip(device, "UPDATE label SET x = 'z' WHERE id = 'b'; UPDATE audit SET x = 'z'")
        let report = try await engine.verify(repairing: true)
        #expect(report.isClean && report.records == 4)
        #expect(report.scopes["w:2"]?.tables["label"]?.differingIDs == ["b"])
        #expect(report.scopes["w:1"]?.tables["task"]?.differing == 0)
        #expect(try compared(report, "audit").gaps.map(\.reason) == [.events])
        #expect(try compared(report, "log").gaps.map(\.reason) == [.pushOnly])
        #expect(report.scopes["w:1"]?.tables["label"] == nil)
    }

    @Test("rows of one table that lie in several scopes, and rows that move between them")
    func spread() async throws {
        let directory = try TestDirectory()
        let server = try Device.server(in: directory)
        let schema = "CREATE TABLE note (id TEXT PRIMARY KEY, space TEXT, title TEXT);"
        let device = try await Device(schema, tables: ["note"], server: server, in: directory)
        let scopes: [Scope] = ["w:1", "w:2"]
        for scope in scopes {
            try await server.commit(to: scope) { changes in
                for index in 0..<30 {
                    let space = scope.name.dropFirst(2)
                    changes.upsert(
                        "note", id: RecordID("\(space)-\(index)")!, ["space": .text(String(space)), "title": "t"])
                }
            }
        }
        let tables: [SyncedTable] = [.table("note", scope: .column("space", prefix: "w:"))]
        let engine = try SyncEngine(for: device.writer, tables: tables, scopes: scopes, transport: device.wire)
        #expect(try await engine.verify().records == 60)
        let moving = AskingWire(device.wire) {
            try await device.sql(
                "UPDATE note SET space = '2' WHERE id IN ('1-3', '1-4'); DELETE FROM note WHERE id = '2-9'")
        }
        let asking = try SyncEngine(for: device.writer, tables: tables, scopes: scopes, transport: moving)
        #expect(try await asking.verify().isClean)
        for _ in 0..<3 { try await engine.syncNow() }
        let moved = try await engine.verify()
        #expect(moved.isClean && moved.differing == 0, "\(moved.scopes)")
        #expect(moved.scopes["w:1"]?.tables["note"]?.records == 28)
        #expect(moved.scopes["w:2"]?.tables["note"]?.records == 31)
        try await flip(
            device, "UPDATE note SET title = 'x' WHERE id IN ('1-5', '2-5'); DELETE FROM note WHERE id = '1-6'")
        let report = try await engine.verify(repairing: true)
        #expect(report.isClean)
        #expect(report.scopes["w:1"]?.tables["note"]?.differingIDs == ["1-5", "1-6"])
        #expect(report.scopes["w:2"]?.tables["note"]?.differingIDs == ["2-5"])
    }

    @Test("a server that has moved on is synced with and asked again; one that never rests is told of")
    func moving() async throws {
        let directory = try TestDirectory()
        var limits = Limits()
        limits.digestRewind = 0
        let server = try await noteServer(directory, notes: 5, limits: limits)
        let device = try await Device(verifySchema, tables: ["note"], server: server, in: directory)
        let once = AskingWire(device.wire) {
            try await server.commit(to: "w:1") { $0.upsert("note", id: "n1", ["title": "moved"]) }
        }
        let engine = try SyncEngine(for: device.writer, tables: device.tables, scopes: [Device.scope], transport: once)
        #expect(try await engine.verify().isClean)
        #expect(try await device.rows("SELECT title FROM note WHERE id = 'n1'") == [#""moved""#])
        let always = AskingWire(device.wire, times: .max) {
            try await server.commit(to: "w:1") {
                $0.upsert("note", id: "n2", ["weight": .real(Double.random(in: 0...1))])
            }
        }
        let restless = try SyncEngine(
            for: device.writer, tables: device.tables, scopes: [Device.scope], transport: always)
        let error = await #expect(throws: SyncError.self) { try await restless.verify() }
        #expect(error?.recovery == .wait)
    }

    @Test("a value that this schema keeps otherwise is told of, and does not keep the others from being repaired")
    func otherwise() async throws {
        let directory = try TestDirectory()
        let server = try await noteServer(directory, notes: 10)
        try await server.commit(to: "w:1") { $0.upsert("note", id: "n3", ["done": "12"]) }
        let device = try await Device(verifySchema, tables: ["note"], server: server, in: directory)
        try await device.sync()
        try await flip(device, "UPDATE note SET title = 'flipped' WHERE id = 'n4'")
        let report = try await device.engine().verify(repairing: true)
        #expect(try compared(report).differingIDs == ["n3", "n4"])
        #expect(report.repaired == 1 && !report.isClean)
    }

    @Test("half of all rows gone or changed is found too, page by page")
    func many() async throws {
        let directory = try TestDirectory()
        var limits = Limits()
        (limits.digestParts, limits.digestScan) = (50, 600)
        let server = try await noteServer(directory, notes: 3000, limits: limits)
        let device = try await Device(verifySchema, tables: ["note"], server: server, in: directory)
        try await device.sync()
        try await flip(device, "DELETE FROM note WHERE id LIKE 'n1%'; UPDATE note SET weight = 2 WHERE id LIKE 'n2%'")
        let report = try await device.engine().verify(repairing: true)
        #expect(report.isClean && report.repaired == 2222, "\(report.repaired)")
        #expect(try compared(report).differingIDs.count == VerifyReport.idLimit)
    }

    @Test("without a repair what differs is named and left alone")
    func named() async throws {
        let directory = try TestDirectory()
        let device = try await Device(
            verifySchema, tables: ["note"], server: try await noteServer(directory, notes: 300), in: directory)
        #expect(try await device.engine().verify().isClean)
        try await flip(device, "UPDATE note SET title = 'flipped' WHERE id = 'n77'")
        let found = try await device.engine().verify()
        #expect(try compared(found).differingIDs == ["n77"])
        #expect(!found.isClean && found.repaired == 0)
        #expect(try await device.rows("SELECT title FROM note WHERE id = 'n77'") == [#""flipped""#])
        #expect(!(await device.wire.requests.contains { $0.path.hasPrefix("/sync/records") }))
    }

    @Test("an empty scope, a device that was emptied, and a server that was")
    func empty() async throws {
        let directory = try TestDirectory()
        let server = try await noteServer(directory, notes: 0)
        let device = try await Device(verifySchema, tables: ["note"], server: server, in: directory)
        #expect(try await device.engine().verify().isClean)
        try await flip(device, "INSERT INTO note (id) VALUES ('a'), ('b')")
        let extra = try await device.engine().verify(repairing: true, discardingLocal: true)
        #expect(extra.isClean && extra.repaired == 2)
        #expect(try await device.count("note") == 0)
        try await server.commit(to: "w:1") { $0.upsert("note", id: "x", ["title": "t"]) }
        try await device.sync()
        try await flip(device, "DELETE FROM note")
        #expect(try await device.engine().verify(repairing: true).repaired == 1)
    }

    @Test("a repair sends what the server does not know, and keeps what it writes over")
    func keepsLocal() async throws {
        let directory = try TestDirectory()
        let server = try await noteServer(directory, notes: 5)
        let device = try await Device(verifySchema, tables: ["note"], server: server, in: directory)
        let other = try await Device(verifySchema, tables: ["note"], server: server, in: directory, name: "other")
        try await device.sync()
        try await flip(
            device,
            "INSERT INTO note (id, title) VALUES ('z', 'here alone'); UPDATE note SET title = 'x' WHERE id = 'n1'")
        let report = try await device.engine().verify(repairing: true)
        #expect(report.isClean && report.repaired == 2)
        #expect(try compared(report).unsentIDs == ["z"])
        try await other.sync()
        #expect(try await other.rows("SELECT title FROM note WHERE id = 'z'") == [#""here alone""#])
        let kept = try #require(try await device.engine().conflicts().first)
        #expect((kept.rule, kept.isOpen, kept["title"]?.mine) == (.repair, false, .text("x")))
        try await device.engine().resolve(kept, with: .keepMine)
        try await device.sync()
        try await other.sync()
        #expect(try await other.rows("SELECT title FROM note WHERE id = 'n1'") == [#""x""#])
    }

    @Test("a difference that cannot be repaired says why")
    func unrepaired() async throws {
        let directory = try TestDirectory()
        let server = try Device.server(in: directory)
        try await server.commit(to: "w:1") { $0.upsert("price", id: "p", ["amount": .text("12.50")]) }
        let device = try await Device(
            "CREATE TABLE price (id TEXT PRIMARY KEY, amount NUMERIC);", tables: ["price"], server: server,
            in: directory)
        let report = try await device.engine().verify(repairing: true)
        let table = try #require(report.scopes[Device.scope]?.tables["price"])
        #expect(!report.isClean && table.repaired == 0)
        #expect(
            table.unrepaired["p"]?.contains("'amount'") == true && table.unrepaired["p"]?.contains("NUMERIC") == true)
        #expect(try await device.engine().status().rows.confirmed == 1)
    }
}
