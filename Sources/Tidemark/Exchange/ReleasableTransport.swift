/// The app's transport, until the engine lets go of it. It counts what goes over it.
struct ReleasableTransport: Transport {
    private let inner: Locked<(any Transport)?>

    private let measures: MeasureBook

    init(_ inner: any Transport, measures: MeasureBook) { (self.inner, self.measures) = (Locked(inner), measures) }

    func disconnect() { inner.withLock { $0 = nil } }

    var isDisconnected: Bool { inner.withLock { $0 == nil } }

    /// - Throws: `engine_disconnected` where the engine has let go of it.
    @discardableResult
    func current() throws -> any Transport {
        if let transport = inner.withLock({ $0 }) { return transport }
        throw Self.disconnected
    }

    static var disconnected: SyncError {
        SyncError(
            .engineDisconnected, "The engine was disconnected.", hint: "Make an engine for whoever signs in next.")
    }

    /// The same where it can follow an answer that goes on.
    var streaming: (any StreamingTransport)? { inner.withLock { $0 as? any StreamingTransport } }

    func send(_ request: TransportRequest) async throws -> TransportResponse {
        let response = try await current().send(request)
        measures.update {
            $0.requests += 1
            $0.bytesSent += response.bytesSent
            $0.bytesReceived += response.bytesReceived
        }
        return response
    }
}
