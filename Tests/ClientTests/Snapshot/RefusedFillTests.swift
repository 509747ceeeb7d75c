import Foundation
import GRDB
import Testing
import TidemarkServer
import TidemarkTesting
import TidemarkWire

@testable import Tidemark

@Suite("A first filling ends with every row that the app's triggers let in, whatever order the rows come in")
struct RefusedFillTests {
    /// A snapshot brings `first`, `second`, `third`; each row of one is refused before its parent in the next is there.
    private static let schema = """
        CREATE TABLE third (id TEXT PRIMARY KEY, name TEXT);
        CREATE TABLE second (a TEXT, b INTEGER, third TEXT, PRIMARY KEY (a, b));
        CREATE TABLE first (id TEXT PRIMARY KEY, b INTEGER, name TEXT UNIQUE);
        CREATE TRIGGER second_insert BEFORE INSERT ON second BEGIN
          SELECT RAISE(ABORT, 'no third') WHERE NOT EXISTS (SELECT 1 FROM third WHERE id = NEW.third); END;
        CREATE TRIGGER first_insert BEFORE INSERT ON first BEGIN
          SELECT RAISE(ABORT, 'no second') WHERE NOT EXISTS (SELECT 1 FROM second WHERE a = 's' AND b = NEW.b); END;
        """
    private static let tables = ["first", "second", "third"]
    private static let count = 70

    private func server(in directory: TestDirectory) async throws -> SyncServer {
        let server = try Device.server(in: directory)
        try await server.commit(to: "w:1") { changes in
            for index in 1...Self.count {
                let number = Value.integer(Int64(index))
                changes.upsert("first", id: RecordID("f\(index)")!, ["b": number, "name": .text("n\(index)")])
                changes.upsert("second", id: RecordID("[\"s\",\(index)]")!, ["third": .text("t\(index)")])
                changes.upsert("third", id: RecordID("t\(index)")!, ["name": .text("t")])
            }
        }
        return server
    }

    private func counts(_ device: Device) async throws -> [Int] {
        var counts: [Int] = []
        for table in Self.tables { counts.append(try await device.count(table)) }
        return counts
    }

    @Test("children come before their parents, in pages of any size", arguments: [5, 30, 300])
    func order(page: Int) async throws {
        let directory = try TestDirectory()
        let device = try await Device(
            Self.schema, tables: Self.tables, server: server(in: directory), in: directory, name: "d")
        _ = try await device.engine(BootstrapTests.small(page)).syncNow()
        #expect(try await counts(device) == [Self.count, Self.count, Self.count])
        #expect(try await device.count("tidemark_quarantine") == 0)
        #expect(try await device.engine().verify().isClean)
    }

    @Test("a row that is refused for good is quarantined, and blocks no other")
    func refused() async throws {
        let directory = try TestDirectory()
        let server = try await server(in: directory)
        try await server.commit(to: "w:1") { changes in
            for index in 1...30 {
                changes.upsert("first", id: RecordID("a\(index)")!, ["b": .integer(1000), "name": .text("a\(index)")])
            }
            changes.upsert("first", id: "z", ["b": .integer(1), "name": "n1"])
        }
        let device = try await Device(
            Self.schema, tables: Self.tables, server: server, in: directory, name: "d")
        _ = try await device.engine(BootstrapTests.small(20)).syncNow()
        #expect(try await counts(device) == [Self.count, Self.count, Self.count])
        // The parents of thirty are nowhere, and another record holds the name of one.
        #expect(try await device.count("tidemark_quarantine") == 31)
        try await server.commit(to: "w:1") { changes in
            changes.upsert("second", id: "[\"s\",1000]", ["third": "t1"])
        }
        _ = try await device.engine().syncNow()
        #expect(try await counts(device) == [Self.count + 30, Self.count + 1, Self.count])
    }

    @Test("a temporary trigger of the app's sees each row of a filling, and so does one that stands in the file")
    func seen() async throws {
        for kind in ["", "TEMP "] {
            let directory = try TestDirectory()
            let device = try await Device(
                "CREATE TABLE seen (n INTEGER); CREATE TABLE third (id TEXT PRIMARY KEY, name TEXT);",
                tables: ["third"], server: server(in: directory), in: directory, name: "d")
            try await device.sql(
                "CREATE \(kind)TRIGGER third_seen AFTER INSERT ON third BEGIN INSERT INTO seen VALUES (1); END")
            _ = try await device.engine(BootstrapTests.small(20)).syncNow()
            #expect(try await device.count("third") == Self.count)
            #expect(try await device.count("seen") == Self.count)
        }
    }

    @Test("an app that is killed between two pages goes on, and lets the rows in that were quarantined")
    func resumed() async throws {
        let directory = try TestDirectory()
        let device = try await Device(
            Self.schema, tables: Self.tables, server: server(in: directory), in: directory, name: "d")
        for _ in 0..<4 { await device.wire.nextPage { request, inner in try await inner.send(request) } }
        await device.wire.nextPage { _, _ in throw Wire.Lost() }
        _ = try? await device.engine(BootstrapTests.small(20)).syncNow()
        #expect(try await device.count("tidemark_quarantine") > 0)
        _ = try await device.engine(BootstrapTests.small(20)).syncNow()
        #expect(try await counts(device) == [Self.count, Self.count, Self.count])
        #expect(try await device.count("tidemark_quarantine") == 0)
    }
}
