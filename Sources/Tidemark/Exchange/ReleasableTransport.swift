/// The app's transport, until the engine lets go of it.
struct ReleasableTransport: Transport {
    private let inner: Locked<(any Transport)?>

    init(_ inner: any Transport) { self.inner = Locked(inner) }

    func disconnect() { inner.withLock { $0 = nil } }

    var isDisconnected: Bool { inner.withLock { $0 == nil } }

    /// - Throws: `engine_disconnected` where the engine has let go of it.
    @discardableResult
    func current() throws -> any Transport {
        if let transport = inner.withLock({ $0 }) { return transport }
        throw SyncError(
            .engineDisconnected, "The engine was disconnected.", hint: "Make an engine for whoever signs in next.")
    }

    /// The same where it can follow an answer that goes on.
    var streaming: (any StreamingTransport)? { inner.withLock { $0 as? any StreamingTransport } }

    func send(_ request: TransportRequest) async throws -> TransportResponse { try await current().send(request) }
}
