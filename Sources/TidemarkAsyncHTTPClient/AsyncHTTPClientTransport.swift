#if Server
    public import AsyncHTTPClient
    public import Foundation
    import NIOCore
    import NIOHTTP1
    public import Tidemark
    import TidemarkGzip

    /// Carries requests with AsyncHTTPClient: for daemons and command lines, where connections are kept and the bytes
    /// on the wire are counted as they are.
    ///
    /// ```swift
    /// AsyncHTTPClientTransport(URL(string: "https://api.example.com")!) { try await session.accessToken() }
    /// ```
    public struct AsyncHTTPClientTransport: StreamingTransport {
        /// One for all transports that bring none of their own. Bodies are inflated here and not there, so that the
        /// limit counts what comes out, and a refused connection is reported at once: when to try again is the
        /// engine's to say.
        private static let shared: HTTPClient = {
            var configuration = HTTPClient.Configuration(decompression: .disabled)
            configuration.connectionPool.retryConnectionEstablishment = false
            return HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration)
        }()

        /// Bytes of the largest answer that is taken, inflated.
        public var answerLimit = 64 << 20

        private let root: URL
        private let client: HTTPClient
        private let timeout: TimeAmount
        private let token: @Sendable () async throws -> String

        /// - Parameters:
        ///   - root: the server's root URL, without `/sync`.
        ///   - client: the program's own client; without one, a client that all such transports share.
        ///   - timeout: how long to wait for the answer to begin.
        ///   - token: asked before every request, by several tasks at once and on no actor unless the closure names
        ///     one; return the current access token.
        public init(
            _ root: URL, client: HTTPClient? = nil, timeout: Duration = .seconds(30),
            token: @escaping @Sendable () async throws -> String
        ) {
            self.root = root
            self.client = client ?? Self.shared
            self.timeout = TimeAmount(timeout)
            self.token = token
        }

        /// Sends one request.
        ///
        /// - Throws: what the closure for the token throws, a `SyncError`, `URLError` or `CancellationError` as it is
        ///   and anything else as ``SyncError`` `token_unavailable`; the HTTP client's error where no answer came;
        ///   `NIOTooManyBytesError` where one is larger than ``answerLimit``; the inflater's error where it is cut or
        ///   no gzip.
        public func send(_ request: TransportRequest) async throws -> TransportResponse {
            var outgoing = HTTPClientRequest(url: try request.url(under: root).absoluteString)
            outgoing.method = HTTPMethod(rawValue: request.method)
            for (name, value) in request.headers { outgoing.headers.replaceOrAdd(name: name, value: value) }
            if request.carriesToken {
                outgoing.headers.replaceOrAdd(name: "Authorization", value: try await authorization(token))
            }
            let encoding = request.carriesBytes ? "identity" : "gzip"
            outgoing.headers.replaceOrAdd(name: "Accept-Encoding", value: encoding)
            var body = request.body
            if !request.carriesBytes {
                outgoing.headers.replaceOrAdd(name: "Accept", value: "application/json, application/problem+json")
                if !body.isEmpty { outgoing.headers.replaceOrAdd(name: "Content-Type", value: "application/json") }
                if body.count >= Gzip.threshold {
                    body = Gzip.compress(body)
                    outgoing.headers.replaceOrAdd(name: "Content-Encoding", value: "gzip")
                }
            }
            // A PUT without a body says that it has none.
            if !body.isEmpty || request.method == "PUT" { outgoing.body = .bytes(ByteBuffer(bytes: body)) }

            let answer = try await client.execute(outgoing, timeout: timeout)
            let wire = Array(try await answer.body.collect(upTo: answerLimit).readableBytesView)
            // A client that inflates by itself leaves the header; no JSON text begins with gzip's two magic bytes.
            let isCompressed = !request.carriesBytes && wire.starts(with: [0x1f, 0x8b])
            let headers = Dictionary(answer.headers.map { ($0.name, $0.value) }, uniquingKeysWith: { $1 })
            return TransportResponse(
                status: Int(answer.status.code), headers: headers,
                body: isCompressed ? try Gzip.decompress(wire, limit: answerLimit) : wire, bytesSent: body.count,
                bytesReceived: wire.count)
        }

        /// Sends a request whose answer goes on, such as the one for nudges, and hands over its bytes as they come.
        ///
        /// - Throws: as ``send(_:)`` does, and what `receive` throws.
        public func follow(
            _ request: TransportRequest, receiving receive: @Sendable ([UInt8]) async throws -> Void
        ) async throws -> TransportResponse {
            var outgoing = HTTPClientRequest(url: try request.url(under: root).absoluteString)
            outgoing.method = HTTPMethod(rawValue: request.method)
            for (name, value) in request.headers { outgoing.headers.replaceOrAdd(name: name, value: value) }
            if request.carriesToken {
                outgoing.headers.replaceOrAdd(name: "Authorization", value: try await authorization(token))
            }
            let answer = try await client.execute(outgoing, timeout: timeout)
            let headers = Dictionary(answer.headers.map { ($0.name, $0.value) }, uniquingKeysWith: { $1 })
            var refusal: [UInt8] = []
            if answer.status == .ok {
                for try await bytes in answer.body { try await receive(Array(bytes.readableBytesView)) }
            } else {
                refusal = Array(try await answer.body.collect(upTo: Self.refusalLimit).readableBytesView)
            }
            return TransportResponse(status: Int(answer.status.code), headers: headers, body: refusal)
        }

        /// The largest body of a refused ``follow(_:receiving:)``.
        private static let refusalLimit = 1 << 20
    }
#endif
