import Foundation
import GRDB
import Synchronization
import Testing
import TidemarkServer
import TidemarkTesting
import TidemarkWire

@testable import Tidemark

@Suite("Order: what refers to a new record is sealed behind it, in whatever order it was edited (F1)")
struct OutboxBatcherOrderTests {
    private static let schema = """
        CREATE TABLE remark (id TEXT PRIMARY KEY, task INTEGER REFERENCES task, text TEXT);
        CREATE TABLE task (
            id INTEGER PRIMARY KEY, project TEXT REFERENCES project(id) ON DELETE CASCADE, title TEXT);
        CREATE TABLE project (id TEXT PRIMARY KEY, name TEXT);
        """
    private static let tables = ["remark", "task", "project"]

    /// A device on a server that takes no project without a name.
    private func device() async throws -> (Device, SyncServer) {
        let directory = try TestDirectory()
        let rule = EntityRule("project") { edit in
            edit.proposed["name"] == "" ? .reject(code: "name_missing", detail: "A project needs a name.") : .accept
        }
        let server = try Device.server(in: directory, rules: [rule])
        return (try await Device(Self.schema, tables: Self.tables, server: server, in: directory), server)
    }

    /// What another device sees.
    private func served(_ server: SyncServer) async throws -> [String] {
        let other = try await Device(Self.schema, tables: Self.tables, server: server)
        try await other.sync()
        return try await other.rows(
            """
            SELECT 'task', id, project FROM task UNION ALL SELECT 'project', id, NULL FROM project
            UNION ALL SELECT 'remark', id, task FROM remark ORDER BY 1, 2
            """
        ).map { $0.replacing("\"", with: "") }
    }

    @Test("an edit that was made before the record it refers to now is sent behind it, and waits with it")
    func laterReference() async throws {
        let (device, server) = try await device()
        try await device.sql("INSERT INTO task VALUES (1, NULL, 'old')")
        try await device.sync()
        try await device.sql(
            """
            UPDATE task SET title = 'new'; INSERT INTO project VALUES ('bad', '');
            UPDATE task SET project = 'bad';
            """)
        let engine = try device.engine()
        try await engine.syncNow()
        #expect(try await served(server) == ["task|1|NULL"])
        #expect(try await engine.rejectedOperations().first?.dependants.map(\.record) == ["1"])
        try await engine.retry(try #require(try await engine.rejectedOperations().first), changing: ["name": "good"])
        try await engine.syncNow()
        #expect(try await served(server) == ["project|bad|NULL", "task|1|bad"])
        #expect(try await device.count("tidemark_shadow_task") == 0)
    }

    @Test("a record that was sealed before a restart is answered before anything that refers to it is sealed")
    func otherLane() async throws {
        let (device, server) = try await device()
        try await device.sql("INSERT INTO project VALUES ('bad', '')")
        _ = try await device.seal(lane: "lane-before")
        try await device.sql("INSERT INTO task VALUES (1, 'bad', 'below')")
        let engine = try device.engine()
        try await engine.syncNow()
        #expect(try await served(server) == [])
        #expect(try await engine.status().blocked == 1)
        try await device.sql("INSERT INTO project VALUES ('bad', 'named')")
        try await engine.syncNow()
        #expect(try await served(server) == ["project|bad|NULL", "task|1|bad"])
    }

    @Test("a row that is inserted while its parent is on its way waits, though the parent is looked at later")
    func inFlight() async throws {
        let (device, server) = try await device()
        try await device.sql("INSERT INTO project VALUES ('bad', ''); INSERT INTO task VALUES (1, 'bad', 'below')")
        await device.wire.next { request, inner in
            let answer = try await inner.send(request)
            try await device.sql("INSERT INTO remark VALUES ('r', 1, 'far below')")
            return answer
        }
        let engine = try device.engine()
        try await engine.syncNow()
        #expect(try await served(server) == [])
        #expect(try await engine.rejectedOperations().first?.dependants.count == 2)
        try await device.sql("INSERT INTO project VALUES ('bad', 'named')")
        for _ in 0..<2 { try await engine.syncNow() }
        #expect(try await served(server) == ["project|bad|NULL", "remark|r|1", "task|1|bad"])
    }

    @Test("a long chain of new records goes from its far end, however it was inserted", arguments: [false, true])
    func chain(isNamedByServer: Bool) async throws {
        let directory = try TestDirectory()
        let length = isNamedByServer ? 500 : 2000
        let schema = "CREATE TABLE folder (id INTEGER PRIMARY KEY, parent INTEGER REFERENCES folder(id))"
        let server = try Device.server(
            in: directory, entities: [.state("folder", ids: isNamedByServer ? .server : .client)])
        let here = try await Device(schema, tables: ["folder"], server: server, in: directory, name: "a")
        try await here.writer.write { db in
            try db.execute(sql: "PRAGMA defer_foreign_keys = ON")
            for index in (0..<length).reversed() {
                let id = isNamedByServer ? number(Int64(index)) : Int64(index)
                let parent = index == 0 ? nil : isNamedByServer ? number(Int64(index) - 1) : Int64(index) - 1
                try db.execute(sql: "INSERT INTO folder VALUES (?, ?)", arguments: [id, parent])
            }
        }
        try await here.sync()
        let sent = try await here.writer.write { db in
            try OutboxHistory.restoreAll(db)
            return try String.fetchAll(db, sql: "SELECT CAST(members AS TEXT) FROM tidemark_operation ORDER BY id")
        }
        #expect(sent.count == length)
        for (index, members) in sent.enumerated() {
            let id = isNamedByServer ? number(Int64(index)) : Int64(index)
            #expect(members.contains("d\":\"\(id)\""))
        }
        #expect(try await here.count("tidemark_shadow_folder") == 0)
        let there = try await Device(schema, tables: ["folder"], server: server, in: directory, name: "b")
        try await there.sync()
        let depth = """
            WITH RECURSIVE way(id, depth) AS (
              SELECT id, 1 FROM folder WHERE parent IS NULL
              UNION ALL SELECT folder.id, depth + 1 FROM way JOIN folder ON folder.parent = way.id)
            SELECT max(depth) FROM way
            """
        #expect(try await there.rows("SELECT count(*) FROM folder") == ["\(length)"])
        try await there.sql("CREATE INDEX folder_parent ON folder(parent)")
        #expect(try await there.rows(depth) == ["\(length)"])
    }

    @Test("new records that refer to each other go together")
    func circle() async throws {
        let directory = try TestDirectory()
        let server = try Device.server(in: directory)
        let schema = "CREATE TABLE folder (id INTEGER PRIMARY KEY, parent INTEGER REFERENCES folder(id))"
        let device = try await Device(schema, tables: ["folder"], server: server, in: directory)
        try await device.sql(
            "PRAGMA defer_foreign_keys = ON; INSERT INTO folder VALUES (1, 3), (2, 1), (3, 2), (4, 4), (5, 1)")
        try await device.sync()
        #expect(try await device.count("tidemark_operation WHERE state = 'applied'") == 5)
        #expect(try await device.count("tidemark_shadow_folder") == 0)
    }

    @Test("operations that go to another lane name what they need by its number there")
    func repaired() async throws {
        let (device, server) = try await device()
        try await device.sql(
            """
            INSERT INTO project VALUES ('first', 'f'), ('second', 's');
            INSERT INTO task VALUES (1, 'first', 't'), (2, 'second', 't');
            """)
        _ = try await device.seal(lane: "lane-before")
        try await device.writer.write { db in
            var problem = Problem(.operationGap, "")
            (problem.lane, problem.expected) = ("lane-before", 2)
            try Outbox.repair(db, scope: Device.scope, from: problem, lane: "lane-after")
        }
        let keys = try await device.rows(
            "SELECT record, lane = 'lane-after', number FROM tidemark_operation ORDER BY id")
        #expect(keys == ["\"first\"|0|1", "\"second\"|1|1", "\"1\"|1|2", "\"2\"|1|3"])
        let needs = try await device.sealed().map { $0.firstMatch(of: /"needs":\[(\d+)\]/).map { String($0.1) } }
        // The first project has had no answer yet, and no operation of the new lane can name it: that one is put off.
        #expect(needs == [nil, nil, "2", "1"])
        _ = server
        try await device.sync()
        #expect(
            try await served(server) == ["project|first|NULL", "project|second|NULL", "task|1|first", "task|2|second"])
    }

    @Test(
        "a row that names a record without an id waits with it, until that one goes or is gone",
        .records(
            "block none, blocked awaitingID", "block awaitingID, released", "queue idle, released",
            "queue queued, blocked awaitingID"))
    func waiting() async throws {
        let directory = try TestDirectory()
        let server = try Device.server(in: directory, entities: [.state("project", ids: .server)])
        for isDeleted in [false, true] {
            let device = try await Device(
                Self.schema, tables: Self.tables, server: server, in: directory, name: "d\(isDeleted)")
            let (task, remark) = isDeleted ? (2, "s") : (1, "r")
            try await device.writer.writeWithoutTransaction { db in
                try db.execute(
                    sql: """
                        PRAGMA foreign_keys = OFF;
                        INSERT INTO remark VALUES ('\(remark)', \(task), 'below');
                        INSERT INTO task VALUES (\(task), 'local-gone', 'waits');
                        """)
            }
            let engine = try device.engine()
            for _ in 0..<2 { try await engine.syncNow() }
            #expect(try await engine.status().blocked == 2)
            #expect(try await device.sealed() == [])
            try await device.sql(isDeleted ? "DELETE FROM task WHERE id = 2" : "UPDATE task SET project = NULL")
            for _ in 0..<2 { try await engine.syncNow() }
            #expect(try await engine.status().blocked == 0)
            #expect(try await device.count("tidemark_shadow_remark") == 0)
        }
        #expect(try await served(server) == ["remark|r|1", "remark|s|2", "task|1|NULL"])
    }

    @Test(
        "a row that names a record without an id is orphaned with its scope, and waits for nothing any more",
        .records("block awaitingID, orphaned"))
    func orphaned() async throws {
        let directory = try TestDirectory()
        let server = try Device.server(in: directory, entities: [.state("project", ids: .server)])
        let device = try await Device(Self.schema, tables: Self.tables, server: server, in: directory)
        try await device.writer.writeWithoutTransaction { db in
            try db.execute(
                sql: "PRAGMA foreign_keys = OFF; INSERT INTO task VALUES (1, 'local-gone', 'waits')")
        }
        let engine = try device.engine()
        for _ in 0..<2 { try await engine.syncNow() }
        #expect(try await device.count("tidemark_blocked WHERE reason = 'awaiting_id'") == 1)
        try await HandServer.remove(Device.scope, from: device.writer, try await device.installed())
        #expect(try await device.count("tidemark_blocked") == 0)
        #expect(try await device.count("tidemark_orphan") == 1)
    }

    @Test("an edit that is replayed after a loss blocks those that depend on it, and no others")
    func replayed() async throws {
        let (device, _) = try await device()
        try await device.sql("INSERT INTO project VALUES ('p', 'lost')")
        _ = try await device.seal(lane: "lane-before")
        try await device.sql(
            """
            UPDATE tidemark_operation SET state = 'replayed'; UPDATE project SET name = 'later';
            INSERT INTO task VALUES (1, 'p', 'below'); INSERT INTO project VALUES ('q', 'free');
            INSERT INTO remark VALUES ('r', 1, 'below that');
            """)
        #expect(try await device.seal(lane: "lane-after").map(\.record) == ["p", "q"])
        #expect(try await device.marked("task") == ["1"])
        #expect(try await device.count("tidemark_shadow_remark WHERE tidemark_mark IS NOT NULL") == 1)
        try await device.sync()
        #expect(try await device.sealed() == [])
        #expect(try await device.count("tidemark_shadow_task") + device.count("tidemark_shadow_project") == 0)
        #expect(try await device.count("tidemark_shadow_remark") == 0)
    }

    @Test("the cause of an edit's wait is forgotten with the edit")
    func forgotten() async throws {
        let (here, server) = try await device()
        let there = try await Device(Self.schema, tables: Self.tables, server: server)
        try await here.sql("INSERT INTO task VALUES (1, NULL, 'old')")
        try await here.sync()
        try await there.sync()
        try await here.sql("INSERT INTO project VALUES ('bad', ''); UPDATE task SET project = 'bad'")
        let engine = try here.engine()
        try await engine.syncNow()
        #expect(try await engine.status().blocked == 1)
        try await there.sql("UPDATE task SET title = 'theirs'")
        try await there.sync()
        // It is taken back while the server's row is on its way.
        await here.wire.next { request, inner in
            let answer = try await inner.send(request)
            try await here.sql("UPDATE task SET project = NULL")
            return answer
        }
        try await engine.syncNow()
        #expect(try await here.rows("SELECT project, title FROM task") == ["NULL|\"theirs\""])
        #expect(try await here.count("tidemark_shadow_task") == 0)
        #expect(try await engine.status().blocked == 0)
    }
}
