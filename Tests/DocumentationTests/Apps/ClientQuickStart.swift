import Foundation
import GRDB
import Tidemark

private struct Project: Codable, FetchableRecord, PersistableRecord {
    var id: String
    var name: String
}

private struct Todo: Codable, FetchableRecord, PersistableRecord {
    var id: String
    var title: String
}

private struct Session {
    func accessToken() async throws -> String { "" }
}

/// The README's first quick start, compiled as it stands there; `SnippetTests` compares the two.
private func clientQuickStart(path: String, migrator: DatabaseMigrator, serverURL: URL, session: Session) async throws {
    // snippet: client
    // 1. Open and migrate your own database, exactly as today.
    let database = try DatabasePool(path: path)
    try migrator.migrate(database)

    // 2. Name the tables, the scopes and the server.
    let sync = try SyncEngine(
        for: database,
        tables: [.table(Project.self), .table(Todo.self, conflicts: .mergeFields)],
        scopes: ["workspace:123"],
        transport: HTTPTransport(serverURL) { try await session.accessToken() }
    )

    // 3. Run it while the app runs; cancelling the task stops it cleanly.
    let running = Task { try await sync.run() }

    // 4. Write as you always have. The row and its outbox entry commit together, or not at all.
    try await database.write { db in
        try Todo(id: UUID.v7().uuidString.lowercased(), title: "Buy milk").insert(db)
    }

    // 5. Pull to refresh, when someone asks for it.
    let report = try await sync.syncNow()
    print("sent \(report.pushed), applied \(report.applied) of \(report.received)")

    // 6. Show what is going on. Only errors that need the app want code from you.
    for await status in sync.statusUpdates {
        if let error = status.lastError, error.recovery == .needsApp { print(error) }
    }

    // 7. What the server refused is kept, with the reason, until you decide.
    for operation in try await sync.rejectedOperations() { print(operation) }
    // end snippet
    running.cancel()
}
