import GRDB
import TidemarkCore
import TidemarkWire

extension ScopeDriver {
    /// An answer that waits to be applied.
    enum Answered: Sendable {
        case exchange(Exchange, Answer)
        case page(SnapshotRequest, SnapshotAnswer)
    }

    /// One request of a scope that is being filled: what is pending goes first, so that a large snapshot never holds
    /// up what was edited here; then the next page.
    func bootstrap() async throws -> SyncMachine.Event? {
        nextTimer = nil
        let (layout, declarations) = try await prepared()
        let scope = scope
        let (record, isPending) = try await database {
            try await self.preparation.writer.read { db in
                (try ScopeRecord.read(db, scope), try Pending.exists(db, layout, scope))
            }
        }
        // Another engine on this file has come to the snapshot's end: nothing is left to fill.
        guard !record.isFilled else { return .answered }
        if isPending, refusal == nil, !hasPushed,
            let exchange = try await seal(layout, declarations, isPull: false), exchange.operationCount > 0
        {
            hasPushed = true
            return try await send(exchange) { try await self.bootstrap() }
        }
        hasPushed = false
        let request = SnapshotRequest(
            record.bootstrap, scope: scope, layout: layout, declarations: declarations, pageLimit: snapshotSizing.limit)
        return try await send(request)
    }

    private func send(_ request: SnapshotRequest) async throws -> SyncMachine.Event? {
        let limit = snapshotSizing.limit
        let sent = clock.now
        let response: TransportResponse
        do { response = try await send(request.request) } catch {
            snapshotSizing.failed()
            throw error
        }
        if response.status == 400, Failure(response, scope: scope).problem?.code == .limitOutOfRange,
            snapshotSizing.refused()
        {
            return try await bootstrap()
        }
        let answer = try request.answer(response)
        await received(.page(request, answer), response)
        snapshotSizing.received(
            rows: answer.hasMore ? limit : 0, bytes: response.body.count,
            milliseconds: (clock.now - sent).milliseconds)
        return .answered
    }

    /// The server cannot go on from where this device stands: the scope is filled anew, and the outbox is kept.
    func recover() async throws -> SyncMachine.Event? {
        let scope = scope
        try await database {
            try await self.preparation.writer.write { db in try Bootstrap.begin(db, scope, isAsking: false) }
        }
        return nil
    }
}
