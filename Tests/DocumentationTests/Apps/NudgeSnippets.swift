import Tidemark

/// The code of Documentation/Nudges.md, compiled as it stands there; `SnippetTests` compares the two.
private func withoutNudges() -> SyncConfiguration {
    // snippet: nudges-off
    var configuration = SyncConfiguration()
    configuration.receivesNudges = false
    // end snippet
    return configuration
}

// snippet: nudges-transport
struct LoggedTransport: StreamingTransport {
    let inner: HTTPTransport

    func send(_ request: TransportRequest) async throws -> TransportResponse {
        print(request.method, request.path)
        return try await inner.send(request)
    }

    func follow(
        _ request: TransportRequest, receiving receive: @Sendable ([UInt8]) async throws -> Void
    ) async throws -> TransportResponse {
        try await inner.follow(request, receiving: receive)
    }
}
// end snippet
