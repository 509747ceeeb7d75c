import Foundation
import Testing
import TidemarkSQLite

@testable import TidemarkServer
@testable import TidemarkWire

@Suite("A small request never makes a huge answer: large verdicts are told short once there is no room")
struct LargeVerdictTests {
    /// Room for the verdicts of two records of 10 KB.
    private func bench(_ declaration: EntityDeclaration = .state("task")) async throws -> Bench {
        var limits = Limits()
        limits.resultBytes = 25_000
        let bench = try Bench(entities: [declaration], limits: limits)
        let text = String(repeating: "x", count: 10_000)
        try await bench.server.commit(to: "s") { $0.upsert("task", id: "a", ["text": .text(text), "n": 0]) }
        return bench
    }

    private func stored(_ bench: Bench, _ number: Int64) async throws -> StoredVerdict? {
        try await bench.store.read("s") { reader in
            try reader.verdict(LaneName(principal: "ada", client: "device-aaaa", lane: "lane-aaaa"), number)
        }
    }

    @Test("The first records come, then the operations are `settled`; all of them took effect")
    func merged() async throws {
        let bench = try await bench()
        let operations = (1...5).map { upsert($0, "a", #"{"f\#($0)":1}"#) }
        let answer = try await bench.exchange(operations)
        #expect(answer.statuses == ["merged", "merged", "settled", "settled", "settled"])
        #expect(answer.results.map { $0["record"] != nil } == [true, true, false, false, false])
        #expect(answer.versions == [2, 3, 4, 5, 6])
        #expect(try await stored(bench, 2)?.members.count ?? 0 > 10_000)
        #expect(try await stored(bench, 3)?.members.count ?? .max < 300)
        // The page has the row, since the device does not know it.
        #expect(answer.changes.map(\.version) == [6])
        #expect(answer.changes[0].data?.count == 7)
        let again = try await bench.exchange(operations)
        #expect(again.statuses == answer.statuses)
        // What the chain of them wrote counts as seen.
        let next = upsert(6, "a", #"{"f3":2}"#, base: 1, extra: #","baseNumber":3"#)
        #expect(try await bench.exchange([next]).results[0]["overwrote"] == nil)
    }

    @Test("Replays of verdicts that came one by one are bounded too")
    func replayed() async throws {
        let bench = try await bench()
        let operations = (1...4).map { upsert($0, "a", #"{"f\#($0)":1}"#) }
        for operation in operations { #expect(try await bench.exchange([operation]).statuses == ["merged"]) }
        let again = try await bench.exchange(operations)
        #expect(again.statuses == ["merged", "merged", "settled", "settled"])
        #expect(again.results.allSatisfy { $0["replayed"] as? Bool == true })
        #expect(again.versions == [2, 3, 4, 5])
    }

    @Test("The values that an edit overwrote are told even without room for the record, and on a replay too")
    func overwritten() async throws {
        let bench = try await bench()
        let edits = (1...4).map { upsert($0, "a", #"{"n":\#($0)}"#, base: 0) }
        for answer in [try await bench.exchange(edits), try await bench.exchange(edits)] {
            #expect(answer.statuses.suffix(2) == ["settled", "settled"])
            #expect(answer.results.allSatisfy { $0["overwrote"] != nil })
        }
    }

    @Test("An edit that somebody has to decide about waits, and its conflict is told when it comes again")
    func conflicts() async throws {
        let bench = try await bench(.state("task", conflict: .manual))
        func edits(_ numbers: ClosedRange<Int>) -> [String] {
            numbers.map { upsert($0, "a", #"{"n":\#($0)}"#, base: 0) }
        }
        let answer = try await bench.exchange(edits(1...4))
        #expect(answer.statuses == ["conflict", "conflict", "deferred", "deferred"])
        #expect(try await bench.exchange(edits(5...6)).statuses == ["conflict", "conflict"])
        #expect(try await bench.exchange(edits(1...6)).statuses.suffix(2) == ["deferred", "deferred"])
        #expect(try await bench.contents()["a"]?["n"] as? Int == 0)
    }

    @Test("A group of which nothing can be told waits as a whole")
    func group() async throws {
        let bench = try await bench(.state("task", conflict: .manual))
        let inGroup = #","group":"g1""#
        let answer = try await bench.exchange([
            upsert(1, "a", #"{"n":1}"#, base: 0), upsert(2, "a", #"{"n":2}"#, base: 0),
            upsert(3, "b", "{}", extra: inGroup), upsert(4, "a", #"{"n":3}"#, base: 0, extra: inGroup),
        ])
        #expect(answer.statuses == ["conflict", "conflict", "deferred", "deferred"])
        #expect(answer.results[2]["after"] as? Int == 4)
        #expect(try await bench.contents().keys.sorted() == ["a"])
    }

    @Test("Small verdicts are told whole however many they are, and refusals always")
    func small() async throws {
        let bench = try await bench()
        let operations = (1...300).map { upsert($0, "r\($0)", "{}", base: $0.isMultiple(of: 2) ? 7 : nil) }
        let answer = try await bench.exchange(operations)
        #expect(Set(answer.statuses) == ["applied", "rejected"])
        #expect(answer.errorCode(1) == "record_deleted")
    }
}
