import Foundation
import Testing

@testable import TidemarkServer
@testable import TidemarkWire

@Suite("Events in the log: every entry stays, once (A16)")
struct EventLogTests {
    private func event(_ number: Int, _ id: String, _ data: String, lane: String = "lane-aaaa") -> String {
        #"{"lane":"\#(lane)","number":\#(number),"type":"event","entity":"audit","id":"\#(id)","data":\#(data)}"#
    }

    @Test("The same event under another key, whatever the order of its fields, is the one that is there already")
    func again() async throws {
        let bench = try Bench(entities: [.events("audit")])
        let first = try await bench.exchange([event(1, "e1", #"{"a":1,"b":2}"#), event(2, "e2", "{}")])
        let again = try await bench.exchange([event(1, "e1", #"{"b":2,"a":1}"#, lane: "lane-bbbb")])
        #expect(again.statuses == ["applied"])
        #expect(again.versions == [first.versions[0]])
        #expect(again.head == 2)
        let other = try await bench.exchange([event(2, "e1", #"{"a":1}"#, lane: "lane-bbbb")])
        #expect(other.errorCode(0) == "kind_mismatch")
    }

    @Test("Sweeping removes no event, and a scan from the beginning brings them all in their order")
    func swept() async throws {
        let bench = try Bench(entities: [.events("audit")])
        for index in 1...5 { _ = try await bench.exchange([event(index, "e\(6 - index)", #"{"n":\#(index)}"#)]) }
        bench.clock += 3_600_000
        #expect(try await bench.server.sweep() == 0)
        let all = try await bench.pullAll(limit: 2)
        #expect(all.changes.map(\.id) == ["e5", "e4", "e3", "e2", "e1"])
        #expect(all.changes.allSatisfy { $0.type == "event" })
    }

    @Test("A delete or an edit of an event is refused, and a replay of it is refused the same")
    func refused() async throws {
        let bench = try Bench(entities: [.events("audit")])
        _ = try await bench.exchange([event(1, "e1", #"{"a":1}"#)])
        let edits = [
            upsert(2, "e1", #"{"a":2}"#, base: 1, entity: "audit"),
            delete(3, "e1", base: 1).replacing("task", with: "audit"), event(4, "e1", #"{"a":2}"#),
        ]
        for _ in 0..<2 {
            let answer = try await bench.exchange(edits)
            #expect((0..<3).map { answer.errorCode($0) } == ["kind_mismatch", "kind_mismatch", "kind_mismatch"])
        }
        #expect(try await bench.pullAll().changes.map(\.data) == [["a": 1]])
    }
}
