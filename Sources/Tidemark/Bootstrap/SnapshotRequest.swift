import GRDB
import TidemarkWire

/// The question for a snapshot's next page, and what must still hold when the answer comes.
struct SnapshotRequest: Sendable {
    var scope: Scope
    var token: String?
    var cursor: String?
    var layout: Layout
    var declarations: Declarations
    var request: TransportRequest

    init(
        _ bootstrap: Bootstrap?, scope: Scope, layout: Layout, declarations: Declarations, pageLimit: Int
    ) {
        self.scope = scope
        token = bootstrap?.token
        cursor = bootstrap?.cursor
        self.layout = layout
        self.declarations = declarations
        var query: [TransportRequest.QueryItem] = [.init("scope", scope.name)]
        if let token { query.append(.init("snapshotToken", token)) }
        if let cursor { query.append(.init("pageCursor", cursor)) }
        query.append(.init("limit", String(pageLimit)))
        request = TransportRequest(
            path: "/sync/snapshot", query: query, headers: Exchange.headers(clientID: layout.clientID))
    }

    func answer(_ response: TransportResponse) throws -> SnapshotAnswer {
        try SnapshotAnswer(response, scope: scope, token: token, isWhole: true)
    }

    func transaction(_ answer: SnapshotAnswer, now: Int64) -> SnapshotTransaction {
        SnapshotTransaction(
            answer: answer, scope: scope, token: token, cursor: cursor, layout: layout, declarations: declarations,
            now: now)
    }
}

extension SnapshotAnswer {
    /// Reads an answer to its end, and refuses one that belongs to another question. A walk through the whole scope
    /// ends with a checkpoint.
    init(_ response: TransportResponse, scope: Scope, token: String?, isWhole: Bool) throws {
        try Exchange.checkType(of: response, scope: scope)
        try self.init(body: response.body)
        guard self.scope == scope.name, token == nil || token == self.token,
            hasMore || isWhole == (nextSince != nil)
        else {
            throw SyncError(
                .answerUnusable, "The page belongs to another request.", hint: "It is asked for again.", scope: scope)
        }
    }
}
