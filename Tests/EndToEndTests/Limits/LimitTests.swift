#if Server
    import Foundation
    import TidemarkHummingbird
    import TidemarkWire
    import Testing

    /// Callers that are slow, silent or many: each meets a limit that was set on purpose.
    @Suite(.serialized) struct LimitTests {
        let folder: TemporaryFolder
        init() throws { folder = try TemporaryFolder() }

        private func quick() -> ServerLimits {
            var limits = ServerLimits()
            limits.idleTimeout = .milliseconds(400)
            limits.requestTimeout = .milliseconds(400)
            limits.connections = 2
            return limits
        }

        /// Sends `start`, then `more` every 100 ms, until the server puts an end to it. A server without limits would
        /// bear it for ever; a busy machine may take some time.
        private func waitForEnd(of start: String, then more: String) async throws {
            try await LiveServer.run(in: folder, serverLimits: quick()) { server in
                let socket = try Socket(port: server.port)
                try await socket.write(start)
                try await poll(every: .milliseconds(100)) {
                    if !more.isEmpty { try await socket.write(more) }
                    return socket.isClosed
                }
            }
        }

        @Test("A connection that says nothing is ended")
        func silence() async throws { try await waitForEnd(of: "", then: "") }

        @Test("A connection whose headers trickle in is ended")
        func slowHeaders() async throws {
            try await waitForEnd(of: "GET /health HTTP/1.1\r\nHost: x\r\n", then: "X-A: b\r\n")
        }

        @Test("A connection whose body trickles in is ended")
        func slowBody() async throws {
            let token = try await LiveServer.token()
            let head =
                "POST /sync HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer \(token)\r\n"
                + "Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n"
            try await waitForEnd(of: head, then: " ")
        }

        /// A body that was refused by its first byte may not trickle on for ever either.
        @Test("A connection whose body was refused, and goes on to trickle in, is ended")
        func slowRefusedBody() async throws {
            let head = "POST /sync HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
            try await waitForEnd(of: head, then: "1\r\n \r\n")
        }

        @Test("More headers than a request may have are answered with 431")
        func tooManyHeaders() async throws {
            try await LiveServer.run(in: folder) { server in
                let many = (0..<200).map { "X-\($0): y\r\n" }.joined()
                let socket = try Socket(port: server.port)
                try await socket.write("GET /health HTTP/1.1\r\nHost: x\r\n\(many)\r\n")
                #expect(try await socket.read().hasPrefix("HTTP/1.1 431"))
            }
        }

        @Test(
            "A request says once for whom it is (RFC 9112, 3.2)",
            arguments: ["", "Host: x\r\nHost: y\r\n", "Host: x\r\nHost: x\r\n"])
        func hosts(headers: String) async throws {
            try await LiveServer.run(in: folder) { server in
                let token = try await LiveServer.token()
                let socket = try Socket(port: server.port)
                try await socket.write(
                    "GET /sync/changes?scope=w HTTP/1.1\r\n\(headers)Authorization: Bearer \(token)\r\n\r\n")
                #expect(try await socket.read().hasPrefix("HTTP/1.1 400"))
            }
        }

        @Test("A health probe needs no host") func healthWithoutHost() async throws {
            try await LiveServer.run(in: folder) { server in
                let socket = try Socket(port: server.port)
                try await socket.write("GET /health HTTP/1.0\r\n\r\n")
                #expect(try await socket.read().contains(" 200 "))
            }
        }

        private static let health = "GET /health HTTP/1.1\r\nHost: x\r\n\r\n"

        private func few() -> ServerLimits {
            var limits = ServerLimits()
            limits.connections = 2
            return limits
        }

        /// Whoever is idle makes room. Which one has been so for longest only the server knows
        /// (`OpenConnectionsTests`): an answer can be read before it is noted as taken.
        @Test("One more connection than there may be takes the place of an idle one")
        func idleConnections() async throws {
            try await LiveServer.run(in: folder, serverLimits: few()) { server in
                var open: [Socket] = []
                for _ in 0..<3 {
                    let socket = try Socket(port: server.port)
                    try await socket.write(Self.health)
                    #expect(try await socket.read().hasPrefix("HTTP/1.1 200"))
                    open.append(socket)
                }
                try await poll { open.contains(where: \.isClosed) }
                let rest = open.filter { !$0.isClosed }
                #expect(rest.count == 2)
                for socket in rest {
                    try await socket.write(Self.health)
                    #expect(try await socket.read().hasPrefix("HTTP/1.1 200"))
                }
            }
        }

        @Test("Connections that say nothing keep nobody else from being served")
        func manySilentConnections() async throws {
            try await LiveServer.run(in: folder, serverLimits: few()) { server in
                let silent = try (0..<40).map { _ in try Socket(port: server.port) }
                for _ in 0..<3 {
                    let socket = try Socket(port: server.port)
                    try await socket.write(Self.health)
                    #expect(try await socket.read().hasPrefix("HTTP/1.1 200"))
                }
                withExtendedLifetime(silent) {}
            }
        }

        /// Nobody who is being served is cut off; whoever comes then is served once and does not stay.
        @Test("A caller that is being served is not cut off for a new one")
        func busyConnections() async throws {
            let token = try await LiveServer.token()
            let half =
                "POST /sync HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer \(token)\r\nExpect: 100-continue\r\n"
                + "Content-Type: application/json\r\nContent-Length: 30\r\n\r\n"
            try await LiveServer.run(in: folder, serverLimits: few()) { server in
                let busy = try (0..<2).map { _ in try Socket(port: server.port) }
                for socket in busy {
                    try await socket.write(half)
                    // The server says that it has read so far.
                    #expect(try await socket.read().hasPrefix("HTTP/1.1 100 "))
                    try await socket.write("{")
                }
                for _ in 0..<2 {
                    let third = try Socket(port: server.port)
                    try await third.write(Self.health)
                    #expect(try await third.read().hasPrefix("HTTP/1.1 200"))
                    try await third.waitUntilGone()
                }
                #expect(busy.allSatisfy { !$0.isClosed })
            }
        }

        @Test func silenceBeforeTheFirstRequest() async throws {
            var limits = ServerLimits()
            limits.firstRequestTimeout = .milliseconds(300)
            try await LiveServer.run(in: folder, serverLimits: limits) { server in
                let (silent, served) = (try Socket(port: server.port), try Socket(port: server.port))
                try await silent.write("GET /health HTTP/1.1\r\n")
                try await served.write(Self.health)
                #expect(try await served.read().hasPrefix("HTTP/1.1 200"))
                try await silent.waitUntilGone()
                #expect(!served.isClosed, "the next request has more time")
            }
        }

        /// A request that cannot be read is refused like any other, and nothing of it stays.
        @Test(
            "A request that is not understood is told why, and its connection ends",
            arguments: [
                ("GET /", 200_000, " HTTP/1.1\r\nHost: x\r\n\r\n", ProblemCode.headerTooLarge),
                ("GET /health HTTP/1.1\r\nHost: x\r\nA: ", 200_000, "\r\n\r\n", .headerTooLarge),
                ("nonsense", 0, "\r\n\r\n", .malformedRequest),
                ("GET /health HTTP/1.1\r\nHo st: x", 0, "\r\n\r\n", .malformedRequest),
                ("POST /sync HTTP/1.1\r\nContent-Length: -3", 0, "\r\n\r\nabc", .malformedRequest),
            ])
        func notUnderstood(start: String, filling: Int, end: String, code: ProblemCode) async throws {
            try await LiveServer.run(in: folder) { server in
                let socket = try Socket(port: server.port)
                try await socket.write(start + String(repeating: "a", count: filling) + end)
                let answer = try await socket.read()
                #expect(answer.hasPrefix("HTTP/1.1 \(code.status)"))
                #expect(answer.contains("application/problem+json") && answer.contains("\"\(code.rawValue)\""))
                #expect(answer.contains("Tidemark-Protocol: 1"))
                try await socket.waitUntilGone()
            }
        }

        private func asksForMuch(_ server: LiveServer, _ token: String) async throws -> Socket {
            let socket = try Socket(port: server.port, receiveBuffer: 4096)
            let page = "GET /sync/changes?scope=w HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer \(token)\r\n\r\n"
            for _ in 0..<20 { try await socket.write(page) }
            return socket
        }

        private func fill(_ server: LiveServer, _ token: String) async throws {
            let text = String(repeating: "y", count: 500_000)
            for number in 1...8 {
                let answer = try await Caller(url: server.url, token: token)
                    .push([upsert("r\(number)", "\"text\":\"\(text)\"")], from: number)
                #expect(answer.status == 200)
            }
        }

        @Test func readersThatDoNotRead() async throws {
            var limits = ServerLimits()
            limits.writeTimeout = .milliseconds(500)
            let token = try await LiveServer.token()
            try await LiveServer.run(in: folder, serverLimits: limits) { server in
                try await fill(server, token)
                let deaf = try await asksForMuch(server, token)
                try await deaf.waitUntilGone(readingNothing: true)
            }
        }

        /// However patient the server is with each of them, all together take no more than the limit. Without it, 400
        /// readers of pages of 4 MB held 3.2 GiB.
        @Test func manyReadersThatDoNotRead() async throws {
            var limits = ServerLimits()
            limits.unsentBytes = 9 << 20
            let token = try await LiveServer.token()
            try await LiveServer.run(in: folder, serverLimits: limits) { server in
                try await fill(server, token)
                var deaf: [Socket] = []
                for _ in 0..<6 { deaf.append(try await asksForMuch(server, token)) }
                var rest = deaf
                try await poll(every: .milliseconds(50)) {
                    rest.removeAll { $0.refuses }
                    return rest.count <= 2
                }
                let pulled = try await Caller(url: server.url, token: token).pullAll()
                #expect(pulled.count == 8)
                withExtendedLifetime(deaf) {}
            }
        }
    }
#endif
