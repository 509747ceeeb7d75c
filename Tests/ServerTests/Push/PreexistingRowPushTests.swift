import Foundation
import Testing

@testable import TidemarkServer
@testable import TidemarkWire

@Suite("Rows that are older than their device's capture, as the server sees them (W79)")
struct PreexistingRowPushTests {
    private func seed(_ number: Int, _ fields: String, lane: String = "lane-bbbb") -> String {
        upsert(number, "a", fields, lane: lane, extra: #","seed":true"#)
    }

    private func data(_ answer: Answer) -> NSDictionary? {
        (answer.results.first?["record"] as? [String: Any])?["data"] as? NSDictionary
    }

    private func lost(_ answer: Answer) -> [[String: String]] {
        (answer.results.first?["lost"] as? [[String: Any]] ?? []).map { $0.compactMapValues { $0 as? String } }
    }

    @Test("the first one makes the record, and the next one changes nothing, in the log neither")
    func first() async throws {
        let bench = try Bench()
        #expect(try await bench.exchange([seed(1, #"{"x":1,"y":1}"#, lane: "lane-aaaa")]).statuses == ["applied"])
        let again = try await bench.exchange([seed(1, #"{"x":2,"y":1}"#)], client: "device-bbbb")
        #expect(again.statuses == ["merged"])
        #expect(data(again) == ["x": 1, "y": 1])
        #expect(lost(again).map { $0["field"] } == ["x"])
        #expect(lost(again).map { $0["rule"] } == ["firstCapture"])
        #expect(again.head == 1)
    }

    @Test("a field that the record lacks is written")
    func lacking() async throws {
        let bench = try Bench()
        _ = try await bench.exchange([upsert(1, "a", #"{"x":1}"#)])
        let answer = try await bench.exchange([seed(1, #"{"x":2,"z":3}"#)])
        #expect(data(answer) == ["x": 1, "z": 3])
        #expect(answer.head == 2)
    }

    @Test("a deletion stands, and the device is told of it")
    func deleted() async throws {
        let bench = try Bench()
        _ = try await bench.exchange([upsert(1, "a", #"{"x":1}"#), delete(2, "a", base: 1)])
        let answer = try await bench.exchange([seed(1, #"{"x":1}"#)])
        #expect(answer.statuses == ["merged"])
        #expect(answer.results.first?["record"] != nil && data(answer) == nil)
        #expect(lost(answer) == [["rule": "firstCapture"]])
        #expect(answer.head == 2)
    }

    @Test("it is answered again as it was, and without the mark it is another operation")
    func replay() async throws {
        let bench = try Bench()
        _ = try await bench.exchange([upsert(1, "a", #"{"x":1}"#)])
        for _ in 0..<2 {
            let answer = try await bench.exchange([seed(1, #"{"x":2}"#)])
            #expect(answer.statuses == ["merged"])
            #expect(lost(answer).count == 1)
        }
        let other = try await bench.exchange([upsert(1, "a", #"{"x":2}"#, lane: "lane-bbbb")])
        #expect(other.errorCode(0) == "operation_mismatch")
    }
}
