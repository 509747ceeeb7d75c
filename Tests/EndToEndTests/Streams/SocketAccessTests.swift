#if Server
    import Foundation
    import Hummingbird
    import Testing
    import TidemarkHummingbird
    import TidemarkSQLite
    import TidemarkWire

    @testable import TidemarkServer

    @Suite("An open socket tells what its caller may read, and no more", .serialized, .timeLimit(.minutes(5)))
    struct SocketAccessTests {
        /// A server whose clock for the ends of tokens a test turns, in milliseconds from now on.
        private func run(_ body: @Sendable (LiveServer, Guarded<Int64>) async throws -> Void) async throws {
            let ahead = Guarded<Int64>(0)
            var configuration = SyncServer.Configuration()
            configuration.now = { Date.now + TimeInterval(ahead.withLock { $0 }) / 1000 }
            try await LiveServer.run(in: TemporaryFolder(), configuration: configuration) { live in
                try await body(live, ahead)
            }
        }

        @Test("A socket ends with its token, and tells nothing behind it")
        func expired() async throws {
            try await run { live, ahead in
                let socket = try await OpenSocket(live, "scope=w", LiveServer.token(expiresIn: 600))
                try await socket.wait(forHead: 0, of: "w")
                ahead.withLock { $0 = 700_000 }
                try await live.commitTask(to: "w")
                #expect(try await socket.waitForEnd() == "1008 unauthenticated")
                #expect(socket.texts.count == 1)
                #expect(live.server.nudges.watched.isEmpty)
            }
        }

        @Test("A socket that is at rest ends with its token too")
        func expiredAtRest() async throws {
            try await LiveServer.run(in: TemporaryFolder()) { live in
                let socket = try await OpenSocket(live, "scope=w", LiveServer.token(expiresIn: 5))
                try await socket.wait(forHead: 0, of: "w")
                #expect(try await socket.waitForEnd() == "1008 unauthenticated")
            }
        }

        @Test("With another token of its caller in a message a socket goes on")
        func renewed() async throws {
            try await run { live, ahead in
                let socket = try await OpenSocket(live, "scope=w", LiveServer.token(expiresIn: 600))
                try await socket.wait(forHead: 0, of: "w")
                let fresh = try await LiveServer.token(expiresIn: 3600)
                try await socket.say(#"{"type":"authorize","token":"\#(fresh)"}"#)
                try await socket.wait(for: #"{"event":"authorized"}"#)
                ahead.withLock { $0 = 700_000 }
                try await live.commitTask(to: "w")
                try await socket.wait(forHead: 1, of: "w")
                ahead.withLock { $0 = 3_700_000 }
                try await live.commitTask(to: "w")
                #expect(try await socket.waitForEnd() == "1008 unauthenticated")
            }
        }

        @Test("A token that is not valid, or another caller's, is refused, and the socket goes on with its own")
        func misplaced() async throws {
            try await run { live, _ in
                let socket = try await OpenSocket(live, "scope=w", LiveServer.token())
                let others = [try await LiveServer.token("bob"), try await LiveServer.token(expiresIn: -1), "x"]
                for (count, other) in others.enumerated() {
                    try await socket.say(#"{"type":"authorize","token":"\#(other)"}"#)
                    try await socket.wait { texts in
                        texts.count { $0.hasPrefix(#"{"event":"refused","code":"unauthenticated""#) } == count + 1
                    }
                }
                try await live.commitTask(to: "w")
                try await socket.wait(forHead: 1, of: "w")
            }
        }

        @Test(
            "Another caller's token is refused where it grants none of the scopes, or there are none",
            arguments: ["scope=w", ""])
        func othersElsewhere(query: String) async throws {
            try await run { live, _ in
                let socket = try await OpenSocket(live, query, LiveServer.token())
                if !query.isEmpty { try await socket.wait(forHead: 0, of: "w") }
                let other = try await LiveServer.token("bob", scopes: ["elsewhere": .read])
                try await socket.say(#"{"type":"authorize","token":"\#(other)"}"#)
                try await socket.wait { texts in
                    texts.contains { $0.hasPrefix(#"{"event":"refused","code":"unauthenticated""#) }
                }
                try await socket.say(#"{"type":"subscribe","scopes":["v"]}"#)
                try await socket.wait(forHead: 0, of: "v")
                #expect(!socket.texts.contains { $0.hasPrefix(#"{"event":"authorized""#) })
            }
        }

        @Test("A scope that the new token does not grant ends, and the others go on; the next ones are its to grant")
        func narrowed() async throws {
            try await run { live, _ in
                let socket = try await OpenSocket(live, "scope=w&scope=x", LiveServer.token(scopes: ["*": .read]))
                try await socket.wait(forHead: 0, of: "x")
                let narrow = try await LiveServer.token(scopes: ["w": .read, "y": .read])
                try await socket.say(#"{"type":"authorize","token":"\#(narrow)"}"#)
                try await socket.wait(for: #"{"event":"unsubscribed","scope":"x","code":"scope_forbidden"}"#)
                try await socket.say(#"{"type":"subscribe","scopes":["x","y"]}"#)
                try await socket.wait(forHead: 0, of: "y")
                #expect(socket.texts.contains { $0.hasPrefix(#"{"event":"refused","scope":"x","#) })
                try await live.commitTask(to: "x")
                try await live.commitTask(to: "w")
                try await socket.wait(forHead: 1, of: "w")
                #expect(!socket.texts.contains(#"{"event":"changes","scope":"x","head":1}"#))
            }
        }

        /// What a host says of a scope, until a test changes it.
        private enum Grant { case granted, none, unknown, failing }

        @Test("A scope that the host takes back ends, with nothing told of it; where nobody knows the caller, all does")
        func lost() async throws {
            let grant = Guarded(Grant.granted)
            let folder = try TemporaryFolder()
            let store = try SQLiteStore(path: folder.path("sync.sqlite"))
            defer {
                try? store.close()
                withExtendedLifetime(folder) {}
            }
            let server = SyncServer(store: store)
            let router = Router(context: SyncRequestContext.self)
            router.group("sync").addRoutes(
                server.routes { scope, _, _ in
                    let present = grant.withLock { $0 }
                    switch scope == "x" ? present : .granted {
                    case .granted: return .read(as: "ada")
                    case .none: return .none
                    case .unknown: throw HTTPError(.unauthorized)
                    case .failing: throw HTTPError(.badGateway)
                    }
                })
            try await LiveServer.serve(server, router: router) { live in
                // Who tells no callers apart has to name a scope.
                #expect(try await OpenSocket(live, "", nil).refusal == "malformed_request")
                for (reason, end) in [(Grant.unknown, "1008 unauthenticated"), (.failing, "1013 unavailable")] {
                    grant.withLock { $0 = .granted }
                    let socket = try await OpenSocket(live, "scope=w&scope=x", nil)
                    try await socket.wait { $0.count == 2 }
                    grant.withLock { $0 = reason }
                    try await live.commitTask(to: "x")
                    #expect(try await socket.waitForEnd() == end)
                    #expect(socket.texts.count == 2)
                }
                grant.withLock { $0 = .granted }
                let socket = try await OpenSocket(live, "scope=w&scope=x", nil)
                try await socket.wait { $0.count == 2 }
                grant.withLock { $0 = .none }
                try await live.commitTask(to: "x")
                try await socket.wait(for: #"{"event":"unsubscribed","scope":"x","code":"scope_forbidden"}"#)
                try await live.commitTask(to: "w")
                try await socket.wait(forHead: 1, of: "w")
                #expect(socket.texts.count == 4)
                // This host takes no token in a message.
                try await socket.say(#"{"type":"authorize","token":"t"}"#)
                try await socket.wait { $0.contains { $0.hasPrefix(#"{"event":"refused","code":"not_found""#) } }
            }
        }

        @Test("A scope that is erased ends, and the others go on")
        func erased() async throws {
            try await run { live, _ in
                try await live.commitTask(to: "x")
                let socket = try await OpenSocket(live, "scope=w&scope=x", LiveServer.token())
                try await socket.wait(forHead: 1, of: "x")
                _ = try await live.server.erase(.scope("x"))
                try await socket.wait(for: #"{"event":"unsubscribed","scope":"x","code":"scope_erased"}"#)
                try await socket.say(#"{"type":"subscribe","scopes":["x"]}"#)
                try await socket.wait {
                    $0.contains { $0.hasPrefix(#"{"event":"refused","scope":"x","code":"scope_erased""#) }
                }
                try await live.commitTask(to: "w")
                try await socket.wait(forHead: 1, of: "w")
            }
        }
    }
#endif
