import Foundation

/// A carrier of requests to the server and of its answers. The engine knows no more of the network than this, and uses
/// it from several tasks at once.
///
/// ``HTTPTransport`` is the one for apps; tests and daemons bring their own.
public protocol Transport: Sendable {
    /// Sends one request and returns the answer, whatever its status. Called from several tasks at once, on no
    /// actor of the app's; a cancelled task should stop waiting.
    ///
    /// - Throws: only where no answer came. A ``SyncError`` is told to the app as it is, anything else as
    ///   `network_unavailable`.
    func send(_ request: TransportRequest) async throws -> TransportResponse
}

extension Transport {
    /// The value of `Authorization`, with the token that the app's closure gives.
    ///
    /// - Throws: the closure's own `SyncError`, `URLError` or `CancellationError`; `token_unavailable` for anything
    ///   else that it throws, so that the fault is not looked for in the network.
    package func authorization(_ token: @Sendable () async throws -> String) async throws -> String {
        do { return "Bearer \(try await token())" } catch {
            guard !(error is SyncError), !(error is URLError), !(error is CancellationError) else { throw error }
            // The error's text may hold a secret: only its type is shown.
            throw SyncError(
                .tokenUnavailable, "The app's closure for the token threw \(String(reflecting: type(of: error))).",
                hint: "Call wake() once it can give one; until then it is asked again after growing waits.")
        }
    }
}

/// A request to the server.
public struct TransportRequest: Hashable, Sendable {
    /// `GET` or `POST`; `HEAD`, `GET` and `PUT` of attachments.
    public var method: String
    /// The path under the server's root URL, such as `/sync`, percent-encoded where a part of it is a name.
    public var path: String
    /// Query items, not yet percent-encoded.
    public var query: [QueryItem]
    /// Headers besides authorization (see ``carriesToken``) and encodings, which are the transport's own, and the
    /// body's type, which is JSON but where ``carriesBytes``.
    public var headers: [String: String]
    /// The body, not compressed.
    public var body: [UInt8]
    /// Whether the access token goes along. It does not to an address that stands for itself, which caches may answer:
    /// a token must not reach them.
    public var carriesToken = true
    /// Whether the body and the answer's are bytes of an attachment: they travel as they are, never compressed nor
    /// inflated, and the headers say their type.
    public var carriesBytes = false

    /// A name and its value in a URL's query.
    public struct QueryItem: Hashable, Sendable {
        /// The name.
        public var name: String
        /// The value.
        public var value: String

        /// Makes a query item.
        public init(_ name: String, _ value: String) {
            self.name = name
            self.value = value
        }
    }

    /// Makes a request.
    public init(
        method: String = "GET", path: String, query: [QueryItem] = [], headers: [String: String] = [:],
        body: [UInt8] = []
    ) {
        self.method = method
        self.path = path
        self.query = query
        self.headers = headers
        self.body = body
    }
}

/// The server's answer to one request.
public struct TransportResponse: Hashable, Sendable {
    /// The HTTP status.
    public var status: Int
    /// Headers, by lower-case name.
    public private(set) var headers: [String: String]
    /// The body, inflated.
    public var body: [UInt8]
    /// Bytes of the request's body as they went over the wire.
    public var bytesSent: Int
    /// Bytes of the answer's body as they came over the wire.
    public var bytesReceived: Int

    /// Makes an answer; byte counts default to the sizes given.
    public init(
        status: Int, headers: [String: String] = [:], body: [UInt8] = [], bytesSent: Int = 0, bytesReceived: Int? = nil
    ) {
        self.status = status
        self.headers = Dictionary(headers.map { ($0.key.lowercased(), $0.value) }, uniquingKeysWith: { $1 })
        self.body = body
        self.bytesSent = bytesSent
        self.bytesReceived = bytesReceived ?? body.count
    }

    /// A header's value, whatever the case of its name.
    public func header(_ name: String) -> String? { headers[name.lowercased()] }
}
