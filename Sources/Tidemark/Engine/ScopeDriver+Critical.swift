import GRDB
import TidemarkCore
import TidemarkWire

// MARK: - Critical tables first

extension ScopeDriver {
    /// Pages of critical tables that are asked for ahead of the scan, at most: the rest comes with it.
    private static let criticalPages = 20

    /// After a long time away a delta comes in the order of the log, and what matters most may come last. So once a
    /// scan has turned out to be longer than a page, and what was pending has been sent, what has changed in critical
    /// tables is asked for by itself and taken in ahead of the checkpoint, like records that are fetched by name. The
    /// scan brings it again, which changes nothing (A18).
    ///
    /// It is tried once in a scan; what the server will not give comes with the scan all the same.
    func bringCriticalFirst(_ schema: SyncSchema, _ declarations: Declarations) async throws {
        let scope = scope
        let tables = declarations.critical(of: schema.shapes(in: scope).map(\.name))
        guard !tables.isEmpty else { return }
        let (record, hasBackfill) = try await database {
            try await self.schemaCache.file.read { db in
                (try ScopeRecord.read(db, scope), try Backfills.next(db, schema, scope) != nil)
            }
        }
        guard let since = record.checkpoint, record.isFilled, record.isScanning, !hasBackfill, isAwayForLong(record)
        else { return }
        criticalSync = record.lastSync
        var pages = Self.criticalPages
        for entity in tables {
            guard try await bring(entity, since: since, schema, declarations, &pages) else { return }
        }
    }

    /// Whether the device was not in sync for a long time, and critical tables were not asked for since.
    private func isAwayForLong(_ record: ScopeRecord) -> Bool {
        guard let last = record.lastSync, last != criticalSync else { return false }
        return wallClockMilliseconds().saturatingSubtracting(last) > configuration.criticalFirstAfter.milliseconds
    }

    /// Whether critical tables may have to come before the scan's next page.
    func mayBeCritical(_ exchange: Exchange) async throws -> Bool {
        guard !exchange.declarations.critical(of: exchange.schema.shapes(in: scope).map(\.name)).isEmpty else {
            return false
        }
        let scope = scope
        let record = try await database {
            try await self.schemaCache.file.read { db in try ScopeRecord.read(db, scope) }
        }
        return isAwayForLong(record)
    }

    /// Returns whether all of the entity's changes are in.
    private func bring(
        _ entity: String, since: String, _ schema: SyncSchema, _ declarations: Declarations, _ pages: inout Int
    ) async throws -> Bool {
        var next: (token: String, cursor: String)?
        repeat {
            guard pages > 0 else { return false }
            pages -= 1
            let request = CriticalRequest(
                scope: scope, entity: entity, since: since, next: next, limit: snapshotSizing.limit,
                clientID: schema.clientID)
            let response = try await page(request.request)
            if isAskedForLess(response) { continue }
            guard response.status == 200 else {
                let failure = Failure(response, scope: scope)
                if failure.wait != nil { throw failure }
                return false
            }
            // A server that does not know the question answers another one.
            guard let page = try? SnapshotAnswer(response, scope: scope, token: next?.token, isWhole: false),
                let fetched = try? FetchedRecords(body: response.body)
            else { return false }
            let transaction = FetchTransaction(
                fetched: fetched, scope: scope, schema: schema, declarations: declarations,
                now: wallClockMilliseconds())
            let outcome = try await database {
                try await self.file.writeWithoutTransaction(at: .records) { db in try transaction.run(db) }
            }
            count(outcome)
            schemaCache.measures.update { $0 += SyncMeasures(outcome) }
            guard outcome.pageTaken else { return false }
            next = page.cursor.map { (page.token, $0) }
        } while next != nil
        return true
    }
}

/// The question for what has changed in one table, ahead of the scan.
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
            path: "/sync/changes", query: query, headers: TransportRequest.headers(clientID: clientID))
    }
}

extension Declarations {
    /// The tables that come before others, the most critical first; none where all are alike.
    fileprivate func critical(of tables: [String]) -> [String] {
        let priorities = tables.map { (name: $0, priority: entity($0).priority) }
        guard let last = priorities.map(\.priority).max() else { return [] }
        return priorities.filter { $0.priority < last }.sorted { ($0.priority, $0.name) < ($1.priority, $1.name) }
            .map(\.name)
    }
}
