import Foundation
import GRDB
import Testing
import TidemarkServer
import TidemarkWire

@testable import Tidemark

@Suite("Backfill: whoever passed something over, and whatever stands only here (F5, I4)")
struct BackfillCatchUpTests {
    private static let note = "CREATE TABLE note (id TEXT PRIMARY KEY, title TEXT);"
    private static let tag = "CREATE TABLE tag (id TEXT PRIMARY KEY, name TEXT);"
    private let directory: TestDirectory

    init() throws { directory = try TestDirectory() }

    private func engine(_ device: Device, _ tables: [String]) throws -> SyncEngine {
        try SyncEngine(
            for: device.writer, tables: tables.map { .table($0) }, scopes: [Device.scope], transport: device.wire)
    }

    private func tags(_ device: Device) async throws -> [String] {
        try await device.rows("SELECT id FROM tag ORDER BY id").map { $0.replacing("\"", with: "") }
    }

    @Test("a scope that the new version does not follow at first gets the new column when it does")
    func switcher() async throws {
        let world = try MultiScopeWorld()
        let device = try await world.device("d", scopes: ["w:a", "w:b"])
        for (scope, place) in [("w:a", "a"), ("w:b", "b")] as [(Scope, String)] {
            let id = try #require(RecordID("i-\(place)"))
            try await world.server.commit(to: scope) {
                $0.upsert("item", id: id, ["w": .text(place), "mood": "merry"])
            }
        }
        try await device.sync()
        try await device.sql("ALTER TABLE item ADD COLUMN mood TEXT DEFAULT 'calm'")
        try await device.sync(["w:a"])
        #expect(try await device.count("item WHERE mood = 'merry'") == 1)
        try await device.sync()
        #expect(try await device.count("item WHERE mood = 'merry'") == 2)
        #expect(try await device.isConfirmed())
    }

    @Test("a first filling that an update of the app interrupts ends with the new column in every row")
    func firstFilling() async throws {
        let server = try Device.server(in: directory)
        let ids = try (0..<10).map { try #require(RecordID("n\($0)")) }
        try await server.commit(to: Device.scope) { changes in
            for id in ids { changes.upsert("note", id: id, ["title": "t", "mood": "merry"]) }
        }
        let device = try await Device(Self.note, tables: ["note"], server: server, in: directory)
        var configuration = SyncConfiguration()
        (configuration.snapshotRange, configuration.firstSnapshotPage) = (4...4, 4)
        await device.wire.nextPage { request, inner in try await inner.send(request) }
        await device.wire.nextPage { _, _ in throw Wire.Lost() }
        await #expect(throws: SyncError.self) { try await device.engine(configuration).syncNow() }
        #expect(try await device.count("note") == 4)
        try await device.sql("ALTER TABLE note ADD COLUMN mood TEXT DEFAULT 'calm'")
        try await device.engine(configuration).syncNow()
        #expect(try await device.count("note WHERE mood = 'merry'") == 10)
        #expect(try await device.count("tidemark_shadow_note") == 0)
    }

    @Test("two engines take turns on one file: what the one that names fewer tables passes over, the other one gets")
    func turns() async throws {
        let server = try Device.server(in: directory)
        let device = try await Device(Self.note + Self.tag, tables: ["note", "tag"], server: server, in: directory)
        let (all, few) = (try engine(device, ["note", "tag"]), try engine(device, ["note"]))
        for engine in [all, few, all] { try await engine.syncNow() }
        var last: RecordID?
        for id in ["t0", "t1", "t2"] as [RecordID] {
            let before = last
            last = id
            try await server.commit(to: Device.scope) { changes in
                changes.upsert("tag", id: id, ["name": "x"])
                if let before { changes.delete("tag", id: before) }
            }
            for engine in [few, all] { try await engine.syncNow() }
            #expect(try await tags(device) == [id.text])
        }
        // What nobody passed over is not fetched again.
        try await server.commit(to: Device.scope) { $0.upsert("note", id: "n", ["title": "x"]) }
        try await few.syncNow()
        #expect(try await all.syncNow().roundTrips == 1)
    }

    @Test("a page that was asked for before another engine moved the scope on does not count")
    func overtaken() async throws {
        let server = try Device.server(in: directory)
        let device = try await Device(Self.note + Self.tag, tables: ["note", "tag"], server: server, in: directory)
        let (all, few) = (try engine(device, ["note", "tag"]), try engine(device, ["note"]))
        try await all.syncNow()
        try await server.commit(to: Device.scope) { $0.upsert("tag", id: "t1", ["name": "x"]) }
        try await few.syncNow()
        await device.wire.nextPage { request, inner in
            let answer = try await inner.send(request)
            try await server.commit(to: Device.scope) { $0.upsert("tag", id: "t2", ["name": "x"]) }
            try await few.syncNow()
            return answer
        }
        try await all.syncNow()
        #expect(try await tags(device) == ["t1", "t2"])
    }

    @Test("a snapshot that an engine takes in without a table leaves that table to be fetched")
    func snapshot() async throws {
        let server = try Device.server(in: directory)
        let device = try await Device(Self.note + Self.tag, tables: ["note", "tag"], server: server, in: directory)
        let (all, few) = (try engine(device, ["note", "tag"]), try engine(device, ["note"]))
        try await server.commit(to: Device.scope) { $0.upsert("tag", id: "t1", ["name": "x"]) }
        for engine in [all, few, all] { try await engine.syncNow() }
        try await server.commit(to: Device.scope) { $0.delete("tag", id: "t1") }
        await device.wire.next { _, _ in
            TransportResponse(
                status: 410, headers: [ProtocolVersion.header: "1", "Content-Type": Problem.contentType],
                body: Problem(.checkpointExpired, "d").body())
        }
        for engine in [few, all] { try await engine.syncNow() }
        #expect(try await tags(device).isEmpty)
    }

    private static let kinds = """
        CREATE TABLE report (id TEXT PRIMARY KEY, text TEXT);
        CREATE TABLE audit (id TEXT PRIMARY KEY, report TEXT REFERENCES report(id) ON DELETE CASCADE, what TEXT);
        CREATE TABLE page (id TEXT PRIMARY KEY, report TEXT REFERENCES report(id) ON DELETE CASCADE);
        CREATE TABLE country (id TEXT PRIMARY KEY, name TEXT);
        """
    private static let entities: [EntityDeclaration] = [
        .state("report", direction: .push), .events("audit"), .state("country", direction: .pull),
    ]

    /// A page of a scan from which all rows have gone.
    private static let empty: Wire.Step = { request, inner in
        var answer = try await inner.send(request)
        let text = String(decoding: answer.body, as: UTF8.self)
        let changes = try #require(text.firstRange(of: #""changes":["#))
        let end = try #require(text.lastIndex(of: "]"))
        answer.body = Array((text[..<changes.upperBound] + text[end...]).utf8)
        return answer
    }

    @Test("rows that only go up, and events that have left the server, stay when their table is fetched anew")
    func onlyHere() async throws {
        let server = try Device.server(in: directory, entities: Self.entities)
        let tables = ["report", "audit", "page"]
        let device = try await Device(Self.kinds, tables: tables, server: server, in: directory)
        try await device.sql(
            """
            INSERT INTO report VALUES ('r', 'x'); INSERT INTO page VALUES ('p', 'r');
            INSERT INTO audit VALUES ('a', NULL, 'x')
            """)
        try await engine(device, tables).syncNow()
        // Whole tables are noted where what came for them was passed over.
        try await device.writer.write { db in
            for table in ["report", "audit"] { try Backfills.enqueue(db, entity: table, fields: nil, Device.scope) }
        }
        for _ in 0..<2 {
            // The audit's entries have aged; the reports' page is empty anyway.
            await device.wire.nextPage { request, inner in
                let isAudit = request.query.contains { $0.name == "entity" && $0.value == "audit" }
                return isAudit ? try await Self.empty(request, inner) : try await inner.send(request)
            }
        }
        let before = await device.wire.bodies.count
        try await engine(device, tables).syncNow()
        let asked = await device.wire.requests.filter { $0.path == "/sync/snapshot" }.suffix(2)
        #expect(Set(asked.flatMap(\.query).filter { $0.name == "entity" }.map(\.value)) == ["report", "audit"])
        for table in tables { #expect(try await device.count(table) == 1) }
        #expect(await device.wire.bodies.dropFirst(before).allSatisfy { !$0.contains("\"number\"") })
        for table in tables { #expect(try await device.count("tidemark_shadow_\(table)") == 0) }
    }

    @Test("a migration's values in tables that this device may not edit are no edits: nothing is refused")
    func migrated() async throws {
        let server = try Device.server(in: directory, entities: Self.entities)
        let tables = ["audit", "country"]
        let device = try await Device(Self.kinds, tables: tables, server: server, in: directory)
        try await server.commit(to: Device.scope) { $0.upsert("country", id: "de", ["name": "Germany"]) }
        try await device.sql("INSERT INTO audit (id, what) VALUES ('a', 'x')")
        for _ in 0..<2 { try await device.sync() }
        try await device.writer.write { db in
            try SyncEngine.removeCapture(db)
            for table in tables {
                try db.execute(
                    sql: "ALTER TABLE \(table) ADD COLUMN mood TEXT; UPDATE \(table) SET mood = 'filled'")
            }
        }
        let engine = try device.engine()
        for _ in 0..<2 { try await engine.syncNow() }
        #expect(try await engine.rejectedOperations().isEmpty)
        #expect(try await device.rows("SELECT mood FROM country") == ["NULL"])
        for table in tables { #expect(try await device.count("tidemark_shadow_\(table)") == 0) }
    }
}
