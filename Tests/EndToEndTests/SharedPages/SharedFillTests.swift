#if Server
    import Foundation
    import GRDB
    import NIOHTTP1
    import Testing
    import Tidemark
    import TidemarkAsyncHTTPClient
    import TidemarkServer
    import TidemarkWire

    /// Devices that are filled by way of a cache that many share.
    @Suite("A fill by way of a shared cache (F4)", .serialized, .timeLimit(.minutes(5)))
    struct SharedFillTests {
        let folder: TemporaryFolder
        init() throws { folder = try TemporaryFolder() }

        private func device(_ name: String) throws -> DatabasePool {
            let pool = try DatabasePool(path: folder.path(name))
            try pool.write { db in
                try db.execute(sql: "CREATE TABLE task (id TEXT PRIMARY KEY, title TEXT, rank INTEGER)")
            }
            return pool
        }

        private func engine(_ pool: DatabasePool, _ transport: some Transport) throws -> SyncEngine {
            var configuration = SyncConfiguration()
            configuration.snapshotRange = 100...100
            configuration.firstSnapshotPage = 100
            return try SyncEngine(
                for: pool, tables: [.table("task")], scopes: ["w"], transport: transport, configuration: configuration)
        }

        /// One of the two that this package has.
        private func transport(
            _ url: String, isSystems: Bool = false, _ sub: String = "ada"
        ) async throws
            -> any Transport
        {
            let root = try #require(URL(string: url))
            let token = try await LiveServer.token(sub)
            return isSystems ? HTTPTransport(root) { token } : AsyncHTTPClientTransport(root) { token }
        }

        private func rows(_ pool: DatabasePool) throws -> [String] {
            try pool.read { db in
                try String.fetchAll(db, sql: "SELECT id || ' ' || title || ' ' || rank FROM task ORDER BY id")
            }
        }

        @Test(
            "The second device's pages come from the cache, and none of them from the server",
            arguments: LiveStore.allCases, [false, true])
        func second(kind: LiveStore, isSystems: Bool) async throws {
            try await SharedPageTests.run(kind) { server in
                try await CachingProxy.run(before: server.live.url) { proxy, url in
                    let one = try device("one")
                    try await engine(one, transport(url, isSystems: isSystems)).syncNow()
                    #expect(try rows(one).count == 300)
                    let first = proxy.requests()
                    #expect(first.map(\.status) == [200, 200, 200])
                    #expect(first.allSatisfy { !$0.isHit && !$0.hasToken })
                    #expect(Set(first.map(\.path)).count == 3)
                    // What is written meanwhile comes with the delta.
                    try await server.server.commit(to: "w") { changes in
                        changes.upsert("task", id: "t1000", ["title": "later"])
                        changes.delete("task", id: "t1299")
                    }
                    // This device sends rows of its own first: they are newer than the snapshot.
                    let two = try device("two")
                    try await two.write { db in
                        try db.execute(sql: "INSERT INTO task VALUES ('own', 'mine', 1), ('t1001', 'taken', 2)")
                    }
                    try await engine(two, transport(url, isSystems: isSystems, "bob")).syncNow()
                    let hits = proxy.requests().dropFirst(3)
                    #expect(hits.map(\.path) == first.map(\.path))
                    #expect(hits.allSatisfy { $0.isHit })
                    try await engine(one, transport(url)).syncNow()
                    #expect(try rows(one) == rows(two))
                    #expect(try rows(two).count == 300)
                    #expect(try rows(two).contains("own mine 1"))
                    #expect(try rows(two).first { $0.hasPrefix("t1000") } == "t1000 later 0")
                }
            }
        }

        /// Fails for good after some requests, as a device does that is killed.
        private actor Ending: Transport {
            let inner: any Transport
            private var left: Int

            init(_ inner: any Transport, after left: Int) {
                self.inner = inner
                self.left = left
            }

            func send(_ request: TransportRequest) async throws -> TransportResponse {
                guard left > 0 else { throw URLError(.networkConnectionLost) }
                left -= 1
                return try await inner.send(request)
            }
        }

        @Test("A fill goes on where it was, and asks for no page twice", arguments: 3...7)
        func resumed(requests: Int) async throws {
            try await SharedPageTests.run(.sqlite) { server in
                try await CachingProxy.run(before: server.live.url) { proxy, url in
                    let pool = try device("one")
                    let ending = Ending(try await transport(url), after: requests)
                    _ = try? await engine(pool, ending).syncNow()
                    try await engine(pool, transport(url)).syncNow()
                    #expect(try rows(pool).count == 300)
                    let paths = proxy.requests().map(\.path)
                    #expect(Set(paths).count == 3 && paths.count == 3)
                }
            }
        }

        /// Wrong answers that a cache or a proxy may give in place of a page.
        enum Trouble: String, CaseIterable, Sendable {
            case gone, unknown, expired, loginPage, cut, otherScope, otherSnapshot, refused, busy, empty

            func answer(_ page: Answer) throws -> Answer {
                switch self {
                case .gone: throw URLError(.networkConnectionLost)
                case .unknown: problem(.notFound)
                case .expired: problem(.pageExpired)
                // In the server's own words, but not the server's to say of who has the token.
                case .refused: problem(.scopeForbidden)
                case .busy: problem(.tooManyRequests)
                case .empty: altered(page) { _ in "" }
                case .loginPage:
                    Answer(status: 200, headers: ["Content-Type": "text/html"], bytes: Array("<html>".utf8))
                case .cut: altered(page) { String($0.prefix($0.count / 2)) }
                case .otherScope: altered(page) { $0.replacing("\"scope\":\"w\"", with: "\"scope\":\"v\"") }
                case .otherSnapshot:
                    altered(page) { $0.replacing("\"snapshotToken\":\"", with: "\"snapshotToken\":\"A") }
                }
            }

            private func problem(_ code: ProblemCode) -> Answer {
                Answer(
                    status: code.status, headers: ["Content-Type": Problem.contentType, "Tidemark-Protocol": "1"],
                    bytes: Problem(code, "d").body())
            }

            private func altered(_ page: Answer, _ change: (String) -> String) -> Answer {
                Answer(status: 200, headers: ["Content-Type": "application/json"], bytes: Array(change(page.text).utf8))
            }
        }

        /// Without compression, so that pages can be altered on their way.
        private struct Plain: Transport {
            let url: String
            let token: String

            func send(_ request: TransportRequest) async throws -> TransportResponse {
                let items: [String] = request.query.map { item in
                    let value = item.value.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? ""
                    return "\(item.name)=\(value)"
                }
                var address = request.path
                if !items.isEmpty { address += "?\(items.joined(separator: "&"))" }
                let fields: [(String, String)] = request.headers.map { ($0.key, $0.value) }
                let answer = try await Caller(url: url, token: request.carriesToken ? token : nil).send(
                    request.method == "GET" ? .GET : .POST, address, request.body.isEmpty ? nil : request.body, fields)
                let headers: [(String, String)] = answer.headers.map { ($0.name, $0.value) }
                return TransportResponse(status: answer.status, headers: Dictionary(headers) { $1 }, body: answer.bytes)
            }
        }

        @Test(
            "A cache's fault costs a device nothing but a question to the server itself",
            arguments: Trouble.allCases)
        func fallsBack(trouble: Trouble) async throws {
            try await SharedPageTests.run(.sqlite) { server in
                try await CachingProxy.run(before: server.live.url) { proxy, url in
                    proxy.failPages { _, page in try trouble.answer(page) }
                    let pool = try device("one")
                    let transport = Plain(url: url, token: try await LiveServer.token())
                    try await engine(pool, transport).syncNow()
                    #expect(try rows(pool).count == 300)
                    // One that has expired says nothing of the next; of the others one is enough.
                    #expect(proxy.requests().count <= (trouble == .expired ? 3 : 1))
                    #expect(proxy.requests(for: "/sync/snapshot").last?.status == 200)
                }
            }
        }
    }
#endif
