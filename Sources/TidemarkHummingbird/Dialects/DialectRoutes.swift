#if Server
    import HTTPTypes
    public import Hummingbird
    public import TidemarkServer
    import TidemarkWire

    extension SyncServer {
        /// The routes of other systems' clients (Protocol.md), to be mounted at the root of a router: plain REST with
        /// delta headers under `/rest`, the cursor delta and its nudges at `/{entity}/delta` and `/{entity}/events`,
        /// and the two-stamp exchange at `/sync/stamped`. All of them go through the engine's own doors.
        ///
        /// - Parameters:
        ///   - paths: entities with another path, or with other names for their members, than their own.
        ///   - authorize: what may this caller do in this scope? As for
        ///     ``routes(context:authorize:caller:renew:)``.
        ///   - caller: who asks. As there.
        ///   - onlyScope: the scope of a request that names none, where the caller has only one. Like the others it may
        ///     run on any thread, many times at once.
        public func dialectRoutes<Context: RequestContext>(
            _ paths: [EntityPath] = [], context: Context.Type = Context.self,
            authorize: @escaping @Sendable (Scope, Request, Context) async throws -> Access,
            caller: @escaping @Sendable (Request, Context) async throws -> String = { _, _ in "" },
            onlyScope: @escaping @Sendable (Request, Context) async throws -> Scope? = { _, _ in nil }
        ) -> RouteCollection<Context> {
            dialectRoutes(
                paths, bodies: BodyBudget(for: self), context: context, authorize: authorize, caller: caller,
                onlyScope: onlyScope)
        }

        /// The same, with bodies that count together with those of other routes.
        package func dialectRoutes<Context: RequestContext>(
            _ paths: [EntityPath], bodies: BodyBudget, context: Context.Type = Context.self,
            authorize: @escaping @Sendable (Scope, Request, Context) async throws -> Access,
            caller: @escaping @Sendable (Request, Context) async throws -> String,
            onlyScope: @escaping @Sendable (Request, Context) async throws -> Scope?
        ) -> RouteCollection<Context> {
            let host = DialectHost(
                server: self, paths: Dictionary(paths.map { ($0.path, $0) }) { first, _ in first }, bodies: bodies,
                authorize: authorizing(by: authorize), caller: caller, onlyScope: onlyScope)
            let routes = RouteCollection(context: Context.self)
            routes.add(middleware: SyncMiddleware(for: self))
            routes.on("rest/:entity", only: .get) { try await host.list($0, $1) }
            routes.on(
                "rest/:entity/:id",
                methods: [
                    (.get, { try await host.record($0, $1) }),
                    (.put, { try await host.write($0, $1) { .replace($0) } }),
                    (.patch, { try await host.write($0, $1) { .change($0) } }),
                    (.delete, { try await host.delete($0, $1) }),
                ])
            routes.on(":entity/delta", only: .get) { try await host.delta($0, $1) }
            routes.on(":entity/events", only: .get) { try await host.events($0, $1) }
            routes.on("sync/stamped", only: .post) { try await host.stamped($0, $1) }
            return routes
        }
    }

    /// The common parts of all dialects' routes: whom a request is for, and what it may do.
    struct DialectHost<Context: RequestContext>: Sendable {
        let server: SyncServer
        let paths: [String: EntityPath]
        let bodies: BodyBudget
        let authorize: @Sendable (Scope, Request, Context) async throws -> Access
        let caller: @Sendable (Request, Context) async throws -> String
        let onlyScope: @Sendable (Request, Context) async throws -> Scope?

        /// A request for an entity, once its scope is granted.
        struct Target {
            var path: EntityPath
            var scope: Scope
            var access: Access
            var query: PlainQuery
        }

        func target(_ request: Request, _ context: Context) async throws -> Target {
            let name = try Self.name(context)
            guard Identifier.isEntity(name) else {
                throw Problem(.invalidIdentifier, "The entity's name is not of the allowed form.")
            }
            let path = paths[name] ?? EntityPath(name)
            let query = try PlainQuery(of: request)
            let scope = server.place(
                of: path.entity, in: try await scope(query, path, request, context))
            let access = try await authorize(scope, request, context)
            try server.countRequest(of: access.principal)
            return Target(path: path, scope: scope, access: access, query: query)
        }

        private static func name(_ context: Context) throws -> String {
            try PercentEncoding.decoded(path: context.parameters.get("entity") ?? "")
        }

        /// A request at the root, where some names are taken.
        func rootTarget(_ request: Request, _ context: Context) async throws -> Target {
            guard try !EntityPath.reserved.contains(Self.name(context).lowercased()) else {
                throw Problem(.notFound, "There is nothing at this address.")
            }
            return try await target(request, context)
        }

        /// The scope that the request names, or its path, or else the caller's only one.
        func scope(
            _ query: PlainQuery, _ path: EntityPath?, _ request: Request, _ context: Context
        ) async throws -> Scope {
            if let name = try query.only("scope") { return try Self.scope(name, "`scope`") }
            if let pattern = path?.scope {
                let name = pattern.replacing("{sub}", with: try await caller(request, context))
                return try Self.scope(name, "the scope of this path")
            }
            guard let scope = try await onlyScope(request, context) else {
                throw Problem(.malformedRequest, "In `scope`: a required member is missing.")
            }
            return scope
        }

        private static func scope(_ name: String, _ place: String) throws(Problem) -> Scope {
            guard let scope = Scope(name) else {
                throw Problem(.invalidIdentifier, "In \(place): a name that is not of the allowed form.")
            }
            return scope
        }
    }

    /// The members of a query in their order.
    struct PlainQuery {
        let members: [(name: String, value: String)]
        private let raw: String

        init(of request: Request) throws(Problem) {
            members = try request.queryMembers()
            raw = request.uri.query ?? ""
        }

        /// A member that may stand once.
        func only(_ name: String) throws(Problem) -> String? {
            let values = members.filter { $0.name == name }
            guard values.count <= 1 else { throw Problem(.malformedRequest, "In `\(name)`: a member given twice.") }
            return values.first?.value
        }

        func number(_ name: String) throws(Problem) -> Int64? {
            guard let text = try only(name) else { return nil }
            guard let number = Int64(text) else {
                throw Problem(.malformedRequest, "In `\(name)`: a number was expected.")
            }
            return number
        }

        /// The query as it came, with another value for one of its members: spelled anew it could be longer than a
        /// server takes.
        func replacing(_ name: String, with value: String) -> String {
            let kept = raw.split(separator: "&").filter { part in
                let label = part.prefix { $0 != "=" }
                return (try? PercentEncoding.members(ofQuery: String(label)).first?.name) != name
            }
            return (kept.map(String.init) + ["\(name)=\(PercentEncoding.encoded(value))"]).joined(separator: "&")
                .replacing("<", with: "%3C").replacing(">", with: "%3E")
        }
    }

    extension HTTPField.Name {
        // A name that does not parse would be this file's mistake; `accept` keeps it from stopping a server.
        static let expect = Self("Expect") ?? .accept
        static let link = Self("Link") ?? .accept
        static let delta = Self(DeltaHeader.name) ?? .accept
        static let deltaDeleted = Self(DeltaHeader.deletedName) ?? .accept
        static let tidemarkStamp = Self(DialectHeader.stamp) ?? .accept
        static let tidemarkCheckpoint = Self("Tidemark-Checkpoint") ?? .accept
        static let idempotencyKey = Self("Idempotency-Key") ?? .accept
        static let idempotencyReplayed = Self("Idempotency-Replayed") ?? .accept
    }
#endif
