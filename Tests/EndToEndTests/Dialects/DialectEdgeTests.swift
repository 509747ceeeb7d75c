#if Server
    import Foundation
    import NIOHTTP1
    import TidemarkHummingbird
    import TidemarkSQLite
    import TidemarkServer
    import TidemarkWire
    import Testing

    /// What callers of the dialects meet at the edges: full pages, taken names, odd values, old keys.
    @Suite struct DialectEdgeTests {
        @Test("losers that fill a page are sent again, and the stamp never goes back", arguments: LiveStore.allCases)
        func fullOfLosers(kind: LiveStore) async throws {
            var word = EntityDeclaration("word")
            word.conflict = .manual
            try await DialectServer.run(kind, entities: [word]) { server in
                let (ada, bob) = (try await server.caller(), try await server.caller("bob"))
                for id in ["w1", "w2", "w3"] {
                    _ = try await bob.put("/rest/word/\(id)", #"{"title":"old"}"#)
                    server.pass(1000)
                }
                let seen = try await ada.stamped(#"{"clientStamp":0,"items":[]}"#)
                var stamp = try #require(seen.member("clientStamp") as? Int)
                _ = try await bob.put("/rest/word/w9", #"{"title":"new"}"#)
                server.pass(60_000)
                var waiting = ["w1", "w2", "w3"]
                for round in 0..<3 {
                    let items = waiting.map {
                        #"{"entity":"word","id":"\#($0)","itemUpdateStamp":\#(DialectServer.start + 50_000),"#
                            + #""data":{"title":"mine"}}"#
                    }
                    let answer = try await ada.stamped(
                        #"{"clientStamp":\#(stamp),"limit":1,"items":[\#(items.joined(separator: ","))]}"#)
                    #expect(answer.items.map { $0["id"] as? String } == ["w\(round + 1)"])
                    let refused = answer.member("refused") as? [[String: Any]] ?? []
                    #expect(refused.map { $0["id"] as? String } == Array(waiting.dropFirst()))
                    #expect(refused.allSatisfy { $0["code"] as? String == "page_full" })
                    let next = try #require(answer.member("clientStamp") as? Int)
                    #expect(next >= stamp && answer.member("hasMore") as? Bool == true)
                    stamp = next
                    waiting.removeFirst()
                }
                let last = try await ada.stamped(#"{"clientStamp":\#(stamp),"limit":1,"items":[]}"#)
                #expect(last.items.map { $0["id"] as? String } == ["w9"])
            }
        }

        @Test("each text comes back as it was, whatever its member's form")
        func texts() async throws {
            var path = EntityPath("notes", of: "note")
            path.members = ["text": .init("text", as: .json), "flag": .init("flag", as: .boolean)]
            try await DialectServer.run(.sqlite, paths: [path]) { server in
                let ada = try await server.caller()
                let texts = [
                    "hello", "null", "5", "\"quoted\"", "", " {}", "{} ", "{\"a\":1, \"a\":2}", "true", "falsehood",
                    "[1,",
                    "[1, {\"$int\": 2}]", "tree", "-1e400",
                ]
                for (index, text) in texts.enumerated() {
                    let body = try JSONSerialization.data(withJSONObject: ["text": text])
                    _ = try await ada.put("/rest/note/n\(index)", String(decoding: body, as: UTF8.self))
                    let shown = try await ada.get("/rest/notes/n\(index)")
                    let again = try await ada.put("/rest/notes/n\(index)", shown.text)
                    #expect(again.status == 200, "\(text): \(again.text)")
                    #expect(again.tag == shown.tag, "\(text) became another one: \(shown.text)")
                    #expect(try await ada.get("/rest/note/n\(index)").member("text") as? String == text)
                }
            }
        }

        @Test("a field that differs from the id's member by case only is not shown, and a record can be sent back")
        func namesInTwoCases() async throws {
            try await DialectServer.run(.sqlite) { server in
                let ada = try await server.caller()
                let operation = #"{"lane":"0123456789abcdef0123456789abcdef","number":1,"type":"upsert","#
                let pushed = try await ada.caller.post(
                    "/sync",
                    #"{"protocolVersion":1,"scope":"w","clientId":"fedcba9876543210fedcba9876543210","operations":["#
                        + operation
                        + #""entity":"task","id":"t1","fields":{"ID":"x","LastModifiedAt":1,"title":"Tea"}}]}"#)
                #expect(pushed.status == 200, "\(pushed.text)")
                let shown = try await ada.get("/rest/task/t1")
                #expect(shown.text == #"{"id":"t1","title":"Tea","lastModifiedAt":1780000000000}"#)
                #expect(try await ada.patch("/rest/task/t1", shown.text).status == 200)
            }
        }

        @Test("a taken name stays taken, however it is spelled", arguments: ["s%79nc", "%53ync", "metric%73"])
        func takenNames(name: String) async throws {
            try await DialectServer.run(.sqlite) { server in
                let ada = try await server.caller()
                #expect(try await ada.put("/rest/sync/1", "{}").status == 201)
                for path in ["delta", "events"] {
                    let answer = try await ada.get("/\(name)/\(path)")
                    #expect((answer.status, answer.code) == (404, .notFound), "\(path)")
                }
            }
        }

        @Test("an entity that a strict server does not declare is told to nobody")
        func undeclared() async throws {
            let folder = try TemporaryFolder()
            let path = folder.path("sync.sqlite")
            for isStrict in [false, true] {
                let store = try SQLiteStore(path: path)
                let server = SyncServer(store: store, isStrict: isStrict)
                try await LiveServer.serve(server, paths: []) { live in
                    let ada = try await DialectServer(live: live, clock: Guarded(0)).caller()
                    guard isStrict else {
                        #expect(try await ada.put("/rest/task/t1", #"{"title":"secret"}"#).status == 201)
                        return
                    }
                    for answer in [
                        try await ada.put("/rest/task/t1", "{}", ("If-None-Match", "*")),
                        try await ada.delete("/rest/task/t1", ("If-Match", "\"1-x\"")),
                        try await ada.patch("/rest/task/t1", #"{"title":"x"}"#), try await ada.get("/rest/task/t1"),
                    ] {
                        #expect((answer.status, answer.code) == (404, .notFound))
                        #expect(!answer.text.contains("secret"))
                    }
                    #expect(try await ada.put("/rest/task/t1", "{}").status == 422)
                }
                try store.close()
            }
        }

        @Test(
            "pages end by the bytes of rows that are passed over, and nothing is skipped",
            arguments: LiveStore.allCases)
        func passedOver(kind: LiveStore) async throws {
            var limits = Limits()
            limits.pageBytes = 65_536
            try await DialectServer.run(kind, limits: limits) { server in
                let ada = try await server.caller()
                let large = String(repeating: "x", count: 40_000)
                for number in 0..<6 { _ = try await ada.put("/rest/large/l\(number)", #"{"text":"\#(large)"}"#) }
                _ = try await ada.put("/rest/task/t1", "{}")
                var (cursor, pages, found) = (nil as String?, 0, [] as [String])
                repeat {
                    let query = cursor.map { "?cursor=\($0)" } ?? ""
                    let answer = try await ada.get("/task/delta\(query)")
                    let upserts = answer.member("upserts") as? [[String: Any]] ?? []
                    found += upserts.compactMap { $0["id"] as? String }
                    cursor = answer.member("nextCursor") as? String
                    pages += 1
                } while cursor != nil && pages < 20
                #expect(found == ["t1"])
                #expect(pages > 2)
            }
        }
    }
#endif
