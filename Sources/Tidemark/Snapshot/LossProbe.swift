import GRDB
import TidemarkWire

/// Asks the server whether it still has what it once answered, where its refusal does not say so: an exchange that
/// acknowledges what was answered. A mark below that proves that history was lost (410 with the lanes' marks).
///
/// It sends nothing and asks for a page, of which nothing is taken, since a token that only reads may do just that.
struct LossProbe: Sendable {
    /// The result of the probe.
    enum Outcome: Sendable {
        /// Nothing of this device's is lost, and the history has this name now.
        case kept(epoch: String?)
        case lost(Problem)
    }

    var scope: Scope
    var request: TransportRequest

    /// Whether the server took anything that this device could replay.
    static func hasSomethingToLose(_ db: Database, _ scope: Scope) throws -> Bool {
        try !Outbox.answered(db, scope).isEmpty
    }

    init(_ db: Database, _ scope: Scope, _ schema: SyncSchema) throws {
        self.scope = scope
        var writer = JSONWriter(capacity: 512)
        writer.raw("{\"protocolVersion\":1,\"scope\":")
        writer.string(scope.name)
        writer.member("clientId", schema.clientID)
        writer.member("limit", 1)
        writer.memberName("acked")
        writer.raw("{")
        for (index, lane) in try Outbox.answered(db, scope).enumerated() {
            if index > 0 { writer.raw(",") }
            writer.string(lane.id)
            writer.raw(":")
            writer.integer(lane.number)
        }
        writer.raw("},\"operations\":[]}")
        request = TransportRequest(
            method: "POST", path: "/sync", headers: TransportRequest.headers(clientID: schema.clientID),
            body: writer.bytes)
    }

    func answer(_ response: TransportResponse) throws -> Outcome {
        if response.status == 200 {
            try response.checkType(scope: scope)
            let answer = try Answer(body: response.body)
            guard answer.results.isEmpty, let page = answer.page, page.scope == scope.name, page.since == nil else {
                throw SyncError(
                    .answerUnusable, "The answer belongs to another request.", hint: "It is asked for again.",
                    scope: scope)
            }
            return .kept(epoch: page.epoch)
        }
        let failure = Failure(response, scope: scope)
        guard let problem = failure.problem, problem.code == .checkpointExpired else { throw failure }
        return .lost(problem)
    }
}
