import Foundation
import Testing

@testable import TidemarkServer
@testable import TidemarkWire

@Suite("Refused edits, as the operator sees them")
struct RejectionTests {
    @Test("are listed with who sent what, newest first, once each, and survive a restart")
    func listed() async throws {
        let bench = try Bench(rules: [
            EntityRule("task") { $0.isDelete ? .reject(code: "kept", detail: "Tasks are kept.") : .accept }
        ])
        let operations = [
            upsert(1, "a", #"{"x":1}"#), delete(2, "a", base: 1), upsert(3, "b", #"{"x":"é"}"#, base: 5),
        ]
        for _ in 0..<2 { _ = try await bench.exchange(operations) }
        _ = try await bench.exchange([upsert(1, "c", "{}", base: 5)], client: "device-bbbb", scope: "t")
        try bench.reopen()
        let all = try await bench.server.rejections()
        #expect(all.map(\.record) == ["c", "b", "a"])
        let own = try await bench.server.rejections(in: "s")
        #expect(own.map(\.code) == ["record_deleted", "kept"])
        #expect(own.map(\.isDelete) == [false, true])
        #expect(own[0].fields == ["x": "é"])
        #expect(own[0].principal == "ada" && own[0].client == "device-aaaa" && own[0].lane == "lane-aaaa")
        #expect(own[0].number == 3 && own[0].rejectedAt == Date(milliseconds: bench.clock))
        #expect(try await bench.server.rejections(limit: 1).map(\.record) == ["c"])
    }

    @Test("leave the list when the operator lets them go, and no number comes twice")
    func discarded() async throws {
        let bench = try Bench()
        _ = try await bench.exchange((1...3).map { upsert($0, "r\($0)", "{}", base: 5) })
        let listed = try await bench.server.rejections()
        let newest = try #require(listed.first)
        #expect(try await bench.server.discardRejection(newest.id))
        #expect(try await !bench.server.discardRejection(newest.id))
        #expect(try await bench.server.rejections() == Array(listed.dropFirst()))
        _ = try await bench.exchange([upsert(4, "r4", "{}", base: 5)])
        let later = try await bench.server.rejections()
        #expect(later.map(\.record) == ["r4", "r2", "r1"])
        #expect(Set(later.map(\.id)).isDisjoint(with: [newest.id]))
    }

    @Test("can be put right and made after all by the operator, and stay on the list where that cannot be")
    func retried() async throws {
        let rule = EntityRule("task", includingCommits: true) { edit in
            edit.proposed["title"] == "" ? .reject(code: "title_missing", detail: "A task needs a title.") : .accept
        }
        let bench = try Bench(rules: [rule])
        let long = String(repeating: "x", count: 20_000)
        let answer = try await bench.exchange([
            upsert(1, "a", #"{"title":"","n":1}"#), upsert(2, "b", #"{"title":"","text":"\#(long)"}"#),
        ])
        #expect(answer.statuses == ["rejected", "rejected"])
        let numbers = try await bench.server.rejections().map(\.id)
        let (large, small) = (try #require(numbers.first), try #require(numbers.last))
        await #expect(throws: CommitError.self) { try await bench.server.retryRejection(small) }
        await #expect(throws: CommitError.self) {
            try await bench.server.retryRejection(large, changing: ["title": "B"])
        }
        #expect(try await bench.server.rejections().map(\.id) == numbers)
        #expect(try await bench.server.retryRejection(small, changing: ["title": "A"]))
        #expect(try await bench.contents().keys.sorted() == ["a"])
        #expect(try await bench.contents()["a"]?["title"] as? String == "A")
        #expect(try await bench.contents()["a"]?["n"] as? Int == 1)
        #expect(try await bench.server.rejections().map(\.id) == [large])
        #expect(try await !bench.server.retryRejection(small))
    }

    @Test("are a bounded list of bounded entries")
    func bounded() async throws {
        let bench = try Bench(rejectionLimit: 5)
        let long = String(repeating: "x", count: 20_000)
        let operations = (1...9).map { upsert($0, "r\($0)", #"{"x":"\#($0 == 9 ? long : "y")"}"#, base: 5) }
        _ = try await bench.exchange(operations)
        let kept = try await bench.server.rejections()
        #expect(kept.map(\.record) == ["r9", "r8", "r7", "r6", "r5"])
        #expect(kept.map { $0.fields != nil } == [false, true, true, true, true])
    }
}
