#if Server
    import Foundation
    import NIOHTTP1
    import TidemarkGzip
    import TidemarkHummingbird
    import TidemarkServer
    import TidemarkWire
    import Testing

    /// Snapshots and prioritised deltas over real HTTP: what may be kept, by whom, and how it is asked for again.
    @Suite struct SnapshotRouteTests {
        let folder: TemporaryFolder
        init() throws { folder = try TemporaryFolder() }

        private static let entities: [EntityDeclaration] = [.state("task"), .state("profile", priority: 0)]

        private func filled(
            _ body: @Sendable @escaping (LiveServer, Caller) async throws -> Void
        ) async throws {
            try await LiveServer.run(in: folder, entities: Self.entities) { server in
                let caller = Caller(url: server.url, token: try await LiveServer.token())
                let title = String(repeating: "tide ", count: 40)
                try await server.server.commit(to: "w") { changes in
                    for index in 1...6 {
                        changes.upsert("task", id: RecordID("t\(index)")!, ["title": .text(title), "done": 0])
                    }
                    changes.upsert("profile", id: "me", ["name": "Ada"])
                }
                try await body(server, caller)
            }
        }

        private func next(_ answer: Answer, _ query: String = "") -> String {
            let token = answer.member("snapshotToken") as? String ?? ""
            let cursor = answer.member("pageCursor") as? String ?? ""
            return "scope=w&snapshotToken=\(token)&pageCursor=\(cursor)\(query)"
        }

        @Test func aSnapshotIsPagedAndEndsWithItsCheckpoint() async throws {
            try await filled { server, caller in
                var answer = try await caller.get("/sync/snapshot", "scope=w&limit=3")
                #expect(answer.status == 200)
                var ids = answer.changes.compactMap { $0["id"] as? String }
                #expect(answer.member("nextSince") == nil)
                try await server.server.commit(to: "w") { $0.delete("task", id: "t6") }
                while answer.member("hasMore") as? Bool == true {
                    answer = try await caller.get("/sync/snapshot", next(answer, "&limit=3"))
                    ids += answer.changes.compactMap { $0["id"] as? String }
                }
                #expect(ids == ["me", "t1", "t2", "t3", "t4", "t5", "t6"])
                #expect(answer.member("pageCursor") is NSNull)
                let delta = try await caller.get("/sync/changes", "scope=w&since=\(answer.nextSince)")
                #expect(delta.changes.map { $0["type"] as? String } == ["delete"])
            }
        }

        @Test func aPageOfASnapshotMayBeKept() async throws {
            try await filled { server, caller in
                let first = try await caller.get("/sync/snapshot", "scope=w&limit=3")
                #expect(first.headers.first(name: "Cache-Control") == "private, no-cache")
                let query = next(first, "&limit=3")
                let page = try await caller.get("/sync/snapshot", query)
                #expect(page.headers.first(name: "Cache-Control") == "private, max-age=900")
                #expect(page.headers.first(name: "Vary") == "Accept-Encoding, Authorization")
                let tag = try #require(page.headers.first(name: "ETag"))
                #expect(tag.hasPrefix("\"") && tag != first.headers.first(name: "ETag"))

                try await server.server.commit(to: "w") { $0.upsert("task", id: "t3", ["done": 1]) }
                for known in [tag, "W/\(tag)", "\"a,b\", \(tag)", "*"] {
                    let again = try await caller.get("/sync/snapshot", query, headers: [("If-None-Match", known)])
                    #expect((again.status, again.bytes) == (304, []), "\(known)")
                    #expect(again.headers.first(name: "ETag") == tag)
                    #expect(again.headers.first(name: "Cache-Control") == "private, max-age=900")
                }
                for other in ["\"none\"", tag.replacing("\"", with: ""), "\(tag.dropLast())", "", "\""] {
                    let again = try await caller.get("/sync/snapshot", query, headers: [("If-None-Match", other)])
                    #expect((again.status, again.bytes) == (200, page.bytes), "\(other)")
                }
                // The first page's address names no scan, so it is another page once somebody has written.
                let known = [("If-None-Match", first.headers.first(name: "ETag") ?? "")]
                #expect(try await caller.get("/sync/snapshot", "scope=w&limit=3", headers: known).status == 200)
            }
        }

        @Test func aCompressedPageIsAnother() async throws {
            try await filled { _, caller in
                let first = try await caller.get("/sync/snapshot", "scope=w&limit=3")
                let query = next(first, "&limit=3")
                let gzip = [("Accept-Encoding", "gzip")]
                let plain = try await caller.get("/sync/snapshot", query)
                let packed = try await caller.get("/sync/snapshot", query, headers: gzip)
                #expect(try Gzip.decompress(packed.bytes, limit: 1 << 20) == plain.bytes)
                let brotli = [("Accept-Encoding", "br")]
                let smallest = try await caller.get("/sync/snapshot", query, headers: brotli)
                #expect(try BrotliDecoder.decompress(smallest.bytes, limit: 1 << 20) == plain.bytes)
                let tags = [plain, packed, smallest].compactMap { $0.headers.first(name: "ETag") }
                #expect(Set(tags).count == 3)
                let forms: [([(String, String)], [Int])] = [
                    ([], [304, 200, 200]), (gzip, [200, 304, 200]), (brotli, [200, 200, 304]),
                ]
                for (headers, statuses) in forms {
                    for (tag, status) in zip(tags, statuses) {
                        let again = try await caller.get(
                            "/sync/snapshot", query, headers: headers + [("If-None-Match", tag)])
                        #expect(again.status == status)
                    }
                }
            }
        }

        @Test func everyPageIsAskedFor() async throws {
            try await filled { server, caller in
                let first = try await caller.get("/sync/snapshot", "scope=w&limit=3")
                let query = next(first, "&limit=3")
                let tag = try await caller.get("/sync/snapshot", query).headers.first(name: "ETag") ?? ""
                for path in ["/sync/snapshot?\(query)", "/sync/changes?\(query)&order=priority"] {
                    let stranger = Caller(url: server.url, token: try await LiveServer.token(scopes: ["v": .readWrite]))
                    let refused = try await stranger.get(path, headers: [("If-None-Match", tag)])
                    #expect((refused.status, refused.code) == (403, .scopeForbidden))
                    #expect(refused.headers.first(name: "Cache-Control") == "no-store")
                    #expect(try await Caller(url: server.url).get(path).status == 401)
                }
            }
        }

        @Test func aDeltaCanHaveTheCriticalFirst() async throws {
            try await filled { server, caller in
                let since = try await caller.get("/sync/changes", "scope=w").nextSince
                try await server.server.commit(to: "w") { changes in
                    changes.upsert("task", id: "t2", ["done": 1])
                    changes.delete("task", id: "t1")
                    changes.upsert("profile", id: "me", ["name": "Grace"])
                }
                let query = "scope=w&since=\(since)&order=priority&limit=2"
                let first = try await caller.get("/sync/changes", query)
                #expect(first.changes.map { $0["id"] as? String } == ["me", "t1"])
                #expect(first.member("since") as? String == since)
                let last = try await caller.get("/sync/changes", next(first, "&order=priority&limit=2"))
                #expect(last.changes.map { $0["id"] as? String } == ["t2"])
                #expect(last.headers.first(name: "ETag") != nil)
                #expect(try await caller.get("/sync/changes", "scope=w&since=\(last.nextSince)").changes.isEmpty)
                let log = try await caller.get("/sync/changes", "scope=w&since=\(since)&order=log")
                #expect(log.changes.map { $0["id"] as? String } == ["t2", "t1", "me"])
            }
        }

        @Test("A snapshot of some fields has rows with these alone, marked as partial")
        func someFieldsOnly() async throws {
            try await filled { _, caller in
                let answer = try await caller.get("/sync/snapshot", "scope=w&fields=done,name")
                #expect(answer.changes.count == 7)
                #expect(answer.changes.allSatisfy { $0["partial"] as? Bool == true })
                #expect(answer.changes.first?["data"] as? [String: String] == ["name": "Ada"])
            }
        }

        @Test(
            "A malformed question for a snapshot is refused with its member",
            arguments: [
                ("", "scope"), ("scope=w&limit=x", "limit"), ("scope=w&fields=", "fields"),
                ("scope=w&fields=a&fields=b", "fields"), ("scope=w&pageCursor=x", "snapshotToken"),
                ("scope=w&snapshotToken=x", "snapshotToken"),
                ("scope=w&snapshotToken=x&snapshotToken=y", "snapshotToken"),
            ])
        func mistakesAreNamed(query: String, member: String) async throws {
            try await filled { _, caller in
                let answer = try await caller.get("/sync/snapshot", query)
                #expect(answer.status == 400)
                #expect(answer.problem?.detail.contains("`\(member)`") == true, "\(answer.text)")
            }
        }

        @Test func anOrderThatIsNoneIsRefused() async throws {
            try await filled { _, caller in
                let answer = try await caller.get("/sync/changes", "scope=w&order=size")
                #expect((answer.status, answer.code) == (400, .malformedRequest))
                let named = try await caller.get("/sync/changes", "scope=w", headers: [("Tidemark-Client", "no")])
                #expect((named.status, named.code) == (400, .invalidIdentifier))
            }
        }
    }
#endif
