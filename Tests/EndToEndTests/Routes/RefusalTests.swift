#if Server
    import Foundation
    import NIOHTTP1
    import TidemarkGzip
    import TidemarkServer
    import TidemarkWire
    import Testing

    /// What is refused, over real HTTP: the status and the code of each, and that nothing was applied.
    @Suite struct RefusalTests {
        let folder: TemporaryFolder
        init() throws { folder = try TemporaryFolder() }

        private func check(
            limits: Limits = Limits(), _ body: @Sendable @escaping (Caller) async throws -> Void
        ) async throws {
            try await LiveServer.run(in: folder, limits: limits) { server in
                try await body(Caller(url: server.url, token: try await LiveServer.token()))
            }
        }

        @Test("Another version of the protocol is refused with those that are spoken")
        func unsupportedProtocol() async throws {
            try await check { caller in
                let answer = try await caller.get("/sync/changes", "scope=w", headers: [("Tidemark-Protocol", "2")])
                #expect((answer.status, answer.code) == (400, .unsupportedProtocol))
                #expect(answer.member("supported") as? [Int] == [1])
                let inBody = try await caller.push([], members: #","protocolVersion":7"#)
                #expect((inBody.status, inBody.code) == (400, .unsupportedProtocol))
                let fine = try await caller.get("/sync/changes", "scope=w", headers: [("Tidemark-Protocol", "1")])
                #expect(fine.status == 200)
            }
        }

        @Test(
            "A malformed body is refused with the place in it",
            arguments: [
                ("hello", "byte 0"), (#"{"scope":5,"clientId":"device-01"}"#, "`scope`"),
                (#"{"scope":"w","clientId":"device-01","scope":"x"}"#, "`scope`"),
                (
                    #"{"scope":"w","clientId":"device-01","operations":[{"lane":"lane-0001","number":1,"#
                        + #""type":"upsert","entity":"task","id":"t","fields":{"a":1,"a":2}}]}"#,
                    "`operations[0].fields.a`"
                ),
                (#"{"scope":"w","clientId":"device-01","operations":7}"#, "`operations`"),
            ])
        func malformedRequest(body: String, place: String) async throws {
            try await check { caller in
                let answer = try await caller.post("/sync", body)
                #expect((answer.status, answer.code) == (400, .malformedRequest))
                #expect(answer.problem?.detail.contains(place) == true, "\(answer.text)")
            }
        }

        @Test(
            "A malformed query is refused with its member",
            arguments: [
                ("", ProblemCode.malformedRequest, "`scope`"), ("scope=w&scope=x", .malformedRequest, "`scope`"),
                ("scope=a%20b", .invalidIdentifier, "`scope`"), ("scope=w&limit=ten", .malformedRequest, "`limit`"),
                ("scope=w&limit=0", .limitOutOfRange, "`limit`"), ("scope=w&limit=5001", .limitOutOfRange, "`limit`"),
                ("scope=w&limit=99999999999999999999", .limitOutOfRange, "`limit`"),
                ("scope=w&limit=-1", .limitOutOfRange, "`limit`"),
                ("scope=w&since=garbage", .invalidCheckpoint, "`since`"),
                ("scope=w&since=", .invalidCheckpoint, "`since`"),
            ])
        func query(query: String, code: ProblemCode, place: String) async throws {
            try await check { caller in
                let answer = try await caller.get("/sync/changes", query)
                #expect((answer.status, answer.code) == (400, code))
                #expect(answer.problem?.detail.contains(place) == true, "\(answer.text)")
            }
        }

        @Test("A name that is none is refused wherever it stands")
        func invalidIdentifier() async throws {
            try await check { caller in
                for body in [
                    #"{"scope":"a b","clientId":"device-01"}"#, #"{"scope":"w","clientId":"short"}"#,
                    #"{"scope":"w","clientId":"device-01","operations":[{"lane":"lane-0001","number":1,"#
                        + #""type":"delete","entity":" x","id":"t"}]}"#,
                ] {
                    let answer = try await caller.post("/sync", body)
                    #expect((answer.status, answer.code) == (400, .invalidIdentifier), "\(answer.text)")
                }
            }
        }

        @Test("A checkpoint of another scope, and one that was altered, is refused")
        func invalidCheckpoint() async throws {
            try await check { caller in
                _ = try await caller.push([upsert("t1", #""a":1"#)])
                let token = try await caller.get("/sync/changes", "scope=w").nextSince
                let foreign = try await caller.get("/sync/changes", "scope=x&since=\(token)")
                #expect((foreign.status, foreign.code) == (400, .invalidCheckpoint))
                var altered = Array(token.utf8)
                for index in altered.indices {
                    let kept = altered[index]
                    altered[index] = kept == UInt8(ascii: "A") ? UInt8(ascii: "B") : UInt8(ascii: "A")
                    // The last character may hold bits that no byte uses; the others all count.
                    if index < altered.count - 1 {
                        let text = String(decoding: altered, as: UTF8.self)
                        let answer = try await caller.get("/sync/changes", "scope=w&since=\(text)")
                        #expect((answer.status, answer.code) == (400, .invalidCheckpoint), "character \(index)")
                    }
                    altered[index] = kept
                }
                #expect(try await caller.get("/sync/changes", "scope=w&since=\(token)").status == 200)
            }
        }

        @Test("A path that is none is not found, and a method that is none is told with those that are")
        func notFoundAndMethods() async throws {
            try await check { caller in
                for path in ["/", "/sync/nothing", "/elsewhere", "/sync/changes/more"] {
                    let answer = try await caller.get(path)
                    #expect((answer.status, answer.code) == (404, .notFound), "\(path)")
                }
                for (method, path) in [("PUT", "/sync"), ("GET", "/sync/push"), ("DELETE", "/sync/changes")] {
                    let answer = try await caller.send(.RAW(value: method), path, nil, [])
                    #expect((answer.status, answer.code) == (405, .methodNotAllowed), "\(method) \(path)")
                    #expect(answer.headers.first(name: "Allow") != nil)
                }
            }
        }

        @Test("A gap in a lane refuses the push, and says which number is expected")
        func operationGap() async throws {
            try await check { caller in
                let first = try await caller.push([upsert("t1", #""a":1"#)])
                #expect(first.status == 200)
                let answer = try await caller.push([upsert("t2", #""a":1"#), upsert("t3", #""a":1"#)], from: 3)
                #expect((answer.status, answer.code) == (409, .operationGap))
                #expect(answer.problem?.expected == 2)
                #expect(answer.problem?.lane == "lane-0001")
                let whole = try await caller.push([upsert("t4", #""a":1"#)], from: 2)
                #expect(whole.status == 200)
                #expect(try await caller.pullAll().compactMap { $0["id"] as? String } == ["t1", "t4"])
            }
        }

        @Test("A body that is too large is refused, also once it is unpacked")
        func tooLarge() async throws {
            var limits = Limits()
            limits.bodyBytes = 64 << 10
            try await check(limits: limits) { caller in
                let json = ("Content-Type", "application/json")
                let large = try await caller.send(.POST, "/sync", Array(repeating: 0x20, count: 65 << 10), [json])
                #expect((large.status, large.code) == (413, .requestTooLarge))
                let bomb = Gzip.compress(Array(repeating: 0x20, count: 4 << 20))
                #expect(bomb.count < 64 << 10)
                let inflated = try await caller.send(.POST, "/sync", bomb, [json, ("Content-Encoding", "gzip")])
                #expect((inflated.status, inflated.code) == (413, .requestTooLarge))
            }
            try await check { caller in
                let many = try await caller.push((0...1000).map { upsert("t\($0)", #""a":1"#) })
                #expect((many.status, many.code) == (413, .requestTooLarge))
                #expect(try await caller.pullAll().isEmpty)
            }
        }

        @Test(
            "An encoding or a type that is not taken is refused with 415",
            arguments: [
                ("Content-Encoding", "br", 415), ("Content-Encoding", "gzip, gzip", 415),
                ("Content-Encoding", "gzip", 400),
                ("Content-Type", "text/plain", 415), ("Content-Type", "application/json; charset=utf-8", 200),
                ("Content-Encoding", "identity", 200),
            ])
        func encodings(header: String, value: String, status: Int) async throws {
            try await check { caller in
                let body = #"{"scope":"w","clientId":"device-01"}"#
                let answer = try await caller.post("/sync", body, headers: [(header, value)])
                #expect(answer.status == status)
                if status == 415 { #expect(answer.code == .unsupportedEncoding) }
                if status == 400 { #expect(answer.code == .malformedRequest) }
            }
        }
    }
#endif
