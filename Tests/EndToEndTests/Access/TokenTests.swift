#if Server
    import Foundation
    import Logging
    import NIOHTTP1
    import Synchronization
    import TidemarkCore
    import TidemarkHummingbird
    import TidemarkSQLite
    import TidemarkServer
    import TidemarkWire
    import Testing

    @testable import TidemarkCommand

    /// Who may do what: every request is asked for its token.
    @Suite struct TokenTests {
        let folder: TemporaryFolder
        init() throws { folder = try TemporaryFolder() }

        private static func encoded(_ text: String) -> String { encoded(Array(text.utf8)) }
        private static func encoded(_ bytes: [UInt8]) -> String {
            Data(bytes).base64EncodedString().replacing("+", with: "-").replacing("/", with: "_")
                .replacing("=", with: "")
        }

        /// A token put together by hand, with whatever header an attacker likes.
        private static func forged(header: String, payload: String, isSigned: Bool) -> String {
            let body = encoded(header) + "." + encoded(payload)
            let mark = isSigned ? encoded(SHA256.authenticate(Array(body.utf8), key: LiveServer.secret)) : ""
            return body + "." + mark
        }

        @Test("Without a token that this server's key has signed, and that is in force, nobody gets in")
        func unauthenticated() async throws {
            try await LiveServer.run(in: folder) { server in
                let payload = #"{"sub":"eve","exp":9999999999,"scopes":{"*":"rw"}}"#
                let otherKey = Array("another key, of which this server knows nothing".utf8)
                let good = try await LiveServer.token()
                let tokens: [String?] = [
                    nil, "garbage", "a.b.c", "", String(good.dropLast(2)), good + "x",
                    try await LiveServer.token(expiresIn: -1), try await LiveServer.token(secret: otherKey),
                    Self.forged(header: #"{"alg":"none"}"#, payload: payload, isSigned: false),
                    Self.forged(header: #"{"alg":"none"}"#, payload: payload, isSigned: true),
                    Self.forged(header: #"{"alg":"RS256"}"#, payload: payload, isSigned: true),
                    Self.forged(header: #"{"alg":"HS256","crit":["exp"]}"#, payload: payload, isSigned: true),
                    Self.forged(header: #"{"alg":"HS256"}"#, payload: #"{"sub":"eve","scopes":{}}"#, isSigned: true),
                ]
                for token in tokens {
                    for path in ["/sync/changes?scope=w", "/sync/declarations"] {
                        let answer = try await Caller(url: server.url, token: token).get(path)
                        #expect((answer.status, answer.code) == (401, .unauthenticated), "\(token ?? "none") \(path)")
                        #expect(answer.headers.first(name: "WWW-Authenticate") == "Bearer")
                    }
                }
                let fine = Self.forged(header: #"{"alg":"HS256"}"#, payload: payload, isSigned: true)
                #expect(try await Caller(url: server.url, token: fine).get("/sync/changes?scope=w").status == 200)
            }
        }

        @Test func aTokenEndsInMidSession() async throws {
            let watch = Watch()
            let store = try SQLiteStore(path: folder.path("sync.sqlite"))
            let server = SyncServer(store: store)
            let router = ServerApplication(
                server: server, verifier: try await TokenVerifier(secret: LiveServer.secret) { watch.now },
                logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
            ).router
            try await LiveServer.serve(server, router: router) { live in
                let caller = Caller(url: live.url, token: try await LiveServer.token(expiresIn: 3600))
                for seconds in [0, 3598] as [Double] {
                    watch.set(to: seconds)
                    #expect(try await caller.get("/sync/changes?scope=w").status == 200)
                }
                watch.set(to: 7200)
                let answer = try await caller.get("/sync/changes?scope=w")
                #expect((answer.status, answer.code) == (401, .unauthenticated))
            }
            try store.close()
        }

        @Test("A token opens the scopes that it names, and no more than it grants there")
        func scopes() async throws {
            try await LiveServer.run(in: folder) { server in
                let token = try await LiveServer.token(scopes: ["team:*": .readWrite, "news": .read])
                let caller = Caller(url: server.url, token: token)
                for scope in ["other", "team", "new", "newspaper", "Team:1"] {
                    let pull = try await caller.get("/sync/changes", "scope=\(scope)")
                    #expect((pull.status, pull.code) == (403, .scopeForbidden), "\(scope)")
                    let push = try await caller.push([upsert("t1", #""a":1"#)], scope: scope)
                    #expect((push.status, push.code) == (403, .scopeForbidden), "\(scope)")
                }
                #expect(try await caller.get("/sync/changes", "scope=news").status == 200)
                #expect(try await caller.push([], scope: "news").status == 200)
                let push = try await caller.push([upsert("t1", #""a":1"#)], scope: "news")
                #expect((push.status, push.code) == (403, .scopeReadOnly))
                #expect(try await caller.push([upsert("t1", #""a":1"#)], scope: "team:1").status == 200)
            }
        }

        /// The same answer whether the scope holds data or not: nobody learns what exists.
        @Test func aForbiddenScopeTellsNothing() async throws {
            try await LiveServer.run(in: folder) { server in
                let owner = Caller(url: server.url, token: try await LiveServer.token())
                _ = try await owner.push([upsert("t1", #""a":1"#)], scope: "secret1")
                let stranger = Caller(url: server.url, token: try await LiveServer.token("eve", scopes: [:]))
                let full = try await stranger.get("/sync/changes", "scope=secret1")
                let empty = try await stranger.get("/sync/changes", "scope=secret2")
                #expect(full.text.replacing("secret1", with: "secret2") == empty.text)
            }
        }

        @Test func keysBelongToTheSubject() async throws {
            try await LiveServer.run(in: folder) { server in
                let ada = Caller(url: server.url, token: try await LiveServer.token("ada"))
                let eve = Caller(url: server.url, token: try await LiveServer.token("eve"))
                _ = try await ada.push([upsert("t1", #""a":1"#)])
                let replay = try await eve.push([upsert("t1", #""a":1"#)])
                #expect(replay.results.first?["replayed"] == nil)
            }
        }
    }

    /// The clock that a server holds tokens against.
    private final class Watch: Sendable {
        private let start = Date.now
        private let passed = Mutex<Double>(0)

        var now: Date { start.addingTimeInterval(passed.withLock { $0 }) }
        func set(to seconds: Double) { passed.withLock { $0 = seconds } }
    }
#endif
