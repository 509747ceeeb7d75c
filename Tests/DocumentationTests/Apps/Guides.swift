import Foundation
import GRDB
import Tidemark

private struct Todo: Codable, FetchableRecord, PersistableRecord {
    var id: String
    var title: String
}

private struct Invoice: Codable, FetchableRecord, PersistableRecord {
    var id: Int64
    var total: Int
}

/// The code of the pages in Documentation, compiled as it stands there; `SnippetTests` compares the two.
private func ids(database: DatabasePool) async throws {
    // snippet: ids-client
    try await database.write { db in
        try Todo(id: UUID.v7().uuidString.lowercased(), title: "Buy milk").insert(db)
    }
    // end snippet

    // snippet: ids-server
    let draft = TemporaryID.integer()
    try await database.write { db in
        try db.execute(sql: "INSERT INTO invoice (id, total) VALUES (?, 100)", arguments: [draft])
        try db.execute(
            sql: "INSERT INTO line (id, invoice_id) VALUES (?, ?)",
            arguments: [UUID.v7().uuidString.lowercased(), draft])
    }
    // end snippet

    // snippet: ids-canonical
    let invoice = try await database.read { db in
        try Invoice.fetchOne(db, key: SyncEngine.canonicalID(db, of: draft, in: "invoice"))
    }
    // end snippet
    _ = invoice
}

private func changesets(
    database: DatabasePool, copy: DatabaseQueue, tables: [SyncedTable], transport: any Transport,
    copyIsStale: @escaping @Sendable (any Error) -> Void
) throws {
    // snippet: changesets
    let sync = try SyncEngine(
        for: database, tables: tables, scopes: ["workspace:123"], transport: transport,
        onChangeset: { changeset in
            do { try copy.write { db in try changeset.apply(to: db) } } catch { copyIsStale(error) }
        })
    // end snippet
    _ = sync
}

private struct Phase: Equatable {
    static let active = Phase()
}

private func life(
    database: DatabasePool, tables: [SyncedTable], transport: any Transport, phases: AsyncStream<Phase>,
    pushes: AsyncStream<Void>
) async throws {
    // snippet: life
    let sync = try SyncEngine(for: database, tables: tables, scopes: ["workspace:123"], transport: transport)
    let running = Task { try await sync.run() }

    // The app comes to the front, or leaves it.
    var conditions = SyncConditions()
    for await phase in phases {
        conditions.isInForeground = phase == .active
        await sync.adapt(to: conditions)
    }
    // end snippet
    running.cancel()

    // snippet: life-granted
    let done = try await sync.syncNow(within: .seconds(25))
    print(done?.description ?? "The time was over; the next sync goes on from there.")
    // end snippet

    // snippet: life-wake
    for await _ in pushes { await sync.wake() }
    // end snippet

    // snippet: life-refresh
    let report = try await sync.syncNow()
    print("\(report.applied) changes came, \(report.pushed) went")
    // end snippet
}

private func progress(sync: SyncEngine, show: (Double?, String) -> Void) async {
    // snippet: progress
    for await progress in sync.progressUpdates {
        show(progress.received.fraction ?? progress.sent.fraction, progress.description)
    }
    // end snippet
}

private struct SignedIn: Sendable {
    var id = ""
    var scopes: [Scope] = []
    func accessToken() async throws -> String { "" }
    func confirms(_ question: String) async -> Bool { !question.isEmpty }
}

private func signingOut(folder: URL, serverURL: URL, user: SignedIn, tables: [SyncedTable]) async throws {
    // snippet: sign-out
    // Signing in: that user's own file, and an engine with a closure that gives that user's token.
    let database = try DatabasePool(path: folder.appending(path: "\(user.id).sqlite").path)
    let sync = try SyncEngine(
        for: database, tables: tables, scopes: user.scopes,
        transport: HTTPTransport(serverURL) { try await user.accessToken() })
    let running = Task { try await sync.run() }

    // Signing out, when the same user may be back: nothing is sent any more, and the file waits with its edits.
    await sync.disconnect()

    // Signing out on a device that somebody else gets: the rows go too, once nothing is unsent.
    do {
        try await sync.disconnectAndRemove()
    } catch let error as SyncError where error.code == .unsentEdits {
        guard await user.confirms("\(error.detail) Lose them?") else { return }
        try await sync.disconnectAndRemove(discardingUnsent: true)
    }
    // end snippet
    running.cancel()
}

private func holding(sync: SyncEngine, documentID: String, show: (String) async -> Void) async throws {
    // snippet: hold
    let hold = try await sync.hold("document", id: documentID, in: "workspace:7")
    await show(documentID)
    await hold.release()
    // end snippet
}

private func subscopes(database: DatabaseQueue, transport: any Transport) throws -> SyncEngine {
    // snippet: subscopes
    let sync = try SyncEngine(
        for: database,
        tables: [
            .table("album", scope: .column("workspace_id", prefix: "workspace:")),
            .table("photo", scope: .column("workspace_id", prefix: "workspace:"), subscope: "media"),
            .table("comment", scope: .column("workspace_id", prefix: "workspace:"), subscope: "media"),
        ],
        scopes: ["workspace:7"],
        transport: transport)
    // end snippet
    return sync
}
