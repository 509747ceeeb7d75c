import GRDB
import TidemarkWire

/// The question for a snapshot's next page, and what must still hold when the answer comes.
struct SnapshotRequest: Sendable {
    var scope: Scope
    var token: String?
    var cursor: String?
    var known: Version?
    var schema: SyncSchema
    var declarations: Declarations
    var request: TransportRequest

    /// - Parameter known: the newest version that is known here, where the page may come from an address that caches
    ///   answer: a snapshot that others began with must not be older.
    init(
        _ bootstrap: Bootstrap?, scope: Scope, known: Version?, schema: SyncSchema, declarations: Declarations,
        pageLimit: Int
    ) {
        self.scope = scope
        token = bootstrap?.token
        cursor = bootstrap?.cursor
        self.known = known
        self.schema = schema
        self.declarations = declarations
        var query: [TransportRequest.QueryItem] = [.init("scope", scope.name)]
        if let token { query.append(.init("snapshotToken", token)) }
        if let cursor { query.append(.init("pageCursor", cursor)) }
        query.append(.init("limit", String(pageLimit)))
        if let known { query += [.init(Self.shared, "true"), .init("known", String(known))] }
        request = TransportRequest(
            path: "/sync/snapshot", query: query, headers: TransportRequest.headers(clientID: schema.clientID))
    }

    private static let shared = "shared"

    /// The same, from the server itself.
    var alone: Self {
        var alone = self
        alone.request.query.removeAll { $0.name == Self.shared }
        return alone
    }

    func answer(_ response: TransportResponse) throws -> SnapshotAnswer {
        try SnapshotAnswer(response, scope: scope, token: token, isWhole: true)
    }

    func transaction(_ answer: SnapshotAnswer, now: Int64) -> SnapshotTransaction {
        SnapshotTransaction(
            answer: answer, scope: scope, token: token, cursor: cursor, schema: schema, declarations: declarations,
            now: now)
    }
}

extension SnapshotAnswer {
    /// Reads an answer to its end, and refuses one that belongs to another question. A scan through the whole scope
    /// ends with a checkpoint.
    init(_ response: TransportResponse, scope: Scope, token: String?, isWhole: Bool) throws {
        try response.checkType(scope: scope)
        try self.init(body: response.body)
        guard self.scope == scope.name, token == nil || token == self.token,
            hasMore || isWhole == (nextSince != nil)
        else {
            throw SyncError(
                .answerUnusable, "The page belongs to another request.", hint: "It is asked for again.", scope: scope)
        }
    }
}
