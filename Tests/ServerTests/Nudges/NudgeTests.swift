import Synchronization
import Testing
import TidemarkTesting
import TidemarkWire

@testable import TidemarkServer

@Suite("Nudges on one node")
struct NudgeTests {
    @Test("Of what was not taken a waiter has the newest head of each scope, and of others nothing")
    func coalesced() throws {
        let nudges = Nudges()
        let waiter = try nudges.wait(for: ["a", "b"], as: "ada", Limits())
        for head in 1...1000 as ClosedRange<Version> { nudges.publish("a", head) }
        nudges.publish("b", 7)
        nudges.publish("c", 8)
        #expect(waiter.take().map(\.scope) == ["a", "b"])
        #expect(waiter.take().isEmpty)
        // Told in another order than they were made.
        nudges.publish("a", 1002)
        nudges.publish("a", 1001)
        #expect(waiter.take().map(\.head) == [1002])
        nudges.publish("a", 1002)
        #expect(waiter.take().isEmpty)
    }

    @Test("Each of many waiters has the newest head, however they end meanwhile", .timeLimit(.minutes(5)))
    func many() async throws {
        let nudges = Nudges()
        var limits = Limits()
        (limits.streams, limits.streamsPerPrincipal) = (500, 500)
        var waiters: [Waiter] = []
        for _ in 0..<500 { waiters.append(try nudges.wait(for: ["a", "b"], as: "ada", limits)) }
        for head in 1...100 as ClosedRange<Version> {
            nudges.publish("a", head)
            nudges.publish("b", head * 2)
            if head % 10 == 0 { nudges.end(waiters.removeLast()) }
        }
        for waiter in waiters {
            var heads: [Scope: Version] = [:]
            for await _ in waiter.wakes {
                for (scope, head) in waiter.take() { heads[scope] = head }
                if heads == ["a": 100, "b": 200] { break }
            }
            #expect(heads == ["a": 100, "b": 200])
        }
        // The task that told them has ended by now or ends soon: the next commit is told all the same.
        nudges.publish("a", 101)
        for waiter in waiters {
            for await _ in waiter.wakes where !waiter.take().isEmpty { break }
        }
    }

    @Test("A store that was put back is told of again from where it stands")
    func putBack() throws {
        let nudges = Nudges()
        let waiter = try nudges.wait(for: ["a"], as: "ada", Limits())
        nudges.saw(["a": 10])
        #expect(waiter.take().map(\.head) == [10])
        nudges.saw(["a": 3])
        #expect(waiter.take().isEmpty)
        nudges.saw(["a": 4])
        #expect(waiter.take().map(\.head) == [4])
    }

    @Test("All streams together are counted, and a scope is watched while somebody waits")
    func counted() throws {
        let nudges = Nudges()
        var limits = Limits()
        limits.streams = 3
        let first = try nudges.wait(for: ["a", "b"], as: "ada", limits)
        let second = try nudges.wait(for: ["b"], as: "ada", limits)
        let third = try nudges.wait(for: ["a"], as: "bob", limits)
        #expect(throws: Problem.self) { try nudges.wait(for: ["a"], as: "eve", limits) }
        #expect(nudges.watched == ["a", "b"])
        nudges.end(first)
        nudges.end(first)
        nudges.end(third)
        #expect(nudges.watched == ["b"])
        nudges.publish("a", 1)
        #expect(first.take().isEmpty)
        let again = try nudges.wait(for: ["a"], as: "ada", limits)
        for waiter in [second, again] { nudges.end(waiter) }
        #expect(nudges.watched.isEmpty)
    }

    @Test("A server that has no streams says so", arguments: [(0, 8), (3, 0)])
    func none(streams: Int, perPrincipal: Int) throws {
        var limits = Limits()
        (limits.streams, limits.streamsPerPrincipal) = (streams, perPrincipal)
        let problem = try #require(throws: Problem.self) { try Nudges().wait(for: ["a"], as: "ada", limits) }
        #expect(problem.code == .tooManyRequests)
        #expect(problem.detail.contains("no streams"))
    }

    @Test("One stream too many of a caller takes the place of its oldest, which ends", .timeLimit(.minutes(5)))
    func displaced() async throws {
        let nudges = Nudges()
        var limits = Limits()
        (limits.streams, limits.streamsPerPrincipal) = (3, 2)
        let other = try nudges.wait(for: ["a"], as: "bob", limits)
        let first = try nudges.wait(for: ["a", "b"], as: "ada", limits)
        let second = try nudges.wait(for: ["a"], as: "ada", limits)
        // There is room for one that is in another's place, where all places are taken.
        let third = try nudges.wait(for: ["c"], as: "ada", limits)
        for await _ in first.wakes {}
        #expect((first.end, second.end) == (.displaced, nil))
        #expect(nudges.watched == ["a", "c"])
        nudges.publish("a", 1)
        #expect(second.take().count == 1)
        #expect(other.take().count == 1)
        #expect(first.take().isEmpty)
        nudges.end(first)
        _ = try nudges.wait(for: ["d"], as: "ada", limits)
        for await _ in second.wakes {}
        #expect(nudges.watched == ["a", "c", "d"])
        withExtendedLifetime(third) {}
    }

    @Test("Scopes come and go while somebody waits, up to their limit, and none comes to one that has ended")
    func changed() throws {
        let nudges = Nudges()
        var limits = Limits()
        limits.streamScopes = 2
        let waiter = try nudges.wait(for: [], as: "ada", limits)
        for scope in ["a", "b", "a"] as [Scope] { try nudges.add(scope, to: waiter, limits) }
        let problem = try #require(throws: Problem.self) { try nudges.add("c", to: waiter, limits) }
        #expect(problem.code == .limitOutOfRange)
        nudges.publish("a", 1)
        nudges.publish("b", 1)
        nudges.publish("c", 1)
        nudges.remove("a", from: waiter)
        #expect(waiter.take().map(\.scope) == ["b"])
        try nudges.add("c", to: waiter, limits)
        #expect(nudges.watched == ["b", "c"])
        nudges.end(waiter)
        try nudges.add("a", to: waiter, limits)
        #expect(nudges.watched.isEmpty)
    }

    @Test("A scope that is erased is told as lost, once, and the others go on")
    func erased() throws {
        let nudges = Nudges()
        let waiter = try nudges.wait(for: ["a", "b"], as: "ada", Limits())
        nudges.publish("a", 1)
        nudges.publish("b", 1)
        nudges.end(of: "a")
        #expect(waiter.takeLost() == ["a"])
        #expect(waiter.takeLost().isEmpty)
        #expect(waiter.take().map(\.scope) == ["b"])
        nudges.publish("a", 2)
        #expect(waiter.take().isEmpty)
        #expect(nudges.watched == ["b"])
    }

    @Test("The end of a server ends all that wait, and lets nobody begin", .timeLimit(.minutes(5)))
    func closed() async throws {
        let nudges = Nudges()
        let waiter = try nudges.wait(for: ["a"], as: "ada", Limits())
        nudges.close()
        for await _ in waiter.wakes {}
        #expect(waiter.end == .stopping)
        let problem = try #require(throws: Problem.self) { try nudges.wait(for: ["a"], as: "ada", Limits()) }
        #expect(problem.code == .unavailable)
    }

    @Test("Pushes and the server's own commits are told; a caller that may not read learns nothing")
    func engine() async throws {
        let server = SyncServer(store: MemoryStore(), configuration: .still)
        let waiter = try await server.waiter(for: [("s", .read(as: "ada")), ("t", .read(as: "ada"))])
        #expect(waiter.take().map(\.head) == [0, 0])
        _ = try await server.commit(to: "s") { $0.upsert("task", id: "t1", ["title": "a"]) }
        #expect(waiter.take().map(\.head) == [1])
        let body = #"""
            {"scope":"t","clientId":"device-01","operations":[{"lane":"lane-0001","number":1,"type":"upsert",
            "entity":"task","id":"t1","fields":{"title":"b"}}]}
            """#
        _ = try await server.exchange(Array(body.utf8), mode: .pushOnly) { _ in .readWrite(as: "bob") }
        let news = waiter.take()
        #expect(news.map(\.scope) == ["t"])
        #expect(news.map(\.head) == [1])
        await #expect(throws: Problem.self) { try await server.waiter(for: [("s", .read(as: "ada")), ("x", .none)]) }
        await #expect(throws: Problem.self) { try await server.waiter(for: []) }
        server.end(waiter)
        #expect(server.nudges.watched.isEmpty)
    }
}
