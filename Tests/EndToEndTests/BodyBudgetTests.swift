#if Server
    import Foundation
    import Testing
    import TidemarkHummingbird
    import TidemarkServer
    import TidemarkWire

    /// Bodies that are on their way hold memory, of which each caller has a share (I14).
    @Suite(.serialized) struct BodyBudgetTests {
        let folder: TemporaryFolder
        init() throws { folder = try TemporaryFolder() }

        private static let largest = 1 << 20

        /// Two bodies of the largest size.
        private var limits: Limits {
            var limits = Limits()
            (limits.bodyBytes, limits.bodiesBytes) = (Self.largest, 2 * Self.largest)
            return limits
        }

        private func begin(
            _ port: Int, as subject: String, _ bytes: Int, announcing size: Int = BodyBudgetTests.largest
        ) async throws -> Socket {
            let token = try await LiveServer.token(subject, scopes: ["s": .readWrite])
            let socket = try Socket(port: port)
            try await socket.write(Self.head(token, size) + String(repeating: " ", count: bytes))
            return socket
        }

        private static func head(_ token: String, _ size: Int) -> String {
            "POST /sync HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer \(token)\r\n"
                + "Content-Type: application/json\r\nContent-Length: \(size)\r\n\r\n"
        }

        private static let body =
            #"{"protocolVersion":1,"scope":"s","clientId":"77080b9066cc6a27b93e6f15c55fef49","operations":[]}"#

        @Test("A token without any scope is refused before its body comes")
        func noScope() async throws {
            try await LiveServer.run(in: folder) { server in
                let token = try await LiveServer.token(scopes: [:])
                let socket = try Socket(port: server.port)
                try await socket.write(Self.head(token, 8 << 20))
                #expect(try await socket.read().hasPrefix("HTTP/1.1 403"))
            }
        }

        @Test("A scope that is not granted is refused before the operations are read")
        func otherScope() async throws {
            try await LiveServer.run(in: folder) { server in
                let body = #"{"scope":"t","operations":[{"no":"operation"}]}"#
                let socket = try await begin(server.port, as: "ada", 0, announcing: body.utf8.count)
                try await socket.write(body)
                #expect(try await socket.read().hasPrefix("HTTP/1.1 403"))
            }
        }

        @Test("One caller's bodies have a share; a small one of another's is taken all the same")
        func share() async throws {
            try await LiveServer.run(in: folder, limits: limits) { server in
                let first = try await begin(server.port, as: "ada", Self.largest - 1)
                try await Task.sleep(for: .milliseconds(300))
                let second = try await begin(server.port, as: "ada", Self.largest - 1)
                #expect(try await second.read().hasPrefix("HTTP/1.1 429"))
                let other = try await begin(server.port, as: "bob", 0, announcing: Self.body.utf8.count)
                try await other.write(Self.body)
                let answer = try await other.read()
                #expect(answer.hasPrefix("HTTP/1.1 200"), "\(answer)")
                #expect(!first.isClosed)
            }
        }

        @Test("Where there is no room, the body that has been on its way for longest goes, and its room is free")
        func slowest() async throws {
            try await LiveServer.run(in: folder, limits: limits) { server in
                let first = try await begin(server.port, as: "ada", Self.largest - 1)
                try await Task.sleep(for: .milliseconds(200))
                let second = try await begin(server.port, as: "bob", Self.largest - 1)
                try await Task.sleep(for: .milliseconds(200))
                // Both are young: who comes now is asked to come again.
                let early = try await begin(server.port, as: "cay", Self.largest - 1)
                #expect(try await early.read().hasPrefix("HTTP/1.1 503"))
                try await Task.sleep(for: .milliseconds(1200))
                let third = try await begin(server.port, as: "cay", Self.largest - 1)
                #expect(try await first.read().hasPrefix("HTTP/1.1 503"))
                #expect(!second.isClosed && !third.isClosed)
            }
        }
    }
#endif
