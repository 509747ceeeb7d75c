import Foundation
import Testing

@testable import TidemarkServer
@testable import TidemarkWire

@Suite("Push")
struct PushTests {
    @Test("Operations get their verdicts in order, with versions that grow by one")
    func verdicts() async throws {
        let bench = try Bench()
        let answer = try await bench.exchange([
            upsert(1, "a", #"{"x":1}"#), upsert(2, "b", "{}"), delete(3, "a", base: 1),
        ])
        #expect(answer.statuses == ["applied", "applied", "applied"])
        #expect(answer.versions == [1, 2, 3])
        #expect(answer.head == 3)
    }

    @Test("A replay gets the first answer again and has no second effect")
    func replay() async throws {
        let bench = try Bench()
        let operations = [upsert(1, "a", #"{"x":1}"#), upsert(2, "b", #"{"x":2}"#)]
        let first = try await bench.exchange(operations)
        for _ in 0..<3 {
            let again = try await bench.exchange(operations, since: first.nextSince)
            #expect(again.statuses == first.statuses)
            #expect(again.versions == first.versions)
            #expect(again.results.allSatisfy { $0["replayed"] as? Bool == true })
            #expect(again.head == 2)
        }
    }

    @Test("A replay after a restart of the server is recognised")
    func replayAfterRestart() async throws {
        let bench = try Bench()
        _ = try await bench.exchange([upsert(1, "a", #"{"x":1}"#)])
        try bench.reopen()
        let again = try await bench.exchange([upsert(1, "a", #"{"x":1}"#), upsert(2, "a", #"{"x":2}"#, base: 1)])
        #expect(again.versions == [1, 2])
    }

    @Test("The same key with another payload is refused and leaves the first alone")
    func mismatch() async throws {
        let bench = try Bench()
        _ = try await bench.exchange([upsert(1, "a", #"{"x":1}"#)])
        let answer = try await bench.exchange([upsert(1, "a", #"{"x":2}"#)])
        #expect(answer.statuses == ["rejected"])
        #expect(answer.errorCode(0) == "operation_mismatch")
        #expect(try await bench.pullAll().changes.map(\.data) == [["x": 1]])
        let replay = try await bench.exchange([upsert(1, "a", #"{"x":1}"#)])
        #expect(replay.statuses == ["applied"])
    }

    @Test("A gap in a lane is told with the number expected, and nothing is applied")
    func gap() async throws {
        let bench = try Bench()
        let problem = await problem { _ = try await bench.exchange([upsert(1, "a", "{}"), upsert(3, "b", "{}")]) }
        #expect(problem?.code == .operationGap)
        #expect(problem?.expected == 2)
        #expect(problem?.lane == "lane-aaaa")
        #expect(try await bench.pullAll().changes.isEmpty)
        let unknown = await ServerTests.problem { _ = try await bench.exchange([upsert(2, "a", "{}")]) }
        #expect(unknown?.expected == 1)
    }

    @Test("Acknowledged verdicts go; a replay from below is `settled`, not applied again")
    func replayedFromBelow() async throws {
        let bench = try Bench()
        _ = try await bench.exchange([upsert(1, "a", #"{"x":1}"#), upsert(2, "b", "{}")])
        _ = try await bench.exchange(acked: #"{"lane-aaaa":1}"#)
        let answer = try await bench.exchange([upsert(1, "a", #"{"x":1}"#), upsert(2, "b", "{}")])
        #expect(answer.statuses == ["settled", "applied"])
        #expect(answer.head == 2)
    }

    @Test("Keys belong to the principal and the device: nobody replays another's")
    func keysAreOwned() async throws {
        let bench = try Bench()
        _ = try await bench.exchange([upsert(1, "a", #"{"x":1}"#)])
        let other = try await bench.exchange([upsert(1, "b", #"{"x":2}"#)], access: .readWrite(as: "eve"))
        #expect(other.versions == [2])
        let device = try await bench.exchange([upsert(1, "c", #"{"x":3}"#)], client: "device-bbbb")
        #expect(device.versions == [3])
    }

    @Test("A bad operation in any place stops only itself", arguments: 0..<4)
    func poison(place: Int) async throws {
        let bench = try Bench(entities: [.state("pulled", direction: .pull)])
        let operations = (0..<4).map { index in
            upsert(index + 1, "r\(index)", "{}", entity: index == place ? "pulled" : "task")
        }
        let answer = try await bench.exchange(operations)
        for index in 0..<4 { #expect(answer.statuses[index] == (index == place ? "rejected" : "applied")) }
        #expect(answer.errorCode(place) == "direction_forbidden")
        #expect(answer.head == 3)
    }

    @Test("A rejected operation consumes its number, and what builds on it is deferred")
    func deferred() async throws {
        let bench = try Bench()
        _ = try await bench.exchange([upsert(1, "a", "{}"), delete(2, "a", base: 1)])
        let answer = try await bench.exchange([
            upsert(3, "a", #"{"x":1}"#, base: 1), upsert(4, "a", #"{"x":2}"#, base: 1, extra: #","baseNumber":3"#),
            upsert(5, "b", "{}"),
        ])
        #expect(answer.statuses == ["rejected", "deferred", "applied"])
        #expect(answer.errorCode(0) == "record_deleted")
        #expect(answer.results[1]["after"] as? Int == 3)
    }

    @Test("A device has seen what a chain of its own operations wrote")
    func chain() async throws {
        let bench = try Bench()
        let answer = try await bench.exchange([
            upsert(1, "a", #"{"x":1,"y":1}"#), upsert(2, "a", #"{"x":2}"#, base: 0, extra: #","baseNumber":1"#),
            upsert(3, "a", #"{"y":2}"#, base: 0, extra: #","baseNumber":2"#),
        ])
        #expect(answer.statuses == ["applied", "applied", "applied"])
    }

    @Test("A chain is followed for so many operations, whatever they are; what lies further back counts as unseen")
    func longChain() async throws {
        var limits = Limits()
        limits.operations = 4
        let bench = try Bench(limits: limits)
        func void(_ number: Int) -> String {
            #"{"lane":"lane-aaaa","number":\#(number),"type":"void","baseNumber":\#(number - 1)}"#
        }
        _ = try await bench.exchange([upsert(1, "a", #"{"x":1}"#)] + (2...4).map(void))
        let near = upsert(5, "a", #"{"x":2}"#, base: 0, extra: #","baseNumber":4"#)
        #expect(try await bench.exchange([near]).results[0]["overwrote"] == nil)
        _ = try await bench.exchange((6...9).map(void))
        let far = (10...11).map { upsert($0, "a", #"{"x":\#($0)}"#, base: 0, extra: #","baseNumber":9"#) }
        #expect(try await bench.exchange(far).results.allSatisfy { $0["overwrote"] != nil })
    }

    @Test("A chain that reaches below what is acknowledged ends there: what it built on took effect")
    func chainBelowAcked() async throws {
        let bench = try Bench()
        func edit(_ number: Int, base: Int64? = nil, on former: Int? = nil) -> String {
            upsert(number, "a", #"{"x":\#(number)}"#, base: base, extra: former.map { #","baseNumber":\#($0)"# } ?? "")
        }
        _ = try await bench.exchange([edit(1)])
        _ = try await bench.exchange([edit(2, base: 1, on: 1)])
        _ = try await bench.exchange(acked: #"{"lane-aaaa":1}"#)
        let third = try await bench.exchange([edit(3, base: 1, on: 2)])
        #expect(third.statuses == ["applied"])
        _ = try await bench.exchange(acked: #"{"lane-aaaa":2}"#)
        let fourth = try await bench.exchange([edit(4, base: 1, on: 3)])
        #expect(fourth.statuses == ["applied"])
        // The one that is named itself must not be acknowledged before: nobody knows any more what became of it.
        _ = try await bench.exchange(acked: #"{"lane-aaaa":4}"#)
        let fifth = try await bench.exchange([edit(5, base: 1, on: 4)])
        #expect(fifth.statuses == ["deferred"])
        #expect(fifth.results[0]["after"] as? Int == 4)
    }

    @Test("A delete of what is dead already is applied at the version that stands, and writes nothing")
    func deletedBefore() async throws {
        let bench = try Bench()
        _ = try await bench.exchange([upsert(1, "a", "{}"), delete(2, "a", base: 1), upsert(3, "b", "{}")])
        let answer = try await bench.exchange([delete(4, "a", base: 1), delete(5, "unknown", base: 1)])
        #expect(answer.statuses == ["applied", "applied"])
        #expect(answer.versions == [2, 3])
        #expect(answer.head == 3)
    }

    @Test("Writes that change nothing make no version")
    func noOp() async throws {
        let bench = try Bench()
        _ = try await bench.exchange([upsert(1, "a", #"{"x":1}"#)])
        let answer = try await bench.exchange([upsert(2, "a", #"{"x":1}"#, base: 1)])
        #expect(answer.statuses == ["applied"])
        #expect(answer.head == 1)
    }

    @Test("Own rows that were taken as they are do not come back; others do")
    func verbatim() async throws {
        let bench = try Bench()
        let first = try await bench.exchange([upsert(1, "a", #"{"x":1}"#)])
        #expect(first.changes.isEmpty)
        _ = try await bench.exchange([upsert(1, "b", #"{"x":2}"#)], client: "device-bbbb")
        let second = try await bench.exchange([upsert(2, "c", #"{"x":3}"#)], since: first.nextSince)
        #expect(second.changes.map(\.id) == ["b"])
        #expect(try await bench.changes(since: second.nextSince).changes.isEmpty)
    }

    @Test("Own rows take no room on the page: a push larger than a page still ends its scan")
    func ownRowsTakeNoRoom() async throws {
        let bench = try Bench()
        let operations = (1...9).map { upsert($0, "r\($0)", "{}") }
        let answer = try await bench.exchange(operations, limit: 3)
        #expect(!answer.hasMore)
        #expect(try await bench.changes(since: answer.nextSince).changes.isEmpty)
    }

    @Test("A strict server refuses what is not declared; events are kept whole")
    func declarations() async throws {
        let bench = try Bench(entities: [.events("audit")], isStrict: true)
        let answer = try await bench.exchange([
            upsert(1, "a", "{}"), upsert(2, "e1", #"{"n":1}"#, entity: "audit"),
            upsert(3, "e2", #"{"n":2}"#, entity: "audit"), upsert(4, "e1", #"{"n":9}"#, entity: "audit"),
            upsert(5, "e1", #"{"n":1}"#, entity: "audit"),
        ])
        #expect(answer.statuses == ["rejected", "applied", "applied", "rejected", "applied"])
        #expect(answer.errorCode(0) == "entity_unknown")
        #expect(try await bench.pullAll().changes.map(\.type) == ["event", "event"])
    }

    @Test("A record larger than a record may be is refused by verdict, and blocks nothing")
    func recordTooLarge() async throws {
        var limits = Limits()
        limits.recordBytes = 100
        let bench = try Bench(limits: limits)
        let long = String(repeating: "x", count: 60)
        let answer = try await bench.exchange([
            upsert(1, "a", #"{"p":"\#(long)"}"#), upsert(2, "a", #"{"q":"\#(long)"}"#, base: 1), upsert(3, "b", "{}"),
        ])
        #expect(answer.statuses == ["applied", "rejected", "applied"])
        #expect(answer.errorCode(1) == "record_too_large")
    }

    @Test("A record gets no more fields than an operation may name")
    func tooManyFields() async throws {
        let bench = try Bench()
        func fields(_ prefix: String) -> String {
            "{" + (0..<1500).map { "\"\(prefix)\($0)\":1" }.joined(separator: ",") + "}"
        }
        let answer = try await bench.exchange([
            upsert(1, "a", fields("f")), upsert(2, "a", fields("g"), base: 0, extra: #","baseNumber":1"#),
            upsert(3, "a", fields("f"), base: 0, extra: #","baseNumber":1"#),
        ])
        #expect(answer.statuses == ["applied", "rejected", "applied"])
        #expect(answer.errorCode(1) == "record_too_large")
    }

    @Test("Reading permission does not push, and a foreign scope says nothing")
    func permissions() async throws {
        let bench = try Bench()
        let readOnly = await problem { _ = try await bench.exchange([upsert(1, "a", "{}")], access: .read(as: "ada")) }
        #expect(readOnly?.code == .scopeReadOnly)
        let none = await problem { _ = try await bench.changes(access: .none) }
        #expect(none?.code == .scopeForbidden)
        _ = try await bench.exchange([upsert(1, "a", "{}")])
        let existing = await problem { _ = try await bench.changes(access: .none) }
        #expect(existing == none)
    }

    @Test("The server's own program writes through the same door, server fields too")
    func commit() async throws {
        let bench = try Bench(entities: [.state("bookmark", serverFields: ["summary"])])
        _ = try await bench.exchange([upsert(1, "b1", #"{"title":"t","summary":"mine"}"#, entity: "bookmark")])
        try await bench.server.commit(to: "s") { $0.upsert("bookmark", id: "b1", ["summary": "theirs"]) }
        let answer = try await bench.exchange([
            upsert(2, "b1", #"{"title":"u","summary":"mine"}"#, base: 1, entity: "bookmark")
        ])
        #expect(answer.statuses == ["merged"])
        #expect(try await bench.pullAll().changes.last?.data == ["title": "u", "summary": "theirs"])
    }

    @Test("Equal values, written by the server's own program, make no version (A21)")
    func commitOfEqualValues() async throws {
        let bench = try Bench()
        let write: (inout Changeset) -> Void = { $0.upsert("task", id: "a", ["x": 1, "y": .null]) }
        #expect(try await bench.server.commit(to: "s", write) == 1)
        #expect(try await bench.server.commit(to: "s", write) == 1)
        #expect(try await bench.server.commit(to: "s") { $0.upsert("task", id: "a", ["y": .null]) } == 1)
        #expect(try await bench.server.commit(to: "s") { $0.delete("task", id: "absent") } == 1)
        #expect(try await bench.changes().changes.map(\.version) == [1])
    }

    @Test("An event is never changed or deleted, not even by the server's own program, and has a record's limit")
    func eventsStay() async throws {
        var limits = Limits()
        limits.recordBytes = 200
        let bench = try Bench(entities: [.events("audit")], limits: limits)
        try await bench.server.commit(to: "s") { $0.upsert("audit", id: "e1", ["text": "x"]) }
        await #expect(throws: CommitError.self) {
            try await bench.server.commit(to: "s") { $0.delete("audit", id: "e1") }
        }
        await #expect(throws: CommitError.self) {
            try await bench.server.commit(to: "s") { $0.upsert("audit", id: "e1", ["text": "y"]) }
        }
        let long = String(repeating: "x", count: 300)
        await #expect(throws: CommitError.self) {
            try await bench.server.commit(to: "s") { $0.upsert("audit", id: "e2", ["text": .text(long)]) }
        }
        let answer = try await bench.exchange([upsert(1, "e3", #"{"text":"\#(long)"}"#, entity: "audit")])
        #expect(answer.errorCode(0) == "record_too_large")
        #expect(try await bench.pullAll().changes.map(\.version) == [1])
    }

    @Test("A caller who names ever new devices loses those that were silent for longest, and no lane (W25, I14)")
    func manyDevices() async throws {
        var limits = Limits()
        limits.devices = 3
        let bench = try Bench(limits: limits)
        for number in 1...9 {
            bench.clock += 1000
            let answer = try await bench.exchange(
                [upsert(1, "r\(number)", #"{"n":1}"#, lane: "lane-000\(number)")], client: "device-\(number)")
            #expect(answer.statuses == ["applied"])
        }
        let known = try await bench.store.read("s") { reader in
            try (1...9).filter { number in
                try reader.standing(of: DeviceName(principal: "ada", client: "device-\(number)")) != nil
            }
        }
        #expect(known == [7, 8, 9])
        // The first device's operation is not applied twice.
        let again = try await bench.exchange(
            [upsert(1, "r1", #"{"n":1}"#, lane: "lane-0001")], client: "device-1")
        #expect(again.statuses == ["settled"])
        #expect(try await bench.store.read("s") { $0.state.head } == 9)
    }
}
