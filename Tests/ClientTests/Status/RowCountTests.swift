import Foundation
import GRDB
import Testing
import TidemarkServer
import TidemarkTesting
import TidemarkWire

@testable import Tidemark

@Suite("Counts: each row is confirmed, outgoing, stalled or unable to travel (I13)")
struct RowCountTests {
    @Test("a row that is made anew while the server's row of its key is quarantined counts once")
    func quarantinedNamesake() async throws {
        let directory = try TestDirectory()
        let server = try Device.server(in: directory)
        let schema = "CREATE TABLE project (id TEXT PRIMARY KEY, slug TEXT UNIQUE)"
        let first = try await Device(schema, tables: ["project"], server: server, in: directory, name: "first")
        let second = try await Device(schema, tables: ["project"], server: server, in: directory, name: "second")
        try await first.sql("INSERT INTO project VALUES ('p1', 'same')")
        try await second.sql("INSERT INTO project VALUES ('p2', 'same')")
        for device in [first, second, first] { try await device.sync() }
        let quarantined = try await first.rows("SELECT record FROM tidemark_quarantine")
        #expect(quarantined.count == 1)
        let id = try #require(quarantined.first).replacing("\"", with: "")
        #expect(try await first.engine().status().rows.quarantined == 1)
        try await first.sql("INSERT INTO project VALUES ('\(id)', 'other')")
        let rows = try await first.engine().status().rows
        #expect((rows.confirmed, rows.outgoing, rows.total) == (1, 1, 2))
        for device in [first, second, first] { try await device.sync() }
        for device in [first, second] {
            let rows = try await device.engine().status().rows
            #expect((rows.confirmed, rows.outgoing, rows.quarantined) == (2, 0, 0))
            #expect(try await device.engine().verify().isClean)
        }
    }

    /// The tables of ``oneInEachState()``: a note may lack its key, and memos lie in another scope.
    private static let schema = """
        CREATE TABLE note (id TEXT PRIMARY KEY, title TEXT);
        CREATE TABLE project (id TEXT PRIMARY KEY, name TEXT);
        CREATE TABLE task (id TEXT PRIMARY KEY, project TEXT REFERENCES project(id), title TEXT);
        CREATE TABLE entry (id TEXT PRIMARY KEY, title TEXT);
        CREATE TABLE memo (id TEXT PRIMARY KEY, w TEXT, title TEXT);
        """

    /// - Parameter scopes: those that the device follows.
    private func device(_ name: String, _ world: MultiScopeWorld, scopes: [Scope]) async throws -> Device {
        let withdrawn = world.withdrawn
        let constant = ["note", "project", "task", "entry"].map { SyncedTable.table($0, scope: .constant("w:1")) }
        return try await Device(
            Self.schema, server: world.server, in: world.directory, name: name,
            synced: constant + [.table("memo", scope: .column("w", prefix: "w:"))], scopes: scopes,
            access: { try await withdrawn.access(to: $0) })
    }

    @Test("a file with one record in each state counts one edit of each kind, and each row once")
    func oneInEachState() async throws {
        let rule = EntityRule("project") { $0.proposed["name"] == "" ? .reject(code: "no", detail: "No.") : .accept }
        let world = try MultiScopeWorld(entities: [.state("note", conflict: .manual)], rules: [rule])
        let here = try await device("here", world, scopes: ["w:1", "w:2"])
        let there = try await device("there", world, scopes: ["w:1"])
        try await here.sql(
            """
            INSERT INTO note VALUES ('confirmed', 'x'), ('pending', 'x'), ('sent', 'x'), ('undecided', 'x');
            INSERT INTO note VALUES (NULL, 'x');
            INSERT INTO entry VALUES ('inferred', 'x'); INSERT INTO memo VALUES ('orphaned', '2', 'x')
            """)
        try await Device.sync(here, there)
        // Its scope leaves the device before it is sent.
        try await here.sql("UPDATE memo SET title = 'mine'")
        await world.withdrawn.insert("w:2")
        await #expect(throws: SyncError.self) { try await here.sync() }
        // Somebody else has edited the note, and the server takes no project without a name.
        try await there.sql("UPDATE note SET title = 'theirs' WHERE id = 'undecided'")
        try await there.sync()
        try await here.sql(
            """
            UPDATE note SET title = 'mine' WHERE id = 'undecided';
            INSERT INTO project VALUES ('rejected', ''); INSERT INTO task VALUES ('blocked', 'rejected', 'x')
            """)
        for _ in 0..<2 { try await here.sync(["w:1"]) }
        // The answer does not come.
        try await here.sql("UPDATE note SET title = 'mine' WHERE id = 'sent'")
        await here.wire.loseAnswer()
        await #expect(throws: SyncError.self) { try await here.sync(["w:1"]) }
        try await here.sql("UPDATE note SET title = 'mine' WHERE id = 'pending'")
        // The table is rebuilt without its triggers, and its row is another one then.
        try await here.sql(
            """
            CREATE TABLE fresh (id TEXT PRIMARY KEY, title TEXT); INSERT INTO fresh SELECT id, 'unseen' FROM entry;
            DROP TABLE entry; ALTER TABLE fresh RENAME TO entry
            """)
        let engine = try here.engine(scopes: ["w:1"])
        try await engine.install()

        let status = try await engine.status()
        #expect((status.pending, status.sent, status.blocked, status.rejected) == (1, 1, 1, 1))
        #expect((status.undecided, status.orphaned, status.inferred) == (1, 1, 1))
        #expect(status.rows == SyncStatus.Rows(confirmed: 1, outgoing: 3, stalled: 2, unable: 1))
        #expect(status.oldestEdit != nil && !status.isConfirmed)
        #expect(try await engine.state(of: "entry", id: "inferred") == .inferred)
        for (id, state) in [("confirmed", RecordState.confirmed), ("pending", .pending), ("sent", .sent)] {
            #expect(try await engine.state(of: "note", id: id) == state)
        }
        let unsent = try await here.writer.read { db in try UnsentEdits(db) }
        #expect(
            unsent
                == UnsentEdits(
                    pending: 1, sent: 1, blocked: 1, rejected: 1, undecided: 1, orphaned: 1, inferred: 1, unable: 1))
    }

    @Test("before the first sync every row is outgoing, and after a sign-out none is")
    func uncaptured() async throws {
        let directory = try TestDirectory()
        let server = try Device.server(in: directory)
        let schema = """
            CREATE TABLE task (id TEXT PRIMARY KEY, title TEXT);
            INSERT INTO task VALUES ('t1', 'a'), ('t2', 'b'), (NULL, 'c');
            """
        let file = try DatabaseQueue(path: directory.url.appending(path: "plain.sqlite").path)
        try await file.write { db in try db.execute(sql: schema) }
        let wire = InProcessTransport(to: server) { _ in .readWrite(as: "ada") }
        func device() throws -> SyncEngine {
            try SyncEngine(for: file, tables: [.table("TASK")], scopes: [Device.scope], transport: wire)
        }
        let engine = try device()
        let before = try await engine.status()
        #expect(before.tables == ["task": SyncStatus.Rows(outgoing: 2, unable: 1)])
        #expect(!before.isConfirmed)
        #expect(try await !file.read { db in try LibrarySchema.isInstalled(db) })
        _ = try await engine.syncNow()
        #expect(try await engine.status().tables == ["task": SyncStatus.Rows(confirmed: 2, unable: 1)])
        let other = try device()
        _ = try await other.disconnectAndRemove(discardingUnsent: true)
        // The one has signed out; the other finds the library taken out of its file.
        for engine in [other, engine] { #expect(try await engine.status().tables.isEmpty) }
    }
}
