import Testing
import TidemarkCore
import TidemarkWire

@testable import TidemarkServer

/// What every ``HookStore`` promises.
@Suite("Every store that remembers what hooks were told keeps its promises")
struct HookStoreTests {
    static let kinds: [StoreKind] = [.sqlite, .postgres, .partitionedPostgres]

    private func store(_ bench: StoreBench) throws -> any HookStore { try #require(bench.store as? any HookStore) }

    @Test("One holder at a time has the right to call, for as long as it keeps it", arguments: kinds)
    func held(kind: StoreKind) async throws {
        let bench = try StoreBench(kind)
        let store = try store(bench)
        #expect(try await store.holdHook("h", as: "one", for: .seconds(600)))
        #expect(try await store.holdHook("h", as: "one", for: .seconds(600)))
        #expect(try await !store.holdHook("h", as: "two", for: .seconds(600)))
        #expect(try await store.holdHook("other", as: "two", for: .seconds(600)))
        try await store.releaseHook("h", as: "two")
        #expect(try await !store.holdHook("h", as: "two", for: .seconds(600)))
        try await store.releaseHook("h", as: "one")
        #expect(try await store.holdHook("h", as: "two", for: .zero))
        // It has run out.
        while try await !store.holdHook("h", as: "one", for: .seconds(600)) {}
        #expect(try await !store.holdHook("h", as: "two", for: .seconds(600)))
    }

    @Test("A head that is there at the beginning counts as told, in steps; a later one does not", arguments: kinds)
    func begun(kind: StoreKind) async throws {
        let bench = try StoreBench(kind)
        let store = try store(bench)
        for scope in ["a", "b", "c"] as [Scope] { try await bench.append(.event("1"), to: scope) }
        #expect(try await store.holdHook("h", as: "one", for: .seconds(600)))
        #expect(try await store.beginHook("h", limit: 2))
        // Behind the steps that were taken, and ahead of them.
        try await bench.append(.event("2"), to: "aa")
        try await bench.append(.event("2"), to: "c")
        while try await store.beginHook("h", limit: 2) {}
        #expect(try await store.untold(to: "h", of: nil, after: nil, limit: 9).map(\.scope) == ["aa"])
        try await bench.append(.event("3"), .event("4"), to: "b", at: 5000)
        let untold = try await store.untold(to: "h", of: nil, after: nil, limit: 9)
        let epoch = try await bench.state("b").history.epoch(of: 3).text
        #expect(untold.last == HookMachine.News(scope: "b", head: 3, told: 1, time: 5001, epoch: epoch))
        #expect(try await !store.beginHook("h", limit: 2))
        #expect(try await store.untold(to: "h", of: nil, after: nil, limit: 9) == untold)
    }

    @Test("A told head is kept, never goes back, and is each hook's own", arguments: kinds)
    func told(kind: StoreKind) async throws {
        let bench = try StoreBench(kind)
        let store = try store(bench)
        for scope in ["a", "b", "c"] as [Scope] { try await bench.append(.event("1"), .event("2"), to: scope) }
        for hook in ["h", "other"] {
            #expect(try await store.holdHook(hook, as: "one", for: .seconds(600)))
            try await store.beginHookAtStart(hook)
        }
        #expect(try await store.untold(to: "h", of: nil, after: "a", limit: 1).map(\.scope) == ["b"])
        try await store.keepTold(["a": 2, "b": 1], to: "h")
        try await store.keepTold(["a": 1], to: "h")
        let untold = try await store.untold(to: "h", of: ["a", "b", "nobody"], after: nil, limit: 9)
        #expect(untold.map(\.scope) == ["b"] && untold.first?.told == 1 && untold.first?.head == 2)
        #expect(try await store.untold(to: "other", of: nil, after: nil, limit: 9).count == 3)
        try bench.reopen()
        let again = try self.store(bench)
        #expect(try await again.untold(to: "h", of: nil, after: nil, limit: 9).map(\.scope) == ["b", "c"])
    }

    @Test("News name the epoch of their head, however often the store was opened", arguments: kinds)
    func epochs(kind: StoreKind) async throws {
        let bench = try StoreBench(kind)
        var seen: Set<String> = []
        for round in 1...8 {
            try await bench.append(.event(RecordID(stringLiteral: "\(round)")), to: "a", at: Int64(round) * 1000)
            let news = try await store(bench).untold(to: "h", of: ["a"], after: nil, limit: 9)
            let epoch = try await bench.state("a").history.epoch(of: Int64(round)).text
            #expect(news.map(\.epoch) == [epoch])
            seen.insert(epoch)
            try bench.reopen()
            #expect(try await store(bench).untold(to: "h", of: ["a"], after: nil, limit: 9) == news)
        }
        #expect(seen.count == 8)
    }

    @Test("Of a scope that was erased there is nothing to tell", arguments: kinds)
    func erased(kind: StoreKind) async throws {
        let bench = try StoreBench(kind)
        let store = try store(bench)
        for scope in ["a", "b"] as [Scope] { try await bench.append(.event("1"), to: scope) }
        _ = try await SyncServer(store: bench.store, configuration: .still).erase(.scope("a"))
        #expect(try await store.untold(to: "h", of: nil, after: nil, limit: 9).map(\.scope) == ["b"])
        #expect(try await store.untold(to: "h", of: ["a", "b"], after: nil, limit: 9).map(\.scope) == ["b"])
    }
}
