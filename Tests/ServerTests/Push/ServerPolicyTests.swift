import Foundation
import Testing

@testable import TidemarkCore
@testable import TidemarkServer
@testable import TidemarkWire

@Suite("Policies on the server")
struct ServerPolicyTests {
    private func stamp(_ milliseconds: Int64, syncedAt: Int64? = nil) -> String {
        let synced = syncedAt.map { #","syncedAt":\#($0)"# } ?? ""
        return #","editedAt":"\#(EditStamp(milliseconds: milliseconds).text)"\#(synced)"#
    }

    private func title(_ bench: Bench) async throws -> String? {
        try await bench.pullAll().changes.last?.data?["title"] as? String
    }

    /// Two devices that both saw version 1 edit the title; each at a moment of its own clock.
    private func race(_ first: Int64, _ second: Int64, syncedAt: Int64 = 900_000) async throws -> String? {
        let bench = try Bench(entities: [.state("task", conflict: .lastEditWins)])
        _ = try await bench.exchange([upsert(1, "a", #"{"title":"old"}"#, extra: stamp(800_000))])
        _ = try await bench.exchange([
            upsert(2, "a", #"{"title":"first"}"#, base: 1, extra: stamp(first, syncedAt: syncedAt))
        ])
        let second = upsert(1, "a", #"{"title":"second"}"#, base: 1, extra: stamp(second, syncedAt: syncedAt))
        let answer = try await bench.exchange([second], client: "device-bbbb")
        #expect(answer.statuses == ["merged"])
        return try await title(bench)
    }

    @Test("The edit made later wins, whichever comes first")
    func laterEditWins() async throws {
        #expect(try await race(950_000, 960_000) == "second")
        #expect(try await race(960_000, 950_000) == "first")
    }

    @Test("A field that nobody had set is as old as its own edit, not as the record")
    func newField() async throws {
        let bench = try Bench(entities: [.state("task", conflict: .lastEditWins)])
        _ = try await bench.exchange([upsert(1, "a", #"{"title":"x"}"#, extra: stamp(990_000))])
        for (device, moment) in [("device-bbbb", 950_000), ("device-cccc", 960_000)] as [(String, Int64)] {
            let note = upsert(1, "a", #"{"note":"\#(device)"}"#, extra: stamp(moment, syncedAt: 900_000))
            #expect(try await bench.exchange([note], client: device).statuses == ["merged"])
        }
        #expect(try await bench.pullAll().changes.last?.data?["note"] as? String == "device-cccc")
    }

    @Test("A device in 2099 or in 1970 neither wins nor loses for ever (T37)")
    func clamped() async throws {
        let in2099: Int64 = 4_070_908_800_000
        let bench = try Bench(entities: [.state("task", conflict: .lastEditWins)])
        _ = try await bench.exchange([upsert(1, "a", #"{"title":"2099"}"#, extra: stamp(in2099, syncedAt: 0))])
        bench.clock += 10
        // Made after it by a clock that is right, and not seen there: wins, since 2099 counts as the moment it came.
        let right = upsert(1, "a", #"{"title":"right"}"#, base: 0, extra: stamp(bench.clock, syncedAt: 0))
        _ = try await bench.exchange([right], client: "device-bbbb")
        #expect(try await title(bench) == "right")
        // 1970, but synced since: counts as made then.
        bench.clock += 10
        let late = upsert(
            1, "a", #"{"title":"1970"}"#, base: 0, extra: stamp(5, syncedAt: bench.clock - 5))
        _ = try await bench.exchange([late], client: "device-cccc")
        #expect(try await title(bench) == "1970")
        // And one that has not synced since loses against it.
        let lost = try await bench.exchange(
            [upsert(1, "a", #"{"title":"stale"}"#, base: 0, extra: stamp(5, syncedAt: 6))], client: "device-dddd")
        #expect(lost.statuses == ["merged"])
        let record = lost.results[0]["record"] as? [String: Any]
        #expect((record?["data"] as? [String: Any])?["title"] as? String == "1970")
        let lostFields = lost.results[0]["lost"] as? [[String: String]]
        #expect(lostFields == [["field": "title", "rule": "lastEditWins"]])
    }

    @Test("Stamps outlive a restart of the store")
    func stampsAreKept() async throws {
        let bench = try Bench(entities: [.state("task", conflict: .lastEditWins)])
        _ = try await bench.exchange([upsert(1, "a", #"{"title":"kept"}"#, extra: stamp(960_000))])
        try bench.reopen()
        let older = upsert(1, "a", #"{"title":"older"}"#, base: 0, extra: stamp(950_000))
        _ = try await bench.exchange([older], client: "device-bbbb")
        #expect(try await title(bench) == "kept")
    }

    @Test("Manual: a stale edit gets a verdict with the record and changes nothing; its number is used up")
    func manual() async throws {
        let bench = try Bench(entities: [.state("task", conflict: .manual)])
        _ = try await bench.exchange([upsert(1, "a", #"{"title":"old","note":"n"}"#)])
        _ = try await bench.exchange([upsert(2, "a", #"{"title":"theirs"}"#, base: 1)])
        let mine = upsert(1, "a", #"{"title":"mine"}"#, base: 1)
        let answer = try await bench.exchange([mine], client: "device-bbbb")
        #expect(answer.statuses == ["conflict"])
        let record = answer.results[0]["record"] as? [String: Any]
        #expect(record?["version"] as? Int == 2)
        #expect((record?["data"] as? [String: Any])?["title"] as? String == "theirs")
        #expect(answer.head == 2)
        // What builds on it waits; the decision is a new operation on the version that was told.
        let next = try await bench.exchange(
            [
                upsert(2, "a", #"{"note":"m"}"#, base: 1, extra: #","baseNumber":1"#),
                upsert(3, "a", #"{"title":"decided"}"#, base: 2),
            ], client: "device-bbbb")
        #expect(next.statuses == ["deferred", "applied"])
        #expect(try await title(bench) == "decided")
    }

    @Test("Edits win: a delete that did not see one is not taken; an edit revives a deleted record whole")
    func editsWin() async throws {
        let bench = try Bench(entities: [.state("task", deletes: .lose)])
        _ = try await bench.exchange([upsert(1, "a", #"{"title":"t","note":"n"}"#)])
        _ = try await bench.exchange([upsert(2, "a", #"{"title":"u"}"#, base: 1)])
        let unseen = try await bench.exchange([delete(1, "a", base: 1)], client: "device-bbbb")
        #expect(unseen.statuses == ["merged"])
        #expect(unseen.results[0]["lost"] as? [[String: String]] == [["rule": "editWins"]])
        #expect(unseen.head == 2)
        let seen = try await bench.exchange([delete(2, "a", base: 2)], client: "device-bbbb")
        #expect(seen.statuses == ["applied"])
        try bench.reopen()
        let revived = try await bench.exchange([upsert(3, "a", #"{"note":"m"}"#, base: 2)])
        #expect(revived.statuses == ["merged"])
        #expect(revived.results[0]["revived"] as? Int == 3)
        #expect(try await bench.pullAll().changes.last?.data == ["title": "u", "note": "m"])
        // A tombstone's memory is not on the wire.
        #expect(!String(decoding: seen.bytes, as: UTF8.self).contains("note"))
    }

    @Test(
        "The server's own program edits the record as it stands, under every policy", arguments: ConflictPolicy.allCases
    )
    func commits(policy: ConflictPolicy) async throws {
        let bench = try Bench(entities: [.state("task", conflict: policy, deletes: .lose)])
        _ = try await bench.exchange([
            upsert(1, "a", #"{"title":"device","note":"n"}"#, extra: stamp(4_070_908_800_000))
        ])
        try await bench.server.commit(to: "s") { $0.upsert("task", id: "a", ["title": "program"]) }
        #expect(try await bench.pullAll().changes.last?.data == ["title": "program", "note": "n"])
        try await bench.server.commit(to: "s") { $0.delete("task", id: "a") }
        #expect(try await bench.pullAll().changes.isEmpty)
        try await bench.server.commit(to: "s") { $0.upsert("task", id: "a", ["title": "anew"]) }
        #expect(try await bench.pullAll().changes.last?.data == ["title": "anew"])
    }

    @Test("An operation waits for those that it needs, and only for those")
    func needs() async throws {
        let bench = try Bench(entities: [.state("locked", direction: .pull)])
        let answer = try await bench.exchange([
            upsert(1, "p", "{}", entity: "locked"), upsert(2, "a", "{}", extra: #","needs":[1]"#),
            upsert(3, "b", "{}"), upsert(4, "c", "{}", extra: #","needs":[3]"#),
        ])
        #expect(answer.statuses == ["rejected", "deferred", "applied", "applied"])
        #expect(answer.results[1]["after"] as? Int == 1)
    }
}
