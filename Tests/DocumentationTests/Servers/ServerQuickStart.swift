#if Server
    import Hummingbird
    import TidemarkHummingbird
    import TidemarkSQLite
    import TidemarkServer

    private struct User {
        func access(to scope: Scope) -> Access { .readWrite(as: "ada") }
    }

    private struct AppContext: RequestContext {
        var coreContext: CoreRequestContextStorage
        init(source: ApplicationRequestContextSource) { coreContext = .init(source: source) }
        func requireUser() throws -> User { User() }
    }

    /// The README's second quick start, compiled as it stands there.
    private func serverQuickStart() async throws {
        // snippet: server
        let sync = SyncServer(
            store: try SQLiteStore(path: "sync.sqlite"),
            entities: [.state("todo"), .state("bookmark", serverFields: ["summary"]), .events("audit")]
        )

        let router = Router(context: AppContext.self)
        router.addRoutes(
            sync.routes { scope, _, context in  // one question: what may this caller do here?
                try context.requireUser().access(to: scope)
            },
            atPath: "/sync"
        )
        let app = Application(router: router, services: [sync])
        try await app.runService()
        // end snippet
    }

    private func commitQuickStart(sync: SyncServer) async throws {
        // snippet: commit
        // Your own code writes through the same door, and every device hears of it.
        try await sync.commit(to: "workspace:123") { changes in
            changes.upsert("todo", id: "t1", ["title": "Written on the server"])
        }
        // end snippet
    }
#endif
