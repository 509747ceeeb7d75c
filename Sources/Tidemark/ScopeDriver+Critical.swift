import GRDB
import TidemarkCore
import TidemarkWire

// MARK: - Critical tables first

extension ScopeDriver {
    /// After a long time away a delta comes in the order of the log, and what matters most may come last. So what has
    /// changed in critical tables is asked for by itself first, and taken in ahead of the checkpoint, like records that
    /// are fetched by name; the walk brings it again, which changes nothing (A18).
    ///
    /// It is tried once for each checkpoint, and what the server will not give comes with the walk all the same.
    func bringCriticalFirst(_ layout: Layout, _ declarations: Declarations) async throws {
        let scope = scope
        let (record, hasBackfill) = try await database {
            try await self.preparation.file.read { db in
                (try ScopeRecord.read(db, scope), try Backfills.next(db, layout, scope) != nil)
            }
        }
        guard let since = record.checkpoint, since != criticalSince, record.isFilled, !record.isWalking, !hasBackfill,
            let last = record.lastSync,
            wallClockMilliseconds() - last > configuration.criticalFirstAfter.milliseconds
        else { return }
        criticalSince = since
        for entity in declarations.critical(of: layout.shapes(in: scope).map(\.name)) {
            guard try await bring(entity, since: since, layout, declarations) else { return }
        }
    }

    /// Returns whether all of the entity's changes are in.
    private func bring(
        _ entity: String, since: String, _ layout: Layout, _ declarations: Declarations
    ) async throws -> Bool {
        var next: (token: String, cursor: String)?
        repeat {
            let request = CriticalRequest(
                scope: scope, entity: entity, since: since, next: next, limit: snapshotSizing.limit,
                clientID: layout.clientID)
            let response = try await send(request.request)
            guard response.status == 200 else { return false }
            let page = try SnapshotAnswer(response, scope: scope, token: next?.token, isWhole: false)
            let transaction = FetchTransaction(
                fetched: try FetchedRecords(body: response.body), scope: scope, layout: layout,
                declarations: declarations, now: wallClockMilliseconds())
            let outcome = try await database {
                try await self.file.writeWithoutTransaction(at: .records) { db in try transaction.run(db) }
            }
            count(outcome)
            guard outcome.pageTaken else { return false }
            next = page.cursor.map { (page.token, $0) }
        } while next != nil
        return true
    }
}

/// The question for what has changed in one table, ahead of the walk.
private struct CriticalRequest {
    let request: TransportRequest

    init(
        scope: Scope, entity: String, since: String, next: (token: String, cursor: String)?, limit: Int,
        clientID: String
    ) {
        var query: [TransportRequest.QueryItem] = [
            .init("scope", scope.name), .init("since", since), .init("order", "priority"), .init("entity", entity),
            .init("limit", String(limit)),
        ]
        if let next { query += [.init("snapshotToken", next.token), .init("pageCursor", next.cursor)] }
        request = TransportRequest(
            path: "/sync/changes", query: query, headers: Exchange.headers(clientID: clientID))
    }
}

extension Declarations {
    /// Those of the tables that come before others, the most critical first; none where all are alike.
    fileprivate func critical(of tables: [String]) -> [String] {
        let priorities = tables.map { (name: $0, priority: entity($0).priority) }
        guard let last = priorities.map(\.priority).max() else { return [] }
        return priorities.filter { $0.priority < last }.sorted { ($0.priority, $0.name) < ($1.priority, $1.name) }
            .map(\.name)
    }
}
