public import Foundation
import TidemarkGzip

/// Carries requests over HTTP with the system's URL loading, compressed both ways.
///
/// ```swift
/// HTTPTransport(URL(string: "https://api.example.com")!) { try await session.accessToken() }
/// ```
public struct HTTPTransport: StreamingTransport {
    /// Bytes of the largest answer that is taken, inflated.
    public var answerLimit = 64 << 20

    private let root: URL
    private let token: @Sendable () async throws -> String
    private let session: HTTPSession

    /// - Parameters:
    ///   - root: the server's root URL, without `/sync`.
    ///   - timeout: how long to wait for the next byte, from a second to a day. A whole answer may take four times as
    ///     long; one that goes on has no such limit.
    ///   - token: asked before every request, by several tasks at once and on no actor unless the closure names one;
    ///     return the current access token.
    public init(
        _ root: URL, timeout: Duration = .seconds(30), token: @escaping @Sendable () async throws -> String
    ) {
        self.root = root
        self.token = token
        session = HTTPSession(timeout: timeout)
    }

    /// Sends one request.
    ///
    /// - Throws: what the closure for the token throws, a `SyncError`, `URLError` or `CancellationError` as it is and
    ///   anything else as ``SyncError`` `token_unavailable`; `URLError` where no answer came, or one larger than
    ///   ``answerLimit``; the inflater's error where the answer is cut or no gzip.
    public func send(_ request: TransportRequest) async throws -> TransportResponse {
        var headers = request.headers.map { ($0.key, $0.value) }
        if request.carriesToken { headers.append(("Authorization", try await authorization(token))) }
        headers.append(("Accept-Encoding", request.carriesBytes ? "identity" : "gzip"))
        var body = request.body
        if !request.carriesBytes {
            headers.append(("Accept", "application/json, application/problem+json"))
            if !body.isEmpty { headers.append(("Content-Type", "application/json")) }
            if body.count > Gzip.threshold {
                body = Gzip.compress(body)
                headers.append(("Content-Encoding", "gzip"))
            }
        }
        let answer = try await session.send(request.method, try request.url(under: root), headers: headers, body: body)
        guard answer.body.count <= answerLimit else { throw URLError(.dataLengthExceedsMaximum) }
        // URL loading inflates by itself on most systems; no JSON text begins with gzip's two magic bytes.
        let isCompressed = !request.carriesBytes && answer.body.starts(with: [0x1f, 0x8b])
        let inflated = isCompressed ? try Gzip.decompress(answer.body, limit: answerLimit) : answer.body
        // The length that HEAD tells is another answer's.
        let told = request.method == "HEAD" ? nil : answer.headers["content-length"].flatMap { Int($0) }
        let received = told ?? answer.body.count
        return TransportResponse(
            status: answer.status, headers: answer.headers, body: inflated, bytesSent: body.count,
            bytesReceived: received)
    }

    /// Sends a request whose answer goes on, such as the one for nudges, and hands over its bytes as they come.
    ///
    /// - Throws: as ``send(_:)`` does, and what `receive` throws.
    public func follow(
        _ request: TransportRequest, receiving receive: @Sendable ([UInt8]) async throws -> Void
    ) async throws -> TransportResponse {
        var headers = request.headers.map { ($0.key, $0.value) }
        if request.carriesToken { headers.append(("Authorization", try await authorization(token))) }
        headers.append(("Accept-Encoding", "identity"))
        let answer = try await HTTPStream.follow(request.method, try request.url(under: root), headers, receive)
        return TransportResponse(status: answer.status, headers: answer.headers, body: answer.body)
    }
}
