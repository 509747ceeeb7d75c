#if Server
    import Foundation
    import NIOHTTP1
    import TidemarkGzip
    import TidemarkHummingbird
    import TidemarkServer
    import TidemarkWire
    import Testing

    /// What goes well, over real HTTP.
    @Suite struct ExchangeTests {
        let folder: TemporaryFolder
        init() throws { folder = try TemporaryFolder() }

        @Test func headersAreAlwaysThere() async throws {
            try await LiveServer.run(in: folder) { server in
                let caller = Caller(url: server.url, token: try await LiveServer.token())
                let stranger = Caller(url: server.url)
                // A device keeps the declarations, and asks whether they still hold.
                let declarations = try await caller.get("/sync/declarations")
                #expect(declarations.headers.first(name: "Cache-Control") == "private, no-cache")
                #expect(
                    declarations.headers.first(name: "Tidemark-Declarations") == server.server.declarationsFingerprint)
                let answers = [
                    try await caller.get("/sync/changes?scope=w"), try await caller.push([]),
                    try await stranger.get("/sync/changes?scope=w"), try await caller.get("/nothing"),
                    try await caller.send(.PUT, "/sync", nil, []),
                    try await caller.post("/sync", "broken"), try await stranger.get("/health"),
                ]
                for answer in answers {
                    #expect(answer.headers.first(name: "Tidemark-Protocol") == "1")
                    #expect(
                        answer.headers.first(name: "Tidemark-Declarations") == server.server.declarationsFingerprint)
                    #expect(answer.headers.first(name: "Cache-Control") == "no-store")
                    if answer.status >= 400 {
                        #expect(answer.headers.first(name: "Content-Type") == "application/problem+json")
                        #expect(answer.code != nil)
                    }
                }
            }
        }

        @Test("Anybody may ask whether the server lives and is ready")
        func health() async throws {
            try await LiveServer.run(in: folder) { server in
                let answer = try await Caller(url: server.url).get("/health")
                #expect(answer.text == #"{"live":true,"ready":true}"#)
            }
        }

        @Test("Declarations are handed out, and a strict server refuses an entity that has none")
        func declarations() async throws {
            let entities: [EntityDeclaration] = [.state("task", serverFields: ["summary"]), .events("audit")]
            try await LiveServer.run(in: folder, entities: entities, isStrict: true) { server in
                let caller = Caller(url: server.url, token: try await LiveServer.token())
                #expect(try await caller.get("/sync/declarations").bytes == server.server.declarations.body())
                let unknown = try await caller.push([upsert("n1", #""a":1"#, entity: "note")])
                #expect((unknown.results.first?["error"] as? [String: Any])?["code"] as? String == "entity_unknown")
            }
        }

        @Test("Bodies travel in gzip both ways, down only where that is asked for")
        func gzipBothWays() async throws {
            try await LiveServer.run(in: folder) { server in
                let caller = Caller(url: server.url, token: try await LiveServer.token())
                let text = String(repeating: "tide ", count: 500)
                let body =
                    #"{"scope":"w","clientId":"device-01","operations":[{"lane":"lane-0001","number":1,"#
                    + upsert("t1", #""text":"\#(text)""#) + "}]}"
                let pushed = try await caller.send(
                    .POST, "/sync/push", Gzip.compress(Array(body.utf8)),
                    [("Content-Type", "application/json"), ("Content-Encoding", "gzip")])
                #expect(pushed.status == 200)

                let plain = try await caller.get("/sync/changes?scope=w")
                #expect(plain.headers.first(name: "Content-Encoding") == nil)
                for accepted in ["gzip", "br;q=0.5, gzip", "*", "GZIP", "br;q=0, *"] {
                    let answer = try await caller.get("/sync/changes?scope=w", headers: [("Accept-Encoding", accepted)])
                    #expect(answer.headers.first(name: "Content-Encoding") == "gzip", "\(accepted)")
                    #expect(answer.headers.first(name: "Vary") == "Accept-Encoding")
                    #expect(try Gzip.decompress(answer.bytes, limit: 1 << 20) == plain.bytes)
                    #expect(answer.bytes.count < plain.bytes.count / 4)
                }
                for refused in ["gzip;q=0", "br;q=0", "gzip; q=0.0, *", "*;q=0", "identity", "brotli"] {
                    let answer = try await caller.get("/sync/changes?scope=w", headers: [("Accept-Encoding", refused)])
                    #expect(answer.headers.first(name: "Content-Encoding") == nil, "\(refused)")
                    #expect(answer.bytes == plain.bytes)
                }
            }
        }

        @Test func brotliWhereItIsAskedFor() async throws {
            try await LiveServer.run(in: folder) { server in
                let caller = Caller(url: server.url, token: try await LiveServer.token())
                let text = (0..<500).map { "tide \($0 * 7919 % 997)" }.joined(separator: " ")
                _ = try await caller.push([upsert("t1", #""text":"\#(text)""#)])
                let plain = try await caller.get("/sync/changes?scope=w")
                let gzip = try await caller.get("/sync/changes?scope=w", headers: [("Accept-Encoding", "gzip")])
                for accepted in ["br", "gzip, deflate, br", "br, gzip;q=0.5", "*;q=0.1, BR"] {
                    let answer = try await caller.get("/sync/changes?scope=w", headers: [("Accept-Encoding", accepted)])
                    #expect(answer.headers.first(name: "Content-Encoding") == "br", "\(accepted)")
                    #expect(answer.headers.first(name: "Vary") == "Accept-Encoding")
                    #expect(try BrotliDecoder.decompress(answer.bytes, limit: 1 << 20) == plain.bytes)
                    #expect(answer.bytes.count < gzip.bytes.count)
                }
                // What is not worth it goes as it is.
                let small = try await caller.get("/health", headers: [("Accept-Encoding", "br")])
                #expect(small.status == 200 && small.headers.first(name: "Content-Encoding") == nil)
            }
        }

        @Test func aReplayGetsTheFirstAnswer() async throws {
            try await LiveServer.run(in: folder) { server in
                let caller = Caller(url: server.url, token: try await LiveServer.token())
                let operations = [upsert("t1", #""a":1"#), upsert("t2", #""a":2"#)]
                let first = try await caller.push(operations, path: "/sync/push")
                let again = try await caller.push(operations, path: "/sync/push")
                #expect(first.results.count == 2)
                #expect(again.results.allSatisfy { $0["replayed"] as? Bool == true })
                // Behind the verdicts an answer says when it was given.
                let verdicts = [again, first].map { answer in
                    answer.text.replacing(#","replayed":true"#, with: "").prefix { $0 != "]" }
                }
                #expect(verdicts[0] == verdicts[1])
                #expect(try await caller.pullAll().count == 2)
            }
        }

        @Test func theSameKeyWithAnotherPayload() async throws {
            try await LiveServer.run(in: folder) { server in
                let caller = Caller(url: server.url, token: try await LiveServer.token())
                _ = try await caller.push([upsert("t1", #""a":1"#)])
                let other = try await caller.push([upsert("t1", #""a":2"#)])
                let error = other.results.first?["error"] as? [String: Any]
                #expect(other.status == 200)
                #expect(error?["code"] as? String == "operation_mismatch")
                let data = try await caller.pullAll().first?["data"] as? [String: Any]
                #expect(data?["a"] as? Int == 1)
            }
        }

        /// A store that was restored from a backup says so to whoever has seen more (I11).
        @Test func aRestoredStoreIsNoticed() async throws {
            func session(_ body: @Sendable @escaping (Caller) async throws -> String) async throws -> String {
                try await LiveServer.run(in: folder) { server in
                    try await body(Caller(url: server.url, token: try await LiveServer.token()))
                }
            }
            _ = try await session { try await $0.push([upsert("t1", #""a":1"#)]).text }
            try FileManager.default.copyItem(atPath: folder.path("sync.sqlite"), toPath: folder.path("backup"))
            let since = try await session { caller in
                _ = try await caller.push([upsert("t2", #""a":1"#)], from: 2)
                return try await caller.get("/sync/changes?scope=w").nextSince
            }
            try FileManager.default.removeItem(atPath: folder.path("sync.sqlite"))
            try FileManager.default.copyItem(atPath: folder.path("backup"), toPath: folder.path("sync.sqlite"))
            _ = try await session { caller in
                let answer = try await caller.get("/sync/changes", "scope=w&since=\(since)")
                #expect((answer.status, answer.code) == (410, .checkpointExpired))
                #expect(answer.problem?.reason == .epoch)
                let pushed = try await caller.push(
                    [upsert("t9", #""a":1"#)], from: 2, members: #","since":"\#(since)""#)
                #expect(pushed.status == 410)
                #expect(try await caller.pullAll().count == 1)
                return ""
            }
        }
    }
#endif
