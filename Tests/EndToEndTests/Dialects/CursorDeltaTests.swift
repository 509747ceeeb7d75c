#if Server
    import AsyncHTTPClient
    import Foundation
    import NIOHTTP1
    import NIOCore
    import TidemarkHummingbird
    import TidemarkServer
    import TidemarkWire
    import Testing

    /// `/{entity}/delta`: a bookmark service's own cursor, over the same log.
    @Suite struct CursorDeltaTests {
        static let enrichment = ["summary", "tags", "saveWhy", "enrichmentStatus"]
        static var bookmarks: EntityPath {
            var path = EntityPath("bookmarks", of: "bookmark")
            (path.id, path.scope, path.event) = ("clientBookmarkId", "user:{sub}", "bookmarks_changed")
            return path
        }

        private func run(
            _ kind: LiveStore, retention: Duration? = nil,
            _ body: @Sendable (DialectServer, PlainCaller) async throws -> Void
        ) async throws {
            try await DialectServer.run(
                kind, entities: [.state("bookmark", serverFields: Self.enrichment)], paths: [Self.bookmarks],
                retention: retention
            ) { server in
                try await body(server, try await server.caller(scopes: ["user:ada": .readWrite]))
            }
        }

        private struct Page {
            var upserts: [String]
            var tombstones: [String]
            var next: String?
            var checkpoint: String
            var text: String

            init(_ answer: Answer) throws {
                #expect(answer.status == 200, "\(answer.text)")
                upserts = (answer.member("upserts") as? [[String: Any]] ?? [])
                    .map { $0["clientBookmarkId"] as? String ?? "?" }
                tombstones = (answer.member("tombstones") as? [[String: Any]] ?? [])
                    .map { $0["clientBookmarkId"] as? String ?? "?" }
                next = answer.member("nextCursor") as? String
                checkpoint = try #require(answer.headers.first(name: "Tidemark-Checkpoint"))
                text = answer.text
            }
        }

        private func page(_ ada: PlainCaller, _ cursor: String?, limit: Int = 100) async throws -> Page {
            try Page(try await ada.get("/bookmarks/delta?cursor=\(cursor ?? "null")&limit=\(limit)"))
        }

        @Test(arguments: LiveStore.allCases) func theServicesOwnJSONComesOutToTheLetter(kind: LiveStore) async throws {
            try await run(kind) { server, ada in
                let start = try await page(ada, nil)
                #expect(start.text == #"{"upserts":[],"tombstones":[],"nextCursor":null}"#)
                _ = try await ada.put("/rest/bookmarks/abc-123", #"{"title":"One","enrichmentStatus":"pending"}"#)
                _ = try await ada.put("/rest/bookmarks/def-456", #"{"title":"Two"}"#)
                _ = try await ada.delete("/rest/bookmarks/def-456")
                let page = try await page(ada, start.checkpoint)
                #expect(
                    page.text
                        == #"{"upserts":[{"clientBookmarkId":"abc-123","title":"One","#
                        + #""updatedAt":"2026-05-28T20:26:40.000Z"}],"tombstones":[{"#
                        + #""clientBookmarkId":"def-456","deletedAt":"2026-05-28T20:26:40.002Z"}],"nextCursor":null}"#)
                let plain = try await ada.get("/bookmark/delta?scope=user:ada")
                #expect(plain.text.hasPrefix(#"{"upserts":[{"id":"abc-123","title":"One","#))
            }
        }

        /// The original's steps: a client stores `nextCursor`, whatever it is, and asks with it the next time.
        @Test(arguments: LiveStore.allCases) func aClientThatStoresNullHearsOfDeletions(kind: LiveStore) async throws {
            try await run(kind) { _, ada in
                var held: Set<String> = []
                func sync(limit: Int) async throws {
                    var cursor: String?
                    repeat {
                        let page = try await page(ada, cursor, limit: limit)
                        held.formUnion(page.upserts)
                        held.subtract(page.tombstones)
                        cursor = page.next
                    } while cursor != nil
                }
                for id in ["a", "b", "c", "d"] { _ = try await ada.put("/rest/bookmarks/\(id)", "{}") }
                try await sync(limit: 2)
                #expect(held == ["a", "b", "c", "d"])
                _ = try await ada.delete("/rest/bookmarks/b")
                _ = try await ada.delete("/rest/bookmarks/d")
                _ = try await ada.put("/rest/bookmarks/d", "{}")
                try await sync(limit: 1)
                #expect(held == ["a", "c", "d"])
            }
        }

        /// The client has `{ title: "My Title", enrichmentStatus: "pending", updatedAt: T2 }`, the server
        /// `{ title: "Old Title", enrichmentStatus: "completed", summary: "...", updatedAt: T1 }`.
        @Test(arguments: LiveStore.allCases) func theTitleIsTheClientsAndTheEnrichmentTheServers(
            kind: LiveStore
        ) async throws {
            try await run(kind) { server, ada in
                let robot = try await server.caller("robot", scopes: ["*": .readWrite], isService: true)
                _ = try await ada.put("/rest/bookmarks/b1", #"{"title":"Old Title"}"#)
                let robots = "/rest/bookmark/b1?scope=user:ada"
                let enriched = #"{"enrichmentStatus":"completed","summary":"..."}"#
                #expect(try await robot.patch(robots, enriched).status == 200)
                let (cursor, mine) = (try await page(ada, nil), #"{"title":"My Title","enrichmentStatus":"pending"}"#)
                server.pass(5000)
                let put = try await ada.put("/rest/bookmarks/b1", mine)
                #expect(put.member("enrichmentStatus") as? String == "completed")
                let delta = try await page(ada, cursor.checkpoint)
                #expect(
                    delta.text.hasPrefix(
                        #"{"upserts":[{"clientBookmarkId":"b1","title":"My Title","enrichmentStatus":"completed","#
                            + #""summary":"...","updatedAt":""#), "\(delta.text)")
            }
        }

        @Test(arguments: LiveStore.allCases) func theSameCursorGivesTheSamePageWhateverIsWritten(
            kind: LiveStore
        ) async throws {
            try await run(kind) { server, ada in
                for number in 0..<7 { _ = try await ada.put("/rest/bookmarks/b\(number)", #"{"n":0}"#) }
                _ = try await ada.delete("/rest/bookmarks/b2")
                let first = try await page(ada, nil, limit: 2)
                #expect((first.upserts, first.tombstones) == (["b0", "b1"], []))
                let cursor = try #require(first.next)
                #expect(cursor == first.checkpoint)
                let second = try await page(ada, cursor, limit: 2)
                #expect(second.upserts == ["b3", "b4"])
                _ = try await ada.patch("/rest/bookmarks/b3", #"{"n":1}"#)
                _ = try await ada.delete("/rest/bookmarks/b6")
                _ = try await ada.put("/rest/bookmarks/b9", "{}")
                #expect(try await page(ada, cursor, limit: 2).text == second.text)
                let third = try await page(ada, second.next, limit: 2)
                #expect((third.upserts, third.tombstones) == (["b5", "b6"], []))
                let fourth = try await page(ada, third.next, limit: 2)
                #expect((fourth.upserts, fourth.tombstones, fourth.next) == ([], ["b2"], nil))
                // The end keeps its place, and what was written meanwhile is behind it.
                let fifth = try await page(ada, fourth.checkpoint)
                #expect((fifth.upserts, fifth.tombstones, fifth.next) == (["b3", "b9"], ["b6"], nil))
                #expect(try await page(ada, fifth.checkpoint).upserts.isEmpty)
            }
        }

        /// Behind the window a cursor goes on to a new horizon: later pages, and nothing is skipped.
        @Test(arguments: LiveStore.allCases) func anOldCursorSkipsNothing(kind: LiveStore) async throws {
            try await run(kind) { server, ada in
                for number in 0..<6 { _ = try await ada.put("/rest/bookmarks/b\(number)", #"{"n":0}"#) }
                let first = try await page(ada, nil, limit: 2)
                _ = try await ada.patch("/rest/bookmarks/b3", #"{"n":1}"#)
                _ = try await ada.delete("/rest/bookmarks/b0")
                server.pass(3_600_000)
                try await server.server.sweep()
                _ = try await ada.put("/rest/bookmarks/b7", "{}")
                var (seen, gone, cursor) = ([String](), [String](), first.next)
                var last = first
                while cursor != nil {
                    last = try await page(ada, cursor, limit: 2)
                    seen += last.upserts
                    gone += last.tombstones
                    cursor = last.next
                }
                let rest = try await page(ada, last.checkpoint)
                #expect(Set(first.upserts + seen + rest.upserts) == ["b0", "b1", "b2", "b3", "b4", "b5", "b7"])
                #expect(gone + rest.tombstones == ["b0"])
            }
        }

        @Test(arguments: LiveStore.allCases) func cursorsAreOfOneEntityAndScope(kind: LiveStore) async throws {
            try await run(kind) { server, ada in
                _ = try await ada.put("/rest/bookmarks/b1", "{}")
                _ = try await ada.put("/rest/note/n1", "{}")
                let cursor = try await page(ada, nil).checkpoint
                for path in ["/note/delta?cursor=\(cursor)", "/bookmarks/delta?cursor=\(cursor)x"] {
                    let answer = try await ada.get(path)
                    #expect((answer.status, answer.code) == (400, .invalidCheckpoint), "\(path)")
                }
                // Rows of others fill pages, and the end is found.
                for number in 0..<5 { _ = try await ada.put("/rest/note/n\(number)", "{}") }
                _ = try await ada.put("/rest/bookmarks/b2", "{}")
                #expect(try await page(ada, cursor, limit: 1).upserts == ["b2"])
                #expect(try await page(ada, "").upserts == ["b1", "b2"])
                #expect(try await ada.get("/bookmarks/delta?limit=0").code == .limitOutOfRange)
            }
        }

        @Test(arguments: LiveStore.allCases) func aCursorOfBeforeLostDeletionsIsRefused(kind: LiveStore) async throws {
            try await run(kind, retention: .seconds(86_400)) { server, ada in
                _ = try await ada.put("/rest/bookmarks/b1", "{}")
                let cursor = try await page(ada, nil).checkpoint
                _ = try await ada.delete("/rest/bookmarks/b1")
                server.pass(3 * 86_400_000)
                try await server.server.compact(trustingClock: true)
                let answer = try await ada.get("/bookmarks/delta?cursor=\(cursor)")
                #expect((answer.status, answer.code) == (410, .checkpointExpired))
                // A device that names itself is waited for.
                let named = try await ada.get("/bookmarks/delta", ("Tidemark-Client", "phone-0001"))
                let kept = named.headers.first(name: "Tidemark-Checkpoint") ?? ""
                _ = try await ada.get("/bookmarks/delta?cursor=\(kept)", ("Tidemark-Client", "phone-0001"))
                _ = try await ada.put("/rest/bookmarks/b2", "{}")
                _ = try await ada.delete("/rest/bookmarks/b2")
                server.pass(3 * 86_400_000)
                try await server.server.compact(trustingClock: true)
                #expect(try await page(ada, kept).tombstones == ["b2"])
            }
        }

        @Test(.timeLimit(.minutes(1)), arguments: LiveStore.allCases)
        func nudgesHaveTheServicesOwnName(kind: LiveStore) async throws {
            try await run(kind) { server, ada in
                var request = HTTPClientRequest(url: server.live.url + "/bookmarks/events")
                request.headers.add(name: "Authorization", value: "Bearer \(ada.caller.token ?? "")")
                let response = try await HTTPClient.shared.execute(request, timeout: .seconds(30))
                #expect(response.headers.first(name: "Content-Type") == "text/event-stream")
                var text = ""
                var hasWritten = false
                for try await part in response.body {
                    text += String(buffer: part)
                    if !hasWritten {
                        hasWritten = true
                        _ = try await ada.put("/rest/bookmarks/b1", "{}")
                    }
                    if text.contains(#""head":1"#) { break }
                }
                let nudge = "event: bookmarks_changed\ndata: {\"scope\":\"user:ada\",\"head\""
                #expect(text.hasPrefix(nudge + ":0}\n\n") && text.contains(nudge + ":1}\n\n"), "\(text)")
            }
        }
    }
#endif
