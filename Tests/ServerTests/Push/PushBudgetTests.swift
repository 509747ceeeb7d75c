import Testing

@testable import TidemarkServer
@testable import TidemarkWire

@Suite("A push that has cost its share ends behind an operation or a group (I14, W76)")
struct PushBudgetTests {
    private func insert(_ number: Int, _ more: String = "") -> String {
        #"{"lane":"lane-aaaa-0","number":\#(number),"type":"upsert","entity":"task","id":"t\#(number)"\#(more),"#
            + #""fields":{"title":"\#(String(repeating: "x", count: 100))"}}"#
    }

    private func limits(bytes: Int) -> Limits {
        var limits = Limits()
        limits.pushBytes = bytes
        return limits
    }

    @Test("Results are a prefix; what has no verdict uses no number and is taken when it comes again")
    func prefix() async throws {
        let bench = try Bench(limits: limits(bytes: 300))
        let first = try await bench.exchange((1...5).map { insert($0) })
        #expect(first.statuses == ["applied", "applied"] || first.statuses == ["applied", "applied", "applied"])
        let taken = first.statuses.count
        let again = try await bench.exchange((1...5).map { insert($0) })
        #expect(again.statuses.count > taken, "the first ones are replayed, and cost nothing")
        let changes = try await bench.changes()
        #expect(changes.changes.count == again.statuses.count)
    }

    @Test("One operation is always taken, however small the budget")
    func one() async throws {
        let bench = try Bench(limits: limits(bytes: 1))
        for number in 1...3 {
            #expect(try await bench.exchange((number...3).map { insert($0) }).statuses == ["applied"])
        }
    }

    @Test("A group is never cut")
    func group() async throws {
        let bench = try Bench(limits: limits(bytes: 1))
        let members = (1...4).map { insert($0, #","group":"g1""#) } + [insert(5)]
        #expect(try await bench.exchange(members).statuses == Array(repeating: "applied", count: 4))
    }

    @Test("The base of an operation that was not taken is not forgotten, though it was acknowledged")
    func acknowledged() async throws {
        let bench = try Bench(limits: limits(bytes: 1))
        _ = try await bench.exchange([insert(1)])
        let edits = [insert(2), insert(3).replacingOccurrence(of: #""id":"t3""#, with: #""id":"t1","baseNumber":1"#)]
        let acked = #"{"lane-aaaa-0":1}"#
        #expect(try await bench.exchange(edits, acked: acked).statuses == ["applied"])
        let rest = try await bench.exchange([edits[1]], acked: #"{"lane-aaaa-0":2}"#)
        #expect(rest.statuses == ["applied"], "\(rest.statuses): its base is known still")
    }

    @Test("Each link of a chain is looked up once in a request, however many operations name it")
    func chains() async throws {
        var limits = Limits()
        limits.pushLookups = 250
        let bench = try Bench(limits: limits)
        let chain = (1...200).map { number in
            insert(number, number == 1 ? "" : #","baseNumber":\#(number - 1)"#)
                .replacingOccurrence(of: #""id":"t\#(number)""#, with: #""id":"t1""#)
        }
        #expect(try await bench.exchange(chain).statuses.count == 200)
        let others = (201...400).map { insert($0, #","baseNumber":\#(401 - $0)"#) }
        #expect(try await bench.exchange(others).statuses.count == 200)
    }

    @Test("An operation with too many temporary ids is refused by its own count, whatever the load")
    func references() async throws {
        let bench = try Bench(entities: [EntityDeclaration("order", ids: .server)])
        let order =
            #"{"lane":"lane-aaaa-0","number":1,"type":"upsert","entity":"order","tempId":"local-1","fields":{}}"#
        let list = Array(repeating: #"\"local-1\""#, count: Limits.temporaryPlaces + 1).joined(separator: ",")
        let line =
            #"{"lane":"lane-aaaa-0","number":2,"type":"upsert","entity":"line","id":"l1","#
            + #""refs":[{"field":"doc","path":"$[*]","entity":"order"}],"fields":{"doc":"[\#(list)]"}}"#
        let answer = try await bench.exchange([order, line])
        #expect(answer.statuses == ["applied", "rejected"])
        #expect(String(decoding: answer.bytes, as: UTF8.self).contains("too_many_references"))
    }
}

extension String {
    fileprivate func replacingOccurrence(of text: String, with other: String) -> String {
        guard let range = firstRange(of: text) else { return self }
        return replacingCharacters(in: range, with: other)
    }

    private func replacingCharacters(in range: Range<String.Index>, with other: String) -> String {
        String(self[..<range.lowerBound]) + other + String(self[range.upperBound...])
    }
}
