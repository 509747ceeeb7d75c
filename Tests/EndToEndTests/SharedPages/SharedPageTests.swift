#if Server
    import Foundation
    import NIOHTTP1
    import Testing
    import TidemarkGzip
    import TidemarkHummingbird
    import TidemarkWire

    @testable import TidemarkCore
    @testable import TidemarkServer

    /// Snapshot pages that shared caches may keep, as any HTTP client and any cache see them, over both stores.
    @Suite("Shared snapshot pages: who may read them, and for how long (F4, I9)", .timeLimit(.minutes(5)))
    struct SharedPageTests {
        static let delay: Int64 = 300_000
        private static let plain = "scope=w&limit=100"
        private static let shared = plain + "&shared=true"

        static func limits(_ page: Int = 100) -> Limits {
            var limits = Limits()
            (limits.defaultPage, limits.maximumPage) = (page, page)
            return limits
        }

        /// A server with 300 rows in scope `w` and as many in `v`, three pages each.
        static func run(
            _ kind: LiveStore, entities: [EntityDeclaration] = [], limits: Limits = limits(),
            delay: Int64 = delay, _ body: @Sendable (DialectServer) async throws -> Void
        ) async throws {
            try await DialectServer.run(
                kind, entities: entities, limits: limits, sharedPageDelay: .milliseconds(delay)
            ) { server in
                for scope in ["w", "v"] as [Scope] {
                    try await server.server.commit(to: scope) { changes in
                        for index in 0..<300 {
                            changes.upsert(
                                "task", id: RecordID("t\(1000 + index)") ?? "t",
                                ["title": .text("\(scope) \(index)"), "rank": .integer(Int64(index))])
                        }
                    }
                }
                try await body(server)
            }
        }

        private func address(
            _ server: DialectServer, _ query: String = shared, _ sub: String = "ada"
        ) async throws -> (path: String, token: String) {
            let answer = try await server.caller(sub, scopes: ["*": .readWrite]).get("/sync/snapshot?\(query)")
            #expect(answer.headers.first(name: "Cache-Control") == "no-store")
            return (
                try #require(answer.member("address") as? String),
                try #require(answer.member("snapshotToken") as? String)
            )
        }

        private func nobody(_ server: DialectServer) -> Caller { Caller(url: server.live.url) }

        @Test(
            "The address gives the bytes that the token gives, to whoever has it, and says how long to keep them",
            arguments: LiveStore.allCases)
        func samePage(kind: LiveStore) async throws {
            try await Self.run(kind) { server in
                let ada = try await server.caller()
                var (place, cursor) = ("", "")
                for _ in 0..<3 {
                    let first = try await address(server, Self.shared + place)
                    #expect(try await address(server, Self.shared + place, "bob") == first)
                    let page = try await nobody(server).get(first.path)
                    #expect(page.status == 200)
                    let query = "\(Self.plain)&snapshotToken=\(first.token)\(cursor)"
                    #expect(try await ada.get("/sync/snapshot?\(query)").bytes == page.bytes)
                    #expect(page.headers.first(name: "Vary") == "Accept-Encoding")
                    let kept = try #require(page.headers.first(name: "Cache-Control"))
                    let seconds = try #require(
                        kept.firstMatch(of: /^public, max-age=(\d+), must-revalidate, immutable$/))
                    #expect(try #require(Int64(seconds.1)) <= Self.delay / 1000)
                    let tag = try #require(page.headers.first(name: "ETag"))
                    let again = try await nobody(server).get(first.path, headers: [("If-None-Match", tag)])
                    #expect((again.status, again.bytes.isEmpty) == (304, true))
                    let packed = try await nobody(server).get(first.path, headers: [("Accept-Encoding", "gzip")])
                    #expect(try Gzip.decompress(packed.bytes, limit: 1 << 20) == page.bytes)
                    #expect(packed.headers.first(name: "ETag") != tag)
                    cursor = "&pageCursor=\(page.member("pageCursor") as? String ?? "")"
                    place = "&snapshotToken=\(first.token)\(cursor)"
                }
                let post = try await nobody(server).post("/sync/pages/x", "{}")
                #expect((post.status, post.headers.first(name: "Allow")) == (405, "GET"))
            }
        }

        @Test(
            "A caller that does not ask for it, or for a part, or asks a server that does not share, gets the page",
            arguments: LiveStore.allCases)
        func onlyWhereAsked(kind: LiveStore) async throws {
            try await Self.run(kind) { server in
                let ada = try await server.caller()
                try await server.server.commit(to: "small") { $0.upsert("task", id: "t", ["n": 1]) }
                let small = try await server.caller(scopes: ["small": .read])
                let answers = [
                    try await ada.get("/sync/snapshot?\(Self.plain)"),
                    try await ada.get("/sync/snapshot?\(Self.plain)&shared=false"),
                    try await ada.get("/sync/snapshot?\(Self.shared)&entity=task"),
                    try await ada.get("/sync/snapshot?\(Self.shared)&fields=title"),
                    try await small.get("/sync/snapshot?scope=small&shared=true"),
                ]
                for answer in answers { #expect((answer.status, answer.changes.isEmpty) == (200, false)) }
                #expect(try await ada.get("/sync/snapshot?\(Self.shared)&known=x").code == .malformedRequest)
                let other = try await server.caller("eve", scopes: ["v": .read])
                #expect(try await other.get("/sync/snapshot?\(Self.shared)").code == .scopeForbidden)
                #expect(try await nobody(server).get("/sync/snapshot?\(Self.shared)").status == 401)
            }
            try await DialectServer.run(kind, limits: Self.limits()) { server in
                try await server.server.commit(to: "w") { $0.upsert("task", id: "t", ["n": 1]) }
                let page = try await server.caller().get("/sync/snapshot?\(Self.shared)")
                #expect(page.changes.count == 1)
                #expect(try await nobody(server).get("/sync/pages/x").code == .notFound)
            }
        }

        @Test(
            "A caller that has lost access reads for the declared delay at most; the snapshot's token opens nothing",
            arguments: LiveStore.allCases)
        func revoked(kind: LiveStore) async throws {
            try await Self.run(kind) { server in
                // At several places between two ends of addresses.
                for step in [0, 1, 70_000, 149_999] as [Int64] {
                    server.pass(step)
                    let (path, token) = try await address(server)
                    let out = try await server.caller("ada", scopes: ["v": .readWrite])
                    let refused = try await out.get("/sync/snapshot?\(Self.shared)&snapshotToken=\(token)")
                    #expect(refused.code == .scopeForbidden)
                    server.pass(Self.delay / 2)
                    #expect(try await nobody(server).get(path).status == 200)
                    server.pass(Self.delay / 2)
                    let gone = try await nobody(server).get(path)
                    #expect((gone.status, gone.code) == (410, .pageExpired))
                    #expect(gone.headers.first(name: "Cache-Control") == "no-store")
                    let tagged = try await nobody(server).get(path, headers: [("If-None-Match", "*")])
                    #expect(tagged.status == 410)
                    // A caller who may read gets another address of the same page.
                    let ada = try await server.caller()
                    let next = try await ada.get("/sync/snapshot?\(Self.shared)&snapshotToken=\(token)")
                    let renewed = try #require(next.member("address") as? String)
                    #expect(renewed != path)
                    #expect(try await nobody(server).get(renewed).status == 200)
                }
            }
        }

        @Test(
            "An address that was altered, made up or made for something else opens nothing",
            arguments: LiveStore.allCases)
        func forged(kind: LiveStore) async throws {
            try await Self.run(kind) { server in
                let (path, token) = try await address(server)
                let sealed = Array(path.dropFirst("/sync/pages/".count))
                var wrong = [
                    token, "", "x", String(sealed.dropLast()), String(sealed) + "A", String(sealed.reversed()),
                ]
                for place in stride(from: 0, to: sealed.count, by: 7) {
                    var altered = sealed
                    altered[place] = altered[place] == "A" ? "B" : "A"
                    wrong.append(String(altered))
                }
                let key = server.server.store.tokenKey
                var page = try #require(SharedPage(token: String(sealed), key: key))
                page.scope = "v"
                wrong.append(page.token(key: key.reversed()))
                wrong.append(SealedToken.seal(Array("x".utf8), .page, scope: nil, key: key))
                for text in wrong where text != String(sealed) {
                    let answer = try await nobody(server).get("/sync/pages/\(text)")
                    #expect((answer.status, answer.code) == (404, .notFound), "\(text)")
                    #expect(answer.headers.first(name: "Cache-Control") == "no-store")
                    #expect(!answer.text.contains(text) || text.count < 2)
                }
                // An address that is too good for this server's clock is none either.
                page.scope = "w"
                page.expires += Self.delay
                #expect(try await nobody(server).get("/sync/pages/\(page.token(key: key))").code == .pageExpired)
            }
        }

        @Test(
            "A caller who sees more than others gets pages of his own, and nobody else sees them",
            arguments: LiveStore.allCases)
        func ownView(kind: LiveStore) async throws {
            try await Self.run(kind, entities: [.state("report", direction: .push)]) { server in
                try await server.server.commit(to: "w") { $0.upsert("report", id: "r1", ["text": "private"]) }
                let robot = try await server.caller("robot", isService: true)
                var (place, begun, own) = ("", "", [String]())
                repeat {
                    let page = try await robot.get("/sync/snapshot?\(Self.shared)\(place)")
                    #expect(page.member("address") == nil)
                    #expect(page.headers.first(name: "Cache-Control")?.hasPrefix("private") == true)
                    own += page.changes.compactMap { $0["entity"] as? String }
                    begun = "&snapshotToken=\(page.member("snapshotToken") as? String ?? "")"
                    place = (page.member("pageCursor") as? String).map { "\(begun)&pageCursor=\($0)" } ?? ""
                } while !place.isEmpty
                #expect(own.contains("report"))
                // The robot's own token, in another reader's hand, names a page without what he may not see.
                var seen: [String] = []
                place = begun
                repeat {
                    let next = try await address(server, Self.shared + place)
                    let page = try await nobody(server).get(next.path)
                    seen += page.changes.compactMap { $0["entity"] as? String }
                    let cursor = page.member("pageCursor") as? String
                    place = cursor.map { "&snapshotToken=\(next.token)&pageCursor=\($0)" } ?? ""
                } while !place.isEmpty
                #expect(seen.count == 300 && !seen.contains("report"))
            }
        }

        @Test(
            "A snapshot that others began with is shared, but with nobody who knows of something newer",
            arguments: LiveStore.allCases)
        func neverOlder(kind: LiveStore) async throws {
            try await Self.run(kind) { server in
                let first = try await address(server)
                try await server.server.commit(to: "w") { $0.upsert("task", id: "t1000", ["title": "newer"]) }
                #expect(try await address(server, Self.shared + "&known=300", "bob") == first)
                let page = try await server.caller("eve").get("/sync/snapshot?\(Self.shared)&known=301")
                #expect(page.member("head") as? Int == 301)
                // Half of the delay later there is a newer one.
                server.pass(Self.delay / 2)
                #expect(try await address(server, Self.shared + "&known=301").token != first.token)
            }
        }

        @Test("Nodes take each other's addresses; one that does not share takes none", arguments: LiveStore.allCases)
        func nodes(kind: LiveStore) async throws {
            try await Self.run(kind) { server in
                let path = try await address(server).path
                let token = String(path.dropFirst("/sync/pages/".count))
                var configuration = SyncServer.Configuration()
                configuration.now = { Date(milliseconds: server.clock.withLock { $0 }) }
                let store = server.server.store
                let alone = SyncServer(store: store, limits: Self.limits(), configuration: configuration)
                let error = await #expect(throws: Problem.self) { try await alone.sharedPage(at: token) }
                #expect(error?.code == .notFound)
                configuration.sharedPageDelay = .milliseconds(Self.delay)
                let other = SyncServer(store: store, limits: Self.limits(), configuration: configuration)
                #expect(try await other.sharedPage(at: token).body == nobody(server).get(path).bytes)
                // Whoever promises less keeps it also for what others have given out.
                configuration.sharedPageDelay = .seconds(1)
                let strict = SyncServer(store: store, limits: Self.limits(), configuration: configuration)
                let expired = await #expect(throws: Problem.self) { try await strict.sharedPage(at: token) }
                #expect(expired?.code == .pageExpired)
            }
        }

        @Test("A flood of strangers stops no caller, and no other scope's pages", arguments: LiveStore.allCases)
        func flood(kind: LiveStore) async throws {
            var limits = Self.limits()
            limits.requestsPerSecond = 1
            try await Self.run(kind, limits: limits) { server in
                let (one, other) = (try await address(server), try await address(server, "scope=v&shared=true", "vera"))
                let statuses = try await withThrowingTaskGroup(of: Int.self) { group in
                    for _ in 0..<40 { group.addTask { try await nobody(server).get(one.path).status } }
                    return try await group.reduce(into: [Int: Int]()) { $0[$1, default: 0] += 1 }
                }
                #expect(statuses == [200: 10, 429: 30])
                let refused = try await nobody(server).get(one.path)
                #expect((refused.code, refused.headers.first(name: "Retry-After")) == (.tooManyRequests, "2"))
                #expect(try await nobody(server).get(other.path).status == 200)
                for sub in ["ada", "w"] {
                    #expect(try await server.caller(sub).get("/sync/snapshot?\(Self.plain)").status == 200)
                }
                // A token that opens no page is not counted against anybody.
                for _ in 0..<20 { #expect(try await nobody(server).get("/sync/pages/x").status == 404) }
                server.pass(1000)
                #expect(try await nobody(server).get(one.path).status == 200)
            }
        }

        @Test("A page whose rows are not kept any more is no page of other rows", arguments: LiveStore.allCases)
        func swept(kind: LiveStore) async throws {
            try await Self.run(kind, delay: 3_600_000) { server in
                let (path, token) = try await address(server)
                try await server.server.commit(to: "w") { $0.upsert("task", id: "t1000", ["title": "newer"]) }
                #expect(try await nobody(server).get(path).status == 200)
                server.pass(20 * 60_000)
                #expect(try await server.server.sweep() == 1)
                #expect(try await nobody(server).get(path).code == .pageExpired)
                let ada = try await server.caller()
                let page = try await ada.get("/sync/snapshot?\(Self.shared)&snapshotToken=\(token)")
                #expect(page.member("consistent") as? Bool == false)
                #expect(page.headers.first(name: "Cache-Control") == "no-store")
                // Who begins gets another snapshot, which can be shared.
                #expect(try await address(server).token != token)
            }
        }
    }
#endif
