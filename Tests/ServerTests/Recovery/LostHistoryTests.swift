import Foundation
import Testing

@testable import TidemarkServer
@testable import TidemarkWire

/// What a device is told when the store has gone back in time.
@Suite("A store that has lost history")
struct LostHistoryTests {
    /// Two records of the device survive, one of another device and three more of its own are lost.
    private struct Loss {
        let bench: Bench
        let since: String
        let epoch: String
        let early: String
    }

    private func loss() async throws -> Loss {
        let bench = try Bench()
        let first = try await bench.exchange([upsert(1, "a", #"{"x":1}"#), upsert(2, "b", #"{"x":1}"#)])
        try bench.copyStore()
        _ = try await bench.exchange([upsert(1, "c", "{}")], client: "device-bbbb", since: first.nextSince)
        let last = try await bench.exchange(
            [upsert(3, "a", #"{"x":2}"#, base: 1), upsert(4, "d", "{}"), upsert(5, "e", "{}")], since: first.nextSince)
        try bench.restoreStore()
        return Loss(
            bench: bench, since: try #require(last.nextSince), epoch: try epoch(of: last),
            early: try #require(first.nextSince))
    }

    private func epoch(of answer: Answer) throws -> String {
        let object = try JSONSerialization.jsonObject(with: Data(answer.bytes)) as? [String: Any]
        return try #require(object?["epoch"] as? String)
    }

    private func expect(_ problem: Problem?, survived: Version = 2, lanes: [String: Int64]? = ["lane-aaaa": 2]) {
        #expect(problem?.code == .checkpointExpired)
        #expect(problem?.reason == .epoch)
        #expect(problem?.survived == survived)
        #expect(problem?.lanes == lanes)
        #expect(problem?.epoch?.isEmpty == false)
    }

    @Test("says what survived, and how far it knows the device's lanes", arguments: [false, true])
    func told(grown: Bool) async throws {
        let loss = try await loss()
        if grown {
            for name in ["p", "q", "r", "t"] as [RecordID] {
                try await loss.bench.server.commit(to: "s") { $0.upsert("task", id: name, [:]) }
            }
        }
        expect(await problem { _ = try await loss.bench.exchange(since: loss.since) })
        expect(await problem { _ = try await loss.bench.exchange([upsert(6, "f", "{}")], since: loss.since) })
        expect(
            await problem {
                _ = try await loss.bench.exchange([upsert(6, "f", "{}")], since: loss.since, mode: .pushOnly)
            })
        let named = await problem {
            _ = try await loss.bench.server.changes(
                in: "s", since: loss.since, limit: nil, access: .read(as: "ada"), client: "device-aaaa")
        }
        expect(named)
        expect(await problem { _ = try await loss.bench.changes(since: loss.since) }, lanes: nil)
        // Another's lanes are nobody's business.
        let other = await problem {
            _ = try await loss.bench.exchange(since: loss.since, access: .readWrite(as: "eve"))
        }
        expect(other, lanes: [:])
        #expect(try await loss.bench.contents().count == (grown ? 6 : 2))
    }

    @Test("The name of the history on the answer is the one that pages carry")
    func epochIsThatOfPages() async throws {
        let loss = try await loss()
        try await loss.bench.server.commit(to: "s") { $0.upsert("task", id: "p", [:]) }
        let told = await problem { _ = try await loss.bench.changes(since: loss.since) }
        #expect(try await epoch(of: loss.bench.changes()) == told?.epoch)
        #expect(told?.epoch != loss.epoch)
    }

    @Test("A verdict that the device has and the store has not proves the loss, whatever else is asked")
    func acknowledged() async throws {
        let loss = try await loss()
        let acked = #"{"lane-aaaa":5}"#
        expect(await problem { _ = try await loss.bench.exchange(since: loss.early, acked: acked) })
        // Before the gap that the loss has made.
        let push = await problem {
            _ = try await loss.bench.exchange([upsert(6, "f", "{}")], since: loss.early, acked: acked)
        }
        expect(push)
        expect(await problem { _ = try await loss.bench.exchange(acked: acked) }, survived: 0)
        // What the store knows of is no proof.
        _ = try await loss.bench.exchange(since: loss.early, acked: #"{"lane-aaaa":2}"#)
    }

    @Test("An operation that was made on a lost state is not taken, and nothing of its request is")
    func madeOnLostState() async throws {
        let loss = try await loss()
        func push(_ operation: String, since: String? = nil) async -> Problem? {
            await problem {
                _ = try await loss.bench.exchange(
                    [upsert(1, "z", "{}", lane: "lane-zzzz"), operation], since: since,
                    mode: since == nil ? .pushOnly : .pushAndPull)
            }
        }
        let lost = #","epoch":"\#(loss.epoch)""#
        expect(await push(upsert(3, "a", #"{"x":9}"#, base: 5, extra: lost)))
        expect(await push(upsert(3, "a", #"{"x":9}"#, base: 1, extra: lost)))
        expect(await push(upsert(3, "n", #"{"x":9}"#, extra: lost)))
        expect(await push(upsert(3, "a", #"{"x":9}"#, base: 5, extra: lost), since: loss.early))
        // A gap has the same cause.
        expect(await push(upsert(6, "a", #"{"x":9}"#, base: 5, extra: lost)))
        #expect(try await loss.bench.contents().keys.sorted() == ["a", "b"])
    }

    @Test("The known opening that has ended is held against its end, and only above it")
    func endedOpening() async throws {
        let bench = try Bench()
        let first = try await bench.exchange([upsert(1, "a", #"{"x":1}"#)])
        let name = try epoch(of: first)
        try bench.reopen()
        _ = try await bench.exchange([upsert(1, "b", "{}")], client: "device-bbbb")
        let ended = #","epoch":"\#(name)""#
        let above = await problem {
            _ = try await bench.exchange([upsert(2, "a", "{}", base: 2, extra: ended)], mode: .pushOnly)
        }
        expect(above, survived: 1, lanes: ["lane-aaaa": 1])
        let bases = #","bases":{"x":2}"#
        let field = await problem {
            _ = try await bench.exchange([upsert(2, "a", "{}", base: 1, extra: ended + bases)], mode: .pushOnly)
        }
        #expect(field?.reason == .epoch)
        let at = try await bench.exchange([upsert(2, "a", #"{"x":2}"#, base: 1, extra: ended)], mode: .pushOnly)
        #expect(at.statuses == ["applied"])
        // So that the next edit can name what it was made on.
        let named = #","epoch":"\#(try epoch(of: at))""#
        let next = try await bench.exchange([upsert(3, "a", #"{"x":3}"#, base: 3, extra: named)], mode: .pushOnly)
        #expect(next.statuses == ["applied"])
    }

    @Test("An operation that was taken is answered again, whatever history it was made on")
    func replays() async throws {
        let loss = try await loss()
        let again = try await loss.bench.exchange(
            [upsert(1, "a", #"{"x":1}"#), upsert(2, "b", #"{"x":1}"#)], since: loss.early)
        #expect(again.results.allSatisfy { $0["replayed"] as? Bool == true })
    }

    @Test("An edit that a device replays is taken, although its history is lost")
    func replayed() async throws {
        let loss = try await loss()
        let original = #","epoch":"\#(loss.epoch)","original":{"epoch":"\#(loss.epoch)","version":5}"#
        let answer = try await loss.bench.exchange(
            [upsert(1, "d", "{}", lane: "lane-recover", extra: original)], since: loss.early)
        #expect(answer.statuses == ["applied"])
    }

    @Test("An empty scope's name binds nobody")
    func beforeAll() async throws {
        let bench = try Bench()
        let name = try epoch(of: try await bench.changes())
        _ = try await bench.exchange([upsert(1, "a", "{}")], mode: .pushOnly)
        let extra = #","epoch":"\#(name)""#
        let answer = try await bench.exchange([upsert(2, "a", #"{"x":1}"#, base: 1, extra: extra)], mode: .pushOnly)
        #expect(answer.statuses == ["applied"])
    }

    @Test("A scan in key order hears of it too")
    func snapshots() async throws {
        let bench = try Bench()
        _ = try await bench.exchange([upsert(1, "a", "{}"), upsert(2, "b", "{}")])
        try bench.copyStore()
        _ = try await bench.exchange([upsert(3, "c", "{}")])
        var query = SnapshotQuery(of: "s")
        query.limit = 1
        query.client = "device-aaaa"
        let page = try await bench.server.snapshot(query, access: .read(as: "ada")).body
        let object = try JSONSerialization.jsonObject(with: Data(page)) as? [String: Any] ?? [:]
        query.token = object["snapshotToken"] as? String
        query.cursor = object["pageCursor"] as? String
        try bench.restoreStore()
        let next = query
        expect(await problem { _ = try await bench.server.snapshot(next, access: .read(as: "ada")) })
    }
}
