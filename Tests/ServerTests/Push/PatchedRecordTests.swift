import Foundation
import Testing
import TidemarkCore
import TidemarkSQLite

@testable import TidemarkServer
@testable import TidemarkWire

@Suite("Patches on the server: an edit that travels small, and never a wrong text (A9)")
struct PatchedRecordTests {
    private static let text = (0..<200).map { "line \($0) – of the first writing\n" }.joined()
    private static func edited(_ line: Int) -> String {
        text.replacing("line \(line) –", with: "line \(line) (edited) –")
    }

    private static func json(_ text: String) -> String {
        var writer = JSONWriter()
        writer.string(text)
        return String(decoding: writer.bytes, as: UTF8.self)
    }

    /// An operation that makes `new` out of `old` by a patch.
    private static func patch(
        _ number: Int, from old: String = text, _ new: String, base: Int64?, fields: String = "{}", hash: String? = nil,
        lane: String = "lane-aaaa", extra: String = ""
    ) throws -> String {
        var patch = try #require(TextPatch.make(field: "body", from: Array(old.utf8), to: Array(new.utf8)))
        patch.hash = hash ?? patch.hash
        var writer = JSONWriter()
        writer.patches([patch])
        let base = base.map { #","baseVersion":\#($0)"# } ?? ""
        let head = #"{"lane":"\#(lane)","number":\#(number),"type":"patch","entity":"note","id":"n1"\#(base)\#(extra)"#
        return head + #","patch":\#(String(decoding: writer.bytes, as: UTF8.self)),"fields":\#(fields)}"#
    }

    private func bench(
        conflict: ConflictPolicy = .mergeFields, deletes: DeletePolicy = .win
    ) async throws -> Bench {
        var note = EntityDeclaration("note", conflict: conflict, patch: ["body"])
        note.deletes = deletes
        let bench = try Bench(entities: [note])
        _ = try await bench.exchange([
            upsert(1, "n1", #"{"body":\#(Self.json(Self.text)),"title":"a"}"#, entity: "note", lane: "lane-first")
        ])
        return bench
    }

    private func data(_ bench: Bench) async throws -> NSDictionary? { try await bench.pullAll().changes.last?.data }

    @Test("A patch is an edit of its field, beside other fields, and its replay has no second effect")
    func applied() async throws {
        let bench = try await bench()
        let operation = try Self.patch(1, Self.edited(7), base: 1, fields: #"{"title":"b"}"#)
        for _ in 0..<2 {
            let answer = try await bench.exchange([operation])
            #expect(answer.statuses == ["applied"])
            #expect(answer.versions == [2])
        }
        #expect(try await data(bench) == ["body": Self.edited(7), "title": "b"])
    }

    @Test("A field that was written since: the text before comes from the window, the later write stands and tells")
    func concurrent() async throws {
        let bench = try await bench()
        _ = try await bench.exchange([try Self.patch(1, Self.edited(7), base: 1)])
        let answer = try await bench.exchange([try Self.patch(1, Self.edited(190), base: 1)], client: "device-bbbb")
        #expect(answer.statuses == ["merged"])
        let overwrote = answer.results[0]["overwrote"] as? [[String: Any]]
        #expect(overwrote?.first?["theirs"] as? String == Self.edited(7))
        #expect(try await data(bench)?["body"] as? String == Self.edited(190))
    }

    @Test("Another field that was written since takes nothing from the patch, window or not")
    func otherField() async throws {
        let bench = try await bench()
        _ = try await bench.exchange([upsert(1, "n1", #"{"title":"b"}"#, base: 1, entity: "note")])
        try await bench.endWindow(.bytes)
        let answer = try await bench.exchange([try Self.patch(1, Self.edited(190), base: 1)], client: "device-bbbb")
        #expect(answer.statuses == ["merged"])
        #expect(try await data(bench) == ["body": Self.edited(190), "title": "b"])
    }

    @Test(
        "An unknown text before is no base: the whole text is asked for, on a replay too, and nothing is written",
        arguments: [ConflictPolicy.mergeFields, .lastWriteWins], WindowEnd.allCases)
    func baseUnknown(conflict: ConflictPolicy, end: WindowEnd) async throws {
        let bench = try await bench(conflict: conflict)
        _ = try await bench.exchange([try Self.patch(1, Self.edited(7), base: 1)])
        try await bench.endWindow(end)
        let operations = [
            try Self.patch(1, Self.edited(190), base: 1), try Self.patch(2, Self.edited(190), base: nil),
            try Self.patch(3, from: Self.edited(7), Self.edited(3), base: 2, hash: "0123456789abcdef0123456789abcdef"),
            try Self.patch(4, from: Self.text, Self.edited(3), base: 2), upsert(5, "n2", "{}", entity: "note"),
        ]
        for _ in 0..<2 {
            let answer = try await bench.exchange(operations, client: "device-bbbb")
            #expect(answer.statuses == ["rejected", "rejected", "rejected", "rejected", "applied"])
            for index in 0..<4 { #expect(answer.errorCode(index) == "patch_base_unknown") }
        }
        #expect(try await bench.changes().changes.first?.data?["body"] as? String == Self.edited(7))
    }

    @Test(
        "A hostile patch is refused by verdict, and the others go on",
        arguments: [
            "[[-1,0,\"\"]]", "[[0,-1,\"\"]]", "[[9223372036854775807,9223372036854775807,\"\"]]", "[[1000000,1,\"\"]]",
            "[[20,5,\"\"],[10,5,\"\"]]", "[[8,1,\"\"]]", "[[0,999999,\"\"]]", "[]",
        ])
    func hostile(splices: String) async throws {
        let bench = try await bench()
        let patch = #""patch":[{"field":"body","splices":\#(splices),"hash":"00"}]"#
        let answer = try await bench.exchange([
            #"{"lane":"lane-aaaa","number":1,"type":"patch","entity":"note","id":"n1","baseVersion":1,\#(patch)}"#,
            upsert(2, "n2", "{}", entity: "note"),
        ])
        #expect(answer.errorCode(0) == "patch_base_unknown")
        #expect(answer.statuses == ["rejected", "applied"])
    }

    @Test(
        "A field that is patched twice, or patched and set, is malformed",
        arguments: [
            #""patch":[{"field":"a","splices":[],"hash":""},{"field":"a","splices":[],"hash":""}]"#,
            #""patch":[{"field":"a","splices":[],"hash":""}],"fields":{"a":1}"#, #""patch":[{"splices":[]}]"#,
            #""patch":[{"field":"a","splices":[[1,2]]}]"#, #""patch":[{"field":"a","splices":[[1,2,"",4]]}]"#,
            #""patch":{}"#,
        ])
    func malformed(members: String) async throws {
        let bench = try await bench()
        let operation =
            #"{"lane":"lane-aaaa","number":1,"type":"patch","entity":"note","id":"n1","baseVersion":1,\#(members)}"#
        #expect(await problem { _ = try await bench.exchange([operation]) }?.code == .malformedRequest)
    }

    @Test("A patch of a deleted record is refused for that, or revives it where edits win")
    func deleted() async throws {
        for (deletes, status) in [(DeletePolicy.win, "rejected"), (.lose, "merged")] {
            let bench = try await bench(deletes: deletes)
            _ = try await bench.exchange([delete(1, "n1", base: 1).replacing("task", with: "note")])
            let answer = try await bench.exchange([try Self.patch(1, Self.edited(9), base: 1)], client: "device-bbbb")
            #expect(answer.statuses == [status])
            if deletes == .win { #expect(answer.errorCode(0) == "record_deleted") }
            if deletes == .lose { #expect(try await data(bench) == ["body": Self.edited(9), "title": "a"]) }
        }
    }

    @Test("A patch on an own operation without verdict yet is made from what that one left")
    func chain() async throws {
        let bench = try await bench()
        let answer = try await bench.exchange([
            try Self.patch(1, Self.edited(7), base: 1),
            try Self.patch(2, from: Self.edited(7), Self.edited(8), base: 1, extra: #","baseNumber":1"#),
        ])
        #expect(answer.statuses == ["applied", "applied"])
        #expect(try await data(bench)?["body"] as? String == Self.edited(8))
    }

    // MARK: Down

    private func raw(
        _ bench: Bench, since: String?, takes: Differences = .patches, limit: Int64? = nil
    ) async throws -> String {
        let page = try await bench.server.changes(
            in: "s", since: since, limit: limit, takes: takes, access: .read(as: "ada"))
        return String(decoding: page, as: UTF8.self)
    }

    @Test(
        "A reader that takes patches and holds the row gets what is different; one that does not, the whole row",
        arguments: WindowEnd.allCases)
    func down(end: WindowEnd) async throws {
        let bench = try await bench()
        let since = try await bench.changes().nextSince
        _ = try await bench.exchange([try Self.patch(1, Self.edited(7), base: 1, fields: #"{"title":"b"}"#)])
        let small = try await raw(bench, since: since)
        #expect(small.contains(#""version":2"#) && small.contains(#""base":1,"patch":[{"field":"body","splices":[["#))
        #expect(small.contains(#""data":{"title":"b"}"#))
        #expect(small.utf8.count * 10 < Self.text.utf8.count)
        #expect(try await raw(bench, since: since) == small)
        #expect(try await !raw(bench, since: since, takes: []).contains("patch"))
        #expect(try await !raw(bench, since: nil).contains("patch"))
        try await bench.endWindow(end)
        #expect(try await !raw(bench, since: since).contains("patch"))
    }

    @Test("In mid-scan a patch is made from the row at the last scan's end, never from one between")
    func midScan() async throws {
        let bench = try await bench()
        let since = try await bench.changes().nextSince
        _ = try await bench.exchange([upsert(1, "n0", "{}", entity: "note")])
        for (index, line) in [3, 5].enumerated() {
            let before = index == 0 ? Self.text : Self.edited(3)
            _ = try await bench.exchange([
                try Self.patch(2 + index, from: before, Self.edited(line), base: Int64(2 + index))
            ])
        }
        let first = try await bench.changes(since: since, limit: 1)
        #expect(first.changes.map(\.id) == ["n0"])
        let second = try await raw(bench, since: first.nextSince, limit: 1)
        #expect(second.contains(#""base":1,"patch""#))
        let answer = try Answer(Array(second.utf8))
        #expect(answer.changes.map(\.type) == ["patch"])
    }

    @Test("Short texts, texts that share little and entities without declared fields travel whole")
    func whole() async throws {
        let bench = try await bench()
        let since = try await bench.changes().nextSince
        let other = String(Self.text.reversed())
        _ = try await bench.exchange([
            upsert(1, "n1", #"{"body":\#(Self.json(other))}"#, base: 1, entity: "note"),
            upsert(2, "t1", #"{"body":\#(Self.json(Self.text))}"#),
        ])
        let next = try await bench.changes(since: since).nextSince
        #expect(try await !raw(bench, since: since).contains("patch"))
        _ = try await bench.exchange([upsert(3, "t1", #"{"body":\#(Self.json(Self.edited(3)))}"#, base: 3)])
        #expect(try await !raw(bench, since: next).contains("patch"))
    }

    @Test("The bytes that patches save count against the page's budget: its reading stays bounded")
    func budget() async throws {
        var limits = Limits()
        limits.pageBytes = 20_000
        let bench = try Bench(entities: [.state("note", patch: ["body"])], limits: limits)
        for (round, text) in [Self.text, Self.edited(3)].enumerated() {
            try await bench.server.commit(to: "s") { changes in
                for index in 0..<9 {
                    changes.upsert("note", id: .init(stringLiteral: "n\(index)"), ["body": .text(text)])
                }
            }
            guard round == 0 else { break }
        }
        let since = try await bench.pullAll().nextSince
        try await bench.server.commit(to: "s") { changes in
            for index in 0..<9 {
                changes.upsert("note", id: .init(stringLiteral: "n\(index)"), ["body": .text(Self.edited(5))])
            }
        }
        let page = try await raw(bench, since: since)
        #expect(page.matches(of: /"type":"patch"/).count == limits.pageBytes / Self.text.utf8.count)
        #expect(page.utf8.count < Self.text.utf8.count)
    }
}
