import TidemarkWire

extension TransportRequest {
    /// The headers that each request of a device has (Protocol.md).
    static func headers(clientID: String) -> [String: String] {
        [ProtocolVersion.header: String(ProtocolVersion.current), ProtocolVersion.clientHeader: clientID]
    }
}

extension TransportResponse {
    /// - Throws: `Failure` for a refusal; `SyncError` `answer_unusable` where something else than the server answered.
    func checkType(scope: Scope) throws {
        guard status == 200 else { throw Failure(self, scope: scope) }
        guard header("Content-Type")?.lowercased().hasPrefix("application/json") == true else {
            throw SyncError(
                .answerUnusable, "Something other than the server answered.",
                hint: "A network that asks for a login may stand between.", scope: scope)
        }
    }
}
