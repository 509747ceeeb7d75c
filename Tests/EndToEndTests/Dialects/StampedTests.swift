#if Server
    import Foundation
    import NIOHTTP1
    import TidemarkHummingbird
    import TidemarkServer
    import TidemarkWire
    import Testing

    /// `/sync/stamped`: one stamp finds, the other decides.
    @Suite struct StampedTests {
        private static let year: Int64 = 365 * 86_400_000

        /// A device of that design: rows by id, the stamp of its last sync, and edits that wait.
        private struct Device {
            var rows: [String: String] = [:]
            var clientStamp: Int64 = 0
            var began: Int64?
            var waiting: [(id: String, stamp: Int64, title: String?)] = []
            let caller: PlainCaller

            init(_ caller: PlainCaller) { self.caller = caller }

            mutating func edit(_ id: String, _ title: String?, at moment: Int64) {
                rows[id] = title
                waiting.removeAll { $0.id == id }
                waiting.append((id, moment, title))
            }

            /// Answers what came, in its order.
            @discardableResult
            mutating func sync(limit: Int = 500) async throws -> [String] {
                let items = waiting.map { id, stamp, title in
                    let content = title.map { #""data":{"title":"\#($0)"}"# } ?? #""deleted":true"#
                    return #"{"entity":"word","id":"\#(id)","itemUpdateStamp":\#(stamp),\#(content)}"#
                }
                let began = began.map { #","began":\#($0)"# } ?? ""
                let answer = try await caller.stamped(
                    #"{"clientStamp":\#(clientStamp)\#(began),"limit":\#(limit),"#
                        + #""items":[\#(items.joined(separator: ","))]}"#)
                #expect(answer.status == 200, "\(answer.text)")
                waiting = []
                var came: [String] = []
                for item in answer.items {
                    // Edit stamps are never sent down.
                    #expect(Set(item.keys).subtracting(["entity", "id", "data", "deleted"]).isEmpty)
                    let id = item["id"] as? String ?? ""
                    rows[id] = (item["data"] as? [String: Any])?["title"] as? String
                    came.append(id)
                }
                clientStamp = Int64(answer.member("clientStamp") as? Int ?? -1)
                self.began = (answer.member("began") as? Int).map { Int64($0) }
                if answer.member("hasMore") as? Bool == true { came += try await sync(limit: limit) }
                return came
            }
        }

        private func run(
            _ kind: LiveStore, entities: [EntityDeclaration] = [],
            retention: Duration? = nil,
            _ body: @Sendable (DialectServer) async throws -> Void
        ) async throws {
            try await DialectServer.run(kind, entities: entities, retention: retention, body)
        }

        @Test(arguments: LiveStore.allCases) func theNewerEditWinsAndTheLoserGetsItBack(kind: LiveStore) async throws {
            try await run(kind) { server in
                var (a, b) = (Device(try await server.caller()), Device(try await server.caller("bob")))
                let now = DialectServer.start
                a.edit("w1", "one", at: now)
                #expect(try await a.sync() == [])
                #expect(try await b.sync() == ["w1"])
                // Both edit; the one that edits later syncs first.
                server.pass(10_000)
                a.edit("w1", "from a", at: now + 5000)
                b.edit("w1", "from b", at: now + 4000)
                #expect(try await a.sync() == [])
                #expect(try await b.sync() == ["w1"])
                #expect(b.rows["w1"] == "from a")
                // And the other way round.
                server.pass(10_000)
                a.edit("w1", "a again", at: now + 15_000)
                b.edit("w1", "b again", at: now + 16_000)
                #expect(try await a.sync() == [])
                #expect(try await b.sync() == [])
                #expect(try await a.sync() == ["w1"])
                #expect(a.rows["w1"] == "b again")
            }
        }

        /// The loser's stamp is newer than the winner's row: it is found by its id alone.
        @Test(arguments: LiveStore.allCases) func anItemIsFoundByItsIdToo(kind: LiveStore) async throws {
            try await run(kind) { server in
                var (a, b) = (Device(try await server.caller()), Device(try await server.caller("bob")))
                server.pass(10_000)
                a.edit("w1", "one", at: DialectServer.start + 9000)
                try await a.sync()
                try await b.sync()
                let seen = b.clientStamp
                b.edit("w1", "other", at: DialectServer.start)
                // An item of the same id whose stamp is not above that of the row: the device had edited it before it
                // got the row, and says so only now.
                let item = #"{"entity":"word","id":"w1","itemUpdateStamp":1,"data":{"title":"x"}}"#
                let late = try await b.caller.stamped(#"{"clientStamp":0,"items":[\#(item)]}"#)
                #expect((late.items.first?["data"] as? [String: Any])?["title"] as? String == "one")
                // An edit since the last sync is above all that was seen then, whatever the clock says.
                #expect(try await b.sync() == [] && b.clientStamp > seen)
                #expect(try await a.sync() == ["w1"])
                #expect(a.rows["w1"] == "other")
            }
        }

        @Test(arguments: LiveStore.allCases) func equalStampsStandAsTheyAre(kind: LiveStore) async throws {
            try await run(kind) { server in
                var (a, b) = (Device(try await server.caller()), Device(try await server.caller("bob")))
                server.pass(1000)
                for title in ["b", "a"] {
                    let moment = DialectServer.start + 500
                    (a.clientStamp, b.clientStamp) = (0, 0)
                    a.edit(title, "first", at: moment)
                    b.edit(title, "second", at: moment)
                    try await a.sync()
                    #expect(try await b.sync().contains(title))
                    #expect((a.rows[title], b.rows[title]) == ("first", "first"))
                    // The same again changes nothing.
                    let head = try await server.caller().caller.get("/sync/changes", "scope=w").member("head") as? Int
                    a.clientStamp = 0
                    a.edit(title, "first", at: moment)
                    try await a.sync()
                    let after = try await server.caller().caller.get("/sync/changes", "scope=w").member("head") as? Int
                    #expect(head == after)
                }
            }
        }

        @Test(arguments: LiveStore.allCases, [1, -1]) func aClockThatIsAYearOffNeitherWinsNorLosesForEver(
            kind: LiveStore, sign: Int64
        ) async throws {
            try await run(kind) { server in
                var (right, wrong) = (Device(try await server.caller()), Device(try await server.caller("bob")))
                func now() -> Int64 { server.clock.withLock { $0 } }
                for round in 0..<3 {
                    server.pass(60_000)
                    wrong.edit("w\(round)", "wrong \(round)", at: now() + sign * Self.year)
                    try await wrong.sync()
                    try await right.sync()
                    server.pass(60_000)
                    // Whoever has seen the other's edit and makes one himself has the later one.
                    right.edit("w\(round)", "right \(round)", at: now())
                    try await right.sync()
                    try await wrong.sync()
                    #expect(wrong.rows["w\(round)"] == "right \(round)")
                    server.pass(60_000)
                    wrong.edit("w\(round)", "wrong again", at: now() + sign * Self.year)
                    try await wrong.sync()
                    try await right.sync()
                    #expect(right.rows["w\(round)"] == "wrong again")
                }
                #expect(right.rows == wrong.rows)
            }
        }

        /// As after a server that was put back, or whose clock was: what the device holds is not known.
        @Test(arguments: LiveStore.allCases) func aStampAheadOfTheServerMakesNoOldEditWin(kind: LiveStore) async throws
        {
            try await run(kind, entities: [.state("word", conflict: .lastEditWins), .state("note", conflict: .manual)])
            {
                server in
                let ada = try await server.caller()
                for number in 0..<4 { _ = try await ada.put("/rest/note/n\(number)", #"{"title":"x"}"#) }
                var right = Device(ada)
                right.edit("w1", "newer", at: DialectServer.start)
                try await right.sync()
                server.pass(10_000)
                for stamp in [Int64.max, DialectServer.start + 1_000_000] {
                    let item = #"{"entity":"word","id":"w1","itemUpdateStamp":1,"data":{"title":"old"}}"#
                    let answer = try await ada.stamped(#"{"clientStamp":\#(stamp),"items":[\#(item)]}"#)
                    #expect(answer.items.contains { ($0["data"] as? [String: Any])?["title"] as? String == "newer" })
                    // An answer to an item that fills the page passes over nothing.
                    let meets = #"{"entity":"note","id":"n3","itemUpdateStamp":1,"data":{"title":"z"}}"#
                    var found: Set<String> = []
                    var next = #"{"clientStamp":\#(stamp),"limit":1,"items":[\#(meets)]}"#
                    for _ in 0..<20 {
                        let page = try await ada.stamped(next)
                        found.formUnion(page.items.compactMap { $0["id"] as? String })
                        let began = page.member("began").map { #","began":\#($0)"# } ?? ""
                        let last = try #require(page.member("clientStamp") as? Int64)
                        next = #"{"clientStamp":\#(last),"limit":1,"items":[]\#(began)}"#
                        if page.member("hasMore") as? Bool != true { break }
                    }
                    #expect(found == ["n0", "n1", "n2", "n3", "w1"])
                }
            }
        }

        @Test(arguments: LiveStore.allCases) func deletesAreEditsLikeAny(kind: LiveStore) async throws {
            for deletes in [DeletePolicy.win, .lose] {
                try await run(kind, entities: [.state("word", conflict: .lastEditWins, deletes: deletes)]) { server in
                    var (a, b) = (Device(try await server.caller()), Device(try await server.caller("bob")))
                    let now = DialectServer.start
                    for id in ["w1", "w2"] { a.edit(id, "one", at: now) }
                    try await a.sync()
                    try await b.sync()
                    server.pass(100_000)
                    // The delete is made before the edit, and comes long before it.
                    a.edit("w1", nil, at: now + 1000)
                    a.edit("w2", nil, at: now + 3000)
                    b.edit("w1", "later", at: now + 2000)
                    b.edit("w2", "earlier", at: now + 2000)
                    #expect(try await a.sync() == [])
                    // The other one was deleted since its device heard of it: it is told what has come of that.
                    #expect(try await b.sync() == ["w2", "w1"])
                    #expect(b.rows == ["w1": "later"])
                    #expect(try await a.sync() == ["w1"])
                    #expect(a.rows == b.rows)
                }
            }
        }

        @Test(arguments: LiveStore.allCases) func itemsWrittenInOneMillisecondAreAllFound(kind: LiveStore) async throws
        {
            try await run(kind) { server in
                var (a, b) = (Device(try await server.caller()), Device(try await server.caller("bob")))
                for number in 0..<25 { a.edit("w\(number)", "x", at: DialectServer.start) }
                try await a.sync()
                let came = try await b.sync(limit: 3)
                #expect(Set(came).count == 25 && came.count == 25)
                for number in 0..<5 {
                    a.edit("w\(number)", "y", at: DialectServer.start + 10)
                    try await a.sync()
                    #expect(try await b.sync(limit: 1) == ["w\(number)"])
                }
                #expect(try await a.sync() == [] && a.rows == b.rows)
            }
        }

        @Test(arguments: LiveStore.allCases) func otherClientsWritesCountAsOfTheirTime(kind: LiveStore) async throws {
            try await run(kind) { server in
                var a = Device(try await server.caller())
                let bob = try await server.caller("bob")
                a.edit("w1", "one", at: DialectServer.start)
                try await a.sync()
                server.pass(10_000)
                _ = try await bob.put("/rest/word/w1", #"{"title":"by rest"}"#)
                server.pass(10_000)
                a.edit("w1", "before it", at: DialectServer.start + 5000)
                #expect(try await a.sync() == ["w1"] && a.rows["w1"] == "by rest")
                _ = try await bob.delete("/rest/word/w1")
                #expect(try await a.sync() == ["w1"] && a.rows["w1"] == nil)
                a.edit("w1", "after it", at: DialectServer.start + 30_000)
                server.pass(20_000)
                #expect(try await a.sync() == [])
                #expect(try await bob.get("/rest/word/w1").member("title") as? String == "after it")
            }
        }

        @Test(arguments: LiveStore.allCases) func whatIsRefusedIsTold(kind: LiveStore) async throws {
            let entities: [EntityDeclaration] = [
                .state("word", serverFields: ["rank"]), .state("price", direction: .pull),
                .state("deed", conflict: .manual),
            ]
            try await run(kind, entities: entities) { server in
                let ada = try await server.caller()
                let robot = try await server.caller("robot", isService: true)
                _ = try await robot.put("/rest/price/p1", #"{"n":1}"#)
                _ = try await robot.put("/rest/word/w1", #"{"title":"a","rank":3}"#)
                _ = try await robot.put("/rest/deed/d1", #"{"owner":"ada"}"#)
                server.pass(10_000)
                let stamp = DialectServer.start + 5000
                func item(_ entity: String, _ id: String, _ data: String) -> String {
                    #"{"entity":"\#(entity)","id":"\#(id)","itemUpdateStamp":\#(stamp),"data":\#(data)}"#
                }
                let items = [
                    item("price", "p1", #"{"n":2}"#), item("price", "p2", "{}"),
                    item("word", "w1", #"{"title":"b","rank":9}"#), item("deed", "d1", #"{"owner":"bob"}"#),
                ]
                let body = #"{"clientStamp":\#(DialectServer.start + 3),"items":[\#(items.joined(separator: ","))]}"#
                let answer = try await ada.stamped(body)
                let refused = answer.member("refused") as? [[String: Any]] ?? []
                #expect(refused.map { $0["id"] as? String } == ["p1", "p2"])
                #expect(refused.allSatisfy { $0["code"] as? String == "direction_forbidden" })
                let data = Dictionary(
                    answer.items.map { ($0["id"] as? String ?? "", $0["data"] as? NSDictionary) }
                ) { first, _ in first }
                #expect(
                    data == [
                        "p1": ["n": 1], "d1": ["owner": "ada"], "w1": ["title": "b", "rank": 3],
                    ])
            }
        }

        @Test(arguments: LiveStore.allCases) func aFirstSyncComesToItsEndBehindRetention(kind: LiveStore) async throws {
            try await run(kind, retention: .seconds(86_400)) { server in
                var (a, b) = (Device(try await server.caller()), Device(try await server.caller("bob")))
                for number in 0..<9 { a.edit("w\(number)", "x", at: DialectServer.start) }
                try await a.sync()
                a.edit("w8", nil, at: DialectServer.start + 1)
                let old = a.clientStamp
                server.pass(2)
                try await a.sync()
                server.pass(3 * 86_400_000)
                a.edit("w7", "y", at: DialectServer.start + 3 * 86_400_000)
                try await a.sync()
                try await server.server.compact(trustingClock: true)
                let expired = try await a.caller.stamped(
                    #"{"clientStamp":\#(old),"items":[{"entity":"word","id":"w1","itemUpdateStamp":1,"deleted":true}]}"#
                )
                #expect((expired.status, expired.code) == (410, .checkpointExpired))
                #expect(try await b.sync(limit: 2).count == 8)
                #expect(b.rows == a.rows && b.rows["w1"] == "x")
            }
        }

        @Test(arguments: [
            ("{}", ProblemCode.malformedRequest), (#"{"clientStamp":"x"}"#, .malformedRequest),
            (#"{"clientStamp":0,"items":[{"entity":"a","id":"b","itemUpdateStamp":1}]}"#, .malformedRequest),
            (
                #"{"clientStamp":0,"items":[{"entity":"a","id":"b","itemUpdateStamp":1,"data":{},"deleted":true}]}"#,
                .malformedRequest
            ),
            (#"{"clientStamp":0,"items":[{"entity":"a","id":"","itemUpdateStamp":1,"data":{}}]}"#, .invalidIdentifier),
            (#"{"clientStamp":0,"items":[{"id":"b","itemUpdateStamp":1,"data":{}}]}"#, .malformedRequest),
            (#"{"clientStamp":0,"limit":0}"#, .limitOutOfRange), ("[", .malformedRequest),
            (#"{"clientStamp":0,"clientStamp":1}"#, .malformedRequest),
        ])
        func bodiesThatAreNoExchange(body: String, code: ProblemCode) async throws {
            try await DialectServer.run(.sqlite) { server in
                let answer = try await server.caller().stamped(body)
                #expect(answer.code == code, "\(answer.text)")
            }
        }

        @Test("More items than a push may have are too large a request")
        func tooManyItems() async throws {
            var limits = Limits()
            limits.operations = 2
            try await DialectServer.run(.sqlite, limits: limits) { server in
                let item = #"{"entity":"a","id":"b","itemUpdateStamp":1,"data":{}}"#
                let body = #"{"clientStamp":0,"items":[\#(item),\#(item),\#(item)]}"#
                let answer = try await server.caller().stamped(body)
                #expect(answer.code == .requestTooLarge)
            }
        }
    }
#endif
