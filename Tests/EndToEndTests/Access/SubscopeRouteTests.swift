#if Server
    import Foundation
    import TidemarkHummingbird
    import TidemarkWire
    import Testing

    @testable import TidemarkServer

    /// Sub-scopes over real HTTP, on both stores, and as the command line has them (A3, W93).
    @Suite(.serialized) struct SubscopeRouteTests {
        private static let entities: [EntityDeclaration] = [.state("part", subscope: "parts"), .state("task")]

        private static func push(_ scope: String, _ entity: String, _ id: String, lane: String) -> String {
            let operation =
                #"{"lane":"\#(lane)","number":1,"type":"upsert","entity":"\#(entity)","id":"\#(id)","#
                + #""fields":{"n":1}}"#
            return #"{"scope":"\#(scope)","clientId":"device-aaaa","acked":{},"operations":[\#(operation)]}"#
        }

        @Test(.timeLimit(.minutes(1)), arguments: LiveStore.allCases) func theScopesPermissionIsThatOfItsSubscopes(
            kind: LiveStore
        ) async throws {
            try await DialectServer.run(kind, entities: Self.entities) { server in
                let ada = try await server.caller("ada", scopes: ["w": .readWrite]).caller
                let eve = try await server.caller("eve", scopes: ["w": .read, "w~parts": .readWrite, "v*": .readWrite])
                let made = try await ada.post("/sync", Self.push("w~parts", "part", "p", lane: "lane-aaaa"))
                #expect(made.results.first?["status"] as? String == "applied", "\(made.text)")
                #expect(made.member("scope") as? String == "w~parts")
                #expect(try await ada.get("/sync/changes", "scope=w").changes.isEmpty)
                // A grant for a sub-scope alone is none.
                let read = try await eve.caller.post("/sync", Self.push("w~parts", "part", "q", lane: "lane-bbbb"))
                #expect((read.status, read.code) == (403, .scopeReadOnly))
                let other = try await server.caller("bob", scopes: ["v": .readWrite, "w~parts": .readWrite]).caller
                for path in ["/sync/changes", "/sync/snapshot", "/sync/records/part", "/sync/digest", "/sync/events"] {
                    let answer = try await other.get(path, "scope=w~parts&id=p")
                    #expect((answer.status, answer.code) == (403, .scopeForbidden), "\(path)")
                }
                for name in ["w~", "~parts", "w~a~b", "w~a.b", "w~" + String(repeating: "p", count: 33)] {
                    let answer = try await ada.get("/sync/changes", "scope=\(name)")
                    #expect((answer.status, answer.code) == (400, .invalidIdentifier), "\(name)")
                }
                #expect(!TokenClaims.isPattern("w~parts") && !TokenClaims.isPattern("w~p*"))
                #expect(TokenClaims.isPattern("w*") && TokenClaims.isPattern("*") && TokenClaims.isPattern("w"))
            }
        }

        @Test(arguments: LiveStore.allCases) func aRecordLiesWhereItIsDeclared(kind: LiveStore) async throws {
            try await DialectServer.run(kind, entities: Self.entities) { server in
                let ada = try await server.caller()
                let undeclared = try await ada.caller.post(
                    "/sync", Self.push("w~other", "part", "x", lane: "lane-aaaa"))
                #expect((undeclared.status, undeclared.code) == (403, .scopeForbidden))
                for (number, place) in [("w", "part"), ("w~parts", "task"), ("w~parts", "new")].enumerated() {
                    let answer = try await ada.caller.post(
                        "/sync", Self.push(place.0, place.1, "x", lane: "lane-aaa\(number)"))
                    #expect(answer.results.first?["status"] as? String == "rejected")
                    #expect(answer.text.contains(#""code":"scope_mismatch""#), "\(answer.text)")
                }
                // Callers who name the scope alone, or none, mean the entity's own place.
                #expect(try await ada.put("/rest/part/p", #"{"n":1}"#).status == 201)
                #expect(try await ada.put("/rest/part/q?scope=w", #"{"n":2}"#).status == 201)
                #expect(try await ada.put("/rest/task/t", #"{"n":3}"#).status == 201)
                #expect(try await ada.get("/rest/part/p").status == 200)
                let ids = try await ada.caller.get("/sync/changes", "scope=w~parts").changes.map { $0["id"] as? String }
                #expect(ids == ["p", "q"])
                let delta = try await ada.get("/part/delta?scope=w")
                #expect((delta.member("upserts") as? [Any])?.count == 2, "\(delta.text)")
                let stamped = try await ada.stamped(
                    #"{"clientStamp":0,"items":[{"entity":"part","id":"z","itemUpdateStamp":5,"data":{"n":1}}]}"#)
                #expect(stamped.text.contains("scope_mismatch"), "\(stamped.text)")
                let declared = try await ada.caller.get("/sync/declarations")
                #expect(declared.text.contains(#""subscope":"parts""#))
            }
        }

        @Test(arguments: LiveStore.allCases) func anErasedScopeTakesItsSubscopesAlong(kind: LiveStore) async throws {
            try await DialectServer.run(kind, entities: Self.entities) { server in
                let ada = try await server.caller("ada", scopes: ["w*": .readWrite])
                #expect(try await ada.put("/rest/part/p?scope=w", #"{"n":1}"#).status == 201)
                #expect(try await ada.put("/rest/part/p?scope=w7", #"{"n":1}"#).status == 201)
                #expect(try await ada.put("/rest/task/t?scope=w8", #"{"n":1}"#).status == 201)
                #expect(try await server.server.erase(.scope("w"), isRehearsal: true).changes == 1)
                #expect(try await server.server.erase(.scope("w")).changes == 1)
                try await server.server.erase(.scope("w8"))
                // Also one that was never used.
                for name in ["w", "w~parts", "w8", "w8~parts"] {
                    let answer = try await ada.caller.get("/sync/changes", "scope=\(name)")
                    #expect((answer.status, answer.code) == (403, .scopeErased), "\(name)")
                    let push = try await ada.caller.post("/sync", Self.push(name, "part", "p", lane: "lane-aaaa"))
                    #expect((push.status, push.code) == (403, .scopeErased), "\(name)")
                }
                // And one that is declared later.
                let later = SyncServer(store: server.server.store, entities: [.state("part", subscope: "later")])
                for name: Scope in ["w~later", "w8~later"] {
                    await #expect(throws: Problem.self) {
                        try await later.changes(in: name, since: nil, limit: 1, access: .readWrite(as: "ada"))
                    }
                    await #expect(throws: CommitError.self) {
                        try await later.commit(to: name) { $0.upsert("part", id: "p", [:]) }
                    }
                }
                #expect(try await ada.caller.get("/sync/changes", "scope=w7~parts").changes.count == 1)
                #expect(try await server.server.erase(.scope("w7~parts")).changes == 1)
                #expect(try await ada.caller.get("/sync/changes", "scope=w7").status == 200)
            }
        }

        @Test(.timeLimit(.minutes(2))) func theCommandFollowsWhatTheServerDeclares() async throws {
            let bench = try CommandBench()
            try "entities: {part: {subscope: parts}}\n".write(
                toFile: bench.path("yaml"), atomically: true, encoding: .utf8)
            let token = try await bench.token()
            let server = try await ServerProcess.start(
                ["--listen", "127.0.0.1:0", "--config", bench.path("yaml")],
                environment: ["TIDEMARK_STORE": "sqlite:" + bench.path("s")])
            let schema = """
                CREATE TABLE task (id TEXT PRIMARY KEY, title TEXT);
                CREATE TABLE part (id TEXT PRIMARY KEY, title TEXT, task TEXT REFERENCES task(id));
                """
            try bench.sql("a", schema + "INSERT INTO task VALUES ('t', 'x'); INSERT INTO part VALUES ('p', 'y', 't')")
            try bench.sql("b", schema)
            let tables = ["--scope", "w:1", "--table", "task", "--table", "part"]
            for name in ["a", "b"] {
                let result = try await bench.run(
                    ["sync", bench.path(name), "--server", server.url] + tables, token: token)
                #expect(result.status == 0, "\(result.output)\(result.errors)")
            }
            #expect(
                try bench.sql("b", "SELECT id || title FROM part UNION ALL SELECT id || title FROM task") == [
                    "py", "tx",
                ])
            #expect(try await bench.held("w:1~parts", server, token).rows == ["p": "y"])
            try bench.sql("b", "UPDATE part SET title = 'z'")
            let again = try await bench.run(["sync", bench.path("b"), "--server", server.url], token: token)
            #expect(again.status == 0, "\(again.output)\(again.errors)")
            let verified = try await bench.run(["verify", bench.path("b"), "--server", server.url], token: token)
            #expect(verified.status == 0 && verified.output.contains("2 records compared"), "\(verified.output)")
            let status = try await bench.run(["status", bench.path("b")])
            #expect(status.output.contains("scope w:1~parts: whole as of version 2"), "\(status.output)")
            for arguments in [
                ["token", "--scope", "w:1~parts=rw"], ["sync", bench.path("b"), "--scope", "w:1~parts"],
            ] {
                let rest =
                    arguments[0] == "token" ? ["--store", "sqlite:" + bench.path("s")] : ["--server", server.url]
                #expect(try await bench.run(arguments + rest, token: token).status != 0)
            }
            try "entities: {part: {subscope: 'a b'}}\n".write(
                toFile: bench.path("yaml"), atomically: true, encoding: .utf8)
            let bad = try await bench.run([
                "serve", "--store", "sqlite:" + bench.path("s2"), "--config", bench.path("yaml"),
            ])
            #expect(await server.stop() == 0)
            #expect(bad.status != 0 && bad.errors.contains("`a b` is not a sub-scope's name"), "\(bad.errors)")
        }
    }
#endif
