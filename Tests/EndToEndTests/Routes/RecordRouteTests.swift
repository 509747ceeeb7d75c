#if Server
    import Foundation
    import GRDB
    import NIOHTTP1
    import Testing
    import Tidemark
    import TidemarkHummingbird
    import TidemarkWire

    /// Records by name and digests, over real HTTP.
    @Suite struct RecordRouteTests {
        let folder: TemporaryFolder
        init() throws { folder = try TemporaryFolder() }

        @Test("Records are fetched by name with what they refer to, and one that is unknown is told as none")
        func named() async throws {
            try await LiveServer.run(in: folder) { server in
                let caller = Caller(url: server.url, token: try await LiveServer.token())
                _ = try await caller.push([
                    upsert("a+b c/é", #""title":"x","project":"p1""#),
                    upsert("p1", #""name":"one""#, entity: "project"),
                ])
                let answer = try await caller.get(
                    "/sync/records/task", "scope=w&id=a%2Bb%20c%2F%C3%A9&id=none&follow=project:project")
                #expect(answer.status == 200)
                #expect(answer.changes.map { $0["id"] as? String } == ["a+b c/é", "none", "p1"])
                #expect(answer.changes.map { $0["type"] as? String } == ["upsert", "none", "upsert"])
                #expect(answer.headers.first(name: "Cache-Control") == "no-store")
            }
        }

        @Test("An entity of any name is found by its path")
        func anyName() async throws {
            let (name, path) = (#"Order "50% off" é\/:x"#, "Order%20%2250%25%20off%22%20%C3%A9%5C%2F%3Ax")
            try await LiveServer.run(in: folder) { server in
                let caller = Caller(url: server.url, token: try await LiveServer.token())
                let json = #"Order \"50% off\" é\\/:x"#
                _ = try await caller.push([
                    upsert("a", #""of":"b""#, entity: json), upsert("b", #""n":1"#, entity: json),
                ])
                let escaped = path.replacing("%5C", with: "%5C%5C").replacing("%3A", with: "%5C%3A")
                let followed = try await caller.get("/sync/records/\(path)", "scope=w&id=a&follow=of:\(escaped)")
                #expect(followed.changes.map { $0["entity"] as? String } == [name, name])
                #expect(followed.changes.map { $0["id"] as? String } == ["a", "b"])
                let page = try await caller.get("/sync/snapshot", "scope=w&entity=\(path)")
                #expect(page.changes.map { $0["id"] as? String } == ["a", "b"])
                let lower = path.replacing("Order", with: "oRDER")
                let digest = try await caller.get("/sync/digest", "scope=w&entity=\(lower)")
                #expect(digest.member("entity") as? String == name)
            }
        }

        @Test(
            "A path that is no text is refused",
            arguments: [
                ("%ff", "scope=w&id=t1"), ("a%00", "scope=w&id=t1"),
            ])
        func brokenPath(entity: String, query: String) async throws {
            try await LiveServer.run(in: folder) { server in
                let caller = Caller(url: server.url, token: try await LiveServer.token())
                let answer = try await caller.get("/sync/records/\(entity)", query)
                // A router may find no such path at all.
                #expect([400, 404].contains(answer.status))
            }
        }

        @Test(
            "A question for records that is malformed or not granted is refused with its code",
            arguments: [
                ("task", "scope=w", 400, ProblemCode.malformedRequest), ("task", "id=t1", 400, .malformedRequest),
                ("task", "scope=w&id=", 400, .invalidIdentifier), ("%20task", "scope=w&id=t1", 400, .invalidIdentifier),
                ("task", "scope=w&id=t1&follow=a", 400, .malformedRequest),
                ("task", "scope=w&id=%ff", 400, .malformedRequest),
                ("task", "scope=w&%ff=1&id=t1", 400, .malformedRequest),
                ("task", "scope=w&scope=w&id=t1", 400, .malformedRequest),
                ("task", "scope=w&id=t1&since=x&since=y", 400, .malformedRequest),
                ("task", "scope=w&id=t1&since=x", 400, .invalidCheckpoint),
                ("task", "scope=other&id=t1", 403, .scopeForbidden),
            ])
        func refused(entity: String, query: String, status: Int, code: ProblemCode) async throws {
            try await LiveServer.run(in: folder) { server in
                let token = try await LiveServer.token(scopes: ["w": .read])
                let answer = try await Caller(url: server.url, token: token).get("/sync/records/\(entity)", query)
                #expect((answer.status, answer.code) == (status, code))
            }
        }

        @Test(
            "A question for digests that is malformed is refused with its code",
            arguments: [
                ("at=x", 400, ProblemCode.invalidCheckpoint), ("entity=a%20", 400, .invalidIdentifier),
                ("entity=task&every=0", 400, .limitOutOfRange), ("entity=task&every=x", 400, .malformedRequest),
                ("entity=task&entity=task", 400, .malformedRequest), ("entity=task&after=", 400, .invalidIdentifier),
            ])
        func refusedDigest(query: String, status: Int, code: ProblemCode) async throws {
            try await LiveServer.run(in: folder) { server in
                let caller = Caller(url: server.url, token: try await LiveServer.token())
                let answer = try await caller.get("/sync/digest", "scope=w&" + query)
                #expect((answer.status, answer.code) == (status, code))
            }
        }

        @Test("A digest is told for a scope, and for parts of an entity")
        func digest() async throws {
            try await LiveServer.run(in: folder) { server in
                let caller = Caller(url: server.url, token: try await LiveServer.token())
                let pushed = try await caller.push([
                    upsert("t1", #""title":"Buy milk","done":0,"weight":1.5"#),
                    upsert("t2", #""title":"a\nb","done":null,"weight":-0.0"#), upsert("é", #""title":"é""#),
                ])
                let answer = try await caller.get("/sync/digest", "scope=w&at=\(pushed.nextSince)")
                #expect(answer.text.contains(#""entities":{"task":{"count":3,"records":"b727f7b790525277","fields":{"#))
                let parts = try await caller.get(
                    "/sync/digest", "scope=w&entity=task&every=1&after=t1&through=t2&field=title&field=done")
                let ends = (parts.member("parts") as? [[String: Any]])?.map { $0["through"] as? String }
                #expect(ends == ["t2", "t2"])
            }
        }

        /// A row that was changed behind the triggers, with an id that URLs are not made for.
        @Test(.timeLimit(.minutes(5))) func aDeviceAsksByName() async throws {
            let token = try await LiveServer.token()
            try await LiveServer.run(in: folder) { server in
                let pool = try DatabasePool(path: folder.path("device"))
                try await pool.write { db in
                    try db.execute(
                        sql: """
                            CREATE TABLE note (id TEXT PRIMARY KEY, body TEXT);
                            INSERT INTO note VALUES ('a+b&c=d %41é;', 'right')
                            """)
                }
                let root = try #require(URL(string: server.url))
                let engine = try SyncEngine(
                    for: pool, tables: [.table("note")], scopes: ["w:1"], transport: HTTPTransport(root) { token })
                try await engine.syncNow()
                try await pool.write { db in
                    try db.execute(
                        sql: """
                            INSERT INTO tidemark_applying VALUES (1); UPDATE note SET body = 'wrong';
                            DELETE FROM tidemark_applying;
                            INSERT INTO tidemark_refetch SELECT 'w:1', 'note', id FROM note
                            """)
                }
                try await engine.syncNow()
                #expect(try await pool.read { try String.fetchOne($0, sql: "SELECT body FROM note") } == "right")
            }
        }
    }
#endif
