#if Server
    public import Hummingbird
    import Logging
    public import TidemarkServer
    import TidemarkWire

    extension SyncServer {
        /// The sync protocol's routes, to be mounted in any Hummingbird router.
        ///
        /// ```swift
        /// router.addRoutes(
        ///     sync.routes { scope, _, context in try context.requireUser().access(to: scope) },
        ///     atPath: "/sync")
        /// ```
        ///
        /// - Parameters:
        ///   - authorize: what may this caller do in this scope? It is asked on every request and page, and before each
        ///     nudge of a stream; on a push also of scopes to whose attached tables rows of this one refer. A sub-scope
        ///     has its scope's permission, and is never asked about. Answer `Access.none` for one without permission,
        ///     and throw `HTTPError(.unauthorized)` where the caller is not known; it may run at any time, on any
        ///     thread, many times at once.
        ///   - caller: who asks, as far as that can be told before the body is read: bodies take memory, of which each
        ///     caller has a share. Throw `HTTPError(.unauthorized)` for one who is not known, and `.forbidden` for one
        ///     who may not use any scope. Where it is left out all callers share as one for what comes before the body
        ///     is read, and `requestsPerSecond` counts those whom `authorize` names.
        ///   - renew: the context of the caller whose new token came in a message of an open socket, as the middlewares
        ///     would make it. Throw `HTTPError(.unauthorized)` for a token that is not valid. Where it is left out such
        ///     messages are refused, and a socket ends with its token. ``TokenMiddleware/context(_:token:)`` is one.
        /// - Returns: `GET` of `changes`, `snapshot`, `records/{entity}`, `digest`, `events`, `socket` and
        ///   `declarations`, `POST` at the root and of `push`, and `HEAD`, `GET` and `PUT` of `blobs/{hash}`. Sockets
        ///   need ``ServerLimits/http1()``, and so do `HEAD` and large bodies of blobs.
        public func routes<Context: RequestContext>(
            context: Context.Type = Context.self,
            authorize: @escaping @Sendable (Scope, Request, Context) async throws -> Access,
            caller: @escaping @Sendable (Request, Context) async throws -> String = { _, _ in "" },
            renew: (@Sendable (_ token: String, Request, Context) async throws -> Context)? = nil
        ) -> RouteCollection<Context> {
            routes(
                bodies: BodyBudget(for: self), context: context, authorize: authorize, caller: caller, renew: renew)
        }

        /// The same, with bodies that count together with those of other routes.
        package func routes<Context: RequestContext>(
            bodies: BodyBudget, context: Context.Type = Context.self,
            authorize: @escaping @Sendable (Scope, Request, Context) async throws -> Access,
            caller: @escaping @Sendable (Request, Context) async throws -> String,
            renew: (@Sendable (_ token: String, Request, Context) async throws -> Context)? = nil
        ) -> RouteCollection<Context> {
            let routes = RouteCollection(context: Context.self)
            let authorize = authorizing(by: authorize)
            let counted: @Sendable (Scope, Request, Context) async throws -> Access = { scope, request, context in
                let access = try await authorize(scope, request, context)
                try self.countRequest(of: access.principal)
                return access
            }
            routes.add(middleware: SyncMiddleware(for: self))
            routes.on("changes", only: .get) { request, context in
                let query = try SyncQuery(of: request)
                let access = try await counted(query.scope, request, context)
                return try await self.changesPage(query, access: access, to: request)
            }
            routes.on("snapshot", only: .get) { request, context in
                let query = try SyncQuery(of: request)
                let access = try await counted(query.scope, request, context)
                return try await self.snapshotPage(query, access: access, to: request)
            }
            routes.on("records/:entity", only: .get) { request, context in
                let query = try SyncQuery(of: request)
                let access = try await counted(query.scope, request, context)
                let entity = try PercentEncoding.decoded(path: context.parameters.get("entity") ?? "")
                var named = NamedRecords(of: entity, in: query.scope, ids: query.texts("id"))
                named.follow = query.texts("follow")
                named.since = try query.text("since")
                return .json(try await self.records(named, access: access), to: request)
            }
            routes.on("digest", only: .get) { request, context in
                let query = try SyncQuery(of: request)
                let access = try await counted(query.scope, request, context)
                var digest = DigestQuery(of: query.scope)
                (digest.at, digest.entity) = (try query.text("at"), try query.text("entity"))
                (digest.after, digest.through) = (try query.text("after"), try query.text("through"))
                (digest.every, digest.fields) = (try query.number("every"), query.texts("field"))
                return .json(try await self.digest(digest, access: access), to: request)
            }
            routes.on("events", only: .get) { try await self.events($0, $1, authorize: authorize) }
            let host = SocketHost(authorize: authorize, caller: caller, renew: renew)
            routes.on("socket", only: .get) { try await self.socket($0, $1, host: host) }
            routes.on("declarations", only: .get) { request, context in
                // They are everybody's whom the host lets in: who asks matters for the count alone.
                if let caller = try? await caller(request, context) { try self.countRequest(of: caller) }
                return .tagged(self.declarations.body(), "private, no-cache", to: request)
            }
            addBlobRoutes(to: routes, authorize: counted)
            for (path, mode) in [("", ExchangeMode.pushAndPull), ("push", .pushOnly)] {
                routes.on(RouterPath(path), only: .post) { request, context in
                    let caller = try await caller(request, context)
                    try self.countRequest(of: caller)
                    let answer = try await request.withSyncBody(
                        of: caller, within: bodies, limit: self.limits.bodyBytes
                    ) { body in
                        try await self.exchange(body.size, of: { try body.inflated() }, mode: mode, for: caller) {
                            scope in
                            try await caller.isEmpty
                                ? counted(scope, request, context) : authorize(scope, request, context)
                        }
                    }
                    return .json(answer, to: request)
                }
            }
            return routes
        }

        /// Asks the host about scopes alone.
        func authorizing<Context>(
            by authorize: @escaping @Sendable (Scope, Request, Context) async throws -> Access
        ) -> @Sendable (Scope, Request, Context) async throws -> Access {
            { scope, request, context in
                try await self.access(to: scope) { try await authorize($0, request, context) }
            }
        }

        /// `GET` of `pages/{token}`, the snapshot pages that shared caches may keep: mount it at the same path as
        /// ``routes(context:authorize:caller:renew:)``, where nothing asks for a token, and before whatever writes
        /// addresses to a log: for a while each of them opens its page.
        ///
        /// ```swift
        /// router.addRoutes(sync.sharedPageRoutes(), atPath: "/sync")
        /// ```
        ///
        /// - Returns: no route where `sharedPageDelay` is not set.
        public func sharedPageRoutes<Context: RequestContext>(
            context: Context.Type = Context.self
        ) -> RouteCollection<Context> {
            let routes = RouteCollection(context: Context.self)
            guard sharesPages else { return routes }
            routes.add(middleware: SyncMiddleware(for: self))
            routes.on("pages/:token", only: .get) { request, context in
                .page(try await self.sharedPage(at: context.parameters.get("token") ?? ""), to: request)
            }
            return routes
        }

        /// `GET /health`: whether the process runs (`live`), whether its store answers (`ready`), and how far the hooks
        /// are behind that this node calls (`hooks`).
        public func healthRoutes<Context: RequestContext>(
            context: Context.Type = Context.self
        ) -> RouteCollection<Context> {
            let routes = RouteCollection(context: Context.self)
            routes.add(middleware: SyncMiddleware(for: self))
            routes.on("health", only: .get) { request, context in
                do {
                    _ = try await self.changes(in: "health", since: nil, limit: 1, access: .read(as: "health"))
                    return .json(Array(#"{"live":true,"ready":true\#(self.hookHealth)}"#.utf8), to: request)
                } catch {
                    context.logger.error(
                        "The store does not answer.", metadata: ["error": "\(String(describing: error).printable)"])
                    let body = Array(#"{"live":true,"ready":false\#(self.hookHealth)}"#.utf8)
                    return .json(body, status: .serviceUnavailable, to: request)
                }
            }
            return routes
        }

        /// Numbers alone: whoever asks shows no token.
        private var hookHealth: String {
            guard let standing = hookStanding else { return "" }
            let wait = standing.oldestSeconds.map { #","oldestSeconds":\#($0)"# } ?? ""
            return #","hooks":{"behind":\#(standing.behind)\#(wait)}"#
        }
    }

    extension RouteCollection {
        private static var methods: [HTTPRequest.Method] {
            [.get, .head, .post, .put, .patch, .delete, .options, .trace, .connect]
        }

        /// Adds a route for one method of an address; other methods are told so instead of being told that there is
        /// nothing.
        func on(
            _ path: RouterPath, only method: HTTPRequest.Method,
            use handler: @escaping @Sendable (Request, Context) async throws -> Response
        ) {
            on(path, methods: [(method, handler)])
        }

        /// Adds a route for some methods of an address.
        func on(
            _ path: RouterPath,
            methods handlers: [(HTTPRequest.Method, @Sendable (Request, Context) async throws -> Response)]
        ) {
            for (method, handler) in handlers {
                _ = on(path, method: method, responder: CallbackResponder(callback: handler))
            }
            let allowed = handlers.map(\.0.rawValue).joined(separator: ", ")
            for other in Self.methods where !handlers.contains(where: { $0.0 == other }) {
                let refusal = CallbackResponder<Context> { request, _ in
                    var response = Response(
                        problem: Problem(.methodNotAllowed, "\(request.method.rawValue) is not taken here."))
                    response.headers[.allow] = allowed
                    return response
                }
                _ = on(path, method: other, responder: refusal)
            }
        }
    }
#endif
