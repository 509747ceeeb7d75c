#if Server
    import HTTPTypes
    public import Hummingbird
    import Logging
    import NIOConcurrencyHelpers
    import NIOCore
    public import TidemarkServer
    import TidemarkWire

    /// The common parts of every answer: the protocol's headers, and problem details for errors.
    ///
    /// ``TidemarkServer/SyncServer/routes(context:authorize:caller:renew:)`` brings it along. A server that only syncs
    /// adds it to its router too, so that unknown addresses are answered in the same form; twice does no harm.
    public struct SyncMiddleware<Context: RequestContext>: RouterMiddleware {
        private let fingerprint: String
        private let lostHistory = RareWarning()

        /// Makes the middleware for one engine.
        public init(for server: SyncServer) { fingerprint = server.declarationsFingerprint }

        /// Answers, whatever happens; nothing is thrown.
        ///
        /// - Throws: nothing: errors are answers here.
        public func handle(
            _ request: Request, context: Context, next: (Request, Context) async throws -> Response
        ) async throws -> Response {
            var response: Response
            do {
                try checkHost(of: request)
                try checkProtocol(of: request)
                response = try await next(request, context)
            } catch {
                response = Response(problem: problem(for: error, request, context))
            }
            response.headers[.tidemarkProtocol] = String(ProtocolVersion.current)
            response.headers[.tidemarkDeclarations] = fingerprint
            if response.headers[.cacheControl] == nil { response.headers[.cacheControl] = "no-store" }
            return response
        }

        /// A request says once for whom it is (RFC 9112, 3.2): two readers of it may each believe another one.
        private func checkHost(of request: Request) throws(Problem) {
            // Health probes of load balancers may speak HTTP/1.0, which has no `Host`.
            guard request.uri.path != "/health" else { return }
            guard request.head.authority?.isEmpty == false,
                !request.headers.contains(where: { $0.name.canonicalName == "host" })
            else {
                throw Problem(.malformedRequest, "The request has no `Host`, or more than one.")
            }
        }

        private func checkProtocol(of request: Request) throws(Problem) {
            guard let asked = request.headers[.tidemarkProtocol] else { return }
            guard let version = Int(asked), ProtocolVersion.supported.contains(version) else {
                throw Problem(.unsupportedProtocol, "The request's \(ProtocolVersion.header) is not spoken here.")
            }
        }

        /// The answer says what the caller can do; the cause within the server goes into the log only.
        private func problem(for error: any Error, _ request: Request, _ context: Context) -> Problem {
            // The caller has gone, or the server ends: nothing went wrong.
            if Task.isCancelled { return Problem(.unavailable, "The request was given up.") }
            if let problem = error as? Problem {
                if problem.reason == .epoch || problem.reason == .ahead, lostHistory.isDue() {
                    context.logger.warning(
                        "A device knows a history that this store has lost: was it restored from a backup?",
                        metadata: ["path": "\(request.loggedPath)", "survived": "\(problem.survived ?? 0)"])
                }
                return problem
            }
            if let error = error as? any HTTPResponseError, let problem = Problem(status: error.status, request) {
                return problem
            }
            context.logger.error(
                "A request failed.",
                metadata: [
                    "method": "\(request.method)", "path": "\(request.loggedPath)",
                    "error": "\(String(describing: error).printable)",
                ])
            if error is StoreUnavailable { return Problem(.unavailable, "The store cannot do this for a while.") }
            return Problem(.internalError, "The request could not be carried out.")
        }
    }

    /// Limits a warning to one a minute, which is enough to be seen: callers could fill the operator's log with it.
    private final class RareWarning: Sendable {
        private let last = NIOLockedValueBox<ContinuousClock.Instant?>(nil)

        func isDue() -> Bool {
            last.withLockedValue { last in
                let now = ContinuousClock.now
                guard last.map({ now - $0 >= .seconds(60) }) ?? true else { return false }
                last = now
                return true
            }
        }
    }

    extension Problem {
        /// Makes the problem, in the protocol's terms, of a host's own error, or the router's.
        fileprivate init?(status: HTTPResponse.Status, _ request: Request) {
            switch status.code {
            case 400, 422: self.init(.malformedRequest, "The request was not understood.")
            case 401: self.init(.unauthenticated, "No valid token came with the request.")
            case 403: self.init(.scopeForbidden, "The caller may not do this.")
            case 404: self.init(.notFound, "There is nothing at this address.")
            case 405: self.init(.methodNotAllowed, "\(request.method.rawValue) is not taken here.")
            case 408: self.init(.unavailable, "The request took too long to arrive.")
            case 413: self.init(.requestTooLarge, "The body is larger than the server takes.")
            case 415: self.init(.unsupportedEncoding, "The body is of a kind that the server does not take.")
            case 429: self.init(.tooManyRequests, "Too many requests.")
            case 503: self.init(.unavailable, "The server is not available.")
            default: return nil
            }
        }
    }

    extension Request {
        /// The path without a shared page's token, which whoever reads the log could ask with, and without what could
        /// begin a line of its own.
        fileprivate var loggedPath: String {
            // The router passes over empty parts, so that a slash more does not hide where the token is.
            let parts = uri.path.split(separator: "/")
            guard parts.count > 1, parts[parts.count - 2] == "pages" else { return uri.path.printable }
            return "/\(parts.dropLast().joined(separator: "/"))/…".printable
        }
    }

    extension HTTPField.Name {
        // A name that does not parse would be this file's mistake; `accept` keeps it from stopping a server.
        static let tidemarkProtocol = Self(ProtocolVersion.header) ?? .accept
        static let tidemarkDeclarations = Self(ProtocolVersion.declarationsHeader) ?? .accept
    }
#endif
