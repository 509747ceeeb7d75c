#if Server
    import HTTPTypes
    import Hummingbird
    import NIOCore
    import ServiceLifecycle
    import TidemarkCore
    import TidemarkServer
    import TidemarkWire

    extension SyncServer {
        /// `GET /sync/events`: nudges as server-sent events (Protocol.md), until the token ends, a scope is lost, the
        /// reader goes or the server stops. The first ones are the scopes' heads as they are.
        func events<Context: RequestContext>(
            _ request: Request, _ context: Context,
            authorize: @escaping @Sendable (Scope, Request, Context) async throws -> Access
        ) async throws -> Response {
            try await events(
                of: try Self.scopes(of: request), named: Nudge.event, request, context, authorize: authorize)
        }

        /// The same for these scopes, under another name.
        func events<Context: RequestContext>(
            of scopes: [Scope], named event: String, _ request: Request, _ context: Context,
            authorize: @escaping @Sendable (Scope, Request, Context) async throws -> Access
        ) async throws -> Response {
            var grants: [(scope: Scope, access: Access)] = []
            for scope in scopes { grants.append((scope, try await authorize(scope, request, context))) }
            // Once, and not when what is granted is asked again.
            try countRequest(of: grants.first?.access.principal ?? "")
            let stream = EventStream(
                server: self, event: event, waiter: try await waiter(for: grants),
                expires: grants.compactMap(\.access.expires?.milliseconds).min() ?? .max)
            let body = ResponseBody { writer in
                try await withGracefulShutdownHandler {
                    try await stream.write(to: &writer) {
                        for scope in scopes {
                            guard self.isGranted(try await authorize(scope, request, context), in: scope) else {
                                return false
                            }
                        }
                        return true
                    }
                } onGracefulShutdown: {
                    stream.waiter.close(because: .stopping)
                }
            }
            return Response(status: .ok, headers: [.contentType: EventStream.contentType], body: body)
        }

        /// The scopes that are named, each once.
        static func scopes(of request: Request) throws(Problem) -> [Scope] {
            var scopes: Set<Scope> = []
            for (name, value) in try request.queryMembers() where name == "scope" {
                guard let scope = Scope(value) else {
                    throw Problem(.invalidIdentifier, "In `scope`: a name that is not of the allowed form.")
                }
                scopes.insert(scope)
            }
            return scopes.sorted()
        }
    }

    /// One open stream. It waits no more when nobody holds it, whether its body was ever asked for or not.
    final class EventStream: Sendable {
        static let contentType = "text/event-stream"
        /// Says nothing but that the stream is there.
        static let comment = ":\n\n"

        let waiter: Waiter
        private let server: SyncServer
        private let event: String
        /// In milliseconds since 1970.
        private let expires: Int64
        /// When something was written last.
        private let spoken = Guarded(ContinuousClock.now)

        init(server: SyncServer, event: String = Nudge.event, waiter: Waiter, expires: Int64) {
            self.server = server
            self.event = event
            self.waiter = waiter
            self.expires = expires
        }

        deinit { server.end(waiter) }

        /// Writes until there is a reason to end; what is granted is asked again before anything is told.
        func write(
            to writer: inout any ResponseBodyWriter, whileGranted isGranted: () async throws -> Bool
        ) async throws {
            async let _: Void = wakeRegularly()
            var pace = NudgePace(at: server.instant)
            for await _ in waiter.wakes {
                // A host that cannot say so now has not granted it: whoever reads comes back.
                guard !hasExpired, waiter.takeLost().isEmpty, (try? await isGranted()) == true else { break }
                var text = waiter.take().map { Nudge(scope: $0.scope, head: $0.head).text(named: event) }.joined()
                if text.isEmpty {
                    guard silence >= server.streamComment else { continue }
                    text = Self.comment
                }
                try await writer.write(ByteBuffer(string: text))
                spoken.withLock { $0 = .now }
                let rest = pace.rest(at: server.instant)
                if rest > 0 { try await Task.sleep(for: .milliseconds(rest)) }
            }
            try await writer.finish(nil)
        }

        private var hasExpired: Bool { server.millisecondsUntil(expires) <= 0 }

        private var silence: Duration { ContinuousClock.now - spoken.withLock { $0 } }

        /// For the comments, which show a reader that goes on that the connection does, and find one that is gone; and
        /// for the token's end.
        private func wakeRegularly() async {
            let interval = server.streamComment
            while !Task.isCancelled {
                let rest = min(interval - silence, .milliseconds(server.millisecondsUntil(expires)))
                // The comment that is due was asked for already, and is on its way to a reader that is slow.
                try? await Task.sleep(for: rest > .zero ? rest : interval / 8)
                waiter.wake()
            }
        }
    }
#endif
