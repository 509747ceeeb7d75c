public import Tidemark
public import TidemarkServer
import TidemarkWire

/// Connects a client to a server engine in the same process: the real engine and the real client, with no socket
/// between them.
///
/// ```swift
/// let server = SyncServer(store: try SQLiteStore(path: "sync.sqlite"))
/// let transport = InProcessTransport(to: server) { _ in .readWrite(as: "ada") }
/// ```
public struct InProcessTransport: Transport {
    let server: SyncServer
    let authorize: @Sendable (Scope) async throws -> Access

    /// - Parameters:
    ///   - server: the engine that answers.
    ///   - authorize: what the client may do in a scope. It is asked in the task of each request.
    public init(to server: SyncServer, authorize: @escaping @Sendable (Scope) async throws -> Access) {
        self.server = server
        self.authorize = { try await server.access(to: $0, authorize) }
    }

    /// Answers as the HTTP server does, problems included.
    ///
    /// - Throws: what the engine throws beside problems, and HTTP answers with 500.
    public func send(_ request: TransportRequest) async throws -> TransportResponse {
        try await send(request, cutAfter: nil)
    }

    /// - Parameter cut: how many bytes of an attachment arrive before the connection ends; `nil`: all.
    func send(_ request: TransportRequest, cutAfter cut: Int?) async throws -> TransportResponse {
        if BlobAddress.isBlob(path: request.path) { return try await blobAnswer(request, cutAfter: cut) }
        do {
            return response(200, try await answer(request), "application/json", to: request)
        } catch let problem as Problem {
            return response(problem.code.status, problem.body(), Problem.contentType, to: request)
        } catch let error as StoreUnavailable {
            let problem = Problem(.unavailable, error.description)
            return response(problem.code.status, problem.body(), Problem.contentType, to: request)
        }
    }

    private func answer(_ request: TransportRequest) async throws -> [UInt8] {
        switch (request.method, request.path) {
        case ("POST", "/sync"): return try await server.exchange(request.body, mode: .pushAndPull, authorize: authorize)
        case ("POST", "/sync/push"):
            return try await server.exchange(request.body, mode: .pushOnly, authorize: authorize)
        case ("GET", "/sync/declarations"): return server.declarations.body()
        case ("GET", "/sync/changes"):
            if query("order", request) == "priority" {
                return try await snapshot(request, since: query("since", request))
            }
            let scope = try scope(request)
            return try await server.changes(
                in: scope, since: query("since", request), limit: query("limit", request).flatMap { Int64($0) },
                takes: Differences(
                    patches: query("patches", request) == "true", fields: query("partial", request) == "true"),
                access: try await authorize(scope),
                client: client(request))
        case ("GET", "/sync/snapshot"):
            return try await snapshot(request, since: nil)
        case ("GET", let path) where path.hasPrefix("/sync/records/"):
            let entity = try PercentEncoding.decoded(path: String(path.dropFirst("/sync/records/".count)))
            var named = NamedRecords(of: entity, in: try scope(request), ids: all("id", request))
            named.follow = all("follow", request)
            named.since = query("since", request)
            return try await server.records(named, access: try await authorize(named.scope))
        case ("GET", "/sync/digest"):
            var digest = DigestQuery(of: try scope(request))
            (digest.at, digest.entity) = (query("at", request), query("entity", request))
            (digest.after, digest.through) = (query("after", request), query("through", request))
            (digest.every, digest.fields) = (query("every", request).flatMap { Int64($0) }, all("field", request))
            return try await server.digest(digest, access: try await authorize(digest.scope))
        default: throw Problem(.notFound, "There is nothing at \(request.method) \(request.path).")
        }
    }

    private func snapshot(_ request: TransportRequest, since: String?) async throws -> [UInt8] {
        var wanted = SnapshotQuery(of: try scope(request))
        wanted.token = query("snapshotToken", request)
        wanted.cursor = query("pageCursor", request)
        wanted.since = since
        wanted.limit = query("limit", request).flatMap { Int64($0) }
        wanted.entity = query("entity", request)
        wanted.fields = query("fields", request)
        wanted.client = client(request)
        return try await server.snapshot(wanted, access: try await authorize(wanted.scope)).body
    }

    func scope(_ request: TransportRequest) throws(Problem) -> Scope {
        guard let scope = Scope(query("scope", request) ?? "") else {
            throw Problem(.invalidIdentifier, "`scope` is missing or malformed.")
        }
        return scope
    }

    private func all(_ name: String, _ request: TransportRequest) -> [String] {
        request.query.filter { $0.name == name }.map(\.value)
    }
    private func client(_ request: TransportRequest) -> String? { request.headers[ProtocolVersion.clientHeader] }

    private func query(_ name: String, _ request: TransportRequest) -> String? {
        request.query.first { $0.name == name }?.value
    }

    func response(
        _ status: Int, _ body: [UInt8], _ type: String, to request: TransportRequest
    ) -> TransportResponse {
        TransportResponse(
            status: status,
            headers: [
                "Content-Type": type, ProtocolVersion.header: "\(ProtocolVersion.current)",
                ProtocolVersion.declarationsHeader: server.declarationsFingerprint,
            ],
            body: body, bytesSent: request.body.count, bytesReceived: body.count)
    }
}
