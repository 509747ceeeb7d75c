#if Server
    import Foundation
    import NIOHTTP1
    import TidemarkHummingbird
    import TidemarkServer
    import TidemarkWire
    import Testing

    /// Plain REST over the same log, for callers without a client.
    @Suite struct RestTests {
        @Test(arguments: LiveStore.allCases) func aRecordIsMadeReadChangedAndDeleted(kind: LiveStore) async throws {
            try await DialectServer.run(kind) { server in
                let ada = try await server.caller()
                let made = try await ada.put("/rest/task/t1", #"{"title":"Tea","done":0,"note":null}"#)
                #expect(made.status == 201)
                let body = #"{"id":"t1","title":"Tea","done":0,"note":null,"lastModifiedAt":1780000000000}"#
                #expect(made.text == body)
                let read = try await ada.get("/rest/task/t1")
                #expect((read.status, read.text, read.tag) == (200, body, made.tag))
                #expect(read.headers.first(name: "Cache-Control") == "private, no-cache")
                let same = try await ada.get("/rest/task/t1", ("If-None-Match", made.tag))
                #expect((same.status, same.text, same.tag) == (304, "", made.tag))
                server.pass(1000)
                let changed = try await ada.patch("/rest/task/t1", #"{"done":1}"#)
                #expect(changed.status == 200 && changed.tag != made.tag)
                #expect(
                    changed.text
                        == #"{"id":"t1","title":"Tea","done":1,"note":null,"lastModifiedAt":1780000001000}"#)
                // What PUT leaves out is gone, and what an answer held may come back in it.
                let put = try await ada.put("/rest/task/t1", #"{"id":"t1","lastModifiedAt":5,"title":"Milk"}"#)
                #expect(put.status == 200)
                #expect(put.member("title") as? String == "Milk" && put.member("done") is NSNull)
                #expect(try await ada.delete("/rest/task/t1").status == 204)
                let gone = try await ada.get("/rest/task/t1")
                #expect((gone.status, gone.code) == (404, .notFound))
                #expect(try await ada.delete("/rest/task/t1").status == 204)
                #expect(try await ada.patch("/rest/task/t1", #"{"a":1}"#).status == 404)
                #expect(try await ada.put("/rest/task/t1", #"{"title":"Again"}"#).status == 201)
            }
        }

        @Test(arguments: LiveStore.allCases) func aPutThatIsRepeatedChangesNothing(kind: LiveStore) async throws {
            try await DialectServer.run(kind) { server in
                let ada = try await server.caller()
                var answers: [Answer] = []
                for _ in 0..<3 {
                    answers.append(try await ada.put("/rest/task/t1", #"{"title":"Tea"}"#))
                    server.pass(5)
                }
                #expect(answers.map(\.status) == [201, 200, 200])
                #expect(Set(answers.map(\.tag)).count == 1 && Set(answers.map(\.text)).count == 1)
                #expect(try await ada.caller.get("/sync/changes", "scope=w").member("head") as? Int == 1)
            }
        }

        @Test(arguments: LiveStore.allCases) func aWriteMayAskHowTheRecordIs(kind: LiveStore) async throws {
            try await DialectServer.run(kind) { server in
                let ada = try await server.caller()
                let absent = try await ada.put("/rest/task/t1", "{}", ("If-Match", "*"))
                #expect((absent.status, absent.code) == (412, .preconditionFailed))
                #expect(absent.member("record") == nil)
                let made = try await ada.put("/rest/task/t1", #"{"title":"Tea"}"#, ("If-None-Match", "*"))
                #expect(made.status == 201)
                let again = try await ada.put("/rest/task/t1", #"{"title":"Milk"}"#, ("If-None-Match", "*"))
                #expect((again.status, again.tag) == (412, made.tag))
                #expect((again.member("record") as? [String: Any])?["title"] as? String == "Tea")
                let bob = try await ada.patch("/rest/task/t1", #"{"title":"Milk"}"#, ("If-Match", made.tag))
                #expect(bob.status == 200)
                for write in [
                    try await ada.put("/rest/task/t1", #"{"title":"Ale"}"#, ("If-Match", made.tag)),
                    try await ada.patch("/rest/task/t1", #"{"title":"Ale"}"#, ("If-Match", "\"x\", \(made.tag)")),
                    try await ada.delete("/rest/task/t1", ("If-Match", made.tag)),
                    // A weak tag says too little for a write.
                    try await ada.delete("/rest/task/t1", ("If-Match", "W/\(bob.tag)")),
                ] {
                    #expect((write.status, write.tag) == (412, bob.tag))
                    #expect((write.member("record") as? [String: Any])?["title"] as? String == "Milk")
                }
                for broken in ["x", "*junk"] {
                    let refused = try await ada.delete("/rest/task/t1", ("If-Match", broken))
                    #expect((refused.status, refused.code) == (400, .malformedRequest))
                }
                // Whether a record is not there any weak tag of it tells too (RFC 9110, 13.1.2).
                let weak = try await ada.put("/rest/task/t1", "{}", ("If-None-Match", "W/\(bob.tag)"))
                #expect((weak.status, weak.tag) == (412, bob.tag))
                #expect(try await ada.delete("/rest/task/t1", ("If-Match", "\"no\", \(bob.tag)")).status == 204)
                #expect(try await ada.delete("/rest/task/t1", ("If-Match", bob.tag)).status == 412)
            }
        }

        @Test func theCompressedFormHasATagOfItsOwnThatMeansTheSameRecord() async throws {
            try await DialectServer.run(.sqlite) { server in
                let ada = try await server.caller()
                let text = String(repeating: "tide ", count: 500)
                let made = try await ada.put("/rest/task/t1", #"{"title":"\#(text)"}"#)
                for (coding, title) in [("gzip", "x"), ("br", "y")] {
                    let accepted = ("Accept-Encoding", coding)
                    _ = try await ada.patch("/rest/task/t1", #"{"title":"\#(text)"}"#)
                    let packed = try await ada.get("/rest/task/t1", accepted)
                    #expect(packed.headers.first(name: "Content-Encoding") == coding && packed.tag != made.tag)
                    #expect(try await ada.get("/rest/task/t1", accepted, ("If-None-Match", packed.tag)).status == 304)
                    let edit = #"{"title":"\#(title)"}"#
                    #expect(try await ada.patch("/rest/task/t1", edit, ("If-Match", packed.tag)).status == 200)
                }
            }
        }

        @Test(arguments: LiveStore.allCases) func aRepeatedKeyGetsTheFirstAnswerAndNoSecondEffect(
            kind: LiveStore
        ) async throws {
            try await DialectServer.run(kind) { server in
                let (ada, bob) = (try await server.caller(), try await server.caller("bob"))
                let key = ("Idempotency-Key", "8e03978e-40d5-43dd-bc93-6894a57f9324")
                let first = try await ada.put("/rest/task/t1", #"{"title":"Tea","n":1}"#, key)
                #expect(first.status == 201 && first.headers.first(name: "Idempotency-Replayed") == nil)
                server.pass(1000)
                #expect(try await bob.patch("/rest/task/t1", #"{"title":"Milk"}"#).status == 200)
                let second = try await ada.put("/rest/task/t1", #"{"n":1,"title":"Tea"}"#, key)
                #expect((second.status, second.text, second.tag) == (201, first.text, first.tag))
                #expect(second.headers.first(name: "Idempotency-Replayed") == "true")
                #expect(try await ada.get("/rest/task/t1").member("title") as? String == "Milk")
                // Once the window has passed the first row, the answer shows the record as it is.
                server.pass(3_600_000)
                try await server.server.sweep()
                let late = try await ada.put("/rest/task/t1", #"{"title":"Tea","n":1}"#, key)
                #expect((late.status, late.member("title") as? String) == (201, "Milk"))
                for other in [
                    try await ada.put("/rest/task/t1", #"{"title":"Ale","n":1}"#, key),
                    try await ada.put("/rest/task/t2", #"{"title":"Tea","n":1}"#, key),
                    try await ada.patch("/rest/task/t1", #"{"title":"Tea","n":1}"#, key),
                    try await ada.delete("/rest/task/t1", key),
                    try await ada.put("/rest/task/t1", #"{"title":"Tea","n":1}"#, key, ("If-Match", "*")),
                ] {
                    #expect((other.status, other.code) == (422, .operationRejected))
                    #expect(other.member("rejection") as? String == "operation_mismatch")
                }
                // Another one's key is another key, and so is the same in another scope.
                #expect(try await bob.put("/rest/task/t2", #"{"title":"Ale"}"#, key).status == 201)
                let removal = ("Idempotency-Key", "removal")
                #expect(try await ada.delete("/rest/task/t2", removal).status == 204)
                #expect(try await bob.put("/rest/task/t2", #"{"title":"Ale"}"#).status == 201)
                #expect(try await ada.delete("/rest/task/t2", removal).status == 204)
                #expect(try await bob.get("/rest/task/t2").status == 200)
                let empty = try await ada.delete(
                    "/rest/task/t2", ("Idempotency-Key", String(repeating: "k", count: 256)))
                #expect((empty.status, empty.code) == (400, .invalidIdentifier))
            }
        }

        @Test(arguments: LiveStore.allCases) func whatIsRefusedUsesNoKey(kind: LiveStore) async throws {
            try await DialectServer.run(kind) { server in
                let ada = try await server.caller()
                let key = ("Idempotency-Key", "k1")
                #expect(try await ada.patch("/rest/task/t1", #"{"n":1}"#, key).status == 404)
                #expect(try await ada.put("/rest/task/t1", #"{"n":0}"#).status == 201)
                #expect(try await ada.patch("/rest/task/t1", #"{"n":1}"#, key).status == 200)
                #expect(try await ada.caller.get("/sync/changes", "scope=w").member("head") as? Int == 2)
            }
        }

        @Test(arguments: LiveStore.allCases) func whereAPersonDecidesTheCallerIsTheOne(kind: LiveStore) async throws {
            try await DialectServer.run(kind, entities: [.state("deed", conflict: .manual)]) { server in
                let ada = try await server.caller()
                #expect(try await ada.put("/rest/deed/d1", #"{"owner":"Ada","n":1}"#).status == 201)
                let blind = try await ada.put("/rest/deed/d1", #"{"owner":"Bob","n":1}"#)
                #expect((blind.status, blind.code) == (409, .conflict))
                #expect((blind.member("record") as? [String: Any])?["owner"] as? String == "Ada")
                #expect(try await ada.patch("/rest/deed/d1", #"{"owner":"Bob"}"#).status == 409)
                let seen = try await ada.put("/rest/deed/d1", #"{"owner":"Bob","n":1}"#, ("If-Match", blind.tag))
                #expect((seen.status, seen.member("owner") as? String) == (200, "Bob"))
            }
        }

        @Test(arguments: LiveStore.allCases) func theDeclarationsHoldForEveryone(kind: LiveStore) async throws {
            var limits = Limits()
            (limits.recordBytes, limits.scopeRows) = (2000, 8)
            let entities: [EntityDeclaration] = [
                .state("task", serverFields: ["summary"]), .state("price", direction: .pull),
                .state("report", direction: .push), .events("visit"), .state("order", ids: .server),
                .state("note", conflict: .manual, direction: .push),
            ]
            try await DialectServer.run(kind, entities: entities, isStrict: true, limits: limits) { server in
                let ada = try await server.caller()
                let robot = try await server.caller("robot", isService: true)
                func rejection(_ answer: Answer) -> String? {
                    answer.status == 422 ? answer.member("rejection") as? String : "\(answer.status)"
                }
                let made = try await ada.put("/rest/task/t1", #"{"title":"Tea","summary":"mine"}"#)
                #expect(made.status == 201 && made.member("summary") == nil)
                #expect(try await robot.patch("/rest/task/t1", #"{"summary":"ours"}"#).status == 200)
                let put = try await ada.put("/rest/task/t1", #"{"title":"Milk"}"#)
                #expect(put.member("summary") as? String == "ours", "\(put.text)")
                #expect(rejection(try await ada.put("/rest/price/p1", "{}")) == "direction_forbidden")
                #expect(rejection(try await ada.put("/rest/order/o1", "{}")) == "id_not_assigned")
                #expect(rejection(try await ada.put("/rest/nobody/n1", "{}")) == "entity_unknown")
                #expect(try await ada.get("/rest/nobody/n1").status == 404)
                let long = #"{"title":"\#(String(repeating: "x", count: 2000))"}"#
                #expect(rejection(try await ada.put("/rest/task/t1", long)) == "record_too_large")
                // Events are appended, and never changed.
                #expect(try await ada.put("/rest/visit/v1", #"{"at":1}"#).status == 201)
                #expect(try await ada.put("/rest/visit/v1", #"{"at":1}"#).status == 200)
                #expect(rejection(try await ada.put("/rest/visit/v1", #"{"at":2}"#)) == "kind_mismatch")
                #expect(rejection(try await ada.patch("/rest/visit/v1", #"{"at":2}"#)) == "kind_mismatch")
                #expect(rejection(try await ada.delete("/rest/visit/v1")) == "kind_mismatch")
                #expect(try await ada.get("/rest/visit").ids == ["v1"])
                // What is only pushed tells nothing of what is there.
                for _ in 0..<2 {
                    let pushed = try await ada.put("/rest/report/r1", #"{"text":"x"}"#)
                    #expect((pushed.status, pushed.text, pushed.tag) == (200, #"{"id":"r1"}"#, ""))
                }
                for text in ["x", "y"] {
                    #expect(try await ada.put("/rest/note/n1", #"{"text":"\#(text)"}"#).status == 200)
                }
                for id in ["r1", "r2"] {
                    let patched = try await ada.patch("/rest/report/\(id)", #"{"text":"y"}"#)
                    #expect((patched.status, patched.code) == (404, .notFound))
                }
                #expect(try await ada.get("/rest/report").status == 404)
                #expect(try await ada.get("/rest/report/r1").status == 404)
                #expect(try await ada.delete("/rest/report/r1", ("If-Match", "*")).status == 404)
                #expect(try await robot.get("/rest/report/r1").status == 200)
                // A quota puts off, and a repeated key is tried again.
                var full: Answer?
                for number in 1...9 where full == nil {
                    let answer = try await ada.put("/rest/task/q\(number)", "{}", ("Idempotency-Key", "q\(number)"))
                    if answer.status != 201 { full = answer }
                }
                #expect((full?.status, full?.code) == (503, .unavailable))
                #expect(full?.headers.first(name: "Retry-After") == "30")
            }
        }

        @Test(arguments: LiveStore.allCases) func permissionsAreThoseOfTheToken(kind: LiveStore) async throws {
            try await DialectServer.run(kind) { server in
                let ada = try await server.caller()
                let reader = try await server.caller("rea", scopes: ["w": .read])
                let wide = try await server.caller("wil", scopes: ["w": .readWrite, "v": .readWrite])
                let stranger = PlainCaller(caller: Caller(url: server.live.url))
                #expect(try await ada.put("/rest/task/t1", "{}").status == 201)
                #expect(try await reader.get("/rest/task/t1").status == 200)
                for write in [
                    try await reader.put("/rest/task/t1", "{}"), try await reader.patch("/rest/task/t1", "nonsense"),
                    try await reader.delete("/rest/task/t1"),
                ] {
                    #expect((write.status, write.code) == (403, .scopeReadOnly))
                }
                // The token's only scope is meant, and one of several has to be named.
                let vague = try await wide.get("/rest/task/t1")
                #expect((vague.status, vague.code) == (400, .malformedRequest))
                #expect(try await wide.get("/rest/task/t1?scope=w").status == 200)
                #expect(try await wide.get("/rest/task/t1?scope=v").status == 404)
                #expect(try await wide.put("/rest/task/t1?scope=v", #"{"v":1}"#).status == 201)
                #expect(try await ada.get("/rest/task/t1").member("v") == nil)
                for path in ["/rest/task", "/rest/task/t1", "/task/delta", "/task/events"] {
                    let forbidden = try await ada.get(path + "?scope=v")
                    #expect((forbidden.status, forbidden.code) == (403, .scopeForbidden), "\(path)")
                    #expect(try await stranger.get(path).status == 401)
                    #expect(try await ada.get(path + "?scope=w&scope=w").status == 400)
                }
                #expect(try await stranger.stamped(#"{"clientStamp":0}"#).status == 401)
                #expect(try await ada.stamped(#"{"clientStamp":0}"#, "?scope=v").status == 403)
                #expect(try await reader.stamped(#"{"clientStamp":0}"#).status == 200)
                let item = #"{"clientStamp":0,"items":[{"entity":"a","id":"b","itemUpdateStamp":1,"deleted":true}]}"#
                #expect(try await reader.stamped(item).code == .scopeReadOnly)
            }
        }

        @Test func addressesThatAreTakenAreNoEntitys() async throws {
            try await DialectServer.run(.sqlite) { server in
                let ada = try await server.caller()
                for name in ["sync", "health", "metrics", "console", "Sync", "REST"] {
                    let answer = try await ada.get("/\(name)/delta")
                    #expect((answer.status, answer.code) == (404, .notFound), "\(name)")
                    if name != "sync" { #expect(try await ada.get("/\(name)/events").status == 404) }
                    // Below /rest it is a name like any.
                    #expect(try await ada.put("/rest/\(name)/\(name)", "{}").status == 201)
                }
                #expect(try await ada.get("/rest/sync").ids == ["Sync", "sync"])
                #expect(try await ada.get("/rest/delta").text == "[]")
                let posted = try await ada.caller.post("/rest/task/t1", "{}")
                #expect((posted.status, posted.headers.first(name: "Allow")) == (405, "GET, PUT, PATCH, DELETE"))
                #expect(try await ada.put("/rest/task", "{}").status == 405)
            }
        }

        @Test(arguments: [
            (#"{"id":"t2"}"#, 400, ProblemCode.invalidIdentifier), ("[]", 400, .malformedRequest),
            ("", 400, .malformedRequest), (#"{"a":1,"A":2}"#, 400, .malformedRequest),
            (#"{"$a":1}"#, 400, .malformedRequest), (#"{"a":true}"#, 400, .malformedRequest),
            (#"{"a":1} x"#, 400, .malformedRequest), (#"{"a":{"b":1}}"#, 400, .malformedRequest),
        ])
        func bodiesThatAreNoRecords(body: String, status: Int, code: ProblemCode) async throws {
            try await DialectServer.run(.sqlite) { server in
                let ada = try await server.caller()
                for answer in [try await ada.put("/rest/task/t1", body), try await ada.patch("/rest/task/t1", body)] {
                    #expect((answer.status, answer.code) == (status, code), "\(answer.text)")
                }
                #expect(try await ada.get("/rest/task").text == "[]")
                let odd = try await ada.caller.send(
                    .PUT, "/rest/task/t1", Array("{}".utf8), [("Content-Type", "text/plain")])
                #expect(odd.status == 415)
                // A router may find no such path at all.
                for path in ["/rest/task/%ff", "/rest/%ff/a", "/rest/task/a%00"] {
                    #expect([400, 404].contains(try await ada.put(path, "{}").status), "\(path)")
                }
                #expect(try await ada.put("/rest/%20task/a", "{}").status == 400)
            }
        }

        @Test(arguments: LiveStore.allCases) func aListComesInPagesAndMayBeFiltered(kind: LiveStore) async throws {
            try await DialectServer.run(kind) { server in
                let ada = try await server.caller()
                for number in 1...7 {
                    let fields = #"{"list":"l\#(number % 2)","n":\#(number),"w":\#(number).5,"t":null}"#
                    #expect(try await ada.put("/rest/task/t\(number)", fields).status == 201)
                }
                #expect(try await ada.put("/rest/other/o1", #"{"list":"l1"}"#).status == 201)
                #expect(try await ada.delete("/rest/task/t4").status == 204)
                let pages = try await ada.listAll("/rest/task?limit=2")
                #expect(pages.map(\.ids) == [["t1", "t2"], ["t3", "t5"], ["t6", "t7"]])
                #expect(try await ada.listAll("/rest/TASK?limit=1&list=l1").flatMap(\.ids) == ["t1", "t3", "t5", "t7"])
                for (filter, ids) in [
                    ("n=6", ["t6"]), ("w=6.5", ["t6"]), ("list=l0&n=2", ["t2"]), ("list=l", []), ("id=t3", ["t3"]),
                    ("t=null&n=1", ["t1"]), ("none=null&n=1", ["t1"]), ("N=5", ["t5"]), ("list=%6c1&n=7", ["t7"]),
                ] {
                    #expect(try await ada.get("/rest/task?\(filter)").ids == ids, "\(filter)")
                }
                let whole = try await ada.get("/rest/task")
                let same = try await ada.get("/rest/task", ("If-None-Match", whole.tag))
                #expect((same.status, same.stamp) == (304, whole.stamp))
                let many = (0..<9).map { "f\($0)=x" }.joined(separator: "&")
                #expect(try await ada.get("/rest/task?\(many)").code == .limitOutOfRange)
                #expect(try await ada.get("/rest/task?limit=0").code == .limitOutOfRange)
                #expect(try await ada.get("/rest/task?limit=x").code == .malformedRequest)
                #expect(try await ada.get("/rest/task?cursor=x").code == .invalidCheckpoint)
                let foreign = pages[0].next?.replacing("/task", with: "/other") ?? ""
                #expect(try await ada.get(foreign).code == .invalidCheckpoint)
            }
        }

        @Test(arguments: LiveStore.allCases) func devicesAndCallersSeeEachOthersWrites(kind: LiveStore) async throws {
            try await DialectServer.run(kind) { server in
                let ada = try await server.caller()
                let pushed = try await ada.caller.push([upsert("t1", #""title":"Tea","done":0"#)])
                #expect(try await ada.get("/rest/task/t1").member("title") as? String == "Tea")
                #expect(try await ada.patch("/rest/task/t1", #"{"title":"Milk"}"#).status == 200)
                #expect(try await ada.delete("/rest/task/t9").status == 204)
                let changes = try await ada.caller.get("/sync/changes", "scope=w&since=\(pushed.nextSince)").changes
                #expect(changes.map { $0["version"] as? Int } == [2])
                // An edit that was made on the row before meets the caller's as it would meet a device's.
                let merged = try await ada.caller.push(
                    [upsert("t1", #""done":1"#, base: 1)], lane: "lane-0002", members: #","since":null"#)
                #expect(merged.results.first?["status"] as? String == "merged")
                let now = try await ada.get("/rest/task/t1")
                #expect(now.member("title") as? String == "Milk" && now.member("done") as? Int == 1)
            }
        }

        @Test(arguments: LiveStore.allCases) func namesAndFormsAreTheOperators(kind: LiveStore) async throws {
            var path = EntityPath("bookmarks", of: "bookmark")
            (path.id, path.lastModified, path.scope) = ("clientBookmarkId", "modified", "user:{sub}")
            path.members = [
                "is_read": .init("isRead", as: .boolean), "tags": .init("tags", as: .json), "url": .init("href"),
            ]
            try await DialectServer.run(kind, paths: [path]) { server in
                let ada = try await server.caller(scopes: ["user:*": .readWrite])
                let body = #"{"clientBookmarkId":"b1","href":"x","isRead":true,"tags":["a",{"b":1}]}"#
                let put = try await ada.put("/rest/bookmarks/b1", body)
                #expect(put.status == 201)
                #expect(put.text == body.dropLast() + #","modified":1780000000000}"#)
                #expect(try await ada.get("/rest/bookmarks?isRead=true").list.count == 1)
                #expect(try await ada.get("/rest/bookmarks?isRead=false").list.count == 0)
                #expect(try await ada.get("/rest/bookmarks?href=x&clientBookmarkId=b1").list.count == 1)
                let plain = try await ada.get("/rest/bookmark/b1?scope=user:ada")
                let start = #"{"id":"b1","url":"x","is_read":1,"tags":"[\"a\",{\"b\":1}]","#
                #expect(plain.text == start + #""lastModifiedAt":1780000000000}"#)
                #expect(try await ada.put("/rest/bookmarks/b1", #"{"href":"x","url":"y"}"#).code == .malformedRequest)
                #expect(try await ada.put("/rest/bookmarks/b1", #"{"tags":["a","#).code == .malformedRequest)
            }
        }
    }
#endif
