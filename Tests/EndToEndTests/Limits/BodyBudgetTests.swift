#if Server
    import Foundation
    import Hummingbird
    import NIOCore
    import Synchronization
    import Testing
    import TidemarkHummingbird
    import TidemarkSQLite
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

        /// Bytes of bodies that the server has read and counted.
        private final class Counter: Sendable {
            private let sum = Mutex(0)

            var bytes: Int { sum.withLock { $0 } }
            func add(_ count: Int) { sum.withLock { $0 += count } }

            func wait(for count: Int) async throws {
                try await poll { bytes >= count }
                try #require(bytes == count)
            }
        }

        /// A body whose reader has dealt with what came before he asks for more.
        private struct CountedBody: AsyncSequence, Sendable {
            typealias Element = ByteBuffer

            struct AsyncIterator: AsyncIteratorProtocol {
                var parts: RequestBody.AsyncIterator
                let counter: Counter
                var last = 0

                mutating func next() async throws -> ByteBuffer? {
                    counter.add(last)
                    let part = try await parts.next()
                    last = part?.readableBytes ?? 0
                    return part
                }
            }

            let body: RequestBody
            let counter: Counter

            func makeAsyncIterator() -> AsyncIterator {
                AsyncIterator(parts: body.makeAsyncIterator(), counter: counter)
            }
        }

        private struct Counts: RouterMiddleware {
            let counter: Counter

            func handle(
                _ request: Request, context: SyncRequestContext,
                next: (Request, SyncRequestContext) async throws -> Response
            ) async throws -> Response {
                var request = request
                request.body = RequestBody(asyncSequence: CountedBody(body: request.body, counter: counter))
                return try await next(request, context)
            }
        }

        /// Runs a server that has room for two bodies of the largest size, and tells what it has counted.
        private func run(_ body: @Sendable (LiveServer, Counter) async throws -> Void) async throws {
            let store = try SQLiteStore(path: folder.path("sync.sqlite"))
            let (server, counter) = (SyncServer(store: store, limits: limits), Counter())
            let router = Router(context: SyncRequestContext.self)
            router.add(middleware: Counts(counter: counter))
            router.group("sync").add(middleware: TokenMiddleware(try await TokenVerifier(secret: LiveServer.secret)))
                .addRoutes(
                    server.routes { scope, _, context in
                        context.claims?.access(to: scope) ?? .none
                    } caller: { _, context in
                        try context.caller()
                    })
            try await LiveServer.serve(server, router: router) { live in try await body(live, counter) }
            try store.close()
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

        /// The one of them that is answered first, and how.
        private func answered(_ sockets: [Socket]) async throws -> (index: Int, answer: String) {
            try await withThrowingTaskGroup(of: (index: Int, answer: String).self) { group in
                defer { group.cancelAll() }
                for (index, socket) in sockets.enumerated() {
                    group.addTask { (index: index, answer: try await socket.read()) }
                }
                return try await group.next() ?? (index: -1, answer: "")
            }
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
            try await run { server, counter in
                let first = try await begin(server.port, as: "ada", Self.largest - 1)
                try await counter.wait(for: Self.largest - 1)
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
            try await run { server, counter in
                let began = ContinuousClock.now
                let first = try await begin(server.port, as: "ada", Self.largest - 1)
                try await counter.wait(for: Self.largest - 1)
                let second = try await begin(server.port, as: "bob", Self.largest - 1)
                try await counter.wait(for: 2 * (Self.largest - 1))
                // Both are young: who comes now is asked to come again. On a busy machine they are not, and one goes.
                var third = try await begin(server.port, as: "cay", Self.largest - 1)
                var (who, answer) = try await answered([first, third])
                #expect(answer.hasPrefix("HTTP/1.1 503"))
                if ContinuousClock.now - began < .seconds(1) { #expect(who == 1) }
                // Until the first of them is old enough, whoever comes is refused; then it goes.
                try await poll(every: .milliseconds(50)) {
                    guard who == 1 else { return true }
                    third = try await begin(server.port, as: "cay", Self.largest - 1)
                    (who, answer) = try await answered([first, third])
                    #expect(answer.hasPrefix("HTTP/1.1 503"))
                    return who != 1
                }
                #expect(who == 0)
                #expect(!second.isClosed && !third.isClosed)
            }
        }
    }
#endif
