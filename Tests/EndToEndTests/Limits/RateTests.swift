#if Server
    import Hummingbird
    import NIOHTTP1
    import Testing
    import TidemarkHummingbird
    import TidemarkSQLite
    import TidemarkWire

    @testable import TidemarkServer

    @Suite("How often one caller may ask (I14)", .timeLimit(.minutes(5)))
    struct RateTests {
        /// Two at once, and one more each time the clock goes on by a tenth of a second.
        private func run(_ body: @Sendable (LiveServer, Guarded<Duration>) async throws -> Void) async throws {
            var limits = Limits()
            limits.requestsPerSecond = 1
            let clock = Guarded(Duration.seconds(100))
            var configuration = SyncServer.Configuration()
            configuration.uptime = { clock.withLock { $0 } }
            try await LiveServer.run(in: TemporaryFolder(), limits: limits, configuration: configuration) { live in
                try await body(live, clock)
            }
        }

        @Test("Beyond his share a caller is refused at once and told when to come again; others are not")
        func refused() async throws {
            try await run { live, clock in
                let ada = try await Caller(url: live.url, token: LiveServer.token("ada"))
                for _ in 0..<10 { #expect(try await ada.get("/sync/changes", "scope=w").status == 200) }
                let refused = try await ada.get("/sync/changes", "scope=w")
                #expect((refused.status, refused.code) == (429, .tooManyRequests))
                #expect(refused.headers.first(name: "Retry-After") == "2")
                let bob = try await Caller(url: live.url, token: LiveServer.token("bob"))
                #expect(try await bob.get("/sync/changes", "scope=w").status == 200)
                #expect(try await ada.get("/health").status == 200)
                clock.withLock { $0 += .seconds(1) }
                #expect(try await ada.get("/sync/changes", "scope=w").status == 200)
                #expect(try await ada.get("/sync/changes", "scope=w").status == 429)
            }
        }

        @Test("Each route counts, a push once, and what is not granted too")
        func routes() async throws {
            try await run { live, _ in
                let token = try await LiveServer.token("ada", scopes: ["w": .readWrite])
                let ada = Caller(url: live.url, token: token)
                #expect(try await ada.push([upsert("t", #""n":1"#)]).status == 200)
                #expect(try await ada.push([], path: "/sync/push").status == 200)
                #expect(try await ada.get("/sync/changes", "scope=other").status == 403)
                #expect(try await ada.get("/sync/snapshot", "scope=w").status == 200)
                #expect(try await ada.get("/sync/records/task", "scope=w&id=t").status == 200)
                #expect(try await ada.get("/sync/digest", "scope=w").status == 200)
                #expect(try await ada.get("/sync/declarations").status == 200)
                let events = try await OpenEvents(live, "scope=w", token)
                #expect(events.status == 200)
                for _ in 0..<2 { #expect(try await ada.get("/sync/declarations").status == 200) }
                #expect(try await ada.push([]).status == 429)
                #expect(try await ada.push([], path: "/sync/push").status == 429)
                #expect(try await ada.get("/sync/events", "scope=w").status == 429)
                for path in ["changes", "snapshot", "records/task", "digest", "declarations"] {
                    #expect(try await ada.get("/sync/\(path)", "scope=w").status == 429)
                }
                events.close()
            }
        }

        @Test("Where a host does not name callers, those are counted whom it authorizes, each by himself")
        func withoutCaller() async throws {
            var limits = Limits()
            limits.requestsPerSecond = 1
            var configuration = SyncServer.Configuration()
            configuration.uptime = { .zero }
            let folder = try TemporaryFolder()
            let store = try SQLiteStore(path: folder.path("sync.sqlite"))
            let server = SyncServer(store: store, limits: limits, configuration: configuration)
            let router = Router(context: SyncRequestContext.self)
            router.group("sync").add(middleware: TokenMiddleware(try await TokenVerifier(secret: LiveServer.secret)))
                .addRoutes(
                    server.routes { scope, _, context in context.claims?.access(to: scope) ?? .none })
            try await LiveServer.serve(server, router: router) { live in
                for subject in ["ada", "bob"] {
                    let caller = try await Caller(url: live.url, token: LiveServer.token(subject))
                    for _ in 0..<10 { #expect(try await caller.push([]).status == 200) }
                    #expect(try await caller.push([]).status == 429)
                }
            }
            try store.close()
        }
    }
#endif
