import Foundation
import GRDB
import Tidemark

/// A to-do list in the terminal. Everything works offline; `sync` is the only word that speaks to a server.
///
///     todo-client add Buy milk
///     todo-client list
///     todo-client done 3f
///     TODO_SERVER=http://127.0.0.1:8080 TODO_TOKEN=… todo-client sync
@main
struct TodoClient {
    static func main() async throws {
        let words = Array(CommandLine.arguments.dropFirst())
        let database = try openDatabase()
        switch words.first {
        case "add" where words.count > 1:
            let todo = Todo(id: UUID().uuidString.lowercased(), title: words.dropFirst().joined(separator: " "))
            try await database.write { db in try todo.insert(db) }
        case "done" where words.count == 2:
            let prefix = words[1]
            _ = try await database.write { db in
                try Todo.filter(Column("id").like(prefix + "%")).updateAll(db, Column("isDone").set(to: true))
            }
        case "remove" where words.count == 2:
            let prefix = words[1]
            _ = try await database.write { db in try Todo.filter(Column("id").like(prefix + "%")).deleteAll(db) }
        case "sync":
            try await sync(database)
        default:
            try await list(database)
        }
    }

    // MARK: The app, as it would be without sync

    private static func openDatabase() throws -> DatabasePool {
        let path = ProcessInfo.processInfo.environment["TODO_FILE"] ?? "todo.sqlite"
        let database = try DatabasePool(path: path)
        var migrator = DatabaseMigrator()
        migrator.registerMigration("1") { db in
            try db.create(table: "todo") { table in
                table.primaryKey("id", .text)
                table.column("title", .text).notNull()
                table.column("isDone", .boolean).notNull().defaults(to: false)
            }
        }
        try migrator.migrate(database)
        return database
    }

    private static func list(_ database: DatabasePool) async throws {
        let todos = try await database.read { db in try Todo.order(Column("isDone"), Column("title")).fetchAll(db) }
        for todo in todos { print("\(todo.isDone ? "✓" : "·") \(todo.id.prefix(4))  \(todo.title)") }
        if todos.isEmpty { print("Nothing to do. Try: todo-client add Buy milk") }
    }

    // MARK: Sync

    private static func sync(_ database: DatabasePool) async throws {
        let environment = ProcessInfo.processInfo.environment
        guard let server = environment["TODO_SERVER"].flatMap({ URL(string: $0) }),
            let token = environment["TODO_TOKEN"]
        else {
            print("Set TODO_SERVER to the server's URL and TODO_TOKEN to a token for scope user:me.")
            return
        }
        // Which tables, which part of the server's data, and how to reach it: that is all.
        let engine = try SyncEngine(
            for: database, tables: [.table(Todo.self)], scopes: ["user:me"],
            transport: HTTPTransport(server) { token })
        do {
            let report = try await engine.syncNow()
            print("Sent \(report.pushed), received \(report.received), in \(report.roundTrips) round trip(s).")
        } catch let error as SyncError {
            // Nothing is lost: what could not be sent is sent next time.
            print("Not in sync: \(error)")
        }
        for refused in try await engine.rejectedOperations() { print("Refused: \(refused.record): \(refused.detail)") }
    }
}

/// An ordinary GRDB record; the library asks nothing of it but a primary key.
struct Todo: Codable, FetchableRecord, PersistableRecord {
    var id: String
    var title: String
    var isDone = false
}
