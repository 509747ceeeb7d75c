import Foundation
import GRDB
import Testing
import TidemarkServer
import TidemarkTesting
import TidemarkWire

@testable import Tidemark

@Suite("Rows of the first capture are sent from their table, whatever happens meanwhile (I2, I13)")
struct FirstCaptureSendingTests {
    private static let schema = ItemDevices.filled(3500)
    private static let rows = ItemDevices.rows

    private let devices: ItemDevices

    init() throws { devices = try ItemDevices() }

    private func device(_ name: String, _ schema: String = ItemDevices.empty) async throws -> Device {
        try await devices.device(name, schema)
    }

    /// Runs `body` while the first push is under way: the server is known to have nothing, and most rows are left.
    ///
    /// - Parameter count: how many requests go before. The first one asks the server what it has.
    private func whileSending(
        _ device: Device, after count: Int = 1, _ body: @escaping @Sendable () async throws -> Void
    ) async {
        await device.wire.next { request, inner in
            let answer = try await inner.send(request)
            if count > 0 { await whileSending(device, after: count - 1, body) } else { try await body() }
            return answer
        }
    }

    private func expectSame(_ first: Device) async throws {
        let other = try await device("last")
        try await other.sync()
        try await first.sync()
        #expect(try await other.rows(Self.rows) == first.rows(Self.rows))
        try await devices.expectNothingWaits(first)
        #expect(try await first.count("tidemark_conflict") == 0)
        #expect(try await first.engine().verify().isClean)
    }

    /// A table, and whether its rows are kept by their keys.
    static let tables = [
        ("CREATE TABLE item (id TEXT PRIMARY KEY, title TEXT)", true),
        ("CREATE TABLE item (id INTEGER PRIMARY KEY, title TEXT)", true),
        ("CREATE TABLE item (id TEXT PRIMARY KEY, title TEXT) WITHOUT ROWID", true),
        ("CREATE TABLE item (title TEXT, id INT NOT NULL UNIQUE, PRIMARY KEY (id))", true),
        ("CREATE TABLE item (id TEXT, title TEXT, PRIMARY KEY (id, title))", false),
        ("CREATE TABLE item (id BLOB PRIMARY KEY, title TEXT)", false),
        (
            "CREATE TABLE item (id TEXT PRIMARY KEY REFERENCES box DEFERRABLE INITIALLY DEFERRED, title TEXT);"
                + "CREATE TABLE box (id TEXT PRIMARY KEY); INSERT INTO box VALUES (1), (10), (9), (-3)", false
        ),
    ]

    @Test("rows are kept by their keys where these are one text or number", arguments: 0..<tables.count)
    func kept(_ place: Int) async throws {
        let (table, isKept) = Self.tables[place]
        let fill = "; INSERT INTO item(id, title) VALUES (1, 'a'), (10, 'b'), (9, 'c'), (-3, 'd')"
        let device = try await device("first", table + fill)
        _ = try await device.installed()
        let parts = try await device.count("tidemark_first_capture")
        #expect((parts > 0) == isKept)
        #expect(try await device.engine().status().pending == 4)
        #expect(try await device.engine().status().tables["item"]?.outgoing == 4)
        try await device.sync()
        let other = try await self.device("other", table)
        try await other.sync()
        let rows = "SELECT id, title FROM item ORDER BY title"
        #expect(try await other.rows(rows) == device.rows(rows))
        #expect(try await other.count("item") == 4)
        #expect(try await device.count("tidemark_first_capture") == 0)
        #expect(try await device.count("tidemark_shadow_item") == 0)
    }

    @Test("a push that nobody disturbs makes no shadow, and never has more than two runs under way")
    func shadows() async throws {
        let device = try await device("first", Self.schema)
        let most = Locked((shadows: 0, runs: 0))
        for _ in 0..<12 {
            await device.wire.next { request, inner in
                let shadows = try await device.count("tidemark_shadow_item")
                let runs = try await device.count("tidemark_sealed_run")
                most.withLock { $0 = (max($0.shadows, shadows), max($0.runs, runs)) }
                return try await inner.send(request)
            }
        }
        try await device.sync()
        #expect(most.withLock { $0.shadows } == 0)
        #expect((1...4).contains(most.withLock { $0.runs }))
        try await expectSame(device)
    }

    @Test("edits, deletes and new rows while rows are left")
    func edited() async throws { try await edit(limit: 1000, after: 1) }

    @Test("edits, deletes and new rows while requests grow smaller")
    func tapered() async throws {
        try await Dependencies.$current.withValue(SmallPartsClock()) { try await edit(limit: 20, after: 150) }
    }

    private func edit(limit: Int, after count: Int) async throws {
        let device = try await device("first", Self.schema)
        var configuration = SyncConfiguration()
        configuration.operationLimit = limit
        await whileSending(device, after: count) {
            #expect(try await device.count("tidemark_first_capture") > 0)
            try await device.sql(
                """
                UPDATE item SET title = 'edited' WHERE id IN ('r0001', 'r3100', 'r3500');
                DELETE FROM item WHERE id IN ('r0002', 'r3200');
                DELETE FROM item WHERE id = 'r3300'; INSERT INTO item VALUES ('r3300', 'again', 1);
                INSERT OR REPLACE INTO item VALUES ('r3400', 'replaced', 1);
                UPDATE item SET id = 'r9999' WHERE id = 'r3450';
                UPDATE item SET id = 'a' WHERE id = 'r3451';
                INSERT INTO item VALUES ('r34055', 'between', 2), ('z', 'behind', 2);
                DELETE FROM item WHERE id = 'z';
                """)
            let status = try await device.engine().status()
            let count = try await device.count("item")
            #expect(status.tables["item"]?.total == count)
            let pending = try await device.engine().state(of: "item", id: "r3150")
            #expect(pending == .pending)
        }
        try await device.engine(configuration).syncNow()
        try await expectSame(device)
        #expect(try await device.count("item") == 3499)
        #expect(try await device.count("item WHERE title = 'edited'") == 3)
    }

    @Test("another device writes to the scope while rows are left")
    func others() async throws {
        let device = try await device("first", Self.schema)
        let other = try await self.device("other")
        await whileSending(device) {
            try await other.sql(
                "INSERT INTO item VALUES ('r0500', 'theirs', 9), ('r3490', 'theirs', 9), ('s', 'theirs', 9)")
            try await other.sync()
            try await other.sql("DELETE FROM item WHERE id = 's'")
            try await other.sync()
        }
        try await device.sync()
        try await device.sync()
        try await other.sync()
        #expect(try await other.rows(Self.rows) == device.rows(Self.rows))
        #expect(try await device.count("item") == 3500)
        // The row that gave way to the other device's is listed.
        #expect(try await device.count("tidemark_conflict WHERE record = 'r3490'") == 1)
        #expect(try await device.count("item WHERE id = 'r3490' AND title = 'theirs'") == 1)
        #expect(try await device.count("tidemark_first_capture") == 0)
        #expect(try await device.count("tidemark_shadow_item") == 0)
    }

    @Test("rows that are left are no part of what is compared with the server")
    func verified() async throws {
        let device = try await device("first", Self.schema)
        await whileSending(device) { throw Wire.Lost() }
        await #expect(throws: (any Error).self) { try await device.sync() }
        #expect(try await device.count("tidemark_first_capture") > 0)
        let schema = try await device.installed()
        let shape = try #require(schema["item"])
        let seen = try await device.writer.read { db in
            var (seen, last): (Int, [Cell]?) = (0, nil)
            repeat {
                last = try ServerRows(shape: shape, scope: Device.scope).step(db, from: last) { _, _ in seen += 1 }
            } while last != nil
            return seen
        }
        // Those that the server has taken are.
        #expect(try await device.rows("SELECT records FROM tidemark_manifested") == ["\(seen)"])
        #expect(seen < 3500)
        try await device.sync()
        try await expectSame(device)
    }

    @Test("a page with the server's row meets each row as what it is: one that the server was thought to lack")
    func page() async throws {
        let device = try await HandServer(
            noteSchema, tables: [.table("note")], seeds: "INSERT INTO note(id, title) VALUES ('n1', 'a'), ('n2', 'b')")
        try await device.queue.write { db in
            try db.execute(sql: "UPDATE tidemark_table SET uncompared = NULL")
        }
        try await device.page(VerdictCellTests.note("n1"))
        #expect(try await device.count("note WHERE id = 'n1' AND title = 'base'") == 1)
        #expect(try await device.count("tidemark_conflict WHERE record = 'n1'") == 1)
        #expect(try await device.count("tidemark_first_capture") == 0)
        #expect(try await device.count("tidemark_shadow_note WHERE id = 'n2' AND tidemark_mark > 0") == 1)
    }

    /// A table of one scope, and one of another whose rows refer to it and wait.
    private func twoScopes(_ parent: String) async throws -> HandServer {
        try await HandServer(
            """
            CREATE TABLE client (id TEXT PRIMARY KEY, name TEXT);
            CREATE TABLE visit (id TEXT PRIMARY KEY, client TEXT REFERENCES client(id) ON DELETE CASCADE);
            """,
            tables: [.table("client", scope: .constant("w:1")), .table("visit", scope: .constant("w:2"))],
            scopes: ["w:1", "w:2"],
            seeds: "INSERT INTO client VALUES ('\(parent)', 'a'); INSERT INTO visit VALUES ('v1', '\(parent)')")
    }

    @Test("a row that waits gets the id that another scope's server has given to the record it refers to")
    func renamed() async throws {
        let device = try await twoScopes("local-1")
        let declared = Declarations(entities: [.state("client", ids: .server)])
        try await device.compare(in: "w:1")
        let entry = try await device.seal(in: "w:1", declarations: declared)
        try await device.answer(
            entry, #""status":"applied","version":VERSION,"id":"c77""#, in: "w:1", declarations: declared)
        #expect(try await device.count("tidemark_first_capture WHERE entity = 'visit'") == 1)
        #expect(try await device.count("client WHERE id = 'c77'") == 1)
        #expect(try await device.count("visit WHERE client = 'c77'") == 1)
    }

    @Test("a row that waits and goes with a parent that was deleted elsewhere is listed")
    func cascade() async throws {
        let device = try await twoScopes("p1")
        try await device.page(in: "w:1") { Device.upsert("client", "p1", $0, #"{"name":"a"}"#) }
        try await device.page(in: "w:1") { Device.delete("client", "p1", $0) }
        #expect(try await device.count("visit") == 0)
        #expect(try await device.count("tidemark_conflict WHERE entity = 'visit' AND record = 'v1'") == 1)
    }

    @Test("triggers that are gone while rows are left, and what is written then")
    func uncaptured() async throws {
        let device = try await device("first", Self.schema)
        await whileSending(device) {
            try await device.sql(
                """
                CREATE TABLE copy AS SELECT * FROM item; DROP TABLE item;
                CREATE TABLE item (id TEXT PRIMARY KEY, title TEXT, rank INTEGER);
                INSERT INTO item SELECT * FROM copy; DROP TABLE copy;
                UPDATE item SET title = 'unseen' WHERE id IN ('r0003', 'r3303');
                DELETE FROM item WHERE id = 'r3304';
                """)
        }
        _ = try? await device.sync()
        try await device.sync()
        try await expectSame(device)
        #expect(try await device.count("item WHERE title = 'unseen'") == 2)
    }

    @Test("a column that comes while rows are left")
    func newColumn() async throws {
        let device = try await device("first", Self.schema)
        await whileSending(device) {
            try await device.sql("ALTER TABLE item ADD COLUMN color TEXT NOT NULL DEFAULT 'red'")
        }
        _ = try? await device.sync()
        try await device.sync()
        let other = try await self.device(
            "other", "CREATE TABLE item (id TEXT PRIMARY KEY, title TEXT, rank INTEGER, color TEXT);")
        try await other.sync()
        #expect(try await other.rows(Self.rows) == device.rows(Self.rows))
        #expect(try await device.count("item WHERE color = 'red'") == 3500)
        #expect(try await device.count("tidemark_first_capture") == 0)
    }

    @Test("a scope that goes while rows are left replays them when it comes again")
    func scope() async throws {
        let device = try await device("first", Self.schema)
        let shape = try #require(try await device.installed()["item"])
        let schema = try await device.installed()
        try await device.writer.write { db in _ = try FirstCapture.end(db, shape, in: Device.scope) }
        try await device.sql(
            "UPDATE item SET title = 'edited' WHERE id = 'r0001'; UPDATE tidemark_scope SET complete = 0")
        _ = try await device.writer.writeWithoutTransaction { db in
            try ScopeRemoval(
                scope: Device.scope, schema: schema, declarations: Declarations(), isLoss: true, now: 1
            ).run(db)
        }
        #expect(try await device.count("item") == 0)
        #expect(try await device.count("tidemark_orphan WHERE kind = 'seed'") == 3500)
        try await device.sync()
        try await device.sync()
        #expect(try await device.count("item") == 3500)
        try await expectSame(device)
    }

    @Test("an edited row that goes with its group while rows are left is kept whole")
    func group() async throws {
        let device = try await device("first", Self.schema)
        let shape = try #require(try await device.installed()["item"])
        try await device.sql("UPDATE item SET title = 'edited' WHERE id = 'r0001'")
        try await device.sql("UPDATE tidemark_shadow_item SET tidemark_group = 'g'")
        let taken = try await device.writer.write { db in
            _ = try FirstCapture.end(db, shape, in: Device.scope)
            return try TableRemoval(
                db: db, scope: Device.scope, table: RecordTable(shape), reserved: [], now: 1
            ).run(group: "g")
        }
        #expect(taken.map(\.text) == ["r0001"])
        #expect(try await device.count("tidemark_orphan WHERE record = 'r0001' AND kind = 'seed'") == 1)
    }

    /// Rows that are left, and the same with a column by which a new rule spreads them.
    static let rules: [(String, SyncedTable.ScopeRule)] = [
        ("", .constant("w:b")), ("ALTER TABLE item ADD COLUMN team TEXT", .column("team", prefix: "w:")),
    ]

    @Test("another rule while rows are left deletes none that was not sent", arguments: [0, 1])
    func rule(_ place: Int) async throws {
        let device = try await device("first", Self.schema)
        let shape = try #require(try await device.installed()["item"])
        try await device.writer.write { db in _ = try FirstCapture.end(db, shape, in: Device.scope) }
        let (migration, rule) = Self.rules[place]
        try await device.sql(migration)
        let engine = try SyncEngine(
            for: device.writer, tables: [.table("item", scope: rule)], scopes: [Device.scope, "w:b"],
            transport: device.wire)
        try await engine.install()
        let standing = try await device.count("item")
        let orphaned = try await device.count("tidemark_orphan")
        #expect(standing + orphaned == 3500)
        #expect(try await device.count("tidemark_first_capture") == 0)
    }

    @Test("a file of version 12 is brought up to date although a rule has changed, and its status can be read before")
    func older() async throws {
        let device = try await device("first", Self.schema)
        try await device.sync()
        try await device.sql(
            """
            DROP VIEW tidemark_state_item; DROP TABLE tidemark_first_capture; DROP TABLE tidemark_sealed_run;
            UPDATE tidemark_meta SET value = '12' WHERE key = 'schema'
            """)
        let status = try await device.writer.read { db in try SyncStatus(db, scopes: [Device.scope]) }
        #expect(status.pending == 0 && status.tables["item"]?.total == 3500)
        let engine = try SyncEngine(
            for: device.writer, tables: [.table("item", scope: .constant("w:b"))], scopes: ["w:b"],
            transport: device.wire)
        try await engine.install()
        #expect(try await device.count("tidemark_first_capture") == 0)
    }
}
