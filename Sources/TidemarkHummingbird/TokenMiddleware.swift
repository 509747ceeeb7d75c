#if Server
    public import Hummingbird
    import TidemarkServer
    import TidemarkWire

    /// A request context that carries the claims of the request's token. Each request has its own, which one task uses
    /// at a time.
    public protocol TokenRequestContext: RequestContext {
        /// The claims, once ``TokenMiddleware`` has let the request in.
        var claims: TokenClaims? { get set }
    }

    extension TokenRequestContext {
        /// The caller's name, for ``TidemarkServer/SyncServer/routes(context:authorize:caller:renew:)``.
        ///
        /// - Throws: an answer of 403 where the token grants no scope at all.
        public func caller() throws -> String {
            guard let claims, !claims.scopes.isEmpty else {
                throw Problem(.scopeForbidden, "The token grants no scope.")
            }
            return claims.subject
        }
    }

    /// The context of a server that does nothing but sync.
    public struct SyncRequestContext: TokenRequestContext {
        /// Hummingbird's part.
        public var coreContext: CoreRequestContextStorage
        /// The claims of the request's token.
        public var claims: TokenClaims?

        /// Makes a context for one request.
        public init(source: Source) { coreContext = CoreRequestContextStorage(source: source) }
    }

    /// Lets in requests with a valid bearer token, and keeps its claims in the context; others get 401.
    public struct TokenMiddleware<Context: TokenRequestContext>: RouterMiddleware {
        private static var scheme: String { "bearer" }
        private let verifier: TokenVerifier

        /// Makes the middleware from what checks the tokens.
        public init(_ verifier: TokenVerifier) { self.verifier = verifier }

        /// Checks the token on every request, so that one that ends is refused from then on.
        ///
        /// - Throws: the protocol's problem `unauthenticated`, which ``SyncMiddleware`` answers with 401, where the
        ///   token is missing or not valid; what the next one throws.
        public func handle(
            _ request: Request, context: Context, next: (Request, Context) async throws -> Response
        ) async throws -> Response {
            guard let token = Self.token(of: request) else {
                throw Problem(.unauthenticated, "No bearer token came with the request.")
            }
            return try await next(request, try await self.context(context, token: token))
        }

        /// The context with the claims of a token, for
        /// ``TidemarkServer/SyncServer/routes(context:authorize:caller:renew:)``.
        ///
        /// - Throws: the protocol's problem `unauthenticated` where the token is not valid.
        public func context(_ context: Context, token: String) async throws -> Context {
            guard let claims = await verifier.claims(of: token) else {
                throw Problem(.unauthenticated, "The token is not valid, or not any more.")
            }
            var context = context
            context.claims = claims
            return context
        }

        private static func token(of request: Request) -> String? {
            guard let header = request.headers[.authorization] else { return nil }
            let words = header.split(separator: " ")
            guard words.count == 2, words[0].lowercased() == scheme else { return nil }
            return String(words[1])
        }
    }
#endif
