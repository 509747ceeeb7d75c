#if Server
    import Foundation
    import TidemarkWire
    import Testing

    @testable import TidemarkObjects

    /// The object store on a device, as an app uses it.
    @Suite struct ObjectStoreTests {
        /// Ten conferences; one is deleted, added, and all at once, by another device.
        @Test(arguments: LiveStore.allCases, ObjectBench.Setup.all)
        func conferencesComeAndGo(kind: LiveStore, setup: ObjectBench.Setup) async throws {
            try await DialectServer.run(kind) { server in
                let bench = try await ObjectBench(server)
                var store = try bench.store(setup)
                try await bench.add(0..<10)
                #expect(try await store.fetch("conference").ids == ObjectBench.ids(0..<10))
                #expect(bench.transport.taken().map(\.delta) == [nil])

                store = try bench.restarted(store, setup)
                try await bench.delete(9)
                #expect(try await store.fetch("conference").ids == ObjectBench.ids(0..<9))
                #expect(try await store.cached("conference")?.ids == ObjectBench.ids(0..<9))
                let deletion = try #require(bench.transport.taken().first)
                if setup.delta != .none { #expect((deletion.body, deletion.deleted) == ("[]", #"["conf9"]"#)) }
                let named = deletion.delta?.contains("conf0")
                #expect(named == (setup.delta == .none ? nil : setup.delta == .objectBased))

                store = try bench.restarted(store, setup)
                try await bench.add(9..<10)
                #expect(try await store.fetch("conference").ids == ObjectBench.ids(0..<10))
                let addition = try #require(bench.transport.taken().first)
                let added = try StoredObject.list(addition.response.body).ids
                #expect(added == (setup.delta == .none ? ObjectBench.ids(0..<10) : ["conf9"]))

                store = try bench.restarted(store, setup)
                try await bench.delete(9)
                _ = try await bench.other.put("/rest/conference/conf10", #"{"name":"tenth"}"#)
                _ = try await bench.other.patch("/rest/conference/conf3", #"{"name":"third"}"#)
                let all = try await store.fetch("conference")
                #expect(all.ids == ["conf0", "conf1", "conf10"] + ObjectBench.ids(2..<9))
                #expect(all.first { $0.id == "conf3" }?["name"] == "third")
                #expect(all.first { $0.id == "conf2" }?["name"] == "conference 2")
                let both = try #require(bench.transport.taken().first)
                if setup.delta != .none {
                    #expect(both.deleted == #"["conf9"]"#)
                    #expect(Set(try StoredObject.list(both.response.body).ids) == ["conf10", "conf3"])
                }
            }
        }

        /// The fault that the original admits to: an object that is gone from the collection could still be loaded.
        @Test(arguments: ObjectBench.Setup.all)
        func singleObjectsLeaveTheCacheWithTheCollection(setup: ObjectBench.Setup) async throws {
            try await DialectServer.run(.sqlite) { server in
                let bench = try await ObjectBench(server)
                var store = try bench.store(setup)
                try await bench.add(0..<3)
                // One is loaded alone, too, and one is known in no other way.
                _ = try await store.object("conference", id: "conf2")
                _ = try await store.fetch("conference")
                try await bench.add(3..<4)
                _ = try await store.object("conference", id: "conf3")
                try await bench.delete(2)
                try await bench.delete(3)
                store.cacheStrategy = .cacheElseNetwork
                _ = bench.transport.taken()
                #expect(try await store.object("conference", id: "conf3") != nil, "as it was kept")
                #expect(bench.transport.taken().isEmpty)
                store.cacheStrategy = .networkElseCache
                _ = try await store.fetch("conference")

                store = try bench.restarted(store, setup)
                store.cacheStrategy = .cacheElseNetwork
                _ = bench.transport.taken()
                #expect(try await store.object("conference", id: "conf1")?["name"] == "conference 1")
                #expect(bench.transport.taken().isEmpty)
                for id: RecordID in ["conf2", "conf3"] {
                    #expect(try await store.object("conference", id: id) == nil)
                    #expect(bench.transport.taken().count == 1, "the server was asked")
                }
                store.cacheStrategy = .networkElseCache
                bench.transport.cut()
                #expect(try await store.object("conference", id: "conf1") != nil)
                for id: RecordID in ["conf2", "conf3"] {
                    let error = await #expect(throws: ObjectStoreError.self) {
                        try await store.object("conference", id: id)
                    }
                    #expect(error?.code == .networkUnavailable)
                }
            }
        }

        @Test(arguments: LiveStore.allCases, ObjectBench.Setup.all)
        func whatStopsMatchingLeavesItsQueryAlone(kind: LiveStore, setup: ObjectBench.Setup) async throws {
            try await DialectServer.run(kind) { server in
                let bench = try await ObjectBench(server)
                let store = try bench.store(setup)
                for number in 0..<4 {
                    _ = try await bench.other.put("/rest/talk/t\(number)", #"{"room":"a","n":\#(number)}"#)
                }
                let inA = [ObjectFilter("room", "a")]
                #expect(try await store.fetch("talk", where: inA).count == 4)
                #expect(try await store.fetch("talk").count == 4)
                _ = try await bench.other.patch("/rest/talk/t1", #"{"room":"b"}"#)
                _ = try await bench.other.delete("/rest/talk/t2")
                _ = try await bench.other.patch("/rest/talk/t3", #"{"n":7}"#)
                _ = bench.transport.taken()
                let matching = try await store.fetch("talk", where: inA)
                #expect(matching.ids == ["t0", "t3"] && matching.last?["n"] == 7)
                let answer = try #require(bench.transport.taken().first)
                if setup.delta != .none {
                    #expect(try StoredObject.list(answer.response.body).ids == ["t3"])
                    #expect(answer.deleted?.contains("t1") == true && answer.deleted?.contains("t2") == true)
                }
                // All talks are another collection, and it still has them.
                #expect(try await store.cached("talk")?.ids == ["t0", "t1", "t2", "t3"])
                #expect(try await store.fetch("talk").ids == ["t0", "t1", "t3"])
                #expect(try await store.cached("talk")?.first { $0.id == "t1" }?["room"] == "b")
                #expect(try await store.fetch("talk", where: [ObjectFilter("room", "b")]).ids == ["t1"])
                // Gone from the whole class is gone from every query.
                _ = try await bench.other.delete("/rest/talk/t0")
                _ = try await store.fetch("talk")
                #expect(try await store.cached("talk", where: inA)?.ids == ["t3"])
                // Filters in another order are the same query.
                let two = [ObjectFilter("n", 7), ObjectFilter("room", "a")]
                #expect(try await store.fetch("talk", where: two).ids == ["t3"])
                #expect(try await store.cached("talk", where: two.reversed())?.ids == ["t3"])
            }
        }

        /// In no other collection: the object itself leaves with its query.
        @Test(arguments: ObjectBench.Setup.all) func theLastCollectionTakesTheObjectAlong(
            setup: ObjectBench.Setup
        ) async throws {
            try await DialectServer.run(.sqlite) { server in
                let bench = try await ObjectBench(server)
                let store = try bench.store(setup)
                for number in 0..<2 { _ = try await bench.other.put("/rest/talk/t\(number)", #"{"room":"a","day":1}"#) }
                let (room, day) = ([ObjectFilter("room", "a")], [ObjectFilter("day", 1)])
                _ = try await store.fetch("talk", where: room)
                _ = try await store.fetch("talk", where: day)
                _ = try await bench.other.patch("/rest/talk/t1", #"{"room":"b","day":2}"#)
                #expect(try await store.fetch("talk", where: room).ids == ["t0"])
                bench.transport.cut()
                #expect(try await store.object("talk", id: "t1") != nil, "the day still has it")
                bench.transport.meet(nil)
                #expect(try await store.fetch("talk", where: day).ids == ["t0"])
                bench.transport.cut()
                await #expect(throws: ObjectStoreError.self) { try await store.object("talk", id: "t1") }
            }
        }

        /// Told of one object alone, before its collection is: the old copy is not given out again.
        @Test(arguments: ObjectBench.Setup.all) func whatWasMissedAloneIsNotServedAgain(
            setup: ObjectBench.Setup
        ) async throws {
            try await DialectServer.run(.sqlite) { server in
                let bench = try await ObjectBench(server)
                let store = try await bench.filled(setup, 2)
                try await bench.delete(1)
                #expect(try await store.object("conference", id: "conf1") == nil)
                bench.transport.cut()
                await #expect(throws: ObjectStoreError.self) { try await store.object("conference", id: "conf1") }
                #expect(try await store.cached("conference")?.count == 2, "as of its last fetch")
                bench.transport.meet(nil)
                try await bench.add(1..<2)
                #expect(try await store.fetch("conference").count == 2)
                bench.transport.cut()
                #expect(try await store.object("conference", id: "conf1") != nil)
            }
        }

        @Test(arguments: ObjectBench.Place.allCases)
        func aDeltaWithoutACacheIsRefused(kept: ObjectBench.Place) async throws {
            try await DialectServer.run(.sqlite) { server in
                let bench = try await ObjectBench(server)
                try await bench.add(0..<2)
                let store = try bench.store(.init(delta: .none, kept: kept))
                store.cacheStrategy = .networkOnly
                #expect(try await store.fetch("conference").count == 2)
                #expect(try await store.object("conference", id: "conf1") != nil)
                #expect(try await store.cached("conference") == nil, "nothing is kept")
                _ = bench.transport.taken()
                for delta in [DeltaSyncStrategy.objectBased, .collectionBased] {
                    store.deltaSyncStrategy = delta
                    var errors = [await #expect(throws: ObjectStoreError.self) { try await store.fetch("conference") }]
                    errors.append(
                        await #expect(throws: ObjectStoreError.self) {
                            try await store.object("conference", id: "conf1")
                        })
                    errors.append(
                        #expect(throws: ObjectStoreError.self) {
                            try ObjectStore(
                                storage: .inMemory, cacheStrategy: .networkOnly, deltaSyncStrategy: delta,
                                transport: bench.transport)
                        })
                    for error in errors {
                        #expect(error?.code == .deltaNeedsCache)
                        #expect(error?.description.contains(delta.rawValue) == true)
                        #expect(error?.hint.contains("cacheStrategy") == true)
                    }
                }
                #expect(bench.transport.taken().isEmpty, "nothing was sent")
                store.cacheStrategy = .networkElseCache
                #expect(try await store.fetch("conference").count == 2)
            }
        }

        @Test func theCacheStandsInForTheServer() async throws {
            try await DialectServer.run(.sqlite) { server in
                let bench = try await ObjectBench(server)
                let store = try bench.store(.init(delta: .collectionBased, kept: .memory))
                try await bench.add(0..<2)
                #expect(try await store.cached("conference") == nil)
                bench.transport.cut()
                let early = await #expect(throws: ObjectStoreError.self) { try await store.fetch("conference") }
                #expect(early?.code == .networkUnavailable)
                bench.transport.meet(nil)
                #expect(try await store.fetch("conference").count == 2)
                try await bench.add(2..<3)
                bench.transport.cut()
                #expect(try await store.fetch("conference").count == 2)
                bench.transport.meet { _, _ in TransportResponse(status: 503) }
                #expect(try await store.fetch("conference").count == 2)
                // What the caller may not do any more is no outage.
                bench.transport.meet { _, _ in TransportResponse(status: 401) }
                let refused = await #expect(throws: ObjectStoreError.self) { try await store.fetch("conference") }
                #expect(refused?.code == .unauthenticated)
                bench.transport.meet(nil)
                store.cacheStrategy = .cacheElseNetwork
                _ = bench.transport.taken()
                #expect(try await store.fetch("conference").count == 2)
                #expect(bench.transport.taken().isEmpty)
                store.cacheStrategy = .networkElseCache
                #expect(try await store.fetch("conference").count == 3)
            }
        }
    }
#endif
