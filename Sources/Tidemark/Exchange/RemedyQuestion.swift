import GRDB
import TidemarkCore
import TidemarkWire

/// Asks whether a scope that the operator has stopped may go on: an exchange that sends no edits, and of whose page
/// nothing is taken. It shows no checkpoint, so that it is answered whatever has become of that.
struct RemedyQuestion: Sendable {
    var scope: Scope
    /// It says that the stop is carried out.
    var report: DeviceReport?
    var request: TransportRequest

    init(_ db: Database, _ scope: Scope, _ schema: SyncSchema, _ telling: Telling, now: Int64) throws {
        self.scope = scope
        var telling = telling
        telling.outcome = try RemedyMachine.read(db, scope).outcome
        report = try telling.wholeReport(db, schema, scope, beside: [], time: now)
        var writer = JSONWriter(capacity: 512)
        writer.raw("{\"protocolVersion\":1,\"scope\":")
        writer.string(scope.name)
        writer.member("clientId", schema.clientID)
        writer.member("limit", 1)
        if let report {
            writer.memberName("device")
            report.append(to: &writer)
        }
        writer.raw(",\"acked\":{},\"operations\":[]}")
        request = TransportRequest(
            method: "POST", path: "/sync", headers: TransportRequest.headers(clientID: schema.clientID),
            body: writer.bytes)
    }

    /// Reads the operator's remedy from the answer.
    ///
    /// - Returns: `nil` where the answer carries none: then the operator asks the same as before.
    func answer(_ response: TransportResponse) throws -> RemedyMachine.Event? {
        try response.checkType(scope: scope)
        let answer = try Answer(body: response.body)
        guard answer.page != nil else { throw JSONError(.missingMember, at: response.body.count) }
        return answer.remedy
    }
}
