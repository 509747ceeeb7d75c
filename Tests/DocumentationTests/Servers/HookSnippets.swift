#if Server
    import Hummingbird
    import TidemarkHummingbird
    import TidemarkSQLite
    import TidemarkServer

    /// The code of Documentation/Webhooks.md, compiled as it stands there; `SnippetTests` compares the two.
    private func serverWithHook(wake: @escaping @Sendable (String, Int64) async throws -> Void) throws -> SyncServer {
        // snippet: hook-closure
        var configuration = SyncServer.Configuration()
        configuration.hooks = [
            CommitHook("push", scopes: ["user:*"]) { notice in
                try await wake(notice.scope.name, notice.head)
            }
        ]
        configuration.onHookEvent = HookMetrics.record
        let sync = SyncServer(store: try SQLiteStore(path: "sync.sqlite"), configuration: configuration)
        // Among the application's services it calls its hooks: Application(router: router, services: [sync])
        // end snippet
        return sync
    }
#endif
