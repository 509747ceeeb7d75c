import TidemarkWire

/// Asks the server for digests as of one checkpoint, and counts what that costs.
struct DigestQuestions {
    let schemaCache: SchemaCache
    let scope: Scope
    let clientID: String
    let stand: ScopeStand
    var counts = SyncReport.Counts()

    init(schemaCache: SchemaCache, scope: Scope, clientID: String, stand: ScopeStand) {
        (self.schemaCache, self.scope, self.clientID, self.stand) = (schemaCache, scope, clientID, stand)
    }

    /// The digest of the whole scope, or of the range that `query` names.
    mutating func ask(_ query: [TransportRequest.QueryItem] = []) async throws -> DigestAnswer {
        let fixed = [
            TransportRequest.QueryItem("scope", scope.name), TransportRequest.QueryItem("at", stand.checkpoint),
        ]
        let request = TransportRequest(
            path: "/sync/digest", query: fixed + query, headers: TransportRequest.headers(clientID: clientID))
        let response: TransportResponse
        do { response = try await schemaCache.transport.send(request) } catch { throw Failure(error, scope: scope) }
        counts.roundTrips += 1
        counts.bytesSent += response.bytesSent
        counts.bytesReceived += response.bytesReceived
        guard response.status == 200 else { throw Failure(response, scope: scope) }
        let answer = try DigestAnswer(body: response.body)
        guard answer.scope == scope.name, answer.at == stand.checkpoint, answer.version == stand.complete else {
            throw SyncError(
                .answerUnusable, "The answer belongs to another request.", hint: "It is asked for again.", scope: scope)
        }
        return answer
    }
}
