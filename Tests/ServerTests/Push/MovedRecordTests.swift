import Foundation
import Testing

@testable import TidemarkServer
@testable import TidemarkWire

@Suite("Moves between scopes, as the server sees them")
struct MovedRecordTests {
    private func move(_ number: Int, _ id: String, base: Int64) -> String {
        delete(number, id, base: base).dropLast() + #","moved":true}"#
    }

    private func tombstone(_ bench: Bench, since: String?) async throws -> [String: Any]? {
        let bytes = try await bench.changes(since: since).bytes
        let object = try JSONSerialization.jsonObject(with: Data(bytes)) as? [String: Any]
        return (object?["changes"] as? [[String: Any]])?.last
    }

    @Test("a delete that ends a move is a delete, and its tombstone tells other devices")
    func mark() async throws {
        let bench = try Bench()
        let first = try await bench.exchange([upsert(1, "a", #"{"x":1}"#)])
        #expect(try await bench.exchange([move(2, "a", base: 1)]).statuses == ["applied"])
        let tombstone = try await tombstone(bench, since: first.nextSince)
        #expect(tombstone?["type"] as? String == "delete")
        #expect(tombstone?["moved"] as? Bool == true)
        #expect(tombstone?["base"] == nil)
    }

    @Test("the mark and what the delete did not see stand beside each other, and a restart keeps both")
    func unseen() async throws {
        let bench = try Bench()
        let first = try await bench.exchange([upsert(1, "a", #"{"x":1}"#)])
        _ = try await bench.exchange([upsert(1, "a", #"{"x":2}"#, base: 1, lane: "lane-bbbb")])
        _ = try await bench.exchange([move(2, "a", base: 1)])
        try bench.reopen()
        let tombstone = try await tombstone(bench, since: first.nextSince)
        #expect(tombstone?["moved"] as? Bool == true)
        #expect(tombstone?["base"] as? Int64 == 1)
    }

    @Test("the same key without the mark is another operation")
    func replay() async throws {
        let bench = try Bench()
        _ = try await bench.exchange([upsert(1, "a", #"{"x":1}"#), move(2, "a", base: 1)])
        let answer = try await bench.exchange([delete(2, "a", base: 1)])
        #expect(answer.errorCode(0) == "operation_mismatch")
    }
}
