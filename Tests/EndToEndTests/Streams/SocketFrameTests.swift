#if Server
    import Foundation
    import Testing
    import TidemarkHummingbird
    import TidemarkServer
    import TidemarkWire

    @Suite("Frames of a socket, and their limits", .serialized, .timeLimit(.minutes(5)))
    struct SocketFrameTests {
        private static let subscribe = #"{"type":"subscribe","scopes":["w"]}"#

        /// What a caller sends, and with which code he is sent away.
        struct Attack: Sendable, CustomTestStringConvertible {
            let testDescription: String
            let bytes: [UInt8]
            let end: String

            init(_ name: String, _ end: String, _ frames: [UInt8]...) {
                (testDescription, self.end, bytes) = (name, end, frames.flatMap { $0 })
            }
        }

        private static let text: [UInt8] = Array(repeating: UInt8(ascii: " "), count: 1000)

        static let attacks = [
            Attack("a large frame", "1009 request_too_large", OpenSocket.frame(.text, text + text)),
            Attack(
                "a frame that says it is huge", "1009 request_too_large",
                [0x81, 0xff, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 2, 3, 4]),
            Attack(
                "a length that no integer holds", "1009 request_too_large",
                [0x81, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 2, 3, 4]),
            Attack(
                "a large message in fragments", "1009 request_too_large",
                OpenSocket.frame(.text, text, isFinal: false), OpenSocket.frame(.continuation, text, isFinal: false),
                OpenSocket.frame(.continuation, text)),
            Attack("binary", "1003", OpenSocket.frame(.binary, [1, 2])),
            Attack("what is no text", "1007", OpenSocket.frame(.text, [0x22, 0xc0, 0x80, 0x22])),
            Attack("no mask", "1002", OpenSocket.frame(.text, [0x7b], isMasked: false)),
            Attack("an extension's bit", "1002", [0xc1] + OpenSocket.frame(.text, [0x7b]).dropFirst()),
            Attack("a kind that is not there", "1002", OpenSocket.frame(.reserved, [])),
            Attack("an end without a beginning", "1002", OpenSocket.frame(.continuation, [0x7b])),
            Attack(
                "a text within a text", "1002", OpenSocket.frame(.text, [0x7b], isFinal: false),
                OpenSocket.frame(.text, [0x7d])),
            Attack("a ping in fragments", "1002", OpenSocket.frame(.ping, [], isFinal: false)),
            Attack("a long ping", "1002", OpenSocket.frame(.ping, Array(text.prefix(126)))),
            Attack("half a code", "1002", OpenSocket.frame(.close, [3])),
            Attack("a code that nobody may send", "1002", OpenSocket.frame(.close, [0x03, 0xed])),
            Attack("a code of its own", "4000", OpenSocket.frame(.close, [0x0f, 0xa0])),
            Attack("a close that says nothing", "1000", OpenSocket.frame(.close, [])),
        ]

        @Test("A frame that is not of the protocol closes its socket with its code", arguments: attacks)
        func closed(attack: Attack) async throws {
            var limits = ServerLimits()
            limits.socketBytes = 1024
            try await LiveServer.run(in: TemporaryFolder(), serverLimits: limits) { live in
                let token = try await LiveServer.token()
                let socket = try await OpenSocket(live, "scope=w", token)
                try await socket.send(raw: attack.bytes)
                #expect(try await socket.waitForEnd() == attack.end)
                #expect(try await Caller(url: live.url, token: token).get("/health").status == 200)
            }
        }

        @Test("A message may come in fragments, with a ping between them, which is answered")
        func fragments() async throws {
            try await LiveServer.run(in: TemporaryFolder()) { live in
                let socket = try await OpenSocket(live, "", LiveServer.token())
                let bytes = Array(Self.subscribe.utf8)
                try await socket.send(.text, Array(bytes[..<9]), isFinal: false)
                try await socket.send(.continuation, [], isFinal: false)
                try await socket.send(.ping, [1, 2, 3])
                try await socket.send(.continuation, Array(bytes[9...]))
                try await socket.wait(forHead: 0, of: "w")
                #expect(socket.pongs == [[1, 2, 3]])
            }
        }

        @Test("A text that is no message is refused, and after some of them the socket is closed")
        func mistakes() async throws {
            try await LiveServer.run(in: TemporaryFolder()) { live in
                let socket = try await OpenSocket(live, "scope=w", LiveServer.token())
                let wrong = [
                    "", "[]", "{", #"{"type":"subscribe"}"#, #"{"type":"drop","scopes":["w"]}"#,
                    #"{"type":"subscribe","scopes":["w",1]}"#, #"{"type":"authorize","type":"authorize","token":""}"#,
                    String(repeating: "[", count: 10_000),
                ]
                for (count, text) in wrong.enumerated() {
                    try await socket.say(text)
                    try await socket.wait { texts in
                        texts.count { $0.hasPrefix(#"{"event":"refused","code":"malformed_request""#) } == count + 1
                    }
                }
                try await socket.say(Self.subscribe)
                try await socket.wait(for: #"{"event":"subscribed","scope":"w"}"#)
                try await socket.say("{}")
                #expect(try await socket.waitForEnd() == "1008 malformed_request")
            }
        }

        @Test("More frames than a second may have close the socket, whatever they are")
        func frequent() async throws {
            var limits = ServerLimits()
            limits.socketFrames = 5
            try await LiveServer.run(in: TemporaryFolder(), serverLimits: limits) { live in
                let socket = try await OpenSocket(live, "scope=w", LiveServer.token())
                let pings = Array(repeating: OpenSocket.frame(.ping, []), count: 12).flatMap { $0 }
                try await socket.send(raw: pings)
                #expect(try await socket.waitForEnd() == "1008 too_many_requests")
                #expect(socket.pongs.count == 5)
            }
        }

        @Test("A socket that answers no ping is closed; one that does stays for longer than an idle connection may")
        func silent() async throws {
            var configuration = SyncServer.Configuration()
            configuration.streamComment = .milliseconds(100)
            var limits = ServerLimits()
            (limits.idleTimeout, limits.writeTimeout, limits.firstRequestTimeout, limits.requestTimeout) = (
                .seconds(1), .seconds(1), .seconds(1), .seconds(1)
            )
            try await LiveServer.run(in: TemporaryFolder(), serverLimits: limits, configuration: configuration) {
                live in
                let token = try await LiveServer.token()
                let deaf = try await OpenSocket(live, "scope=w", token, answersPings: false)
                #expect(try await deaf.waitForEnd() == "1008 no pong")
                #expect(deaf.pings == 2)
                let socket = try await OpenSocket(live, "scope=w", token)
                try await socket.wait { _ in socket.pings > 25 }
                _ = try await live.server.commit(to: "w") { $0.upsert("task", id: "t1", ["n": 1]) }
                try await socket.wait(forHead: 1, of: "w")
                #expect(!socket.isEnded)
            }
        }

        @Test("A socket that is subscribed to nothing is closed after some pings")
        func idle() async throws {
            var configuration = SyncServer.Configuration()
            configuration.streamComment = .milliseconds(100)
            try await LiveServer.run(in: TemporaryFolder(), configuration: configuration) { live in
                let socket = try await OpenSocket(live, "", LiveServer.token())
                #expect(try await socket.waitForEnd() == "1000")
                #expect(socket.pings == 4)
            }
        }

        @Test("A socket that takes no answers is hung up on, and nothing that it sends meanwhile is read")
        func slow() async throws {
            var limits = ServerLimits()
            (limits.writeTimeout, limits.socketFrames) = (.seconds(1), .max)
            try await LiveServer.run(in: TemporaryFolder(), serverLimits: limits) { live in
                let token = try await LiveServer.token()
                let socket = try await OpenSocket(live, "scope=w", token, receiveBuffer: 4096)
                let names = (0..<100).map { #""w:\#($0)""# }.joined(separator: ",")
                let unsubscribe = Array(#"{"type":"unsubscribe","scopes":[\#(names)]}"#.utf8)
                // More than the system takes for a reader that has stopped.
                let frames = Array(repeating: OpenSocket.frame(.text, unsubscribe), count: 20_000).flatMap { $0 }
                #expect(try await socket.send(raw: frames) > 0)
                try await socket.waitUntilGone()
                let other = try await OpenSocket(live, "scope=w", token)
                try await other.wait(forHead: 0, of: "w")
            }
        }

        @Test("Bytes behind a request for a protocol that is not spoken here are not kept, and end the connection")
        func otherProtocol() async throws {
            try await LiveServer.run(in: TemporaryFolder()) { live in
                let token = try await LiveServer.token()
                let socket = try Socket(port: live.port)
                try await socket.write(
                    """
                    GET /sync/events?scope=w HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer \(token)\r
                    Upgrade: other\r\nConnection: Upgrade\r\n\r\n
                    """)
                #expect(try await socket.read().hasPrefix("HTTP/1.1 200"))
                try await socket.write(String(repeating: "x", count: 8 << 20))
                try await socket.waitUntilGone()
                let caller = try await OpenSocket(
                    live, "scope=w", nil, headers: "Upgrade: h2c\r\nConnection: Upgrade\r\n")
                #expect(caller.status == 401)
                #expect(try await caller.waitForEnd() == "-")
            }
        }
    }
#endif
