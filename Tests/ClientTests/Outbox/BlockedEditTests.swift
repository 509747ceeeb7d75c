import Foundation
import GRDB
import Synchronization
import Testing
import TidemarkServer
import TidemarkWire

@testable import Tidemark

@Suite("Quarantine: a refused edit stops itself and what depends on it, and nothing else (F1)")
struct BlockedEditTests {
    private static let schema = """
        CREATE TABLE project (id TEXT PRIMARY KEY, name TEXT);
        CREATE TABLE task (
            id INTEGER PRIMARY KEY, project TEXT REFERENCES project(id) ON DELETE CASCADE, title TEXT);
        CREATE TABLE remark (id TEXT PRIMARY KEY, task INTEGER REFERENCES task, text TEXT);
        """

    /// A device on a server that takes no project without a name.
    private func device(_ schema: String = schema) async throws -> (Device, SyncServer) {
        let directory = try TestDirectory()
        let rule = EntityRule("project") { edit in
            edit.proposed["name"] == "" ? .reject(code: "name_missing", detail: "A project needs a name.") : .accept
        }
        let server = try Device.server(in: directory, rules: [rule])
        let tables = ["project", "task", "remark"]
        return (try await Device(schema, tables: tables, server: server, in: directory), server)
    }

    /// The ids that another device sees.
    private func served(_ server: SyncServer) async throws -> [String] {
        let other = try await Device(Self.schema, tables: ["project", "task", "remark"], server: server)
        try await other.sync()
        return try await other.rows(
            "SELECT id FROM project UNION ALL SELECT id FROM task UNION ALL SELECT id FROM remark ORDER BY 1"
        ).map { $0.replacing("\"", with: "") }
    }

    /// A project that is refused, with a task and a remark below it, and others that have nothing to do with it.
    private func poison(_ device: Device) async throws {
        try await device.sql(
            """
            INSERT INTO project VALUES ('bad', ''), ('good', 'g');
            INSERT INTO task VALUES (1, 'bad', 'below'), (2, 'good', 'free');
            INSERT INTO remark VALUES ('r1', 1, 'far below'), ('r2', 2, 'free');
            """)
    }

    @Test(
        "Rows that refer to the refused one wait, through any number of steps; all others go", arguments: [true, false])
    func dependants(together: Bool) async throws {
        let (device, server) = try await device()
        // In one request the device names what each row needs, and the server puts it off; one by one, the refusal is
        // known before the others are sealed.
        var configuration = SyncConfiguration()
        if !together { configuration.operationLimit = 1 }
        let engine = try device.engine(configuration)
        try await poison(device)
        for _ in 0..<2 { try await engine.syncNow() }
        #expect(try await served(server) == ["2", "good", "r2"])
        let refused = try #require(try await engine.rejectedOperations().first)
        #expect(try await engine.rejectedOperations().count == 1)
        #expect(refused.isInsert && refused.record == "bad" && refused.code == "name_missing")
        #expect(refused.dependants.map(\.record) == ["1", "r1"])
        #expect(try await engine.status().blocked == 2)
        guard case .blocked(let reason) = try await engine.state(of: "task", id: "1") else {
            return #expect(Bool(false), "the task does not say that it waits")
        }
        #expect(reason.contains("project bad"))
        // The rows stay on screen, and nothing is sent for them again and again.
        #expect(try await device.count("task") == 2)
        let requests = await device.wire.bodies.count
        #expect(try await engine.syncNow().pushed == 0)
        #expect(await device.wire.bodies.count == requests + 1)
    }

    @Test(
        "Mended and sent again, the refused row is taken, and those that waited go with it", arguments: [true, false])
    func retry(byTheApp: Bool) async throws {
        let (device, server) = try await device()
        let engine = try device.engine()
        try await poison(device)
        for _ in 0..<2 { try await engine.syncNow() }
        if byTheApp {
            try await device.sql("INSERT INTO project VALUES ('bad', 'named')")
        } else {
            let refused = try #require(try await engine.rejectedOperations().first)
            try await engine.retry(refused, changing: ["name": "named"])
        }
        for _ in 0..<2 { try await engine.syncNow() }
        #expect(try await served(server) == ["1", "2", "bad", "good", "r1", "r2"])
        #expect(try await engine.rejectedOperations().isEmpty)
        #expect(try await engine.status().blocked == 0)
        #expect(try await engine.state(of: "task", id: "1") == .confirmed)
    }

    @Test("Sent again as it was, it is refused again, and the others wait again")
    func retryInVain() async throws {
        let (device, server) = try await device()
        let engine = try device.engine()
        try await poison(device)
        for _ in 0..<2 { try await engine.syncNow() }
        try await engine.retry(try #require(try await engine.rejectedOperations().first))
        for _ in 0..<3 { try await engine.syncNow() }
        #expect(try await served(server) == ["2", "good", "r2"])
        let refused = try await engine.rejectedOperations()
        #expect(refused.count == 1)
        #expect(refused.first?.dependants.count == 2)
    }

    @Test("Given up, its dependants go the way of the schema's own ON DELETE")
    func discard() async throws {
        for (action, rows, sent) in [
            ("CASCADE", [], []), ("SET NULL", ["1|NULL"], ["1"]), ("NO ACTION", ["1|\"bad\""], ["1"]),
        ] {
            let (device, server) = try await device(
                Self.schema.replacing("ON DELETE CASCADE", with: "ON DELETE \(action)"))
            let engine = try device.engine()
            try await device.sql(
                "INSERT INTO project VALUES ('bad', ''); INSERT INTO task VALUES (1, 'bad', 'below')")
            for _ in 0..<2 { try await engine.syncNow() }
            try await engine.discard(try #require(try await engine.rejectedOperations().first))
            for _ in 0..<2 { try await engine.syncNow() }
            #expect(try await device.rows("SELECT id, project FROM task") == rows, "\(action)")
            #expect(try await served(server) == sent, "\(action)")
            #expect(try await engine.status().blocked == 0)
            #expect(try await device.count("tidemark_shadow_task") == 0)
        }
    }

    @Test("A row that this device cannot send blocks what refers to it, until it is mended")
    func unsendable() async throws {
        let (device, server) = try await device()
        let engine = try device.engine()
        try await device.sql(
            "INSERT INTO project VALUES ('p', CAST(x'ff' AS TEXT)); INSERT INTO task VALUES (1, 'p', 'below')")
        try await engine.syncNow()
        #expect(try await served(server) == [])
        #expect(try await engine.rejectedOperations().first?.dependants.map(\.record) == ["1"])
        try await device.sql("UPDATE project SET name = 'mended'")
        for _ in 0..<2 { try await engine.syncNow() }
        #expect(try await served(server) == ["1", "p"])
        #expect(try await engine.rejectedOperations().isEmpty)
    }

    @Test("An edit that is refused is not in the way of other edits of its record; one that makes up for it clears it")
    func sameRecord() async throws {
        let (device, _) = try await device()
        let engine = try device.engine()
        try await device.sql("INSERT INTO project VALUES ('p', 'n'); INSERT INTO task VALUES (1, 'p', 't')")
        try await engine.syncNow()
        try await device.sql("UPDATE project SET name = ''; UPDATE task SET title = 'u'")
        try await engine.syncNow()
        #expect(try await device.rows("SELECT name FROM project") == ["\"n\""])
        #expect(try await engine.rejectedOperations().map(\.fields) == [["name": ""]])
        #expect(try await engine.status().blocked == 0)
        try await device.sql("UPDATE project SET name = 'better'")
        try await engine.syncNow()
        #expect(try await engine.rejectedOperations().isEmpty)
    }

    @Test("A refused edit of a record that was deleted elsewhere is retried whole")
    func retryDeleted() async throws {
        let pair = try await Pair()
        try await pair.share()
        try await pair.changeThere("DELETE FROM note")
        try await pair.here.sql("UPDATE note SET title = 'mine'")
        let engine = try pair.here.engine()
        try await engine.syncNow()
        try await engine.retry(try #require(try await engine.rejectedOperations().first), changing: ["rank": 9])
        #expect(try await pair.titles() == ["mine"])
        #expect(try await pair.there.rows("SELECT body, rank FROM note") == ["\"text\"|9"])
        #expect(try await engine.rejectedOperations().isEmpty)
    }

    @Test("A delete that is refused can be tried again")
    func retryDelete() async throws {
        let directory = try TestDirectory()
        let isKept = Mutex(true)
        let rule = EntityRule("note") { edit in
            edit.isDelete && isKept.withLock { $0 } ? .reject(code: "kept", detail: "Kept.") : .accept
        }
        let server = try Device.server(in: directory, rules: [rule])
        let device = try await Device(noteSchema, tables: ["note"], server: server, in: directory)
        let engine = try device.engine()
        try await device.sql("INSERT INTO note (id, title) VALUES ('n1', 'a')")
        try await engine.syncNow()
        try await device.sql("DELETE FROM note")
        try await engine.syncNow()
        #expect(try await device.count("note") == 1)
        isKept.withLock { $0 = false }
        try await engine.retry(try #require(try await engine.rejectedOperations().first))
        try await engine.syncNow()
        #expect(try await device.count("note") == 0)
        #expect(try await engine.rejectedOperations().isEmpty)
    }
}

@Suite("Enrichment: the server's own fields of a bookmark (E4)")
struct EnrichmentTests {
    private static let schema = """
        CREATE TABLE bookmark (
            id TEXT PRIMARY KEY, title TEXT, url TEXT, summary TEXT, tags TEXT, saveWhy TEXT,
            enrichmentStatus TEXT NOT NULL DEFAULT 'none');
        """
    private static let serverFields = ["summary", "tags", "saveWhy", "enrichmentStatus"]
    private static let all = "SELECT title, summary, tags, saveWhy, enrichmentStatus FROM bookmark"

    @Test("title goes by the policy, the rest is the server's, whoever is newer", arguments: ConflictPolicy.allCases)
    func bookmark(policy: ConflictPolicy) async throws {
        let declaration = EntityDeclaration.state("bookmark", conflict: policy, serverFields: Self.serverFields)
        let pair = try await Pair(declaration, schema: Self.schema)
        let (here, there) = (pair.here, pair.there)
        // Made with a summary of the device's own, which counts for nothing here or elsewhere.
        try await here.sql("INSERT INTO bookmark (id, title, summary) VALUES ('b1', 'first', 'by hand')")
        try await here.sync()
        try await there.sync()
        let bare = "\"first\"|NULL|NULL|NULL|\"none\""
        #expect(try await here.rows(Self.all) == [bare])
        #expect(try await there.rows(Self.all) == [bare])
        // Between two edits of the devices the operator's program enriches it.
        try await there.sql("UPDATE bookmark SET title = 'second'")
        try await pair.server.commit(to: Device.scope) {
            $0.upsert(
                "bookmark", id: "b1",
                ["summary": "s", "tags": "a,b", "saveWhy": "because", "enrichmentStatus": "done"])
        }
        try await there.sync()
        // The newest edit of all touches both: the title goes through, the others snap back.
        try await here.sync()
        try await here.sql("UPDATE bookmark SET title = 'third', summary = 'mine', enrichmentStatus = 'redo'")
        let engine = try here.engine()
        try await engine.syncNow()
        try await there.sync()
        let enriched = "\"third\"|\"s\"|\"a,b\"|\"because\"|\"done\""
        #expect(try await here.rows(Self.all) == [enriched])
        #expect(try await there.rows(Self.all) == [enriched])
        let told = try await engine.conflicts().filter { $0.rule == .serverFields }
        #expect(told.map { $0.fields.map(\.name) } == [["summary"], ["summary", "enrichmentStatus"]])
        #expect(told.last?["summary"] == .init(name: "summary", base: "s", mine: "mine", theirs: "s", result: "s"))
        // An edit of nothing but the server's fields makes no operation at all.
        try await here.sql("UPDATE bookmark SET tags = 'c'")
        #expect(try await engine.syncNow().pushed == 0)
        #expect(try await here.rows(Self.all) == [enriched])
        #expect(try await here.count("tidemark_shadow_bookmark") == 0)
    }

    @Test("A client that sends the server's fields is told which were left out")
    func foreignClient() async throws {
        let pair = try await Pair(
            .state("bookmark", serverFields: Self.serverFields), schema: Self.schema)
        let body = """
            {"scope":"w:1","clientId":"device-foreign","operations":[{"lane":"lane-0001","number":1,"type":"upsert",
            "entity":"bookmark","id":"b9","fields":{"title":"t","summary":"mine"}}]}
            """
        let request = TransportRequest(method: "POST", path: "/sync", body: Array(body.utf8))
        let answer = String(decoding: try await pair.here.wire.send(request).body, as: UTF8.self)
        #expect(answer.contains(#""status":"merged""#))
        #expect(answer.contains(#""lost":[{"rule":"serverFields","field":"summary"}]"#))
        try await pair.here.sync()
        #expect(try await pair.here.rows(Self.all) == ["\"t\"|NULL|NULL|NULL|\"none\""])
    }
}
