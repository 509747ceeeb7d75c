#if Server
    import HTTPTypes
    import Hummingbird
    import NIOCore
    import ServiceLifecycle
    import TidemarkServer
    import TidemarkWire
    import Foundation

    /// The questions that a socket asks its host again and again.
    struct SocketHost<Context: RequestContext>: Sendable {
        let authorize: @Sendable (Scope, Request, Context) async throws -> Access
        let caller: @Sendable (Request, Context) async throws -> String
        /// The context of the caller whose new token came in a message; `nil` where a token holds for one request.
        let renew: (@Sendable (String, Request, Context) async throws -> Context)?
    }

    extension SyncServer {
        /// `GET /sync/socket`: nudges over a WebSocket (Protocol.md), of scopes that its messages name. What can be
        /// refused at once is refused before, as an answer like any other.
        func socket<Context: RequestContext>(
            _ request: Request, _ context: Context, host: SocketHost<Context>
        ) async throws -> Response {
            guard request.head.extendedConnectProtocol == SocketUpgrade.name else {
                var refusal = Response(problem: Problem(.upgradeRequired, "The request does not ask for a WebSocket."))
                refusal.headers[.upgrade] = SocketUpgrade.name
                refusal.headers[.secWebSocketVersion] = SocketUpgrade.version
                return refusal
            }
            var grants: [(scope: Scope, access: Access)] = []
            for scope in try Self.scopes(of: request) {
                grants.append((scope, try await host.authorize(scope, request, context)))
            }
            let waiter: Waiter
            if let principal = grants.first?.access.principal {
                try countRequest(of: principal)
                waiter = try await self.waiter(for: grants)
            } else {
                let principal = try await host.caller(request, context)
                // A host that does not tell callers apart before knows them by a scope.
                guard !principal.isEmpty else {
                    throw Problem(.malformedRequest, "In `scope`: a required member is missing.")
                }
                try countRequest(of: principal)
                waiter = try self.waiter(as: principal)
            }
            let (socket, granted) = (Socket(server: self, waiter: waiter), grants)
            let body = ResponseBody { writer in
                try await withGracefulShutdownHandler {
                    var session = SocketSession(socket, host, request, context, granted)
                    try await session.run(writingTo: &writer)
                } onGracefulShutdown: {
                    waiter.close(because: .stopping)
                }
            }
            return Response(status: .switchingProtocols, body: body)
        }
    }

    /// One open socket. It waits no more when nobody holds it, whether its body was ever asked for or not.
    final class Socket: Sendable {
        let server: SyncServer
        let waiter: Waiter
        /// When the other side was asked last whether it is there.
        private let pinged = Guarded(ContinuousClock.now)
        private let inbox = Guarded<(message: ByteBuffer?, isEnded: Bool)>((nil, false))
        private let room = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        /// In milliseconds since 1970.
        private let expires = Guarded<Int64>(.max)

        init(server: SyncServer, waiter: Waiter) { (self.server, self.waiter) = (server, waiter) }

        deinit { server.end(waiter) }

        // MARK: What comes

        /// Takes messages one by one: whoever sends more than are answered waits.
        func listen(to body: RequestBody) async {
            do {
                var rooms = room.stream.makeAsyncIterator()
                for try await message in body {
                    inbox.withLock { $0.message = message }
                    waiter.wake()
                    await rooms.next()
                }
            } catch {
                // Cut off is at its end too.
            }
            inbox.withLock { $0.isEnded = true }
            waiter.wake()
        }

        var message: ByteBuffer? { inbox.withLock { $0.message } }

        func answered() {
            inbox.withLock { $0.message = nil }
            room.continuation.yield()
        }

        var isGone: Bool { inbox.withLock { $0.isEnded } }

        /// Nothing is answered any more.
        func end() { room.continuation.finish() }

        // MARK: The clocks

        var isPingDue: Bool { ContinuousClock.now - pinged.withLock { $0 } >= server.streamComment }

        func hasPinged() { pinged.withLock { $0 = .now } }

        var hasExpired: Bool { server.millisecondsUntil(expires.withLock { $0 }) <= 0 }

        func expires(at moment: Date?) { expires.withLock { $0 = min($0, moment?.milliseconds ?? .max) } }

        func expiresAnew() { expires.withLock { $0 = .max } }

        /// For the pings, and for the token's end.
        func wakeRegularly() async {
            let interval = server.streamComment
            while !Task.isCancelled {
                let silence = ContinuousClock.now - pinged.withLock { $0 }
                let rest = min(
                    interval - silence, .milliseconds(server.millisecondsUntil(expires.withLock { $0 })))
                try? await Task.sleep(for: rest > .zero ? rest : interval / 8)
                waiter.wake()
            }
        }
    }
#endif
