import Foundation
import Testing
import TidemarkCore

@testable import TidemarkServer
@testable import TidemarkWire

@Suite("A reader that asks for changed fields gets those that are newer than its state, and no row in part (A9, W90)")
struct PartialRowTests {
    private static let long = String(repeating: "x", count: 100)

    private func bench(
        conflict: ConflictPolicy = .mergeFields, deletes: DeletePolicy = .win, patch: [String] = []
    ) async throws -> (Bench, since: String) {
        var task = EntityDeclaration("task", conflict: conflict, patch: patch)
        task.deletes = deletes
        let bench = try Bench(entities: [task])
        _ = try await bench.exchange([upsert(1, "t1", #"{"a":"\#(Self.long)","b":1,"c":null}"#)])
        return (bench, try #require(try await bench.changes().nextSince))
    }

    private func page(
        _ bench: Bench, since: String?, takes: Differences = .fields, limit: Int64? = nil
    ) async throws -> Answer {
        try Answer(
            try await bench.server.changes(
                in: "s", since: since, limit: limit, takes: takes, access: .read(as: "ada")))
    }

    /// The last change, and whether it is a part.
    private func last(_ answer: Answer) -> (data: NSDictionary?, isPartial: Bool) {
        let changes = answer.members["changes"] as? [[String: Any]]
        return (answer.changes.last?.data, changes?.last?["partial"] as? Bool ?? false)
    }

    @Test("Fields that were written since travel, NULLs too, and the same question has the same bytes")
    func changed() async throws {
        let (bench, since) = try await bench()
        _ = try await bench.exchange([upsert(2, "t1", #"{"b":null}"#, base: 1)])
        _ = try await bench.exchange([upsert(3, "t1", #"{"c":2}"#, base: 2)])
        let answer = try await page(bench, since: since)
        #expect(last(answer).data == ["b": NSNull(), "c": 2])
        #expect(last(answer).isPartial)
        #expect(answer.changes.map(\.type) == ["upsert"])
        #expect(try await page(bench, since: since).bytes == answer.bytes)
        #expect(last(try await page(bench, since: since, takes: [])).data == ["a": Self.long, "b": NSNull(), "c": 2])
        #expect(last(try await page(bench, since: nil)).data?.count == 3, "who begins gets whole rows")
    }

    @Test("An exchange asks for it with `partial`")
    func exchange() async throws {
        let (bench, since) = try await bench()
        _ = try await bench.exchange([upsert(2, "t1", #"{"b":2}"#, base: 1)])
        let body = #"{"scope":"s","clientId":"device-bbbb","since":"\#(since)","partial":true,"operations":[]}"#
        let answer = try Answer(
            try await bench.server.exchange(Array(body.utf8), mode: .pushAndPull) { _ in .readWrite(as: "bob") })
        #expect(last(answer).data == ["b": 2] && last(answer).isPartial)
    }

    @Test("In mid-scan it is what was written since the last scan's end, and never only since the page before")
    func midScan() async throws {
        let (bench, since) = try await bench()
        _ = try await bench.exchange([upsert(2, "t1", #"{"b":2}"#, base: 1), upsert(3, "t2", "{}")])
        _ = try await bench.exchange([upsert(4, "t1", #"{"c":3}"#, base: 2)])
        let first = try await page(bench, since: since, limit: 1)
        #expect(first.changes.map(\.id) == ["t2"])
        // Its other field was written before that place, and has not come.
        let second = try await page(bench, since: first.nextSince, limit: 1)
        #expect(last(second).data == ["b": 2, "c": 3] && last(second).isPartial)
        _ = try await bench.exchange([upsert(5, "t1", #"{"c":4}"#, base: 4)])
        let third = try await page(bench, since: second.nextSince)
        #expect(last(third).data == ["c": 4] && last(third).isPartial)
    }

    @Test("Where a part takes as much as the row, the row comes whole")
    func small() async throws {
        let (bench, _) = try await bench()
        _ = try await bench.exchange([upsert(2, "t2", #"{"a":"1234567","b":1}"#)])
        let since = try await bench.changes().nextSince
        _ = try await bench.exchange([upsert(3, "t2", #"{"b":2}"#, base: 2)])
        #expect(last(try await page(bench, since: since)).data == ["a": "1234567", "b": 2])
    }

    @Test("Without versions for each field, rows come whole")
    func lastWriteWins() async throws {
        let (bench, since) = try await bench(conflict: .lastWriteWins)
        _ = try await bench.exchange([upsert(2, "t1", #"{"b":2}"#, base: 1)])
        #expect(last(try await page(bench, since: since)).data?.count == 3)
    }

    @Test("A record that was deleted and made anew comes whole, and so does one that an edit has revived")
    func revived() async throws {
        let (bench, since) = try await bench()
        _ = try await bench.exchange([delete(2, "t1", base: 1)])
        _ = try await bench.exchange([upsert(3, "t1", #"{"a":"\#(Self.long)","b":1}"#)])
        _ = try await bench.exchange([upsert(4, "t1", #"{"b":2}"#, base: 3)])
        #expect(last(try await page(bench, since: since)).data == ["a": Self.long, "b": 2])

        let (other, start) = try await self.bench(deletes: .lose)
        _ = try await other.exchange([delete(2, "t1", base: 1)])
        let deleted = try await other.changes(since: start).nextSince
        let revived = try await other.exchange([upsert(1, "t1", #"{"b":2}"#, base: 1)], client: "device-bbbb")
        #expect(revived.statuses == ["merged"])
        for since in [start, deleted] {
            let row = last(try await page(other, since: since))
            #expect(row.data?.count == 3 && !row.isPartial)
        }
        let now = try await other.changes(since: deleted).nextSince
        _ = try await other.exchange([upsert(2, "t1", #"{"c":5}"#, base: 3)], client: "device-bbbb")
        #expect(last(try await page(other, since: now)).data == ["c": 5])
        #expect(last(try await page(other, since: deleted)).data?.count == 3)
        // A store that was opened again reads the same of it.
        try other.reopen()
        #expect(last(try await page(other, since: now)).data == ["c": 5])
        #expect(last(try await page(other, since: deleted)).data?.count == 3)
    }

    @Test("A record that a device replays of a lost history comes whole, whatever the fields' versions say")
    func replayed() async throws {
        let (bench, _) = try await bench()
        try bench.copyStore()
        let lost = try await bench.exchange([upsert(2, "t1", #"{"b":"back"}"#, base: 1)])
        let epoch = try #require(lost.members["epoch"] as? String)
        try bench.restoreStore()
        let since = try await bench.changes().nextSince
        let original = #","original":{"epoch":"\#(epoch)","version":2}"#
        let answer = try await bench.exchange([
            upsert(1, "t1", #"{"b":"back"}"#, base: 1, lane: "lane-bbbb", extra: original)
        ])
        #expect(["applied", "merged"].contains(answer.statuses.first))
        let row = last(try await page(bench, since: since))
        #expect(row.data == ["a": Self.long, "b": "back", "c": NSNull()] && !row.isPartial)
    }

    @Test("A row in which too many fields were written comes whole")
    func many() async throws {
        let (bench, _) = try await bench()
        let fields = (0..<300).map { #""f\#($0)":\#($0)"# }
        _ = try await bench.exchange([upsert(2, "t2", "{\(fields.joined(separator: ","))}")])
        let since = try await bench.changes().nextSince
        for (number, count) in [(3, 100), (4, 101)] {
            let edits = (0..<count).map { #""f\#($0)":\#(-number)"# }
            _ = try await bench.exchange([upsert(number, "t2", "{\(edits.joined(separator: ","))}", base: 2)])
            let row = last(try await page(bench, since: since))
            #expect(row.data?.count == (count == 100 ? 100 : 300))
        }
    }

    @Test("A patched text and the other changed fields come together, and what has not changed stays away")
    func patched() async throws {
        let text = (0..<400).map { "line \($0)\n" }.joined()
        var writer = JSONWriter()
        writer.string(text)
        let (bench, _) = try await bench(patch: ["body"])
        let body = String(decoding: writer.bytes, as: UTF8.self)
        _ = try await bench.exchange([upsert(2, "t2", #"{"body":\#(body),"a":"\#(Self.long)","b":1,"c":1}"#)])
        let since = try await bench.changes().nextSince
        _ = try await bench.exchange([upsert(3, "t2", #"{"b":2}"#, base: 2)])
        let both: Differences = [.patches, .fields]
        let first = try await page(bench, since: since, takes: both)
        #expect(first.changes.map(\.type) == ["upsert"] && last(first).data == ["b": 2] && last(first).isPartial)
        let edited = body.replacing("line 7\\n", with: "line seven\\n")
        _ = try await bench.exchange([upsert(4, "t2", #"{"body":\#(edited)}"#, base: 3)])
        let second = try await page(bench, since: since, takes: both)
        #expect(second.changes.map(\.type) == ["patch"] && last(second).data == ["b": 2] && last(second).isPartial)
        #expect(last(try await page(bench, since: since, takes: .patches)).data == ["a": Self.long, "b": 2, "c": 1])
    }
}
