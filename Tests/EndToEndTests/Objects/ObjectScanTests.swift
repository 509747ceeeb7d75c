#if Server
    import Foundation
    import TidemarkServer
    import TidemarkWire
    import Testing

    @testable import TidemarkObjects

    /// Fetches of many pages, those that end in the middle, and answers that want another form of the request.
    @Suite struct ObjectScanTests {
        private static let pairs: ObjectLimits = {
            var limits = ObjectLimits()
            limits.pageObjects = 2
            return limits
        }()

        /// Cuts the fetch at each of its pages in turn.
        @Test(arguments: ObjectBench.Setup.all) func aFetchThatIsCutSkipsNothing(
            setup: ObjectBench.Setup
        ) async throws {
            try await DialectServer.run(.sqlite) { server in
                let bench = try await ObjectBench(server)
                try await bench.add(0..<7)
                for round in 0..<6 {
                    var store = try bench.store(setup, limits: Self.pairs)
                    bench.transport.cut(after: round)
                    // The first fill, and then a delta with a deletion, additions and changes.
                    _ = try? await store.fetch("conference")
                    store = try bench.restarted(store, setup, limits: Self.pairs)
                    bench.transport.meet(nil)
                    #expect(try await known(store) == (try await onServer(bench)), "round \(round)")

                    try await bench.delete(round)
                    for number in [0, 6] {
                        _ = try await bench.other.patch("/rest/conference/conf\(number)", #"{"name":"r\#(round)"}"#)
                    }
                    try await bench.add(10 * (round + 1)..<10 * (round + 1) + 5)
                    bench.transport.cut(after: round)
                    _ = try? await store.fetch("conference")
                    store = try bench.restarted(store, setup, limits: Self.pairs)
                    bench.transport.meet(nil)
                    #expect(try await known(store) == (try await onServer(bench)), "round \(round)")
                    try await store.removeAll()
                }
            }
        }

        struct Known: Equatable {
            var id: String
            var time: Int64

            init(_ object: StoredObject) { (id, time) = (object.id.text, object.lastModifiedAt.milliseconds) }
            init(_ record: [String: Any]) {
                (id, time) = (record["id"] as? String ?? "", Int64(record["lastModifiedAt"] as? Int ?? 0))
            }
        }

        private func known(_ store: ObjectStore) async throws -> [Known] {
            try await store.fetch("conference").map { Known($0) }
        }

        private func onServer(_ bench: ObjectBench) async throws -> [Known] {
            try await bench.other.get("/rest/conference").list.map { Known($0) }
        }

        /// In the time form each page is kept with its time, and the scan goes on behind it.
        @Test func aScanByTimeGoesOnWhereItWasCut() async throws {
            try await DialectServer.run(.sqlite) { server in
                let bench = try await ObjectBench(server)
                let setup = ObjectBench.Setup(delta: .collectionBased, kept: .file)
                var store = try bench.store(setup, limits: Self.pairs)
                try await bench.add(0..<1)
                _ = try await store.fetch("conference")
                try await bench.add(1..<8)
                bench.transport.meet { request, response in
                    if request.query.contains(where: { $0.name == "cursor" }) { throw URLError(.timedOut) }
                    return response
                }
                #expect(try await store.fetch("conference").count == 3, "one page of two has come")
                bench.transport.meet(nil)
                _ = bench.transport.taken()
                store = try bench.restarted(store, setup, limits: Self.pairs)
                #expect(try await store.fetch("conference").count == 8)
                let bodies = try bench.transport.taken().flatMap { try StoredObject.list($0.response.body).ids }
                #expect(bodies == ObjectBench.ids(3..<8))
            }
        }

        @Test func anEndlessListIsLeft() async throws {
            try await DialectServer.run(.sqlite) { server in
                let bench = try await ObjectBench(server)
                try await bench.add(0..<7)
                var limits = Self.pairs
                limits.pages = 3
                let store = try bench.store(.init(delta: .collectionBased, kept: .memory), limits: limits)
                let long = await #expect(throws: ObjectStoreError.self) { try await store.fetch("conference") }
                #expect(long?.code == .limitExceeded)
                limits = ObjectLimits()
                limits.answerBytes = 100
                let small = try bench.store(.init(delta: .collectionBased, kept: .memory), limits: limits)
                let large = await #expect(throws: ObjectStoreError.self) { try await small.fetch("conference") }
                #expect(large?.code == .limitExceeded)
            }
        }

        // MARK: Another form

        @Test(arguments: ObjectBench.Place.allCases)
        func aMapThatIsTooLargeGivesWayToTheTime(kept: ObjectBench.Place) async throws {
            try await DialectServer.run(.sqlite) { server in
                let bench = try await ObjectBench(server)
                let store = try bench.store(.init(delta: .objectBased, kept: kept))
                try await bench.commit(0..<1000, of: "thing")
                try await bench.commit(0..<100, of: "few")
                #expect(try await store.fetch("thing").count == 1000)
                #expect(try await store.fetch("few").count == 100)
                for name in ["thing", "few"] { _ = try await bench.other.delete("/rest/\(name)/o7") }
                _ = bench.transport.taken()
                #expect(try await store.fetch("thing").count == 999)
                #expect(try await store.fetch("few").count == 99)
                let exchanges = bench.transport.taken()
                #expect(exchanges.map(\.response.status) == [200, 200], "the server refused none")
                #expect(exchanges.map(\.body) == ["[]", "[]"] && exchanges.map(\.deleted) == [#"["o7"]"#, #"["o7"]"#])
                #expect(exchanges.map { $0.delta?.hasPrefix("{") } == [false, true])
                #expect(exchanges.allSatisfy { $0.delta?.utf8.count ?? 0 <= 8192 })
            }
        }

        /// A server, or a proxy before it, that takes less than the store believes.
        @Test(arguments: LiveStore.allCases, [false, true])
        func aRefusedMapGivesWayToTheTime(kind: LiveStore, isProxy: Bool) async throws {
            var limits = Limits()
            if !isProxy { limits.deltaHeaderBytes = 1024 }
            try await DialectServer.run(kind, limits: limits) { server in
                let bench = try await ObjectBench(server)
                let store = try bench.store(.init(delta: .objectBased, kept: .file))
                try await bench.commit(0..<100, of: "thing")
                #expect(try await store.fetch("thing").count == 100)
                _ = try await bench.other.delete("/rest/thing/o7")
                _ = bench.transport.taken()
                if isProxy {
                    bench.transport.meet { request, response in
                        let isLarge = request.headers[DialectHeader.delta]?.utf8.count ?? 0 > 1024
                        return isLarge ? TransportResponse(status: 431, body: Array("<html>".utf8)) : response
                    }
                }
                #expect(try await store.fetch("thing").count == 99)
                let exchanges = bench.transport.taken()
                #expect(exchanges.map(\.response.status) == [431, 200])
                #expect(exchanges.last?.delta?.hasPrefix("\"17") == true && exchanges.last?.body == "[]")
                // Who takes not even the time says so.
                bench.transport.meet { _, _ in TransportResponse(status: 431) }
                let error = await #expect(throws: ObjectStoreError.self) { try await store.fetch("thing") }
                #expect(error?.code == .headerTooLarge)
            }
        }

        @Test(arguments: LiveStore.allCases) func whoWasAwayForTooLongTakesTheList(kind: LiveStore) async throws {
            try await DialectServer.run(kind, retention: .seconds(86_400)) { server in
                let bench = try await ObjectBench(server)
                let store = try bench.store(.init(delta: .collectionBased, kept: .file))
                try await bench.add(0..<6)
                _ = try await store.fetch("conference")
                try await bench.delete(0)
                server.pass(3 * 86_400_000)
                _ = try await bench.other.patch("/rest/conference/conf1", #"{"name":"one"}"#)
                try await server.server.compact(trustingClock: true)
                _ = bench.transport.taken()
                #expect(try await store.fetch("conference").ids == ObjectBench.ids(1..<6))
                #expect(bench.transport.taken().map(\.response.status) == [410, 200])
                store.cacheStrategy = .cacheElseNetwork
                #expect(try await store.object("conference", id: "conf0") == nil)
                store.cacheStrategy = .networkElseCache
                _ = try await bench.other.patch("/rest/conference/conf2", #"{"name":"two"}"#)
                _ = bench.transport.taken()
                #expect(try await store.fetch("conference").count == 5)
                #expect(bench.transport.taken().map { try? StoredObject.list($0.response.body).ids } == [["conf2"]])
            }
        }

        /// What a server that was put back has lost, it cannot name.
        @Test func aServerThatWasPutBackIsTakenAsItIs() async throws {
            try await DialectServer.run(.sqlite) { server in
                let bench = try await ObjectBench(server)
                let store = try bench.store(.init(delta: .collectionBased, kept: .memory))
                try await bench.add(0..<2)
                // The device saw a conference that is in no backup.
                bench.transport.meet { _, response in
                    var headers = response.headers
                    headers["tidemark-stamp"] = "\(DialectServer.start + 3_600_000)"
                    let lost = #","# + #"{"id":"lost","lastModifiedAt":\#(DialectServer.start + 3_600_000)}]"#
                    return TransportResponse(
                        status: 200, headers: headers, body: response.body.dropLast() + Array(lost.utf8))
                }
                #expect(try await store.fetch("conference").ids == ["conf0", "conf1", "lost"])
                bench.transport.meet(nil)
                #expect(try await store.fetch("conference").ids == ["conf0", "conf1"])
                try await bench.add(2..<3)
                #expect(try await store.fetch("conference").ids == ObjectBench.ids(0..<3))
            }
        }
    }
#endif
