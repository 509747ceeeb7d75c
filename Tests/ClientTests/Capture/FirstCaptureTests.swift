import Foundation
import GRDB
import Testing
import TidemarkServer
import TidemarkWire

@testable import Tidemark

@Suite("Rows of the first capture wait by their keys until they are held against the server's (I2, I13)")
struct FirstCaptureTests {
    private static let schema = ItemDevices.filled(200)
    private static let empty = ItemDevices.empty
    private static let rows = ItemDevices.rows

    private let devices: ItemDevices
    private var directory: TestDirectory { devices.directory }
    private var server: SyncServer { devices.server }

    init() throws { devices = try ItemDevices() }

    private func device(_ name: String, _ schema: String = Self.schema) async throws -> Device {
        try await devices.device(name, schema)
    }

    @Test("they are pending from the first moment, and none is sent before the server was asked")
    func waiting() async throws {
        let device = try await device("first")
        _ = try await device.installed()
        #expect(try await device.count("tidemark_table WHERE uncompared = 'w:1'") == 1)
        #expect(try await device.count("tidemark_shadow_item") == 0)
        #expect(try await device.rows("SELECT sum(records) FROM tidemark_first_capture") == ["200"])
        #expect(try await device.engine().status().pending == 200)
        #expect(try await device.count("tidemark_state_item WHERE tidemark_state = 'pending'") == 200)
        await device.wire.nextRecords { _, _ in throw Wire.Lost() }
        await #expect(throws: (any Error).self) { try await device.sync() }
        #expect(try await device.count("tidemark_operation") == 0)
        try await device.sync()
        try await devices.expectNothingWaits(device)
    }

    @Test("a row that is noted by itself and edited before it was compared is pending once")
    func pendingOnce() async throws {
        let device = try await Device(
            """
            CREATE TABLE pair (a TEXT, b TEXT, title TEXT, PRIMARY KEY (a, b));
            INSERT INTO pair VALUES ('1', '1', 'x'), ('1', '2', 'y');
            """, tables: ["pair"])
        _ = try await device.installed()
        #expect(try await device.count("tidemark_inferred WHERE kind = 4") == 2)
        try await device.sql("UPDATE pair SET title = 'edited' WHERE b = '1'")
        let status = try await device.engine().status()
        #expect(status.pending == 2 && status.rows.outgoing == 2)
    }

    @Test("edits made while they wait follow them to a server that has nothing")
    func edited() async throws {
        let device = try await device("first")
        _ = try await device.installed()
        try await device.sql(
            """
            UPDATE item SET title = 'edited' WHERE id = 'r007'; DELETE FROM item WHERE id = 'r008';
            DELETE FROM item WHERE id = 'r009'; INSERT INTO item VALUES ('r009', 'again', 1), ('new', 'new', 2);
            """)
        try await device.sync()
        try await devices.expectNothingWaits(device)
        let other = try await self.device("other", Self.empty)
        try await other.sync()
        #expect(try await other.rows(Self.rows) == device.rows(Self.rows))
        #expect(try await other.count("item") == 200)
    }

    @Test("where the server has rows, those that wait give way, and edits that were made since stay")
    func takenApart() async throws {
        let device = try await device("first")
        _ = try await device.installed()
        try await device.sql(
            "UPDATE item SET title = 'edited' WHERE id = 'r001'; DELETE FROM item WHERE id = 'r002'")
        let other = try await self.device("other", Self.empty)
        try await other.sql(
            "INSERT INTO item VALUES ('r001', 'theirs', 9), ('r002', 'theirs', 9), ('r003', 'theirs', 9)")
        try await other.sync()
        try await device.sync()
        try await other.sync()
        try await device.sync()
        try await devices.expectNothingWaits(device)
        for device in [device, other] {
            let changed = try await device.rows(Self.rows + " LIMIT 2")
            #expect(changed == [#""r001"|"edited"|9"#, #""r003"|"theirs"|9"#])
            #expect(try await device.count("item") == 199)
        }
    }

    @Test("triggers that are gone while they wait, and what is written then")
    func uncaptured() async throws {
        let device = try await device("first")
        _ = try await device.installed()
        try await device.sql("UPDATE item SET title = 'seen' WHERE id = 'r001'")
        try await device.sql(
            """
            CREATE TABLE copy AS SELECT * FROM item; DROP TABLE item;
            CREATE TABLE item (id TEXT PRIMARY KEY, title TEXT, rank INTEGER);
            INSERT INTO item SELECT * FROM copy; DROP TABLE copy;
            UPDATE item SET title = 'unseen' WHERE id = 'r002'; DELETE FROM item WHERE id = 'r003';
            """)
        _ = try await device.installed()
        #expect(try await device.count("tidemark_table WHERE uncompared IS NOT NULL") == 0)
        #expect(try await device.count("tidemark_inferred") == 199)
        try await device.sync()
        try await devices.expectNothingWaits(device)
        let other = try await self.device("other", Self.empty)
        try await other.sync()
        #expect(try await other.rows(Self.rows) == device.rows(Self.rows))
        #expect(try await other.rows(Self.rows + " LIMIT 2") == [#""r001"|"seen"|1"#, #""r002"|"unseen"|2"#])
    }

    @Test("a table that is rebuilt while its rows wait has rows that give way all the same")
    func rebuilt() async throws {
        let device = try await device("first")
        _ = try await device.installed()
        let other = try await self.device("other", Self.empty)
        try await other.sql("INSERT INTO item VALUES ('r005', 'theirs', 9)")
        try await other.sync()
        try await device.sql(
            """
            CREATE TABLE copy (id TEXT PRIMARY KEY, title TEXT, rank INTEGER); INSERT INTO copy SELECT * FROM item;
            DROP TABLE item; ALTER TABLE copy RENAME TO item
            """)
        try await device.sync()
        try await devices.expectNothingWaits(device)
        #expect(try await device.count("item WHERE id = 'r005' AND title = 'theirs'") == 1)
        let conflicts = try await device.engine().conflicts()
        #expect(conflicts.map(\.rule) == [.firstCapture] && conflicts.allSatisfy { !$0.isOpen })
    }

    @Test("a row that is edited while its run is under way keeps its shadow, and the others lose theirs")
    func editedUnderWay() async throws {
        let device = try await device("first")
        await device.wire.next { request, inner in
            try await device.sql("UPDATE item SET title = 'under way' WHERE id IN ('r050', 'r200')")
            return try await inner.send(request)
        }
        try await device.sync()
        try await devices.expectNothingWaits(device)
        let other = try await self.device("other", Self.empty)
        try await other.sync()
        #expect(try await other.rows(Self.rows) == device.rows(Self.rows))
        #expect(try await other.count("item WHERE title = 'under way'") == 2)
    }

    @Test("a column that comes while they wait is sent with them as it stands", arguments: [false, true])
    func newColumn(isThere: Bool) async throws {
        let device = try await device("first")
        if isThere {
            let other = try await self.device("other", Self.empty)
            try await other.sql("INSERT INTO item VALUES ('r001', 'theirs', 9), ('r002', 'theirs', 9)")
            try await other.sync()
        }
        try await device.sql("UPDATE item SET title = 'edited' WHERE id = 'r001'")
        try await device.sql("ALTER TABLE item ADD COLUMN color TEXT NOT NULL DEFAULT 'red'")
        try await device.sync()
        try await devices.expectNothingWaits(device)
        let sent = await device.wire.bodies.joined()
        #expect(!sent.contains(#""color":null"#))
        let later = try await self.device(
            "later", "CREATE TABLE item (id TEXT PRIMARY KEY, title TEXT, rank INTEGER, color TEXT);")
        try await later.sync()
        #expect(try await later.rows(Self.rows) == device.rows(Self.rows))
        // The migration's default in a row that the server has is no edit of that row.
        #expect(try await later.count("item WHERE color = 'red'") == (isThere ? 198 : 200))
        #expect(try await later.rows(Self.rows).first == (isThere ? #""r001"|"edited"|9"# : #""r001"|"edited"|1"#))
    }

    @Test("a table that is dropped while its rows wait holds nothing up, and is another one when it comes again")
    func vanished() async throws {
        let both = Self.schema + Self.schema.replacing("item", with: "part")
        let device = try await Device(both, tables: ["item", "part"], server: server, in: directory, name: "first")
        #expect(try await device.count("tidemark_table WHERE uncompared IS NOT NULL") == 2)
        try await device.sql("UPDATE part SET title = 'edited' WHERE id = 'r001'; DROP TABLE part")
        let rest = try SyncEngine(
            for: device.writer, tables: [.table("item")], scopes: [Device.scope], transport: device.wire)
        try await rest.syncNow()
        try await devices.expectNothingWaits(device)
        #expect(try await rest.verify(repairing: true).isClean)
        try await device.sql(Self.schema.replacing("item", with: "part"))
        try await device.sync()
        let other = try await Device(
            Self.empty + Self.empty.replacing("item", with: "part"), tables: ["item", "part"], server: server,
            in: directory, name: "other")
        try await other.sync()
        for table in ["item", "part"] {
            let rows = Self.rows.replacing("item", with: table)
            #expect(try await other.rows(rows) == device.rows(rows))
            #expect(try await other.count(table) == 200)
        }
    }

    @Test("a run that the server takes whole costs no statement on a shadow")
    func statements() async throws {
        let device = try await device("first")
        let statements = Locked(0)
        await device.wire.next { request, inner in
            try await device.writer.write { db in
                db.trace(options: .statement) { event in
                    let sql = "\(event)"
                    guard sql.contains("\"tidemark_shadow_item\"") && !sql.hasPrefix("SELECT") else { return }
                    statements.withLock { $0 += 1 }
                }
            }
            return try await inner.send(request)
        }
        try await device.sync()
        try await device.writer.write { db in db.trace() }
        #expect(try await device.count("tidemark_shadow_item") == 0)
        #expect(statements.withLock { $0 } == 0)
    }

    @Test("an event that is deleted while it waits is not sent")
    func events() async throws {
        let server = try Device.server(
            in: directory, name: "events", entities: [EntityDeclaration("item", kind: .events)])
        let device = try await Device(Self.schema, tables: ["item"], server: server, in: directory, name: "events")
        try await device.sql("DELETE FROM item WHERE id = 'r001'")
        try await device.sync()
        try await devices.expectNothingWaits(device)
        let other = try await Device(Self.empty, tables: ["item"], server: server, in: directory, name: "reader")
        try await other.sync()
        #expect(try await other.count("item") == 199)
        #expect(try await other.count("item WHERE id = 'r001'") == 0)
    }

    @Test(
        "a row that a page of another scope takes along while it waits is not sent", arguments: [false, true])
    func takenAlong(isThere: Bool) async throws {
        if isThere {
            let other = try await self.device("other", Self.empty)
            try await other.sql("INSERT INTO item VALUES ('r100', 'theirs', 9)")
            try await other.sync()
        }
        let device = try await device("first")
        let schema = try await device.installed()
        try await device.writer.write { db in
            try db.execute(sql: "INSERT INTO tidemark_scope(name) VALUES ('w:2')")
            try CaptureSuppression.whileApplying(db, schema) {
                try db.execute(sql: "DELETE FROM item WHERE id IN ('r001', 'r002')")
            }
        }
        try await device.sync()
        try await devices.expectNothingWaits(device)
        let sent = await device.wire.bodies.joined()
        #expect(sent.contains("r003") && !sent.contains("r001") && !sent.contains("r002"))
        let later = try await self.device("later", Self.empty)
        try await later.sync()
        #expect(try await later.rows(Self.rows) == device.rows(Self.rows))
        #expect(try await later.count("item") == 198)
    }

    @Test("a table that is spelled anew and gets a column while its rows wait", arguments: [false, true])
    func respelled(isEdited: Bool) async throws {
        let device = try await device("first")
        if isEdited { try await device.sql("UPDATE item SET title = 'edited' WHERE id = 'r001'") }
        try await device.sql(
            """
            ALTER TABLE item RENAME TO former; ALTER TABLE former RENAME TO Item;
            ALTER TABLE Item ADD COLUMN color TEXT NOT NULL DEFAULT 'red'
            """)
        let engine = try SyncEngine(
            for: device.writer, tables: [.table("Item")], scopes: [Device.scope], transport: device.wire)
        try await engine.syncNow()
        try await devices.expectNothingWaits(device)
        let sent = await device.wire.bodies.joined()
        #expect(!sent.contains(#""color":null"#))
        #expect(sent.components(separatedBy: #""r001""#).count == (isEdited ? 3 : 2))
    }
}
