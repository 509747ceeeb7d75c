#if Server
    import AsyncHTTPClient
    import Foundation
    import Hummingbird
    import NIOCore
    import PostgresCluster
    import Synchronization
    import Testing
    import TidemarkHummingbird
    import TidemarkPostgres
    import TidemarkSQLite
    import TidemarkServer
    import TidemarkWire

    @Suite("Streams of nudges over HTTP", .serialized)
    struct EventStreamTests {
        @Test("A stream tells the changes of the scopes that were asked for, and nothing else", .timeLimit(.minutes(5)))
        func nudged() async throws {
            try await LiveServer.run(in: TemporaryFolder()) { live in
                let token = try await LiveServer.token()
                let events = try await OpenEvents(live, "scope=w&scope=x&scope=w", token)
                #expect(events.status == 200)
                #expect(events.contentType == "text/event-stream")
                try await events.wait(for: .changes("w", 0))
                try await events.wait(for: .changes("x", 0))
                let caller = Caller(url: live.url, token: token)
                let operation = #""type":"upsert","entity":"task","id":"t1","fields":{"n":1}"#
                _ = try await caller.push([operation], scope: "other")
                #expect(try await caller.push([operation]).status == 200)
                try await events.wait(for: .changes("w", 1))
                _ = try await live.server.commit(to: "x") { $0.upsert("task", id: "t1", ["n": 1]) }
                try await events.wait(for: .changes("x", 1))
                #expect(!events.text.contains("other"))
            }
        }

        @Test("A refusal comes before anything is streamed", .timeLimit(.minutes(5)))
        func refused() async throws {
            var limits = Limits()
            (limits.streamsPerPrincipal, limits.streamScopes) = (2, 3)
            try await LiveServer.run(in: TemporaryFolder(), limits: limits) { live in
                let token = try await LiveServer.token(scopes: ["w": .read, "x*": .readWrite])
                func code(_ query: String, _ token: String?) async throws -> ProblemCode? {
                    try await Caller(url: live.url, token: token).get("/sync/events", query).code
                }
                #expect(try await code("scope=w", nil) == .unauthenticated)
                #expect(try await code("scope=w", LiveServer.token(expiresIn: -1)) == .unauthenticated)
                #expect(try await code("scope=w&scope=other", token) == .scopeForbidden)
                #expect(try await code("", token) == .malformedRequest)
                #expect(try await code("scope=w&scope=%20", token) == .invalidIdentifier)
                #expect(try await code("scope=w&scope=x1&scope=x2&scope=x3", token) == .limitOutOfRange)
                #expect(try await Caller(url: live.url, token: token).post("/sync/events", "{}").status == 405)
                // Of the caller's own the oldest ends: it may be one that nobody reads any more.
                let first = try await OpenEvents(live, "scope=w", token)
                let second = try await OpenEvents(live, "scope=w", token)
                let third = try await OpenEvents(live, "scope=w", token)
                try await first.waitForEnd()
                for stream in [second, third] {
                    #expect(stream.status == 200)
                    try await stream.wait(for: .changes("w", 0))
                }
                #expect(!second.isEnded)
            }
        }

        @Test("Streams of all callers together are counted", .timeLimit(.minutes(5)))
        func crowded() async throws {
            var limits = Limits()
            limits.streams = 1
            try await LiveServer.run(in: TemporaryFolder(), limits: limits) { live in
                let open = try await OpenEvents(live, "scope=w", LiveServer.token())
                let late = try await Caller(url: live.url, token: LiveServer.token("bob"))
                #expect(try await late.get("/sync/events", "scope=w").code == .tooManyRequests)
                // One that is gone makes room, as soon as that is noticed.
                open.close()
                try await poll {
                    try await live.commitTask(to: "w")
                    return try await OpenEvents(live, "scope=w", LiveServer.token("bob")).status == 200
                }
            }
        }

        @Test("A comment comes so long after what was said last, whenever that was", .timeLimit(.minutes(5)))
        func silence() async throws {
            var configuration = SyncServer.Configuration()
            configuration.streamComment = .seconds(3)
            try await LiveServer.run(in: TemporaryFolder(), configuration: configuration) { live in
                let events = try await OpenEvents(live, "scope=w", LiveServer.token())
                try await events.wait(for: .changes("w", 0))
                // A moment between two comments, on the server's real clock: nothing is waited for.
                try await Task.sleep(for: .milliseconds(300))
                _ = try await live.server.commit(to: "w") { $0.upsert("task", id: "t1", ["n": 1]) }
                try await events.wait(for: .changes("w", 1))
                let said = ContinuousClock.now
                try await events.wait { $0.contains("\n:\n") }
                // Counted from the first event it would take 5.7 seconds; the rest is a slow machine's.
                #expect(ContinuousClock.now - said < .seconds(5))
            }
        }

        @Test(
            "A stream without news says that it is there, for longer than an idle connection may",
            .timeLimit(.minutes(5)))
        func comments() async throws {
            var configuration = SyncServer.Configuration()
            configuration.streamComment = .milliseconds(200)
            var limits = ServerLimits()
            (limits.idleTimeout, limits.writeTimeout, limits.firstRequestTimeout) = (
                .seconds(1), .seconds(1), .seconds(1)
            )
            try await LiveServer.run(in: TemporaryFolder(), serverLimits: limits, configuration: configuration) {
                live in
                let events = try await OpenEvents(live, "scope=w", LiveServer.token())
                try await events.wait { $0.components(separatedBy: "\n:\n").count > 15 }
                _ = try await live.server.commit(to: "w") { $0.upsert("task", id: "t1", ["n": 1]) }
                try await events.wait(for: .changes("w", 1))
                #expect(!events.isEnded)
            }
        }

        @Test("A stream ends with its token", .timeLimit(.minutes(5)))
        func expired() async throws {
            try await LiveServer.run(in: TemporaryFolder()) { live in
                let start = ContinuousClock.now
                let events = try await OpenEvents(live, "scope=w", LiveServer.token(expiresIn: 2))
                try await events.wait(for: .changes("w", 0))
                try await events.waitForEnd()
                #expect(ContinuousClock.now - start < .seconds(10))
            }
        }

        @Test("A stream ends where its scope is not granted any more, and tells nothing of it", .timeLimit(.minutes(5)))
        func lost() async throws {
            let folder = try TemporaryFolder()
            let store = try SQLiteStore(path: folder.path("sync.sqlite"))
            defer {
                try? store.close()
                withExtendedLifetime(folder) {}
            }
            let server = SyncServer(store: store)
            let isGranted = Mutex(true)
            let router = Router(context: SyncRequestContext.self)
            let grant = Shared(isGranted)
            router.group("sync").addRoutes(
                server.routes { scope, _, _ in grant.value || scope != "x" ? .read(as: "ada") : .none })
            try await LiveServer.serve(server, router: router) { live in
                let events = try await OpenEvents(live, "scope=w&scope=x", nil)
                try await events.wait(for: .changes("x", 0))
                grant.value = false
                _ = try await live.server.commit(to: "x") { $0.upsert("task", id: "t1", ["n": 1]) }
                try await events.waitForEnd()
                #expect(!events.text.contains(OpenEvents.Event.changes("x", 1).text))
            }
        }

        @Test("A server that stops does not wait for its streams", .timeLimit(.minutes(5)))
        func shutdown() async throws {
            let clock = ContinuousClock()
            let (events, stopped) = try await LiveServer.run(in: TemporaryFolder()) { live in
                let events = try await OpenEvents(live, "scope=w", LiveServer.token())
                try await events.wait(for: .changes("w", 0))
                return (events, clock.now)
            }
            #expect(clock.now - stopped < .seconds(10))
            try await events.waitForEnd()
        }

        @Test("All of three nodes tell of a push to one of them", .timeLimit(.minutes(5)))
        func threeNodes() async throws {
            let cluster = try PostgresCluster.shared.get()
            var configuration = PostgresStore.Configuration()
            configuration.schema = "events_" + UUID().uuidString.replacing("-", with: "").lowercased()
            (configuration.writers, configuration.readers) = (2, 2)
            let (url, settings) = (cluster.url(), configuration)
            let stores = try await offPool {
                try (0..<3).map { _ in try PostgresStore(url: url, configuration: settings) }
            }
            try await LiveServer.serve(SyncServer(store: stores[0])) { first in
                try await LiveServer.serve(SyncServer(store: stores[1])) { second in
                    try await LiveServer.serve(SyncServer(store: stores[2])) { third in
                        let token = try await LiveServer.token()
                        var streams: [OpenEvents] = []
                        for live in [first, second, third] {
                            streams.append(try await OpenEvents(live, "scope=w", token))
                        }
                        for (index, live) in [third, first, second].enumerated() {
                            let caller = Caller(url: live.url, token: token)
                            let operation = #""type":"upsert","entity":"task","id":"t\#(index)","fields":{"n":1}"#
                            #expect(try await caller.push([operation], lane: "lane-000\(index)").status == 200)
                            for stream in streams { try await stream.wait(for: .changes("w", index + 1)) }
                        }
                    }
                }
            }
            try await offPool { for store in stores { store.close() } }
        }
    }

    /// A value that a test changes while a server asks for it.
    private final class Shared: Sendable {
        private let mutex: Mutex<Bool>

        init(_ mutex: consuming Mutex<Bool>) { self.mutex = mutex }

        var value: Bool {
            get { mutex.withLock { $0 } }
            set { mutex.withLock { $0 = newValue } }
        }
    }

    extension RecordID {
        fileprivate static var new: RecordID { RecordID(stringLiteral: UUID().uuidString) }
    }
#endif
