#if Server
    import Dispatch
    import Foundation
    import Hummingbird
    import PostgresCluster
    import Testing
    import TidemarkHummingbird
    import TidemarkPostgres
    import TidemarkSQLite
    import TidemarkWire

    @testable import TidemarkServer

    /// What a connection had asked for ends with it, as far as it has not begun (I14).
    @Suite("A caller that hangs up leaves no work behind", .serialized, .timeLimit(.minutes(5)))
    struct HangUpTests {
        /// Those who came, those who hold memory, those of whom nothing is left, and what keeps the writer busy.
        private final class Scene: Sendable {
            let came = Guarded(0)
            let ended = Guarded(0)
            let atWork = Guarded(0)
            let isWriting = Guarded(false)
            let latch = DispatchSemaphore(value: 0)
            private let opened = Guarded(false)

            /// Once, however often it is called.
            func open() {
                let isFirst = opened.withLock { opened in
                    defer { opened = true }
                    return !opened
                }
                if isFirst { latch.signal() }
            }
        }

        /// Sees requests end.
        private struct Ends: RouterMiddleware {
            let scene: Scene

            func handle(
                _ request: Request, context: SyncRequestContext,
                next: (Request, SyncRequestContext) async throws -> Response
            ) async throws -> Response {
                defer { scene.ended.withLock { $0 += 1 } }
                return try await next(request, context)
            }
        }

        enum Kind: Sendable, CaseIterable { case sqlite, postgres }

        /// Small pushes of two callers hold all of the memory that there is for small ones.
        private static var limits: Limits {
            var limits = Limits()
            limits.workBytes = 4 * 8 * (16 << 10) + 4 * 8 * 12 * 256
            return limits
        }

        private func run(_ kind: Kind, _ body: @Sendable (LiveServer, Scene) async throws -> Void) async throws {
            let folder = try TemporaryFolder()
            let store: any ChangeStore
            let close: @Sendable () throws -> Void
            switch kind {
            case .sqlite:
                let sqlite = try SQLiteStore(path: folder.path("sync.sqlite"))
                (store, close) = (sqlite, { try sqlite.close() })
            case .postgres:
                let cluster = try PostgresCluster.shared.get()
                var configuration = PostgresStore.Configuration()
                configuration.schema = "hang_" + UUID().uuidString.replacing("-", with: "").lowercased()
                let (url, settings) = (cluster.url(), configuration)
                let postgres = try await offPool { try PostgresStore(url: url, configuration: settings) }
                (store, close) = (postgres, { postgres.close() })
            }
            let scene = Scene()
            let server = SyncServer(store: store, limits: Self.limits)
            try await LiveServer.serve(server, router: try await router(server, scene)) { live in
                defer { scene.open() }
                try await body(live, scene)
            }
            try await offPool { try close() }
        }

        private func router(_ server: SyncServer, _ scene: Scene) async throws -> Router<SyncRequestContext> {
            let router = Router(context: SyncRequestContext.self)
            router.add(middleware: Ends(scene: scene))
            router.group("sync").add(middleware: TokenMiddleware(try await TokenVerifier(secret: LiveServer.secret)))
                .addRoutes(
                    server.routes { scope, _, context in
                        scene.atWork.withLock { $0 += 1 }
                        return context.claims?.access(to: scope) ?? .none
                    } caller: { _, context in
                        scene.came.withLock { $0 += 1 }
                        return try context.caller()
                    })
            return router
        }

        /// Keeps the writer of a scope busy until the scene's latch is opened.
        private func block(_ live: LiveServer, _ scene: Scene) async throws -> Task<Void, any Error> {
            let writing = Task {
                try await live.server.store.write("w", for: "the operator") { _ in
                    scene.isWriting.withLock { $0 = true }
                    scene.latch.wait()
                    // A store may run it again.
                    scene.latch.signal()
                }
            }
            try await poll { scene.isWriting.withLock { $0 } }
            return writing
        }

        private func push(_ port: Int, as subject: String, _ id: String) async throws -> Socket {
            let token = try await LiveServer.token(subject)
            let body =
                #"{"scope":"w","clientId":"device-\#(id)","operations":[{"lane":"lane-\#(id)","number":1,"#
                + upsert(id, #""n":1"#) + "}]}"
            let socket = try Socket(port: port)
            try await socket.write(
                "POST /sync HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer \(token)\r\n"
                    + "Content-Type: application/json\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)")
            return socket
        }

        @Test(
            "Their writes are not carried out, and their memory is free before the writer is", arguments: Kind.allCases)
        func writes(kind: Kind) async throws {
            try await run(kind) { live, scene in
                let writing = try await block(live, scene)
                var sockets: [Socket] = []
                for index in 0..<6 {
                    for subject in ["ada", "eve"] {
                        sockets.append(try await push(live.port, as: subject, "\(subject)-\(index)"))
                    }
                }
                // Some wait for the writer and hold all of the memory, the others wait for memory.
                try await poll { scene.came.withLock { $0 } == 12 }
                try await poll { scene.atWork.withLock { $0 } >= 8 }
                #expect(scene.atWork.withLock { $0 } < 12)
                sockets = []
                try await poll { scene.ended.withLock { $0 } == 12 }
                // What he may do is asked once there is memory for what he says, and that takes no writer.
                let token = try await LiveServer.token("bob", scopes: ["w": .readWrite])
                let bob = Caller(url: live.url, token: token)
                #expect(try await bob.push([], scope: "other").status == 403)
                scene.open()
                try await writing.value
                // Whatever waits still has its turn between these.
                for number in 1...12 {
                    #expect(try await bob.push([upsert("b\(number)", #""n":1"#)], from: number).status == 200)
                }
                let ids = try await bob.pullAll().compactMap { $0["id"] as? String }
                #expect(Set(ids) == Set((1...12).map { "b\($0)" }))
            }
        }

        @Test("A caller that has only ended its half of the connection is served, and keeps nobody else from it")
        func halfClosed() async throws {
            try await run(.sqlite) { live, scene in
                let writing = try await block(live, scene)
                let socket = try await push(live.port, as: "ada", "half")
                socket.endWriting()
                try await poll { scene.atWork.withLock { $0 } == 1 }
                // He is looked for meanwhile, and that is no answer.
                #expect(try await socket.read() == "HTTP/1.1 100 Continue\r\n\r\n")
                scene.open()
                try await writing.value
                var text = ""
                for _ in 0..<200 where !text.contains("HTTP/1.1 200") { text += try await socket.read() }
                #expect(text.contains("HTTP/1.1 200") && text.contains(#""status":"applied""#))
                // Nothing more can come from him, so the connection has ended.
                try await socket.waitUntilGone()
            }
        }

        @Test("A connection that stays is served again and again, and hears no interim answer")
        func kept() async throws {
            try await run(.sqlite) { live, _ in
                let token = try await LiveServer.token()
                let socket = try Socket(port: live.port)
                for _ in 0..<3 {
                    try await socket.write(
                        "GET /sync/changes?scope=w HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer \(token)\r\n\r\n")
                    #expect(try await socket.read().hasPrefix("HTTP/1.1 200"))
                }
            }
        }

        @Test("A stream of nudges ends with its reader, however little there is to tell")
        func stream() async throws {
            var limits = Limits()
            limits.streams = 1
            var configuration = SyncServer.Configuration()
            // Longer than the test looks: no comment tells the server of it.
            configuration.streamComment = .seconds(3600)
            try await LiveServer.run(in: TemporaryFolder(), limits: limits, configuration: configuration) { live in
                let token = try await LiveServer.token()
                let ask =
                    "GET /sync/events?scope=w HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer \(token)\r\n\r\n"
                do {
                    let socket = try Socket(port: live.port)
                    try await socket.write(ask)
                    #expect(try await socket.read().hasPrefix("HTTP/1.1 200"))
                }
                let other = try await LiveServer.token("bob")
                try await poll {
                    let events = try await OpenEvents(live, "scope=w", other)
                    events.close()
                    return events.status == 200
                }
            }
        }
    }
#endif
