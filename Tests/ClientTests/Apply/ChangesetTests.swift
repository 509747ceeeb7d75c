import GRDB
import Testing
import TidemarkServer
import TidemarkTesting
import TidemarkWire

@testable import Tidemark

@Suite("The app gets each answer's changes as patchsets of SQLite's session extension")
struct ChangesetTests {
    private static let schema = """
        CREATE TABLE task (id TEXT PRIMARY KEY, title TEXT, done INTEGER, photo BLOB);
        CREATE TABLE part (a INTEGER, b TEXT, n REAL, PRIMARY KEY (a, b)) WITHOUT ROWID;
        CREATE TABLE other (id INTEGER PRIMARY KEY, n INTEGER);
        CREATE TRIGGER count AFTER INSERT ON task BEGIN INSERT INTO other (n) VALUES (1); END;
        """
    private static let tables: [SyncedTable] = [.table("task"), .table("part")]

    @Test("a copy that takes them, each even twice, holds what the device holds")
    func copy() async throws {
        let directory = try TestDirectory()
        let server = try Device.server(in: directory)
        let writer = try await Device(Self.schema, tables: ["task", "part"], server: server, in: directory, name: "w")
        try await writer.sql(
            """
            INSERT INTO task VALUES ('1', 'one', 0, X'00ff'), ('2', 'two', NULL, NULL);
            INSERT INTO part VALUES (1, 'x', 0.5), (1, 'y', -0.0)
            """)
        try await writer.sync()
        // Filled by a snapshot, then by pages.
        let (queue, copy) = (try DatabaseQueue(), try DatabaseQueue())
        for each in [queue, copy] { try await each.write { try $0.execute(sql: Self.schema) } }
        let heard = Locked<[ScopeChangeset]>([])
        let engine = try SyncEngine(
            for: queue, tables: Self.tables, scopes: [Device.scope],
            transport: InProcessTransport(to: server) { _ in .readWrite(as: "ada") },
            onChangeset: { changeset in heard.withLock { $0.append(changeset) } })
        func expectEqual(isAny: Bool) async throws {
            try await engine.syncNow()
            let changesets = heard.withLock { changesets in
                defer { changesets = [] }
                return changesets
            }
            #expect(changesets.isEmpty == !isAny && changesets.allSatisfy { $0.scope == Device.scope })
            for changeset in changesets {
                let kept = ScopeChangeset(scope: changeset.scope, patchset: changeset.patchset)
                for _ in 0..<2 { try await copy.write { try kept.apply(to: $0) } }
            }
            for table in ["task", "part"] {
                let rows = "SELECT * FROM \(table) ORDER BY 1, 2"
                let here = try queue.read { try Row.fetchAll($0, sql: rows) }
                let there = try copy.read { try Row.fetchAll($0, sql: rows) }
                #expect(here == there)
            }
        }
        try await expectEqual(isAny: true)
        try await writer.sql(
            """
            UPDATE task SET title = 'ONE' WHERE id = '1'; DELETE FROM task WHERE id = '2';
            INSERT INTO task VALUES ('3', 'three', 1, NULL); UPDATE part SET n = 7 WHERE b = 'x'
            """)
        try await writer.sync()
        try await expectEqual(isAny: true)
        // Nothing has come, and the device's own edit is none of the server's.
        try await expectEqual(isAny: false)
        let mine = "INSERT INTO task VALUES ('4', 'mine', 0, NULL)"
        for each in [queue, copy] { try await each.write { try $0.execute(sql: mine) } }
        try await expectEqual(isAny: false)
        #expect(try await copy.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM task") } == 3)
    }

    @Test("a table that is not there is passed over, and children may come before their parents")
    func otherSchema() async throws {
        let directory = try TestDirectory()
        let server = try Device.server(in: directory)
        let schema = """
            CREATE TABLE list (id TEXT PRIMARY KEY);
            CREATE TABLE item (id TEXT PRIMARY KEY, list TEXT REFERENCES list(id));
            """
        let tables = ["list", "item"]
        let writer = try await Device(schema, tables: tables, server: server, in: directory, name: "w")
        try await writer.sql("INSERT INTO list VALUES ('l'); INSERT INTO item VALUES ('i', 'l')")
        try await writer.sync()
        let (queue, heard) = (try DatabaseQueue(), Locked<[ScopeChangeset]>([]))
        try await queue.write { try $0.execute(sql: schema) }
        let engine = try SyncEngine(
            for: queue, tables: tables.map { .table($0) }, scopes: [Device.scope],
            transport: InProcessTransport(to: server) { _ in .readWrite(as: "ada") },
            onChangeset: { changeset in heard.withLock { $0.append(changeset) } })
        try await engine.syncNow()
        var configuration = Configuration()
        configuration.foreignKeysEnabled = false
        // No parent here, and no table for it either.
        for table in ["CREATE TABLE item (id TEXT PRIMARY KEY, list TEXT REFERENCES list(id))", schema] {
            let copy = try DatabaseQueue(configuration: configuration)
            try await copy.write { try $0.execute(sql: table) }
            for changeset in heard.withLock({ $0 }).reversed() {
                try await copy.write { try changeset.apply(to: $0) }
            }
            #expect(try await copy.read { try String.fetchAll($0, sql: "SELECT id FROM item") } == ["i"])
        }
    }

    @Test("bytes that are no patchset are an error, and none at all change nothing")
    func refused() async throws {
        let queue = try DatabaseQueue()
        let junk = ScopeChangeset(scope: Device.scope, patchset: [0x50, 0xff, 0xff, 0xff, 0xff, 0x01])
        await #expect(throws: DatabaseError.self) { try await queue.write { try junk.apply(to: $0) } }
        let empty = ScopeChangeset(scope: Device.scope, patchset: [])
        try await queue.write { try empty.apply(to: $0) }
    }

    @Test("generated columns are refused at once where the extension cannot record them, and not in the middle")
    func generated() async throws {
        let directory = try TestDirectory()
        let server = try Device.server(in: directory)
        let plain = "CREATE TABLE word (id TEXT PRIMARY KEY, t TEXT, n)"
        let writer = try await Device(plain, tables: ["word"], server: server, in: directory, name: "w")
        try await writer.sql("INSERT INTO word VALUES ('a', 'Aa', 1)")
        try await writer.sync()
        for kind in ["VIRTUAL", "STORED"] {
            let queue = try DatabaseQueue()
            try await queue.write { db in
                try db.execute(
                    sql: "CREATE TABLE word (id TEXT PRIMARY KEY, t TEXT, low TEXT AS (lower(t)) \(kind), n)")
            }
            func engine(_ handler: ChangesetHandler?) throws -> SyncEngine {
                try SyncEngine(
                    for: queue, tables: [.table("word")], scopes: [Device.scope],
                    transport: InProcessTransport(to: server) { _ in .readWrite(as: "ada") }, onChangeset: handler)
            }
            let heard = Locked<[ScopeChangeset]>([])
            do {
                try await engine { changeset in heard.withLock { $0.append(changeset) } }.syncNow()
                #expect(heard.withLock { !$0.isEmpty })
            } catch {
                #expect((error as? SyncError)?.code == .tableUnsupported, "\(error)")
                #expect("\(error)".contains("word"))
            }
            try await engine(nil).syncNow()
            #expect(try await queue.read { try String.fetchAll($0, sql: "SELECT low FROM word") } == ["aa"])
        }
    }

    @Test("without the extension an engine with a handler is refused, with the way out")
    func unsupported() throws {
        let error = #expect(throws: SyncError.self) {
            _ = try ChangesetTap(Self.tables, isSupported: false) { _ in }
        }
        #expect(error?.code == .sessionsUnavailable)
        #expect(error?.hint.contains("SQLITE_ENABLE_SESSION") == true)
    }
}
