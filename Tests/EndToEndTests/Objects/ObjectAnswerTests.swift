#if Server
    import Foundation
    import TidemarkServer
    import TidemarkWire
    import Testing

    @testable import TidemarkObjects

    /// Answers that are none, requests that cannot be, and stores that are emptied.
    @Suite struct ObjectAnswerTests {
        private static func answer(
            _ status: Int = 200, _ body: String, _ headers: [String: String] = [:]
        ) -> TransportResponse { TransportResponse(status: status, headers: headers, body: Array(body.utf8)) }

        /// A login page, a proxy, and a server that has not heard what the store holds: none of them may empty it.
        @Test(arguments: ObjectBench.Setup.deltas) func whatIsNoAnswerChangesNothing(
            setup: ObjectBench.Setup
        ) async throws {
            let stamp = ["Tidemark-Stamp": "1780000000000"]
            let told = ["Tidemark-Stamp": "1780000000009", "x-apiomat-delta-deleted": "[]"]
            let object = #"{"id":"conf0","lastModifiedAt":1}"#
            let lists = [
                Self.answer(200, "<html>"), Self.answer(200, "[]"), Self.answer(200, "[]", stamp),
                Self.answer(404, "<html>"), Self.answer(302, ""), Self.answer(200, "{}", told),
                Self.answer(200, "[\(object)", told), Self.answer(200, #"[{"id":"conf0"}]"#, told),
                Self.answer(200, #"[{"id":"","lastModifiedAt":1}]"#, told), Self.answer(200, "[1]", told),
                Self.answer(200, "[]", told.merging(["Link": ">"]) { $1 }),
                Self.answer(200, "[]", told.merging(["Link": "</x>; rel=\"next\""]) { $1 }),
                Self.answer(200, "[]", told.merging(["x-apiomat-delta-deleted": "conf1"]) { $1 }),
            ]
            try await DialectServer.run(.sqlite) { server in
                let bench = try await ObjectBench(server)
                let store = try bench.store(setup)
                try await bench.add(0..<3)
                let all = try await store.fetch("conference")
                for list in lists {
                    bench.transport.meet { _, _ in list }
                    let error = await #expect(throws: ObjectStoreError.self) { try await store.fetch("conference") }
                    #expect(error?.code == .answerUnusable, "\(list)")
                    #expect(try await store.cached("conference") == all)
                }
                for one in [Self.answer(404, "<html>"), Self.answer(200, "[]"), Self.answer(200, object)] {
                    bench.transport.meet { _, _ in one }
                    let error = await #expect(throws: ObjectStoreError.self) {
                        try await store.object("conference", id: "conf1")
                    }
                    #expect(error?.code == .answerUnusable)
                }
                bench.transport.cut()
                #expect(try await store.object("conference", id: "conf1") == all[1])
            }
        }

        @Test func whatNoQueryCanAskForIsRefused() async throws {
            try await DialectServer.run(.sqlite) { server in
                let bench = try await ObjectBench(server)
                let store = try bench.store(.init(delta: .none, kept: .memory))
                let many = (0..<9).map { ObjectFilter("m\($0)", 1) }
                for (name, filters) in [
                    ("", []), ("a\u{0}", []), ("a", many), ("a", [ObjectFilter("limit", 1)]),
                    ("a", [ObjectFilter("", 1)]), ("a", [ObjectFilter("b", .blob([1]))]),
                ] as [(String, [ObjectFilter])] {
                    let error = await #expect(throws: ObjectStoreError.self) {
                        try await store.fetch(name, where: filters)
                    }
                    #expect(error?.code == .queryInvalid, "\(name)")
                }
                #expect(bench.transport.taken().isEmpty)
            }
        }

        /// Names and values that need care in addresses and headers, in each form of the delta.
        @Test(arguments: ObjectBench.Setup.all) func oddNamesTravel(setup: ObjectBench.Setup) async throws {
            let name = "odd & näme/+%"
            let ids: [RecordID] = ["a b", "a/b", "e\u{301}", "\u{e9}", "x\"y\\", "%41", "+", "\u{1f600}"]
            try await DialectServer.run(.sqlite) { server in
                let bench = try await ObjectBench(server)
                let store = try bench.store(setup)
                try await server.server.commit(to: "w") { changes in
                    for id in ids { changes.upsert(name, id: id, ["ort&": "Köln + Bonn", "n": 1.5, "none": nil]) }
                }
                let sorted = ids.sorted()
                #expect(try await store.fetch(name).map(\.id) == sorted)
                let filters = [ObjectFilter("ort&", "Köln + Bonn"), ObjectFilter("n", 1.5), ObjectFilter("none", nil)]
                #expect(try await store.fetch(name, where: filters).map(\.id) == sorted)
                for id in ids { #expect(try await store.object(name, id: id)?["n"] == 1.5) }
                try await server.server.commit(to: "w") { changes in changes.delete(name, id: "e\u{301}") }
                _ = bench.transport.taken()
                #expect(try await store.fetch(name).map(\.id) == sorted.filter { $0 != "e\u{301}" })
                #expect(try await store.fetch(name, where: filters).map(\.id) == sorted.filter { $0 != "e\u{301}" })
                if setup.delta != .none {
                    let exchanges = bench.transport.taken()
                    #expect(exchanges.first?.deleted == #"["e\u0301"]"#)
                    #expect(exchanges.allSatisfy { $0.delta?.utf8.allSatisfy { $0 < 0x80 } == true })
                }
                store.cacheStrategy = .cacheElseNetwork
                #expect(try await store.object(name, id: "e\u{301}") == nil)
                #expect(try await store.object(name, id: "\u{e9}") != nil)
            }
        }

        @Test func anObjectHasValuesAndDecodes() async throws {
            struct Talk: Decodable, Equatable {
                var id: String
                var title: String
                var isLive: Bool
                var tags: [String]
            }
            var path = EntityPath("talks", of: "talk")
            path.members = ["live": .init("isLive", as: .boolean), "tags": .init("tags", as: .json)]
            try await DialectServer.run(.sqlite, paths: [path]) { server in
                let bench = try await ObjectBench(server)
                let body = #"{"title":"Tides","isLive":true,"tags":["sea"],"n":3,"big":{"$int":"9007199254740993"}}"#
                #expect(try await bench.other.put("/rest/talks/t1", body).status == 201)
                let store = try bench.store(.init(delta: .objectBased, kept: .file))
                let talk = try #require(try await store.fetch("talks", where: [ObjectFilter("isLive", "true")]).first)
                #expect(try talk.decode() == Talk(id: "t1", title: "Tides", isLive: true, tags: ["sea"]))
                #expect(talk["title"] == "Tides" && talk["n"] == 3 && talk["big"] == 9_007_199_254_740_993)
                #expect(talk["isLive"] == nil && talk["tags"] == nil && talk["nothing"] == nil)
                #expect(talk.lastModifiedAt == Date(milliseconds: DialectServer.start))
            }
        }

        // MARK: Emptied

        /// A fetch that began before must not fill the store again, as for a user who has signed out.
        @Test(arguments: ObjectBench.Setup.all) func whatIsForgottenStaysForgotten(
            setup: ObjectBench.Setup
        ) async throws {
            try await DialectServer.run(.sqlite) { server in
                let bench = try await ObjectBench(server)
                let store = try await bench.filled(setup, 3)
                bench.transport.meet { _, response in
                    try await store.removeAll()
                    return response
                }
                let error = await #expect(throws: ObjectStoreError.self) { try await store.fetch("conference") }
                #expect(error?.code == .cacheCleared)
                bench.transport.meet(nil)
                #expect(try await store.cached("conference") == nil)
                #expect(try await store.fetch("conference").count == 3)
            }
        }

        @Test func aFileOfAnotherScopeIsEmptied() async throws {
            let folder = try TemporaryFolder()
            try await DialectServer.run(.sqlite) { server in
                let bench = try await ObjectBench(server)
                try await bench.add(0..<3)
                func open(_ scope: Scope) throws -> ObjectStore {
                    try ObjectStore(
                        storage: .persistent(path: folder.path("objects")), scope: scope, transport: bench.transport)
                }
                #expect(try await open("w").fetch("conference").count == 3)
                #expect(try await open("w").cached("conference")?.count == 3)
                let other = try open("v")
                #expect(try await other.cached("conference") == nil)
                let forbidden = await #expect(throws: ObjectStoreError.self) { try await other.fetch("conference") }
                #expect(forbidden?.code == .forbidden)
                try Data("no database at all, whatever it may be called".utf8)
                    .write(to: folder.url.appending(path: "text"))
                let broken = #expect(throws: ObjectStoreError.self) {
                    try ObjectStore(storage: .persistent(path: folder.path("text")), transport: bench.transport)
                }
                #expect(broken?.code == .storageFailed)
            }
        }

        /// A list that was on its way while an object was deleted, and a fetch that has heard of it meanwhile.
        @Test(arguments: ObjectBench.Setup.deltas) func aSlowAnswerRevivesNothing(
            setup: ObjectBench.Setup
        ) async throws {
            try await DialectServer.run(.sqlite) { server in
                let bench = try await ObjectBench(server)
                let store = try await bench.filled(setup, 3)
                let isOvertaken = Guarded(false)
                let (slow, isSlow) = AsyncStream.makeStream(of: Void.self)
                bench.transport.meet { request, response in
                    guard request.headers[DialectHeader.delta] == nil else { return response }
                    isSlow.yield()
                    // As long as it takes to be overtaken; a store that lets nothing overtake waits all of it.
                    for _ in 0..<300 where !isOvertaken.withLock({ $0 }) {
                        try await Task.sleep(for: .milliseconds(10))
                    }
                    return response
                }
                store.deltaSyncStrategy = .none
                async let list = store.fetch("conference")
                for await _ in slow { break }
                try await bench.delete(1)
                store.deltaSyncStrategy = setup.delta
                #expect(try await store.fetch("conference").ids == ["conf0", "conf2"])
                isOvertaken.withLock { $0 = true }
                _ = try await list
                #expect(try await store.cached("conference")?.ids == ["conf0", "conf2"])
            }
        }

        /// One class is fetched by many at once, and another one meanwhile.
        @Test(arguments: ObjectBench.Setup.all) func manyFetchAtOnce(setup: ObjectBench.Setup) async throws {
            try await DialectServer.run(.sqlite) { server in
                let bench = try await ObjectBench(server)
                let store = try bench.store(setup)
                try await bench.add(0..<3)
                try await bench.commit(0..<3, of: "thing")
                try await withThrowingTaskGroup(of: Void.self) { tasks in
                    for number in 0..<12 {
                        tasks.addTask {
                            let name = number % 3 == 0 ? "thing" : "conference"
                            if number == 7 { try await bench.delete(1) }
                            #expect(try await store.fetch(name).count >= 2)
                        }
                    }
                    try await tasks.waitForAll()
                }
                #expect(try await store.fetch("conference").ids == ["conf0", "conf2"])
                #expect(try await store.cached("thing")?.count == 3)
            }
        }
    }
#endif
