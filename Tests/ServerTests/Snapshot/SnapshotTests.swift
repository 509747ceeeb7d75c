import Foundation
import Testing

@testable import TidemarkServer
@testable import TidemarkWire

@Suite("Snapshot")
struct SnapshotTests {
    private func page(
        _ bench: Bench, token: String? = nil, cursor: String? = nil, since: String? = nil, limit: Int64 = 2,
        entity: String? = nil, fields: String? = nil
    ) async throws -> (answer: Answer, token: String?, cursor: String?, consistent: Bool, bytes: [UInt8]) {
        var query = SnapshotQuery(of: "s")
        query.token = token
        query.cursor = cursor
        query.since = since
        query.limit = limit
        query.entity = entity
        query.fields = fields
        let page = try await bench.server.snapshot(query, access: .read(as: "ada"))
        let object = try JSONSerialization.jsonObject(with: Data(page.body)) as? [String: Any] ?? [:]
        return (
            try Answer(page.body), object["snapshotToken"] as? String, object["pageCursor"] as? String,
            object["consistent"] as? Bool ?? false, page.body
        )
    }

    private func scan(
        _ bench: Bench, since: String? = nil, limit: Int64 = 2, meanwhile: () async throws -> Void = {}
    ) async throws -> (changes: [Answer.Change], next: String?, consistent: Bool) {
        var page = try await page(bench, since: since, limit: limit)
        var changes = page.answer.changes
        var isConsistent = page.consistent
        while page.answer.hasMore {
            try await meanwhile()
            page = try await self.page(bench, token: page.token, cursor: page.cursor, since: since, limit: limit)
            changes += page.answer.changes
            isConsistent = isConsistent && page.consistent
        }
        return (changes, page.answer.nextSince, isConsistent)
    }

    private func filled(_ entities: [EntityDeclaration] = []) async throws -> Bench {
        let bench = try Bench(entities: entities)
        try await bench.server.commit(to: "s") { changes in
            for name in ["b", "d", "a", "c"] {
                changes.upsert("task", id: RecordID(name)!, ["n": 1])
                changes.upsert("profile", id: RecordID(name)!, ["n": 1])
            }
            changes.delete("task", id: "d")
        }
        return bench
    }

    @Test(
        "Live records come by priority, then entity and id; deleted ones do not", arguments: [1, 2, 3, 100] as [Int64])
    func order(limit: Int64) async throws {
        let bench = try await filled([.state("task"), .state("profile", priority: 0)])
        let scan = try await scan(bench, limit: limit)
        #expect(
            scan.changes.map { $0.entity + $0.id }
                == ["profilea", "profileb", "profilec", "profiled", "taska", "taskb", "taskc"])
        #expect(scan.next != nil)
    }

    @Test("Writes made meanwhile never show in it and are in the delta that follows")
    func writtenMeanwhile() async throws {
        let bench = try await filled()
        var round: Int64 = 1
        let scan = try await scan(bench) {
            round += 1
            let value = round
            try await bench.server.commit(to: "s") { changes in
                changes.upsert("task", id: "c", ["n": .integer(value)])
                changes.upsert("task", id: "new", ["n": .integer(value)])
                changes.delete("task", id: "a")
            }
        }
        #expect(scan.consistent)
        #expect(scan.changes.filter { $0.entity == "task" }.map(\.id) == ["a", "b", "c"])
        #expect(scan.changes.allSatisfy { $0.data == ["n": 1] })
        let delta = try await bench.pullAll(since: scan.next)
        #expect(Set(delta.changes.map { "\($0.type) \($0.id)" }) == ["upsert c", "upsert new", "delete a"])
    }

    @Test("The first page of a whole scope says how many records there are, and no other page does (W94)")
    func counted() async throws {
        let bench = try await filled([.state("task"), .events("seen")])
        try await bench.server.commit(to: "s") { $0.upsert("seen", id: "e1", ["n": 1]) }
        func records(_ page: [UInt8]) throws -> Int? {
            let object = try JSONSerialization.jsonObject(with: Data(page)) as? [String: Any]
            return (object?["records"] as? NSNumber)?.intValue
        }
        let first = try await page(bench)
        // Three tasks and four profiles live; an event is no record.
        #expect(try records(first.bytes) == 7)
        let second = try await page(bench, token: first.token, cursor: first.cursor)
        #expect(try records(second.bytes) == nil)
        #expect(try records(try await page(bench, token: first.token).bytes) == nil)
        #expect(try records(try await page(bench, entity: "task").bytes) == nil)
        #expect(try records(try await page(bench, fields: "n").bytes) == nil)
        #expect(try records(try await page(try Bench()).bytes) == 0)
    }

    @Test("A page's address gives the same bytes while the window holds it")
    func immutable() async throws {
        let bench = try await filled()
        let first = try await page(bench)
        let second = try await page(bench, token: first.token, cursor: first.cursor)
        try await bench.server.commit(to: "s") { $0.upsert("task", id: "c", ["n": 9]) }
        #expect(try await page(bench, token: first.token, cursor: first.cursor).bytes == second.bytes)
    }

    @Test("A scan goes on over a restart of the server, byte by byte")
    func restarted() async throws {
        let bench = try await filled()
        let first = try await page(bench)
        let second = try await page(bench, token: first.token, cursor: first.cursor)
        try bench.reopen()
        try await bench.server.commit(to: "s") { $0.upsert("task", id: "c", ["n": 9]) }
        let again = try await page(bench, token: first.token, cursor: first.cursor)
        #expect(again.bytes == second.bytes)
        #expect(again.consistent)
        let rest = try await page(bench, token: again.token, cursor: again.cursor, limit: 100)
        #expect(rest.consistent && !rest.answer.hasMore)
        #expect(rest.answer.changes.last?.data == ["n": 1])
        #expect(try await bench.pullAll(since: rest.answer.nextSince).changes.map(\.id) == ["c"])
    }

    @Test("A scan begins anew where entities were declared in another order meanwhile (W21)")
    func declaredAnew() async throws {
        let bench = try await filled([.state("task"), .state("profile")])
        let first = try await page(bench)
        let server = SyncServer(
            store: bench.store, entities: [.state("task"), .state("profile", priority: 0)], configuration: .still)
        var query = SnapshotQuery(of: "s")
        (query.token, query.cursor) = (first.token, first.cursor)
        let expired = await problem { _ = try await server.snapshot(query, access: .read(as: "ada")) }
        #expect(expired?.code == .snapshotExpired)
        // What is declared besides leaves the order as it is.
        let same = SyncServer(
            store: bench.store, entities: [.state("task", deletes: .lose), .state("profile")], configuration: .still)
        _ = try await same.snapshot(query, access: .read(as: "ada"))
    }

    @Test("A scan goes on as what it began, or not at all: a part of a scope never ends as the whole (W21)")
    func otherScan() async throws {
        let bench = try await filled()
        let since = try await bench.pullAll().nextSince
        try await bench.server.commit(to: "s") { $0.delete("task", id: "a") }
        func refusal(_ change: (inout SnapshotQuery) -> Void, begun: (inout SnapshotQuery) -> Void) async throws -> Bool
        {
            var query = SnapshotQuery(of: "s")
            query.limit = 1
            begun(&query)
            let first = try await bench.server.snapshot(query, access: .read(as: "ada"))
            let object = try JSONSerialization.jsonObject(with: Data(first.body)) as? [String: Any] ?? [:]
            query.token = object["snapshotToken"] as? String
            query.cursor = object["pageCursor"] as? String
            change(&query)
            let wanted = query
            let found = await problem { _ = try await bench.server.snapshot(wanted, access: .read(as: "ada")) }
            return found?.code == .snapshotExpired
        }
        #expect(try await refusal({ $0.entity = nil }, begun: { $0.entity = "task" }))
        #expect(try await refusal({ $0.entity = "profile" }, begun: { $0.entity = "task" }))
        #expect(try await refusal({ $0.fields = nil }, begun: { $0.fields = "n" }))
        #expect(try await refusal({ $0.since = nil }, begun: { $0.since = since }))
        #expect(try await !refusal({ $0.entity = "TASK" }, begun: { $0.entity = "task" }))
        #expect(
            try await !refusal(
                {
                    $0.since = nil
                    $0.isDelta = true
                }, begun: { $0.since = since }))
    }

    @Test(
        "A scan that outlived the window goes on with rows as they are, and says so; the delta makes it whole",
        arguments: WindowEnd.allCases)
    func outlived(end: WindowEnd) async throws {
        let bench = try await filled()
        let first = try await page(bench)
        try await bench.server.commit(to: "s") { $0.upsert("task", id: "c", ["n": 9]) }
        try await bench.endWindow(end)
        let rest = try await page(bench, token: first.token, cursor: first.cursor, limit: 100)
        #expect(!rest.consistent)
        #expect(rest.answer.changes.last?.data == ["n": 9])
        let delta = try await bench.pullAll(since: rest.answer.nextSince)
        #expect(delta.changes.map(\.id) == ["c"])
    }

    @Test("A delta in the same order holds what changed, deletions too")
    func prioritisedDelta() async throws {
        let bench = try await filled([.state("profile", priority: 0)])
        let since = try await bench.pullAll().nextSince
        try await bench.server.commit(to: "s") { changes in
            changes.upsert("task", id: "a", ["n": 2])
            changes.delete("task", id: "b")
            changes.upsert("profile", id: "z", ["n": 2])
        }
        let scan = try await scan(bench, since: since, limit: 1)
        #expect(
            scan.changes.map { "\($0.type) \($0.entity) \($0.id)" } == [
                "upsert profile z", "upsert task a", "delete task b",
            ])
        #expect(try await bench.pullAll(since: scan.next).changes.isEmpty)
    }

    @Test("Tokens of another scope, altered ones and foreign cursors are refused")
    func foreign() async throws {
        let bench = try await filled()
        let first = try await page(bench)
        let altered = await problem { _ = try await page(bench, token: first.token.map { $0 + "A" }) }
        #expect(altered?.code == .invalidCheckpoint)
        try await bench.server.commit(to: "s") { $0.upsert("task", id: "q", [:]) }
        let other = try await page(bench)
        let mixed = await problem { _ = try await page(bench, token: other.token, cursor: first.cursor) }
        #expect(mixed?.code == .invalidCheckpoint)
        let checkpoint = try await bench.pullAll().nextSince
        #expect(await problem { _ = try await page(bench, token: checkpoint) }?.code == .invalidCheckpoint)
    }

    @Test("Limited to some fields, changes say that they are partial, and rows without them stay away")
    func fields() async throws {
        let bench = try Bench()
        try await bench.server.commit(to: "s") { changes in
            changes.upsert("task", id: "a", ["title": "x", "größe \"q\"": 1, "n": .blob([1])])
            changes.upsert("task", id: "b", ["n": .null])
            changes.upsert("task", id: "c", ["other": 1])
        }
        let page = try await page(bench, limit: 10, fields: #"größe "q",n,missing"#)
        #expect(page.answer.changes.map(\.id) == ["a", "b"])
        #expect(page.answer.changes[0].data == ["größe \"q\"": 1, "n": ["$blob": "AQ=="]])
        #expect(page.answer.changes[1].data == ["n": NSNull()])
        #expect(String(decoding: page.bytes, as: UTF8.self).components(separatedBy: #""partial":true"#).count == 3)
        // Who has read a part of the scope stands where it stood before.
        #expect(page.answer.nextSince == nil && !page.answer.hasMore)
        // Rows that stay away still count, so that a page looks at no more of them than it may hold.
        let short = try await self.page(bench, limit: 2, fields: "other")
        #expect(short.answer.changes.isEmpty && short.answer.hasMore)
    }

    @Test("Limited to one entity, a scan goes through that alone, page by page, and gives no checkpoint")
    func entity() async throws {
        let bench = try await filled()
        let first = try await page(bench, limit: 2, entity: "profile")
        #expect(first.answer.changes.map { $0.entity + $0.id } == ["profilea", "profileb"])
        let rest = try await page(bench, token: first.token, cursor: first.cursor, limit: 5, entity: "profile")
        #expect(rest.answer.changes.map { $0.entity + $0.id } == ["profilec", "profiled"])
        #expect(!rest.answer.hasMore && rest.answer.nextSince == nil)
        #expect(await problem { _ = try await page(bench, entity: "no entity ") }?.code == .invalidIdentifier)
    }

    @Test("The list of fields has a grammar and a limit")
    func badFields() async throws {
        let bench = try await filled()
        for text in ["", "a,,b", "a\n", String(repeating: "a", count: 129)] {
            #expect(await problem { _ = try await page(bench, fields: text) }?.code == .invalidIdentifier)
        }
        let many = Array(repeating: "a", count: 101).joined(separator: ",")
        #expect(await problem { _ = try await page(bench, fields: many) }?.code == .limitOutOfRange)
    }

    @Test("A cursor without its scan is refused")
    func cursorAlone() async throws {
        let bench = try await filled()
        let first = try await page(bench)
        #expect(await problem { _ = try await page(bench, cursor: first.cursor) }?.code == .malformedRequest)
    }
}
