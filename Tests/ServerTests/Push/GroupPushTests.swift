import Testing
import TidemarkCore

@testable import TidemarkServer
@testable import TidemarkWire

private let inGroup = #","group":"g1""#

@Suite("Groups: all or none, in one request and one lane")
struct GroupPushTests {
    private var small: Limits {
        var limits = Limits()
        limits.recordBytes = 200
        return limits
    }

    private let large = #"{"x":"\#(String(repeating: "x", count: 300))"}"#

    @Test("A group that goes through is like its operations one by one")
    func applied() async throws {
        let bench = try Bench()
        let answer = try await bench.exchange([
            upsert(1, "a", #"{"x":1}"#), upsert(2, "b", "{}", extra: inGroup), upsert(3, "c", "{}", extra: inGroup),
            upsert(4, "d", "{}", extra: #","group":"g2""#),
        ])
        #expect(answer.statuses == ["applied", "applied", "applied", "applied"])
        #expect(answer.versions == [1, 2, 3, 4])
        #expect(answer.changes.isEmpty)
    }

    @Test("One that fails fails whole, names the blocker, and leaves no trace; those beside it go on", arguments: 0..<3)
    func failed(blocker: Int) async throws {
        let bench = try Bench(limits: small)
        _ = try await bench.exchange([upsert(1, "z", #"{"x":1}"#)])
        let members = (0..<3).map { upsert($0 + 3, "m\($0)", $0 == blocker ? large : "{}", extra: inGroup) }
        let operations = [upsert(2, "a", "{}")] + members + [upsert(6, "b", "{}")]
        let answer = try await bench.exchange(operations)
        #expect(answer.statuses == ["applied", "rejected", "rejected", "rejected", "applied"])
        for index in 0..<3 {
            #expect(answer.errorCode(index + 1) == (index == blocker ? "record_too_large" : "group_failed"))
            #expect(answer.results[index + 1]["after"] as? Int == (index == blocker ? nil : blocker + 3))
        }
        #expect(answer.head == 3)
        #expect(answer.versions == [2, -1, -1, -1, 3])
        #expect(try await bench.pullAll().changes.map(\.id) == ["z", "a", "b"])
        // Every verdict used its number up, and a replay says the same.
        let again = try await bench.exchange(operations)
        #expect(again.statuses == answer.statuses)
        #expect((1...3).allSatisfy { again.errorCode($0) == answer.errorCode($0) })
        #expect(try await bench.exchange([upsert(7, "c", "{}")]).statuses == ["applied"])
    }

    @Test("A group that edits its own rows and then fails takes them all back, with the first rows of the scope")
    func undone() async throws {
        let bench = try Bench(limits: small)
        let answer = try await bench.exchange([
            upsert(1, "a", #"{"x":1}"#, extra: inGroup),
            upsert(2, "a", #"{"x":2}"#, base: 0, extra: #","baseNumber":1"# + inGroup),
            upsert(3, "b", large, extra: inGroup),
        ])
        #expect(answer.statuses == ["rejected", "rejected", "rejected"])
        #expect(answer.head == 0)
        try bench.reopen()
        #expect(try await bench.exchange([upsert(4, "c", "{}")]).versions == [1])
        #expect(try await bench.pullAll().changes.map(\.id) == ["c"])
    }

    @Test("Ids that a failed group was to get are free again, and what it names is not known")
    func identity() async throws {
        let bench = try Bench(entities: [.state("order", ids: .server), .state("task")], limits: small)
        func insert(_ number: Int, _ extra: String = "") -> String {
            #"""
            {"lane":"lane-aaaa","number":\#(number),"type":"upsert","entity":"order",\#
            "tempId":"-2305843009213693959"\#(extra),"fields":{}}
            """#
        }
        let line = #"{"of":{"$int":"-2305843009213693959"}}"#
        let refs = #","refs":[{"field":"of","entity":"order"}]"#
        let failed = try await bench.exchange([
            insert(1, inGroup), upsert(2, "l", line, extra: refs + inGroup), upsert(3, "x", large, extra: inGroup),
            upsert(4, "l", line, extra: refs),
        ])
        #expect(failed.statuses == ["rejected", "rejected", "rejected", "deferred"])
        let answer = try await bench.exchange([
            insert(5, inGroup), upsert(6, "l", line, extra: refs + inGroup),
        ])
        #expect(answer.statuses == ["applied", "applied"])
        let id = try #require(answer.results[0]["id"] as? String)
        #expect(AssignedID.matches(id))
        #expect(answer.versions == [2, 3])
    }

    @Test("The one at fault is not told an id that it got in the group")
    func idOfTheBlocker() async throws {
        let bench = try Bench(entities: [.state("order", ids: .server)], limits: small)
        func order(_ number: Int, _ name: Int, _ fields: String = "{}", _ extra: String = "") -> String {
            #"""
            {"lane":"lane-aaaa","number":\#(number),"type":"upsert","entity":"order",\#
            "tempId":"-230584300921369395\#(name)"\#(extra),"fields":\#(fields)}
            """#
        }
        let failed = try await bench.exchange([
            order(1, 3), order(2, 4, "{}", inGroup),
            order(3, 4, large, #","baseVersion":0,"baseNumber":2"# + inGroup),
            order(4, 5, "{}", #","group":"g2""#),
            order(5, 3, large, #","baseVersion":0,"baseNumber":1,"group":"g2""#),
        ])
        #expect(failed.statuses == ["applied", "rejected", "rejected", "rejected", "rejected"])
        #expect(failed.errorCode(2) == "record_too_large" && failed.results[2]["id"] == nil)
        // One that was known before stays known.
        let first = try #require(failed.results[0]["id"] as? String)
        #expect(failed.errorCode(4) == "record_too_large" && failed.results[4]["id"] as? String == first)
    }

    @Test("A member that is put off puts its group off")
    func deferred() async throws {
        let bench = try Bench()
        let answer = try await bench.exchange([
            upsert(1, "a", "{}", extra: inGroup),
            upsert(2, "b", #"{"of":"local-1"}"#, extra: #","refs":[{"field":"of","entity":"task"}]"# + inGroup),
        ])
        #expect(answer.statuses == ["deferred", "deferred"])
        #expect(answer.results[0]["after"] as? Int == 2)
        #expect(answer.head == 0)
    }

    @Test("A group that a device replays although it was not lost is `settled` as it was")
    func notLost() async throws {
        let bench = try Bench()
        let answer = try await bench.exchange([
            upsert(1, "a", "{}", extra: inGroup), upsert(2, "b", "{}", extra: inGroup),
        ])
        let epoch = try #require(String(decoding: answer.bytes, as: UTF8.self).firstMatch(of: /"epoch":"([\w-]+)"/)?.1)
        let again = try await bench.exchange(
            (1...2).map { number in
                upsert(
                    number, number == 1 ? "a" : "b", "{}", lane: "lane-bbbb",
                    extra: #","original":{"epoch":"\#(epoch)","version":\#(number)}"# + inGroup)
            })
        #expect(again.statuses == ["settled", "settled"])
        #expect(again.head == 2)
    }

    @Test("A group that comes in two requests is refused where it was cut")
    func cut() async throws {
        let bench = try Bench()
        let first = upsert(1, "a", "{}", extra: inGroup)
        _ = try await bench.exchange([first])
        let answer = try await bench.exchange([first, upsert(2, "b", "{}", extra: inGroup)])
        #expect(answer.statuses == ["applied", "rejected"])
        #expect(answer.errorCode(1) == "group_failed")
        let problem = await problem {
            _ = try await bench.exchange([upsert(3, "c", "{}", extra: inGroup), upsert(5, "d", "{}", extra: inGroup)])
        }
        #expect(problem?.code == .operationGap)
        #expect(problem?.expected == 4)
        #expect(try await bench.pullAll().changes.map(\.id) == ["a"])
    }

    @Test("A scan is whole only where a group is: a page may end inside one, its end never does")
    func pages() async throws {
        let bench = try Bench()
        let start = try await bench.exchange([])
        _ = try await bench.exchange((1...4).map { upsert($0, "a\($0)", "{}", extra: inGroup) })
        var page = try await bench.changes(since: start.nextSince, limit: 3)
        #expect(page.hasMore && page.head == 4)
        _ = try await bench.exchange((5...8).map { upsert($0, "b\($0)", "{}", extra: #","group":"g2""#) })
        // The horizon stays at the commit that the scan began with.
        page = try await bench.changes(since: page.nextSince, limit: 3)
        #expect(!page.hasMore && page.head == 4)
        page = try await bench.changes(since: page.nextSince, limit: 4)
        #expect(page.changes.count == 4 && !page.hasMore && page.head == 8)
    }
}
