#if Server
    import Hummingbird
    import Logging
    import TidemarkHummingbird
    import TidemarkServer

    /// The server that `tidemark serve` runs: sync under `/sync`, health under `/health`, and the dialects of other
    /// systems' clients beside them.
    struct ServerApplication {
        let server: SyncServer
        let verifier: TokenVerifier
        var limits = ServerLimits()
        var paths: [EntityPath] = []
        var logger: Logger

        func application(
            address: BindAddress, onListening: @escaping @Sendable (_ port: Int) -> Void = { _ in }
        ) -> some ApplicationProtocol {
            Application(
                responder: OwnStackResponder(router.buildResponder()), server: limits.http1(),
                configuration: limits.configuration(address: address, logger: logger), services: [server],
                onServerRunning: { channel in onListening(channel.localAddress?.port ?? 0) }, logger: logger)
        }

        var router: Router<SyncRequestContext> {
            let router = Router(context: SyncRequestContext.self)
            // Ahead of the log: their addresses are as good as tokens.
            router.addRoutes(server.sharedPageRoutes(), atPath: "/sync")
            router.add(middleware: LogRequestsMiddleware(.info))
            router.add(middleware: SyncMiddleware(for: server))
            router.addRoutes(server.healthRoutes())
            let bodies = BodyBudget(for: server)
            let tokens = TokenMiddleware<SyncRequestContext>(verifier)
            router.group("sync").add(middleware: tokens).addRoutes(
                server.routes(bodies: bodies) { scope, _, context in
                    context.claims?.access(to: scope) ?? .none
                } caller: { _, context in
                    try context.caller()
                } renew: { token, _, context in
                    try await tokens.context(context, token: token)
                })
            router.group().add(middleware: tokens).addRoutes(
                server.dialectRoutes(paths, bodies: bodies) { scope, _, context in
                    context.claims?.access(to: scope) ?? .none
                } caller: { _, context in
                    try context.caller()
                } onlyScope: { _, context in
                    context.claims?.onlyScope
                })
            return router
        }
    }
#endif
