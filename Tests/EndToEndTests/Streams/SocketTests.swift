#if Server
    import Foundation
    import NIOHTTP1
    import PostgresCluster
    import Testing
    import TidemarkHummingbird
    import TidemarkPostgres
    import TidemarkSQLite
    import TidemarkWire

    @testable import TidemarkServer

    @Suite("Sockets of nudges", .serialized, .timeLimit(.minutes(5)))
    struct SocketTests {
        @Test("A socket tells the changes of its address's scopes, and nothing else")
        func nudged() async throws {
            try await LiveServer.run(in: TemporaryFolder()) { live in
                let token = try await LiveServer.token()
                let socket = try await OpenSocket(live, "scope=w&scope=x&scope=w", token)
                #expect(socket.status == 101)
                #expect(socket.answer.contains("Sec-WebSocket-Accept: \(OpenSocket.accepted)\r\n"))
                try await socket.wait(forHead: 0, of: "w")
                try await socket.wait(forHead: 0, of: "x")
                let caller = Caller(url: live.url, token: token)
                _ = try await caller.push([upsert("t1", #""n":1"#)], scope: "other")
                #expect(try await caller.push([upsert("t1", #""n":1"#)]).status == 200)
                try await socket.wait(forHead: 1, of: "w")
                try await live.commitTask(to: "x")
                try await socket.wait(forHead: 1, of: "x")
                #expect(socket.texts.count == 4)
            }
        }

        @Test("Scopes are subscribed to and left by messages, each with an answer; one that is refused ends no other")
        func subscribed() async throws {
            try await LiveServer.run(in: TemporaryFolder()) { live in
                let token = try await LiveServer.token(scopes: ["w": .read, "x*": .readWrite])
                let socket = try await OpenSocket(live, "", token)
                #expect(socket.status == 101)
                try await socket.say(#"{"type":"subscribe","scopes":["w","other","x","%"]}"#)
                try await socket.wait(for: #"{"event":"subscribed","scope":"w"}"#)
                try await socket.wait(for: #"{"event":"subscribed","scope":"x"}"#)
                try await socket.wait { texts in
                    texts.contains {
                        $0.hasPrefix(#"{"event":"refused","scope":"other","code":"scope_forbidden","detail":""#)
                    }
                        && texts.contains {
                            $0.hasPrefix(#"{"event":"refused","scope":"%","code":"invalid_identifier","detail":""#)
                        }
                }
                try await socket.wait(forHead: 0, of: "w")
                try await live.commitTask(to: "w")
                try await socket.wait(forHead: 1, of: "w")
                try await socket.say(#"{"scopes":["w"],"later":{"more":[]},"type":"unsubscribe"}"#)
                try await socket.wait(for: #"{"event":"unsubscribed","scope":"w"}"#)
                try await live.commitTask(to: "w")
                try await live.commitTask(to: "other")
                try await live.commitTask(to: "x")
                try await socket.wait(forHead: 1, of: "x")
                #expect(!socket.texts.contains { $0.contains(#""head":2"#) || $0.contains(#""scope":"other","head""#) })
                #expect(live.server.nudges.watched == ["x"])
            }
        }

        @Test("A message that comes together with the request is answered too")
        func eager() async throws {
            try await LiveServer.run(in: TemporaryFolder()) { live in
                let first = OpenSocket.frame(.text, Array(#"{"type":"subscribe","scopes":["w"]}"#.utf8))
                let socket = try await OpenSocket(live, "", LiveServer.token(), behind: first)
                try await socket.wait(forHead: 0, of: "w")
            }
        }

        @Test("A refusal comes before the upgrade, as an answer like any other, and ends the connection")
        func refused() async throws {
            var limits = Limits()
            limits.streamScopes = 2
            try await LiveServer.run(in: TemporaryFolder(), limits: limits) { live in
                let token = try await LiveServer.token(scopes: ["w": .read, "x*": .readWrite])
                func refusal(
                    _ query: String, _ token: String?, _ headers: String = OpenSocket.headers
                ) async throws
                    -> String
                {
                    let socket = try await OpenSocket(live, query, token, headers: headers)
                    #expect(socket.answer.lowercased().contains("content-type: application/problem+json\r\n"))
                    if headers.contains("Upgrade") { #expect(try await socket.waitForEnd() == "-") }
                    return "\(socket.status) \(socket.refusal ?? "-")"
                }
                #expect(try await refusal("scope=w", nil) == "401 unauthenticated")
                #expect(try await refusal("", LiveServer.token(expiresIn: -1)) == "401 unauthenticated")
                #expect(try await refusal("scope=w&scope=other", token) == "403 scope_forbidden")
                #expect(try await refusal("", LiveServer.token(scopes: [:])) == "403 scope_forbidden")
                #expect(try await refusal("scope=%20", token) == "400 invalid_identifier")
                #expect(try await refusal("scope=w&scope=x1&scope=x2", token) == "400 limit_out_of_range")
                #expect(try await refusal("scope=w", token, "") == "426 upgrade_required")
                let older = OpenSocket.headers.replacing("13", with: "8")
                #expect(try await refusal("scope=w", token, older) == "426 upgrade_required")
                let keyless = OpenSocket.headers.replacing("Key: ", with: "Key: a")
                #expect(try await refusal("scope=w", token, keyless) == "426 upgrade_required")
                let withBody = OpenSocket.headers + "Content-Length: 2\r\n"
                let bodied = try await OpenSocket(live, "scope=w", token, headers: withBody, behind: [0x7b, 0x7d])
                #expect(bodied.status == 426)
                let answer = try await Caller(url: live.url, token: token).get("/sync/socket", "scope=w")
                #expect(answer.headers.first(name: "Sec-WebSocket-Version") == "13")
                #expect(try await Caller(url: live.url, token: token).post("/sync/socket", "{}").status == 405)
                #expect(live.server.nudges.watched.isEmpty)
            }
        }

        @Test("Sockets and streams of events are counted together, for one caller and for all")
        func counted() async throws {
            var limits = Limits()
            (limits.streams, limits.streamsPerPrincipal) = (3, 2)
            try await LiveServer.run(in: TemporaryFolder(), limits: limits) { live in
                let token = try await LiveServer.token()
                let first = try await OpenSocket(live, "scope=w", token)
                let events = try await OpenEvents(live, "scope=w", token)
                // Of the caller's own the oldest ends, whichever it is.
                let second = try await OpenSocket(live, "", token)
                #expect(try await first.waitForEnd() == "1008 too_many_requests")
                let third = try await OpenSocket(live, "scope=w", token)
                try await events.waitForEnd()
                let bob = try await LiveServer.token("bob")
                let other = try await OpenSocket(live, "scope=w", bob)
                for socket in [second, third, other] { #expect(socket.status == 101) }
                let eve = try await LiveServer.token("eve")
                let late = try await OpenSocket(live, "scope=w", eve)
                #expect((late.status, late.refusal) == (429, "too_many_requests"))
                #expect(try await Caller(url: live.url, token: eve).get("/sync/events", "scope=w").status == 429)
                // One that is closed makes room, as soon as the server has heard of it.
                try await other.send(.close, [0x03, 0xe8])
                #expect(try await other.waitForEnd() == "1000")
                var status = 429
                try await poll {
                    status = try await OpenEvents(live, "scope=w", eve).status
                    return status != 429
                }
                #expect(status == 200)
            }
        }

        @Test("A socket has so many scopes as a stream may have")
        func scopes() async throws {
            var limits = Limits()
            limits.streamScopes = 2
            try await LiveServer.run(in: TemporaryFolder(), limits: limits) { live in
                let socket = try await OpenSocket(live, "scope=a&scope=b", LiveServer.token())
                try await socket.say(#"{"type":"subscribe","scopes":["a","c"]}"#)
                try await socket.wait(for: #"{"event":"subscribed","scope":"a"}"#)
                try await socket.wait {
                    $0.contains { $0.hasPrefix(#"{"event":"refused","scope":"c","code":"limit_out_of_range""#) }
                }
                try await socket.say(#"{"type":"unsubscribe","scopes":["a"]}"#)
                try await socket.say(#"{"type":"subscribe","scopes":["c"]}"#)
                try await socket.wait(forHead: 0, of: "c")
                try await socket.say(#"{"type":"subscribe","scopes":["a","b","c"]}"#)
                try await socket.wait {
                    $0.contains { $0.hasPrefix(#"{"event":"refused","code":"limit_out_of_range""#) }
                }
                #expect(live.server.nudges.watched == ["b", "c"])
            }
        }

        @Test("Messages count among the requests of their caller")
        func rate() async throws {
            var limits = Limits()
            limits.requestsPerSecond = 1
            var configuration = SyncServer.Configuration()
            configuration.uptime = { .zero }
            try await LiveServer.run(in: TemporaryFolder(), limits: limits, configuration: configuration) { live in
                let socket = try await OpenSocket(live, "scope=w", LiveServer.token())
                for _ in 0..<10 { try await socket.say(#"{"type":"subscribe","scopes":["w"]}"#) }
                try await socket.wait {
                    $0.contains {
                        $0.hasPrefix(#"{"event":"refused","code":"too_many_requests""#) && $0.contains("retryAfter")
                    }
                }
            }
        }

        @Test("A server that stops says so, and does not wait for its sockets")
        func shutdown() async throws {
            let clock = ContinuousClock()
            let (sockets, stopped) = try await LiveServer.run(in: TemporaryFolder()) { live in
                let sockets = [
                    try await OpenSocket(live, "scope=w", LiveServer.token()),
                    try await OpenSocket(live, "", LiveServer.token()),
                ]
                try await sockets[0].wait(forHead: 0, of: "w")
                return (sockets, clock.now)
            }
            #expect(clock.now - stopped < .seconds(10))
            for socket in sockets { #expect(try await socket.waitForEnd() == "1001 unavailable") }
        }

        @Test("The sockets of both nodes tell of a push to one of them")
        func twoNodes() async throws {
            let cluster = try PostgresCluster.shared.get()
            var configuration = PostgresStore.Configuration()
            configuration.schema = "sockets_" + UUID().uuidString.replacing("-", with: "").lowercased()
            (configuration.writers, configuration.readers) = (2, 2)
            let (url, settings) = (cluster.url(), configuration)
            let stores = try await offPool {
                try (0..<2).map { _ in try PostgresStore(url: url, configuration: settings) }
            }
            try await LiveServer.serve(SyncServer(store: stores[0])) { first in
                try await LiveServer.serve(SyncServer(store: stores[1])) { second in
                    let token = try await LiveServer.token()
                    let sockets = [
                        try await OpenSocket(first, "scope=w", token), try await OpenSocket(second, "", token),
                    ]
                    try await sockets[1].say(#"{"type":"subscribe","scopes":["w"]}"#)
                    for socket in sockets { try await socket.wait(forHead: 0, of: "w") }
                    for (head, live) in [(1, first), (2, second)] {
                        try await live.commitTask(to: "w")
                        for socket in sockets { try await socket.wait(forHead: head, of: "w") }
                    }
                }
            }
            try await offPool { for store in stores { store.close() } }
        }
    }
#endif
