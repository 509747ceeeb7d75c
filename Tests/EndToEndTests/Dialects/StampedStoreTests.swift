#if Server
    import Foundation
    import Testing
    import TidemarkHummingbird
    import TidemarkServer
    import TidemarkTesting
    import TidemarkWire

    @testable import TidemarkObjects

    /// The client of the exchange with two stamps, as an app uses it (D1–D3).
    @Suite struct StampedStoreTests {
        /// A way to the server on which answers may be lost after it has done its work.
        private final class Way: Transport {
            private let inner: HTTPTransport
            private let losses = Guarded(0)
            private let meanwhile = Guarded<(@Sendable () async throws -> Void)?>(nil)

            init(_ server: DialectServer, _ sub: String) async throws {
                let token = try await server.caller(sub).caller.token ?? ""
                guard let url = URL(string: server.live.url) else { throw URLError(.badURL) }
                inner = HTTPTransport(url) { token }
            }

            func loseAnswers(_ count: Int) { losses.withLock { $0 = count } }
            /// Runs while the next request is on its way.
            func next(_ body: @escaping @Sendable () async throws -> Void) { meanwhile.withLock { $0 = body } }

            func send(_ request: TransportRequest) async throws -> TransportResponse {
                let response = try await inner.send(request)
                let body = meanwhile.withLock { body in
                    defer { body = nil }
                    return body
                }
                try await body?()
                let isLost = losses.withLock { count in
                    defer { count = max(0, count - 1) }
                    return count > 0
                }
                if isLost { throw URLError(.networkConnectionLost) }
                return response
            }
        }

        private func rows(_ store: StampedStore) async throws -> [String: [String: Value]] {
            try await store.items(of: "word").reduce(into: [:]) { $0[$1.id.text] = $1.fields }
        }

        private func served(_ server: DialectServer) async throws -> [String: [String: Value]] {
            try await server.caller().listAll("/rest/word?limit=7").flatMap(\.list)
                .reduce(into: [:]) { rows, record in
                    guard let id = record["id"] as? String else { return }
                    rows[id] = ["title": .text(record["title"] as? String ?? "")]
                }
        }

        /// Edits of two devices whose clocks are wrong by any time, offline and with lost answers.
        @Test("a device and its peer converge", arguments: LiveStore.allCases, [1, 2, 3] as [UInt64])
        func converge(kind: LiveStore, seed: UInt64) async throws {
            try await DialectServer.run(kind) { server in
                let folder = try TemporaryFolder()
                var dice = SplitMix64(seed: seed)
                let skews: [Int64] = [0, [-31_536_000_000, 31_536_000_000, 5_000][Int(seed % 3)]]
                let ways = [try await Way(server, "ada"), try await Way(server, "ada")]
                func open(_ number: Int) throws -> StampedStore {
                    let skew = skews[number]
                    return try StampedStore(
                        storage: .persistent(path: folder.path("device\(number)")), transport: ways[number],
                        now: {
                            Date(timeIntervalSince1970: Double(server.clock.withLock { $0 } + skew) / 1000)
                        })
                }
                var stores = [try open(0), try open(1)]
                for step in 0..<120 {
                    let number = Int(dice.next() % 2)
                    server.pass(Int64(dice.next() % 2000))
                    let id = try #require(RecordID("w\(dice.next() % 6)"))
                    switch dice.next() % 8 {
                    case 0: try await stores[number].delete("word", id: id)
                    case 1: stores[number] = try open(number)
                    case 2:
                        ways[number].loseAnswers(Int(dice.next() % 2))
                        _ = try? await stores[number].sync()
                    default: try await stores[number].set(["title": .text("\(number).\(step)")], of: "word", id: id)
                    }
                }
                for way in ways { way.loseAnswers(0) }
                for number in [0, 1, 0, 1] {
                    server.pass(1000)
                    try await stores[number].sync()
                }
                let expected = try await served(server)
                for store in stores {
                    #expect(try await rows(store) == expected)
                    #expect(try await store.unsentCount() == 0)
                    #expect(try await store.refusals().isEmpty)
                }
            }
        }

        @Test("the later edit stands on both, and the loser has the winner")
        func winner() async throws {
            try await DialectServer.run(.sqlite) { server in
                let clock: @Sendable () -> Date = {
                    Date(timeIntervalSince1970: Double(server.clock.withLock { $0 }) / 1000)
                }
                let ada = try StampedStore(
                    storage: .inMemory, transport: try await Way(server, "ada"), now: clock)
                let bob = try StampedStore(
                    storage: .inMemory, transport: try await Way(server, "bob"), now: clock)
                try await ada.set(["title": "first", "count": 1], of: "word", id: "tide")
                try await ada.sync()
                #expect(try await bob.sync() == StampedReport(sent: 0, received: 1))
                server.pass(1000)
                try await ada.set(["title": "earlier"], of: "word", id: "tide")
                server.pass(1000)
                try await bob.set(["title": "later"], of: "word", id: "tide")
                server.pass(1000)
                try await bob.sync()
                try await ada.sync()
                try await bob.sync()
                for store in [ada, bob] {
                    #expect(try await store.item("word", id: "tide")?.fields == ["title": "later", "count": 1])
                }
            }
        }

        @Test("an edit that is made while the one before is on its way is sent, and not gone over")
        func meanwhile() async throws {
            try await DialectServer.run(.sqlite) { server in
                let way = try await Way(server, "ada")
                let store = try StampedStore(storage: .inMemory, transport: way)
                let other = try StampedStore(storage: .inMemory, transport: try await Way(server, "bob"))
                try await other.set(["title": "theirs", "count": 1], of: "word", id: "tide")
                try await other.sync()
                way.next { try await store.set(["title": "mine"], of: "word", id: "tide") }
                try await store.sync()
                #expect(try await store.item("word", id: "tide")?.fields == ["title": "mine", "count": 1])
                try await other.sync()
                #expect(try await other.item("word", id: "tide")?.fields == ["title": "mine", "count": 1])
            }
        }

        @Test("an object that the server does not take is kept with its reason, and sent when it is edited")
        func refused() async throws {
            var limits = Limits()
            limits.recordBytes = 200
            try await DialectServer.run(.sqlite, limits: limits) { server in
                let store = try StampedStore(storage: .inMemory, transport: try await Way(server, "ada"))
                let long = String(repeating: "x", count: 300)
                try await store.set(["title": .text(long)], of: "word", id: "long")
                try await store.set(["title": "short"], of: "word", id: "short")
                try await store.sync()
                let refusal = try #require(try await store.refusals().first)
                #expect((refusal.id, refusal.code) == ("long", "record_too_large"))
                #expect(refusal.fields == ["title": .text(long)])
                #expect(try await rows(store).count == 2)
                try await store.set(["title": "shorter"], of: "word", id: "long")
                try await store.sync()
                #expect(try await store.refusals().isEmpty)
                #expect(try await served(server) == ["long": ["title": "shorter"], "short": ["title": "short"]])
                let error = await #expect(throws: ObjectStoreError.self) {
                    try await store.set(["$bad": 1], of: "word", id: "w")
                }
                #expect(error?.code == .queryInvalid)
            }
        }

        @Test("objects here are those of the server, after corrections, deletes and deletes elsewhere")
        func severalFields() async throws {
            try await DialectServer.run(.sqlite) { server in
                let clock: @Sendable () -> Date = {
                    Date(timeIntervalSince1970: Double(server.clock.withLock { $0 }) / 1000)
                }
                let ada = try StampedStore(storage: .inMemory, transport: try await Way(server, "ada"), now: clock)
                let bob = try StampedStore(storage: .inMemory, transport: try await Way(server, "bob"), now: clock)
                func sync() async throws {
                    for store in [ada, bob, ada] {
                        server.pass(1000)
                        try await store.sync()
                    }
                    let served = try await server.caller().get("/rest/word").list.reduce(into: [:]) { all, record in
                        all[record["id"] as? String ?? ""] = Set(record.filter { !($0.value is NSNull) }.keys)
                    }
                    for store in [ada, bob] {
                        let rows = try await rows(store)
                        #expect(try await rows == self.rows(ada))
                        for (id, fields) in rows {
                            let set = Set(fields.filter { $0.value != .null }.keys)
                            #expect(served[id] == set.union(["id", "lastModifiedAt"]))
                        }
                        #expect(rows.count == served.count)
                    }
                }
                try await ada.set(["a": 1, "b": 1], of: "word", id: "w")
                try await sync()
                // Deleted and made anew before anybody heard of it.
                server.pass(1000)
                try await ada.delete("word", id: "w")
                try await ada.set(["a": 3], of: "word", id: "w")
                try await sync()
                // Edited here, and deleted elsewhere before.
                try await bob.set(["b": 2], of: "word", id: "w")
                try await sync()
                server.pass(1000)
                try await bob.delete("word", id: "w")
                server.pass(1000)
                try await bob.sync()
                try await ada.set(["a": 4], of: "word", id: "w")
                try await sync()
                #expect(try await ada.item("word", id: "w")?.fields["a"] == 4)
            }
        }

        @Test("one edit that no request goes through with stops no other, and who may only read is told what changed")
        func stopped() async throws {
            var limits = Limits()
            limits.bodyBytes = 20_000
            try await DialectServer.run(.sqlite, limits: limits) { server in
                let way = try await Way(server, "ada")
                let store = try StampedStore(storage: .inMemory, transport: way)
                for number in 0..<9 {
                    let size = number == 3 ? 30_000 : 10
                    let title = Value.text(String(repeating: "x", count: size))
                    try await store.set(["title": title], of: "word", id: try #require(RecordID("w\(number)")))
                }
                try await store.sync()
                #expect(try await store.refusals().map(\.id) == ["w3"])
                #expect(try await store.unsentCount() == 0)
                #expect(try await server.caller().get("/rest/word").list.count == 8)

                let token = try await server.caller("eve", scopes: ["w": .read]).caller.token ?? ""
                let url = try #require(URL(string: server.live.url))
                let reader = try StampedStore(storage: .inMemory, transport: HTTPTransport(url) { token })
                try await reader.set(["title": "mine"], of: "word", id: "r")
                let error = await #expect(throws: ObjectStoreError.self) { try await reader.sync() }
                #expect(error?.code == .forbidden)
                #expect(try await rows(reader).count == 9)
                #expect(try await reader.unsentCount() == 1)
            }
        }

        @Test("a device that was away for longer than deletions are kept has no ghosts, and keeps its edits")
        func expired() async throws {
            try await DialectServer.run(.sqlite, retention: .seconds(86_400)) { server in
                let clock: @Sendable () -> Date = {
                    Date(timeIntervalSince1970: Double(server.clock.withLock { $0 }) / 1000)
                }
                let away = try StampedStore(
                    storage: .inMemory, transport: try await Way(server, "ada"), now: clock)
                let other = try StampedStore(
                    storage: .inMemory, transport: try await Way(server, "bob"), now: clock)
                for id in ["w1", "w2", "w3"] as [RecordID] {
                    try await other.set(["title": .text(id.text)], of: "word", id: id)
                }
                try await other.sync()
                try await away.sync()
                try await other.delete("word", id: "w1")
                try await other.sync()
                try await away.set(["title": "mine"], of: "word", id: "w2")
                server.pass(3 * 86_400_000)
                try await other.set(["title": "new"], of: "word", id: "w4")
                try await other.sync()
                try await server.server.compact(trustingClock: true)
                try await away.sync()
                #expect(
                    try await rows(away).mapValues { $0["title"] } == ["w2": "mine", "w3": "w3", "w4": "new"])
                #expect(try await served(server).keys.sorted() == ["w2", "w3", "w4"])
            }
        }
    }
#endif
