import TidemarkCore
import TidemarkWire

/// The server's digest of a scope, or of one entity's key range in parts.
struct DigestAnswer: Hashable, Sendable {
    var scope = ""
    var at: String?
    var version: Version = 0
    var entities: [String: EntityDigest] = [:]
    /// Entities that cannot be compared, and why.
    var leftOut: [String: String] = [:]
    var parts: [DigestPart] = []
    /// Whether the range goes on behind the last part.
    var hasMore = false

    init(body: [UInt8]) throws(JSONError) {
        self = try body.reading { (reader: inout JSONReader) throws(JSONError) -> DigestAnswer in
            var answer = DigestAnswer()
            try answer.read(from: &reader)
            try reader.finish()
            return answer
        }
    }

    private init() {}

    private mutating func read(from reader: inout JSONReader) throws(JSONError) {
        try reader.enterObject()
        while let name = try reader.nextMember() {
            switch reader.string(name) {
            case "scope": scope = try reader.readString()
            case "at": at = try reader.readOptionalString()
            case "version": version = try reader.readInteger(in: 0...Int64.max)
            case "hasMore": hasMore = try reader.readBool()
            case "entities":
                try reader.enterObject()
                while let entity = try reader.nextMember() {
                    entities[reader.string(entity)] = try EntityDigest(from: &reader)
                }
            case "leftOut":
                try reader.enterObject()
                while let entity = try reader.nextMember() { leftOut[reader.string(entity)] = try reader.readString() }
            case "parts":
                try reader.enterArray()
                while try reader.nextElement() { parts.append(try DigestPart(from: &reader)) }
            default: try reader.skip()
            }
        }
    }
}

/// Asks the server for digests as of one checkpoint, and counts what that costs.
struct DigestQuestions {
    let preparation: Preparation
    let scope: Scope
    let clientID: String
    let stand: ScopeStand
    var counts = SyncReport.Counts()

    init(preparation: Preparation, scope: Scope, clientID: String, stand: ScopeStand) {
        (self.preparation, self.scope, self.clientID, self.stand) = (preparation, scope, clientID, stand)
    }

    /// The digest of the whole scope, or of the range that `query` names.
    mutating func ask(_ query: [TransportRequest.QueryItem] = []) async throws -> DigestAnswer {
        let fixed = [
            TransportRequest.QueryItem("scope", scope.name), TransportRequest.QueryItem("at", stand.checkpoint),
        ]
        let request = TransportRequest(
            path: "/sync/digest", query: fixed + query, headers: Exchange.headers(clientID: clientID))
        let response: TransportResponse
        do { response = try await preparation.transport.send(request) } catch { throw Failure(error, scope: scope) }
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
