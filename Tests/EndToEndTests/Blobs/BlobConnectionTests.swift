#if Server
    import Foundation
    import Testing
    import TidemarkHummingbird
    import TidemarkServer
    import TidemarkWire

    /// Bodies of blobs have limits of their own on their connection (A12, I14).
    @Suite("Connections that bring blobs", .serialized, .timeLimit(.minutes(5)))
    struct BlobConnectionTests {
        let folder: TemporaryFolder
        init() throws { folder = try TemporaryFolder() }

        private static var limits: ServerLimits {
            var limits = ServerLimits()
            limits.requestTimeout = .seconds(1)
            limits.drainedBytes = 64 << 10
            limits.blobRate = 100
            return limits
        }

        private func begin(_ blob: TestBlob, on server: LiveServer, token: String?) async throws -> Socket {
            let socket = try Socket(port: server.port)
            let token = token.map { "Authorization: Bearer \($0)\r\n" } ?? ""
            try await socket.write(
                "PUT \(blob.path()) HTTP/1.1\r\nHost: x\r\n\(token)Content-Length: \(blob.bytes.count)\r\n\r\n")
            return socket
        }

        private func waitForEnd(of socket: Socket, sending bytes: [UInt8]) async throws {
            try await poll(every: .milliseconds(20)) {
                if socket.isClosed { return true }
                return try await socket.write(bytes) > 0
            }
        }

        @Test("A body that is larger than others, and takes longer than others, is taken as long as it comes")
        func large() async throws {
            let blob = TestBlob(count: TestBlob.piece + 20_000)
            var limits = Self.limits
            // A pause between two writes may be long where other tests run.
            limits.requestTimeout = .seconds(3)
            try await LiveServer.run(in: folder, serverLimits: limits) { server in
                let token = try await LiveServer.token()
                let socket = try await begin(blob, on: server, token: token)
                let begun = ContinuousClock.now
                var rest = blob.bytes[...]
                // Twice as long as another body may take.
                while rest.count > 20_000 || .now - begun < .seconds(6) {
                    let some = rest.prefix(rest.count > 20_000 ? 20_000 : 200)
                    #expect(try await socket.write(Array(some)) == 0)
                    rest = rest.dropFirst(some.count)
                    try await Task.sleep(for: .milliseconds(60))
                }
                try await socket.write(Array(rest))
                #expect(try await socket.read().hasPrefix("HTTP/1.1 201"))
                #expect(try await Caller(url: server.url, token: token).fetch(blob).bytes == blob.bytes)
            }
        }

        @Test("The answer to a request that came before leaves an upload its limits")
        func pipelined() async throws {
            let blob = TestBlob(count: TestBlob.piece + 20_000)
            var limits = Self.limits
            limits.requestTimeout = .seconds(60)
            try await LiveServer.run(in: folder, serverLimits: limits) { server in
                let token = try await LiveServer.token()
                let socket = try Socket(port: server.port)
                try await socket.write(
                    "GET /health HTTP/1.1\r\nHost: x\r\n\r\n"
                        + "PUT \(blob.path()) HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer \(token)\r\n"
                        + "Content-Length: \(blob.bytes.count)\r\n\r\n")
                #expect(try await socket.read().hasPrefix("HTTP/1.1 200"))
                #expect(try await socket.write(blob.bytes) == 0)
                for _ in 0..<10 {
                    let answer = try await socket.read()
                    // The body of the first answer may come by itself.
                    guard !answer.isEmpty, !answer.contains("HTTP/1.1 ") else {
                        #expect(answer.contains("HTTP/1.1 201"))
                        return
                    }
                }
                Issue.record("no answer")
            }
        }

        @Test("A body that trickles in closes its connection")
        func slow() async throws {
            try await LiveServer.run(in: folder, serverLimits: Self.limits) { server in
                let socket = try await begin(.large, on: server, token: try await LiveServer.token())
                try await waitForEnd(of: socket, sending: [1])
            }
        }

        @Test("Of a body that was refused only so much is read")
        func refused() async throws {
            let blob = TestBlob(count: 8 << 20)
            var limits = Self.limits
            // Longer than the test looks: it is the bytes that end the connection.
            limits.requestTimeout = .seconds(600)
            try await LiveServer.run(in: folder, serverLimits: limits) { server in
                let socket = try await begin(blob, on: server, token: nil)
                try await waitForEnd(of: socket, sending: [UInt8](repeating: 0, count: 4096))
            }
        }
    }
#endif
