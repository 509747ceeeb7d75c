import Foundation
import GRDB
import Testing
import Tidemark
import TidemarkServer
import TidemarkTesting

private struct Todo: Codable, Equatable, FetchableRecord, PersistableRecord {
    var id: String
    var title: String
}

/// The code of the guides for an app's screens, keys and migrations, compiled as it stands there, and run.
@Suite("The guides are right about observations, UUID keys and rebuilds", .timeLimit(.minutes(10)))
struct AppSnippetTests {
    // snippet: uuid-key
    struct Photo: Codable, FetchableRecord, PersistableRecord {
        var id: UUID
        var caption: String

        static func databaseUUIDEncodingStrategy(for column: String) -> DatabaseUUIDEncodingStrategy {
            .lowercaseString
        }
    }
    // end snippet

    private static func observe(database: DatabasePool, show: ([Todo]) -> Void) async throws {
        // snippet: observation
        let observation = ValueObservation.tracking { db in try Todo.order(Column("title")).fetchAll(db) }
        for try await todos in observation.values(in: database) { show(todos) }
        // end snippet
    }

    private static func rebuild(_ migrator: inout DatabaseMigrator) {
        // snippet: rebuild
        migrator.registerMigration("todos need a title", foreignKeyChecks: .deferred) { db in
            try db.create(table: "todo_new") { table in
                table.primaryKey("id", .text)
                table.column("title", .text).notNull().defaults(to: "")
            }
            try db.execute(sql: "INSERT INTO todo_new SELECT id, coalesce(title, '') FROM todo")
            try db.drop(table: "todo")
            try db.rename(table: "todo_new", to: "todo")
        }
        // end snippet
    }

    private static func suspending(path: String, phases: AsyncStream<Phase>) async throws {
        // snippet: suspension
        var configuration = Configuration()
        configuration.observesSuspensionNotifications = true
        let database = try DatabasePool(path: path, configuration: configuration)

        // The app leaves the screen, and the time that it asked the system for is over; or it comes back.
        for await phase in phases {
            let name = phase == .leaving ? Database.suspendNotification : Database.resumeNotification
            NotificationCenter.default.post(name: name, object: nil)
        }
        // end snippet
        _ = database
    }

    private static func share(
        path: String, tables: [SyncedTable], transport: any Transport, todo: Todo
    ) async throws {
        // snippet: extension
        // In the app and in its extension: one file, in the folder of their app group.
        var configuration = Configuration()
        configuration.busyMode = .timeout(5)
        configuration.observesSuspensionNotifications = true
        let database = try DatabasePool(path: path, configuration: configuration)
        let sync = try SyncEngine(for: database, tables: tables, scopes: ["workspace:123"], transport: transport)

        // In the extension, which ends with its sheet: the row is safe once it is in the file, and goes now if it can.
        try await database.write { db in try todo.insert(db) }
        _ = try? await sync.syncNow(within: .seconds(5))
        // end snippet
    }

    private enum Phase { case leaving, returning }

    // MARK: -

    /// Two devices of one user and a server, in a folder that the caller removes.
    private struct World {
        let folder = FileManager.default.temporaryDirectory.appending(path: "tidemark-app-\(UUID().uuidString)")
        let server = SyncServer(store: MemoryStore())

        init() throws { try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true) }

        func device(_ name: String, _ schema: String) throws -> (DatabasePool, SyncEngine) {
            let database = try DatabasePool(path: folder.appending(path: "\(name).sqlite").path)
            try database.write { db in try db.execute(sql: schema) }
            let tables = try database.read { db in
                try String.fetchAll(db, sql: "SELECT name FROM sqlite_master WHERE type = 'table'")
            }
            let engine = try SyncEngine(
                for: database, tables: tables.map { .table($0) }, scopes: ["workspace:1"],
                transport: InProcessTransport(to: server) { _ in .readWrite(as: "ada") })
            return (database, engine)
        }
    }

    @Test("a rebuild of a parent with deferred checks takes no child along, and sends what it changed")
    func rebuilt() async throws {
        let world = try World()
        defer { try? FileManager.default.removeItem(at: world.folder) }
        let schema = """
            CREATE TABLE todo (id TEXT PRIMARY KEY, title TEXT);
            CREATE TABLE step (id TEXT PRIMARY KEY, todo_id TEXT REFERENCES todo(id) ON DELETE CASCADE);
            """
        let (database, engine) = try world.device("a", schema)
        try await database.write { db in
            try db.execute(sql: "INSERT INTO todo VALUES ('t1', 'x'), ('t2', NULL)")
            try db.execute(sql: "INSERT INTO step VALUES ('s', 't1')")
        }
        try await engine.syncNow()
        var migrator = DatabaseMigrator()
        Self.rebuild(&migrator)
        try migrator.migrate(database)
        #expect(try await engine.syncNow().pushed == 1)
        let (other, second) = try world.device("b", schema)
        try await second.syncNow()
        let rows = try await other.read { db in
            try String.fetchAll(db, sql: "SELECT quote(title) FROM todo UNION ALL SELECT id FROM step")
        }
        #expect(rows.sorted() == ["''", "'x'", "s"])
    }

    @Test("a UUID key as text is the id on the wire, as a BLOB a JSON array, and state(of:id:) finds both")
    func keys() async throws {
        let world = try World()
        defer { try? FileManager.default.removeItem(at: world.folder) }
        let (database, engine) = try world.device(
            "a", "CREATE TABLE photo (id TEXT PRIMARY KEY, caption TEXT); CREATE TABLE scan (id BLOB PRIMARY KEY)")
        let photo = Photo(id: UUID.v7(), caption: "x")
        try await database.write { db in
            try photo.insert(db)
            try db.execute(sql: "INSERT INTO scan VALUES (?)", arguments: [photo.id])
        }
        try await engine.syncNow()
        #expect(try await engine.state(of: "photo", id: photo.id) == .confirmed)
        #expect(try await engine.state(of: "photo", id: photo.id.uuidString.lowercased()) == .confirmed)
        #expect(try await engine.state(of: photo) == .confirmed)
        #expect(try await engine.state(of: "scan", id: photo.id) == .confirmed)
        await #expect(throws: SyncError.self) { try await engine.state(of: "scan", id: photo.id.uuidString) }
    }
}
