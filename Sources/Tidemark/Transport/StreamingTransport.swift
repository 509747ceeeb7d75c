/// A transport that can also take an answer which goes on: with one, a running engine hears at once of what changes
/// elsewhere, by a stream of nudges (B3). With any other ``Transport`` it asks at every tick. Several tasks
/// use it at once.
///
/// ``HTTPTransport`` is one. A transport of the app's own that wraps it keeps the stream by passing this call on.
public protocol StreamingTransport: Transport {
    /// Sends one request and hands over the bytes of a successful answer as they come, until the answer ends or the
    /// task is cancelled. Called on no actor of the app's.
    ///
    /// The engine notices by itself that nothing comes any more, so that this call sets no limit to how long the answer
    /// goes on. Bytes that the engine has not taken yet are bounded: where they are too many, the answer is given up.
    ///
    /// - Parameters:
    ///   - request: what is asked for. Its answer is not compressed.
    ///   - receive: takes the next bytes of an answer with status 200, and is awaited before more are handed over.
    /// - Returns: the answer's status and headers, once it has ended; with its body where the status is not 200.
    /// - Throws: where no answer came, it broke off, or as `receive` does.
    func follow(
        _ request: TransportRequest, receiving receive: @Sendable ([UInt8]) async throws -> Void
    ) async throws -> TransportResponse
}
