import Foundation
import GRDB
import Testing
import TidemarkServer
import TidemarkWire

@testable import Tidemark

@Suite("Records fetched by name are taken in ahead of the checkpoint")
struct RecordFetchTests {
    private static let schema = "CREATE TABLE note (id TEXT PRIMARY KEY, title TEXT, body TEXT);"

    private func fetch(_ device: Device, _ ids: [String], entity: String = "note") async throws -> SyncReport.Counts {
        let schemaCache = try SchemaCache(
            file: AppFile(writer: device.writer), transport: device.wire, tables: device.tables, scopes: [Device.scope])
        let fetch = RecordFetch(
            schemaCache: schemaCache, scope: Device.scope, schema: try await schemaCache.install(),
            declarations: Declarations())
        return try await fetch.run(ids.map { RefetchQueue.Record(entity: entity, id: RecordID($0)!) }).counts
    }

    private func server(_ directory: TestDirectory) async throws -> SyncServer {
        let server = try Device.server(in: directory)
        try await server.commit(to: "w:1") { changes in
            for name in ["n1", "n2", "n3"] {
                changes.upsert("note", id: RecordID(name)!, ["title": "old", "body": "b"])
            }
        }
        return server
    }

    private func ahead(_ device: Device) async throws -> [String] {
        try await device.rows("SELECT record, version, deleted FROM tidemark_known_version ORDER BY record")
    }

    @Test("a newer row comes, a deleted and an unknown one go, and the checkpoint stays")
    func ahead() async throws {
        let directory = try TestDirectory()
        let server = try await server(directory)
        let device = try await Device(Self.schema, tables: ["note"], server: server, in: directory)
        try await device.sync()
        try await server.commit(to: "w:1") { changes in
            changes.upsert("note", id: "n1", ["title": "new"])
            changes.delete("note", id: "n2")
            changes.upsert("note", id: "n4", ["title": "more"])
        }
        let before = try await device.rows("SELECT checkpoint, complete FROM tidemark_scope")
        let counts = try await fetch(device, ["n1", "n2", "n4", "n9"])
        #expect(counts.roundTrips == 1)
        #expect(
            try await device.rows("SELECT id, title FROM note ORDER BY id") == [
                #""n1"|"new""#, #""n3"|"old""#, #""n4"|"more""#,
            ])
        #expect(try await device.rows("SELECT checkpoint, complete FROM tidemark_scope") == before)
        #expect(try await ahead(device) == [#""n1"|4|0"#, #""n2"|5|1"#, #""n4"|6|0"#, #""n9"|6|1"#])
        #expect(try await device.count("tidemark_shadow_note") == 0)
        try await device.sync()
        #expect(try await ahead(device).isEmpty)
        #expect(try await device.count("note") == 3)
    }

    @Test("a page that was on its way when the rows were fetched restores nothing older")
    func latePage() async throws {
        let directory = try TestDirectory()
        let server = try await server(directory)
        let device = try await Device(Self.schema, tables: ["note"], server: server, in: directory)
        try await device.sync()
        try await server.commit(to: "w:1") { $0.upsert("note", id: "n1", ["title": "second"]) }
        try await server.commit(to: "w:1") { $0.upsert("note", id: "n2", ["title": "second"]) }
        await device.wire.next { [self] request, inner in
            let answer = try await inner.send(request)
            try await server.commit(to: "w:1") { changes in
                changes.upsert("note", id: "n1", ["title": "third"])
                changes.delete("note", id: "n2")
            }
            _ = try await fetch(device, ["n1", "n2"])
            return answer
        }
        try await device.sync()
        #expect(try await device.rows("SELECT id, title FROM note ORDER BY id") == [#""n1"|"third""#, #""n3"|"old""#])
    }

    @Test("an edit stays on screen over the fetched row, and an edit of a deleted one meets its verdict")
    func underEdits() async throws {
        let directory = try TestDirectory()
        let server = try await server(directory)
        let device = try await Device(Self.schema, tables: ["note"], server: server, in: directory)
        try await device.sync()
        try await device.sql("UPDATE note SET body = 'mine'; INSERT INTO note VALUES ('n9', 'fresh', NULL)")
        try await server.commit(to: "w:1") { changes in
            changes.upsert("note", id: "n1", ["title": "new"])
            changes.delete("note", id: "n2")
        }
        _ = try await fetch(device, ["n1", "n2", "n9"])
        #expect(
            try await device.rows("SELECT id, title, body FROM note ORDER BY id") == [
                #""n1"|"new"|"mine""#, #""n2"|"old"|"mine""#, #""n3"|"old"|"mine""#, #""n9"|"fresh"|NULL"#,
            ])
        #expect(try await device.sealed().isEmpty)
        try await device.sync()
        #expect(
            try await device.rows("SELECT id, title, body FROM note ORDER BY id") == [
                #""n1"|"new"|"mine""#, #""n3"|"old"|"mine""#, #""n9"|"fresh"|NULL"#,
            ])
        #expect(try await device.engine().rejectedOperations().map(\.record) == ["n2"])
    }

    @Test("a row that was changed behind the triggers is put right, without a mark")
    func repair() async throws {
        let directory = try TestDirectory()
        let device = try await Device(
            Self.schema, tables: ["note"], server: try await server(directory), in: directory)
        try await device.sync()
        try await device.sql(
            """
            INSERT INTO tidemark_applying VALUES (1); UPDATE note SET title = 'flipped' WHERE id = 'n1';
            DELETE FROM note WHERE id = 'n2'; INSERT INTO note VALUES ('n8', 'x', 'y'); DELETE FROM tidemark_applying;
            """)
        _ = try await fetch(device, ["n1", "n2", "n8"])
        #expect(
            try await device.rows("SELECT id, title FROM note ORDER BY id") == [
                #""n1"|"old""#, #""n2"|"old""#, #""n3"|"old""#,
            ])
        #expect(try await ahead(device).isEmpty)
        #expect(try await device.count("tidemark_shadow_note") == 0)
    }

    @Test("an answer from before the last scan changes nothing and is asked for again")
    func stale() async throws {
        let directory = try TestDirectory()
        let server = try await server(directory)
        let device = try await Device(Self.schema, tables: ["note"], server: server, in: directory)
        try await device.sync()
        let late = LateWire(device.wire)
        let schemaCache = try SchemaCache(
            file: AppFile(writer: device.writer), transport: late, tables: device.tables, scopes: [Device.scope])
        let schema = try await schemaCache.install()
        await late.hold {
            try await server.commit(to: "w:1") { $0.upsert("note", id: "n1", ["title": "newer"]) }
            try await device.sync()
        }
        let counts = try await RecordFetch(
            schemaCache: schemaCache, scope: Device.scope, schema: schema, declarations: Declarations()
        ).run([RefetchQueue.Record(entity: "note", id: "n1")]).counts
        #expect(counts.roundTrips == 2)
        #expect(try await device.rows("SELECT title FROM note WHERE id = 'n1'") == [#""newer""#])
    }

    @Test("more records than one request names, or one answer holds, take several")
    func many() async throws {
        let directory = try TestDirectory()
        var limits = Limits()
        limits.pageBytes = 20_000
        let server = SyncServer(store: try Device.store(in: directory), limits: limits)
        try await server.commit(to: "w:1") { changes in
            for index in 0..<250 {
                let text = String(repeating: "x", count: 500)
                changes.upsert("note", id: RecordID("n+\(index)")!, ["title": .text("\(index)"), "body": .text(text)])
            }
        }
        let device = try await Device(Self.schema, tables: ["note"], server: server, in: directory)
        let counts = try await fetch(device, (0..<300).map { "n+\($0)" })
        #expect(counts.applied == 300)
        #expect(counts.roundTrips > 7 && counts.roundTrips < 20, "\(counts.roundTrips)")
        #expect(try await device.count("note") == 250)
        for request in await device.wire.requests {
            let bytes = request.query.reduce(0) { $0 + $1.name.utf8.count + $1.value.utf8.count + 2 }
            #expect(bytes < 5000 && request.query.count <= 102)
        }
    }

    @Test("a replay of unknown outcome has its record fetched before the next exchange, even after a crash")
    func outcomeUnknown() async throws {
        let directory = try TestDirectory()
        let server = try await server(directory)
        let device = try await Device(Self.schema, tables: ["note"], server: server, in: directory)
        try await device.sync()
        try await device.sql("UPDATE note SET title = 'mine' WHERE id = 'n1'")
        await device.wire.loseAnswer()
        await #expect(throws: SyncError.self) { try await device.sync() }
        let entry = try #require(try await device.seal().first)
        try await server.commit(to: "w:1") { $0.upsert("note", id: "n1", ["title": "theirs"]) }
        let verdict = #"{"lane":"\#(entry.key.lane)","number":\#(entry.key.number),"status":"settled","replayed":true}"#
        let outcome = try await device.apply(#"{"results":[\#(verdict)]}"#)
        #expect(outcome.refetch == 1)
        #expect(try await device.rows("SELECT title FROM note WHERE id = 'n1'") == [#""old""#])
        #expect(try await device.count("tidemark_refetch") == 1)
        // The process ended here; another one takes up what was noted.
        try await device.sync()
        #expect(await device.wire.requests.map(\.path).contains("/sync/records/note"))
        #expect(try await device.rows("SELECT title FROM note WHERE id = 'n1'") == [#""theirs""#])
        #expect(try await device.count("tidemark_refetch") == 0)
    }

    @Test("a question that fails holds up no exchange")
    func failing() async throws {
        let directory = try TestDirectory()
        let server = try await server(directory)
        let device = try await Device(Self.schema, tables: ["note"], server: server, in: directory)
        try await device.sql("INSERT INTO tidemark_refetch VALUES ('w:1', 'note', 'n1')")
        let late = LateWire(device.wire)
        await late.refuse()
        let engine = try SyncEngine(
            for: device.writer, tables: device.tables, scopes: [Device.scope], transport: late)
        await #expect(throws: SyncError.self) { try await engine.syncNow() }
        #expect(try await device.count("note") == 3)
        #expect(try await device.count("tidemark_refetch") == 1)
        try await device.sync()
        #expect(try await device.count("tidemark_refetch") == 0)
    }

    @Test("a record that the server will not tell is not asked for again")
    func refused() async throws {
        let directory = try TestDirectory()
        let server = try Device.server(in: directory, entities: [.state("note", direction: .push)])
        let device = try await Device(Self.schema, tables: ["note"], server: server, in: directory)
        try await device.sql("INSERT INTO note VALUES ('n1', 'mine', NULL)")
        try await device.sync()
        try await device.sql("INSERT INTO tidemark_refetch VALUES ('w:1', 'note', 'n1')")
        try await device.sync()
        #expect(try await device.count("note") == 1)
        #expect(try await device.count("tidemark_refetch") == 0)
    }
}

/// A wire on which the first question for records by name is slow, or fails.
private actor LateWire: Transport {
    private let inner: any Transport
    private var meanwhile: (@Sendable () async throws -> Void)?
    private var isRefusing = false

    init(_ inner: any Transport) { self.inner = inner }

    func hold(_ work: @escaping @Sendable () async throws -> Void) { meanwhile = work }
    func refuse() { isRefusing = true }

    func send(_ request: TransportRequest) async throws -> TransportResponse {
        guard request.path.hasPrefix("/sync/records") else { return try await inner.send(request) }
        if isRefusing { return TransportResponse(status: 500) }
        let answer = try await inner.send(request)
        let work = meanwhile
        meanwhile = nil
        try await work?()
        return answer
    }
}
