import Foundation
import Testing
import TidemarkSQLite

@testable import TidemarkServer
@testable import TidemarkWire

@Suite("Pull")
struct PullTests {
    private func filled(_ count: Int) async throws -> Bench {
        let bench = try Bench()
        try await bench.server.commit(to: "s") { changes in
            for index in 1...count { changes.upsert("task", id: RecordID("r\(index)")!, ["n": .integer(Int64(index))]) }
        }
        return bench
    }

    @Test("Pages follow the log, each record comes once, and the end says so", arguments: [1, 2, 3, 7, 500])
    func pages(limit: Int64) async throws {
        let bench = try await filled(7)
        let all = try await bench.pullAll(limit: limit)
        #expect(all.changes.map(\.version) == Array(1...7))
        #expect(try await bench.changes(since: all.nextSince).changes.isEmpty)
    }

    @Test("The same question gives the same bytes, in mid-scan whatever is written meanwhile")
    func sameBytes() async throws {
        let bench = try await filled(6)
        let first = try await bench.changes(limit: 2)
        #expect(try await bench.changes(limit: 2).bytes == first.bytes)
        let second = try await bench.changes(since: first.nextSince, limit: 2)
        try await bench.server.commit(to: "s") { changes in
            changes.upsert("task", id: "r3", ["n": 33])
            changes.upsert("task", id: "r9", ["n": 9])
            changes.delete("task", id: "r4")
        }
        #expect(try await bench.changes(since: first.nextSince, limit: 2).bytes == second.bytes)
    }

    @Test("A scan ends at its horizon; what came meanwhile is in the next one")
    func horizon() async throws {
        let bench = try await filled(4)
        let first = try await bench.changes(limit: 2)
        try await bench.server.commit(to: "s") { $0.upsert("task", id: "r1", ["n": 11]) }
        let second = try await bench.changes(since: first.nextSince, limit: 10)
        #expect(second.changes.map(\.version) == [3, 4])
        #expect(second.head == 4)
        let next = try await bench.changes(since: second.nextSince)
        #expect(next.changes.map(\.data) == [["n": 11]])
    }

    @Test("A record superseded after the horizon is still served as it was there")
    func exactAtHorizon() async throws {
        let bench = try await filled(4)
        let first = try await bench.changes(limit: 1)
        try await bench.server.commit(to: "s") { $0.upsert("task", id: "r3", ["n": 33]) }
        let rest = try await bench.pullAll(since: first.nextSince)
        #expect(rest.changes.map(\.version) == [2, 3, 4])
        #expect(rest.changes[1].data == ["n": 3])
    }

    @Test("An empty device is not told of old deletions; one that held the record is")
    func tombstones() async throws {
        let bench = try await filled(3)
        let before = try await bench.pullAll()
        try await bench.server.commit(to: "s") { $0.delete("task", id: "r2") }
        #expect(try await bench.pullAll().changes.map(\.type) == ["upsert", "upsert"])
        let delta = try await bench.pullAll(since: before.nextSince)
        #expect(delta.changes.map(\.type) == ["delete"])
        #expect(delta.changes.map(\.id) == ["r2"])
    }

    @Test("A device that was away receives each record once, as it is now")
    func compacted() async throws {
        let bench = try await filled(2)
        let before = try await bench.pullAll()
        for value in 1...20 {
            try await bench.server.commit(to: "s") { $0.upsert("task", id: "r1", ["n": .integer(Int64(value * 100))]) }
        }
        let delta = try await bench.pullAll(since: before.nextSince)
        #expect(delta.changes.map(\.data) == [["n": 2000]])
    }

    @Test("Sweeping removes what no scan can need, and a scan that outlived it still ends whole")
    func sweep() async throws {
        let bench = try await filled(4)
        let first = try await bench.changes(limit: 2)
        bench.clock += 60 * 60 * 1000
        try await bench.server.commit(to: "s") { changes in
            changes.upsert("task", id: "r3", ["n": 33])
            changes.upsert("task", id: "r1", ["n": 11])
        }
        #expect(try await bench.server.sweep() == 0)
        bench.clock += 60 * 60 * 1000
        #expect(try await bench.server.sweep() == 2)
        let rest = try await bench.pullAll(since: first.nextSince)
        #expect(rest.changes.map(\.version) == [4, 5, 6])
        #expect(rest.head == 6)
    }

    @Test("A scan goes on as well where the window was ended between its pages", arguments: WindowEnd.allCases)
    func ended(end: WindowEnd) async throws {
        let bench = try await filled(4)
        let first = try await bench.changes(limit: 2)
        try await bench.server.commit(to: "s") { $0.upsert("task", id: "r3", ["n": 33]) }
        try await bench.endWindow(end)
        let second = try await bench.changes(since: first.nextSince, limit: 1)
        #expect(second.changes.map(\.version) == [4] && second.head == 5)
        try await bench.server.commit(to: "s") { $0.upsert("task", id: "r4", ["n": 44]) }
        try await bench.endWindow(end)
        let rest = try await bench.pullAll(since: second.nextSince)
        #expect(rest.changes.map(\.version) == [5, 6] && rest.head == 6)
    }

    @Test("A page ends early rather than pass its byte budget, and one change always fits")
    func byteBudget() async throws {
        var limits = Limits()
        limits.pageBytes = 400
        let bench = try Bench(limits: limits)
        try await bench.server.commit(to: "s") { changes in
            for index in 1...5 {
                changes.upsert("t", id: RecordID("r\(index)")!, ["x": .text(String(repeating: "y", count: 500))])
            }
        }
        #expect(try await bench.changes().changes.count == 1)
        #expect(try await bench.pullAll().changes.count == 5)
    }

    @Test("Times grow strictly, even when the clock steps back")
    func times() async throws {
        let bench = try Bench()
        var times: [String] = []
        for step in [0, 5000, -9000, -1, 0, 20_000] as [Int64] {
            bench.clock += step
            let id = RecordID("r\(times.count)")!
            try await bench.server.commit(to: "s") { $0.upsert("t", id: id, [:]) }
            times = try await bench.pullAll().changes.compactMap(\.time)
        }
        #expect(times.count == 6)
        #expect(zip(times, times.dropFirst()).allSatisfy { $0 < $1 })
    }

    @Test("A limit outside its range is refused", arguments: [0, -1, 5001] as [Int64])
    func limits(limit: Int64) async throws {
        let bench = try Bench()
        #expect(await problem { _ = try await bench.changes(limit: limit) }?.code == .limitOutOfRange)
    }

    @Test("Scopes share nothing")
    func scopes() async throws {
        let bench = try Bench()
        try await bench.server.commit(to: "one") { $0.upsert("t", id: "x", ["secret": "one"]) }
        try await bench.server.commit(to: "two") { $0.upsert("t", id: "x", ["secret": "two"]) }
        #expect(try await bench.pullAll(scope: "one").changes.map(\.data) == [["secret": "one"]])
        #expect(try await bench.pullAll(scope: "two").head == 1)
        let token = try await bench.pullAll(scope: "one").nextSince
        #expect(await problem { _ = try await bench.changes(scope: "two", since: token) }?.code == .invalidCheckpoint)
    }
}

@Suite("A store that went back in time")
struct HistoryTests {
    @Test("is noticed by those who were ahead of it, even after it has grown past them")
    func restored() async throws {
        let bench = try Bench()
        try await bench.server.commit(to: "s") { $0.upsert("t", id: "a", [:]) }
        let early = try await bench.pullAll()
        let copy = bench.directory.appending(path: "copy.sqlite")
        try bench.reopen { try FileManager.default.copyItem(at: $0, to: copy) }
        try await bench.server.commit(to: "s") { $0.upsert("t", id: "b", [:]) }
        let late = try await bench.pullAll()
        try bench.reopen { file in
            for suffix in ["", "-wal", "-shm"] { try? FileManager.default.removeItem(atPath: file.path + suffix) }
            try FileManager.default.copyItem(at: copy, to: file)
        }
        let ahead = await problem { _ = try await bench.changes(since: late.nextSince) }
        #expect(ahead?.code == .checkpointExpired)
        for name in ["x", "y", "z"] {
            try await bench.server.commit(to: "s") { $0.upsert("t", id: RecordID(name)!, [:]) }
        }
        let grown = await problem { _ = try await bench.changes(since: late.nextSince) }
        #expect(grown?.reason == .epoch)
        // A push that rides on such a checkpoint applies nothing.
        let push = await problem { _ = try await bench.exchange([upsert(1, "q", "{}")], since: late.nextSince) }
        #expect(push?.code == .checkpointExpired)
        let after = try await bench.pullAll(since: early.nextSince)
        #expect(after.changes.map(\.id) == ["x", "y", "z"])
    }

    @Test("does not trouble anybody when it was only opened again")
    func reopened() async throws {
        let bench = try Bench()
        var since: String?
        for round in 1...4 {
            try await bench.server.commit(to: "s") { $0.upsert("t", id: RecordID("r\(round)")!, [:]) }
            let answer = try await bench.pullAll(since: since)
            #expect(answer.changes.map(\.id) == ["r\(round)"])
            since = answer.nextSince
            try bench.reopen()
        }
    }
}

@Suite("Many at once")
struct ConcurrencyTests {
    @Test("Versions have no holes, and a reader beside the writers skips nothing (I3)")
    func nothingIsSkipped() async throws {
        let bench = try Bench()
        let server = bench.server
        let writers = 16
        let each = 40
        let done = Task {
            try await withThrowingTaskGroup(of: Void.self) { group in
                for writer in 0..<writers {
                    group.addTask {
                        for number in 0..<each {
                            let id = RecordID("w\(writer)-\(number)")!
                            try await server.commit(to: "s") { $0.upsert("t", id: id, [:]) }
                        }
                    }
                }
                try await group.waitForAll()
            }
        }
        var seen: [Int64] = []
        var since: String?
        while seen.count < writers * each {
            let answer = try await bench.changes(since: since, limit: 7)
            seen += answer.changes.map(\.version)
            since = answer.nextSince
        }
        try await done.value
        #expect(seen == Array(1...Int64(writers * each)))
    }

    @Test("Pushes that share a commit fail apart")
    func failApart() async throws {
        let bench = try Bench()
        let server = bench.server
        let outcomes = await withTaskGroup(of: Bool.self, returning: [Bool].self) { group in
            for index in 0..<40 {
                group.addTask {
                    let number = index % 2 == 0 ? 1 : 2  // a lane that begins at 2 is a gap
                    let operation = upsert(number, "r\(index)", "{}", lane: "lane-\(1000 + index)")
                    let body = #"{"scope":"s","clientId":"device-aaaa","operations":[\#(operation)]}"#
                    let answer = try? await server.exchange(Array(body.utf8), mode: .pushOnly) { _ in
                        .readWrite(as: "ada")
                    }
                    return answer != nil
                }
            }
            var outcomes: [Bool] = []
            for await outcome in group { outcomes.append(outcome) }
            return outcomes
        }
        #expect(outcomes.count { $0 } == 20)
        #expect(try await bench.pullAll().changes.count == 20)
    }

    @Test("A first scan brings the deletions of rows that the device wrote before it, where the answer was lost (I6)")
    func deletedBeforeFirstScan() async throws {
        let bench = try Bench()
        _ = try await bench.exchange([upsert(1, "old", "{}"), delete(2, "old", base: 1)], client: "device-bbbb")
        // The answer to this one never arrives.
        _ = try await bench.exchange([upsert(1, "mine", "{}")])
        _ = try await bench.exchange([delete(3, "mine", base: 3)], client: "device-bbbb")
        let answer = try await bench.exchange([upsert(1, "mine", "{}")])
        #expect(answer.versions == [3])
        #expect(answer.changes.map(\.type) == ["delete"])
        #expect(answer.changes.map(\.id) == ["mine"])
    }
}
