#if Server
    import Hummingbird
    import NIOCore
    import TidemarkCore
    import TidemarkServer
    import TidemarkWire

    /// The conversation over one socket: its caller, and the scopes that he has subscribed to.
    struct SocketSession<Context: RequestContext> {
        /// Pings after which a socket without a subscription is closed.
        private static var idlePings: Int { 4 }
        /// Messages that cannot be read after which a socket is closed.
        private static var mistakes: Int { 8 }

        private let socket: Socket
        private let host: SocketHost<Context>
        private let request: Request
        private var context: Context
        private var scopes: Set<Scope>
        /// The caller, once the host has named him: a socket is one caller's.
        private var principal: String?
        private var idlePings = 0
        private var mistakes = 0

        private var server: SyncServer { socket.server }

        init(
            _ socket: Socket, _ host: SocketHost<Context>, _ request: Request, _ context: Context,
            _ grants: [(scope: Scope, access: Access)]
        ) {
            (self.socket, self.host, self.request, self.context) = (socket, host, request, context)
            scopes = Set(grants.map(\.scope))
            principal = grants.first?.access.principal
            for grant in grants { socket.expires(at: grant.access.expires) }
        }

        /// Tells and answers until there is a reason to end. What is granted is asked again before anything is told.
        mutating func run(writingTo writer: inout any ResponseBodyWriter) async throws {
            let (socket, body) = (socket, request.body)
            async let listening: Void = socket.listen(to: body)
            async let _: Void = socket.wakeRegularly()
            var end = SocketEnd.done
            do {
                try await speak(&writer)
            } catch let reason as SocketEnd {
                end = reason
            }
            socket.end()
            try await writer.finish(end.trailers)
            await listening
        }

        private mutating func speak(_ writer: inout any ResponseBodyWriter) async throws {
            var pace = NudgePace(at: server.instant)
            for await _ in socket.waiter.wakes {
                guard !socket.isGone else { return }
                guard !socket.hasExpired || isRenewal(socket.message) else { throw SocketEnd(.unauthenticated) }
                if let message = socket.message {
                    try await write(try await answers(to: message), &writer)
                    socket.answered()
                }
                try await write(lose(socket.waiter.takeLost()), &writer)
                if socket.isPingDue { try await ping(&writer) }
                let news = socket.waiter.take()
                try await write(try await review(news.map(\.scope)), &writer)
                let nudges = news.filter { scopes.contains($0.scope) }
                guard !nudges.isEmpty else { continue }
                try await write(nudges.map { .changes(Nudge(scope: $0.scope, head: $0.head)) }, &writer)
                let rest = pace.rest(at: server.instant)
                if rest > 0 { try await Task.sleep(for: .milliseconds(rest)) }
            }
            switch socket.waiter.end {
            case .displaced: throw SocketEnd(.tooManyRequests)
            case .stopping, nil: throw SocketEnd.stopping
            }
        }

        private func write(_ events: [SocketEvent], _ writer: inout any ResponseBodyWriter) async throws {
            guard !events.isEmpty else { return }
            try await writer.write(contentsOf: events.map { ByteBuffer(bytes: $0.json) })
        }

        private mutating func ping(_ writer: inout any ResponseBodyWriter) async throws {
            try await write(try await review(scopes.sorted()), &writer)
            idlePings = scopes.isEmpty ? idlePings + 1 : 0
            guard idlePings <= Self.idlePings else { throw SocketEnd.done }
            try await writer.write(ByteBuffer())
            socket.hasPinged()
        }

        // MARK: What is granted

        /// Asks again about scopes that are subscribed to, and gives up those that are not granted any more.
        private mutating func review(_ reviewed: [Scope]) async throws -> [SocketEvent] {
            var events: [SocketEvent] = []
            for scope in reviewed where scopes.contains(scope) {
                do {
                    socket.expires(at: try await granted(scope, context).expires)
                } catch {
                    let code = Problem(refusing: error).code
                    // A host that cannot say so now has not granted it: whoever reads comes back.
                    guard code == .scopeForbidden else { throw SocketEnd(code) }
                    events += lose([scope], code)
                }
            }
            return events
        }

        private func granted(_ scope: Scope, _ context: Context) async throws -> Access {
            let access = try await host.authorize(scope, request, context)
            guard access.level != .none else {
                throw Problem(.scopeForbidden, "The token does not grant scope \(scope).")
            }
            guard server.isGranted(access, in: scope) else { throw Problem(.unauthenticated, "The token has ended.") }
            guard principal == nil || access.principal == principal else {
                throw Problem(.unauthenticated, "The token is another caller's.")
            }
            return access
        }

        private mutating func lose(_ lost: [Scope], _ code: ProblemCode = .scopeErased) -> [SocketEvent] {
            lost.filter { scopes.remove($0) != nil }.map { scope in
                server.remove(scope, from: socket.waiter)
                return .unsubscribed(scope, code)
            }
        }

        // MARK: What is asked for

        private mutating func answers(to message: ByteBuffer) async throws -> [SocketEvent] {
            do {
                try server.countRequest(of: principal ?? socket.waiter.principal)
                switch try Self.read(message, limit: server.limits.streamScopes) {
                case .subscribe(let names): return try await each(names) { try await $0.subscribe(to: $1) }
                case .unsubscribe(let names): return try await each(names) { $0.unsubscribe(from: $1) }
                case .authorize(let token): return try await authorize(with: token)
                }
            } catch let problem as Problem {
                if problem.code == .malformedRequest { mistakes += 1 }
                guard mistakes <= Self.mistakes else { throw SocketEnd(.malformedRequest) }
                return [.refused(scope: nil, problem)]
            }
        }

        private static func read(_ message: ByteBuffer, limit: Int) throws(Problem) -> SocketRequest {
            do {
                return try message.withUnsafeReadableBytes { bytes throws(JSONError) in
                    try SocketRequest(from: bytes, limit: limit)
                }
            } catch {
                throw Problem(error)
            }
        }

        /// A message that may come when the token has just ended.
        private func isRenewal(_ message: ByteBuffer?) -> Bool {
            guard let message, case .authorize? = try? Self.read(message, limit: server.limits.streamScopes) else {
                return false
            }
            return true
        }

        /// Answers each name by itself, so that one that fails keeps no other from being answered.
        private mutating func each(
            _ names: [String], _ answer: (inout Self, Scope) async throws -> SocketEvent
        ) async throws -> [SocketEvent] {
            var events: [SocketEvent] = []
            for name in names {
                guard let scope = Scope(name) else {
                    let problem = Problem(.invalidIdentifier, "In `scopes`: a name that is not of the allowed form.")
                    events.append(.refused(scope: name, problem))
                    continue
                }
                do {
                    events.append(try await answer(&self, scope))
                } catch {
                    let problem = Problem(refusing: error)
                    if problem.code == .unauthenticated { throw SocketEnd(.unauthenticated) }
                    if scopes.remove(scope) != nil { server.remove(scope, from: socket.waiter) }
                    events.append(.refused(scope: name, problem))
                }
            }
            return events
        }

        private mutating func subscribe(to scope: Scope) async throws -> SocketEvent {
            let access = try await granted(scope, context)
            try await server.add(scope, access, to: socket.waiter)
            scopes.insert(scope)
            principal = access.principal
            socket.expires(at: access.expires)
            return .subscribed(scope)
        }

        private mutating func unsubscribe(from scope: Scope) -> SocketEvent {
            scopes.remove(scope)
            server.remove(scope, from: socket.waiter)
            return .unsubscribed(scope)
        }

        /// Goes on with another token of the same caller; one that is not valid changes nothing.
        private mutating func authorize(with token: String) async throws -> [SocketEvent] {
            let renewed: Context
            do {
                guard let renew = host.renew else {
                    throw Problem(.notFound, "This server takes no token in a message: open another socket.")
                }
                renewed = try await renew(token, request, context)
                guard try await host.caller(request, renewed) == host.caller(request, context) else {
                    throw Problem(.unauthenticated, "The token is another caller's.")
                }
                for scope in scopes.sorted() {
                    do { _ = try await granted(scope, renewed) } catch {
                        let problem = Problem(refusing: error)
                        guard problem.code == .scopeForbidden else { throw problem }
                    }
                }
            } catch {
                return [.refused(scope: nil, Problem(refusing: error))]
            }
            context = renewed
            socket.expiresAnew()
            return [.authorized] + (try await review(scopes.sorted()))
        }
    }

    extension Problem {
        /// What a caller is told of an error of the host or the store.
        fileprivate init(refusing error: any Error) {
            if let problem = error as? Problem {
                self = problem
            } else if let error = error as? any HTTPResponseError, error.status.code == 401 {
                self.init(.unauthenticated, "No valid token came with the request.")
            } else if let error = error as? any HTTPResponseError, error.status.code == 403 {
                self.init(.scopeForbidden, "The caller may not do this.")
            } else {
                self.init(.unavailable, "The server cannot say now whether it is granted.")
            }
        }
    }
#endif
