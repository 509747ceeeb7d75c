#if Server
    import Foundation
    import TidemarkServer
    import TidemarkTesting
    import TidemarkWire
    import Testing

    @testable import TidemarkObjects

    /// Chance writes, fetches, cuts and restarts; after each fetch that came through, the store has what the server
    /// has.
    @Suite struct ObjectModelTests {
        private static let queries = [
            [], [ObjectFilter("room", "a")], [ObjectFilter("room", "b"), ObjectFilter("n", 1)],
        ]
        private static let ids = (0..<8).map { RecordID("t\($0)") ?? "x" }

        @Test(.timeLimit(.minutes(5)), arguments: 0..<24) func theStoreHasWhatTheServerHas(seed: Int) async throws {
            try await DialectServer.run(.sqlite, retention: .seconds(86_400)) { server in
                let bench = try await ObjectBench(server)
                let setup = ObjectBench.Setup(delta: .none, kept: seed % 2 == 0 ? .memory : .file)
                var limits = ObjectLimits()
                limits.pageObjects = 2 + seed % 3
                // Some maps fit, and some do not.
                limits.deltaHeaderBytes = seed % 3 == 0 ? 100 : 8192
                var player = Player(
                    bench: bench, setup: setup, limits: limits, store: try bench.store(setup, limits: limits),
                    generator: SplitMix64(seed: UInt64(seed)))
                for step in 0..<60 { try await player.play("seed \(seed), step \(step)") }
            }
        }

        private struct Player {
            var bench: ObjectBench
            var setup: ObjectBench.Setup
            var limits: ObjectLimits
            var store: ObjectStore
            var generator: SplitMix64

            mutating func pick<Element>(_ list: [Element]) -> Element {
                list[Int.random(in: 0..<list.count, using: &generator)]
            }

            mutating func play(_ place: Comment) async throws {
                let id = pick(ObjectModelTests.ids)
                switch Int.random(in: 0..<20, using: &generator) {
                case 0..<6:
                    let body = #"{"room":"\#(pick(["a", "b"]))","n":\#(pick([1, 2]))}"#
                    _ = try await bench.other.put("/rest/talk/\(id)", body)
                case 6..<9: _ = try await bench.other.delete("/rest/talk/\(id)")
                case 9: bench.server.pass(pick([1, 1000]))
                case 10:
                    bench.server.pass(2 * 86_400_000)
                    try await bench.server.server.compact(trustingClock: true)
                case 11: store = try bench.restarted(store, setup, limits: limits)
                case 12..<14: try await look(for: id, place)
                case 14..<16:
                    bench.transport.cut(after: pick([0, 1, 2]))
                    store.deltaSyncStrategy = pick(DeltaSyncStrategy.allCases)
                    _ = try? await store.fetch("talk", where: pick(ObjectModelTests.queries))
                    bench.transport.meet(nil)
                default:
                    store.deltaSyncStrategy = pick(DeltaSyncStrategy.allCases)
                    try await fetch(pick(ObjectModelTests.queries), place)
                }
            }

            private func look(for id: RecordID, _ place: Comment) async throws {
                let answer = try await bench.other.get("/rest/talk/\(id)")
                let object = try await store.object("talk", id: id)
                #expect(object?.json == (answer.status == 200 ? answer.bytes : nil), place)
            }

            private func fetch(_ query: [ObjectFilter], _ place: Comment) async throws {
                let words = try ObjectQuery("talk", query).text
                let onServer = try StoredObject.list(try await bench.other.get("/rest/talk?\(words)").bytes)
                let form = store.deltaSyncStrategy
                #expect(try await store.fetch("talk", where: query) == onServer, "\(place), \(form), \(words)")
                guard query.isEmpty else { return }
                // An object that is not in the class is in no query either, and cannot be read alone.
                for query in ObjectModelTests.queries {
                    let kept = try await store.cached("talk", where: query) ?? []
                    #expect(kept.allSatisfy(onServer.contains), "\(place), \(form)")
                }
                bench.transport.cut()
                for id in ObjectModelTests.ids {
                    let kept = try? await store.object("talk", id: id)
                    #expect(kept == onServer.first { $0.id == id }, "\(place), \(form), \(id)")
                }
                bench.transport.meet(nil)
            }
        }
    }
#endif
