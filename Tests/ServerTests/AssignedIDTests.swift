import Foundation
import Testing

@testable import TidemarkServer
@testable import TidemarkWire

/// An insert, or an edit, under a temporary id.
private func temporary(
    _ number: Int, _ id: String, _ fields: String = "{}", entity: String = "order", type: String = "upsert",
    lane: String = "lane-aaaa", extra: String = ""
) -> String {
    #"""
    {"lane":"\#(lane)","number":\#(number),"type":"\#(type)","entity":"\#(entity)","tempId":"\#(id)"\#(extra),\#
    "fields":\#(fields)}
    """#
}

/// What marks an operation of a history that no store knows.
private let lost = #","original":{"epoch":"lost"}"#

private func order(_ number: Int64) -> String { String(-(Int64(1) << 61) - number) }

private func idmaps(_ answer: Answer) throws -> [[String: Any]] {
    let object = try JSONSerialization.jsonObject(with: Data(answer.bytes)) as? [String: Any] ?? [:]
    return (object["changes"] as? [[String: Any]] ?? []).filter { $0["type"] as? String == "idmap" }
}

extension Answer {
    fileprivate var ids: [String] { results.map { $0["id"] as? String ?? "-" } }
}

@Suite("Temporary ids: the server gives records their own, once, and no other device sees any other")
struct AssignedIDTests {
    private let entities: [EntityDeclaration] = [
        .state("order", ids: .server), .state("line"), .state("task"), .events("audit"),
    ]

    @Test("Numbers grow by one per entity, texts are UUIDs; the idmap comes before its row")
    func assigned() async throws {
        let bench = try Bench(entities: entities)
        let answer = try await bench.exchange([
            temporary(1, order(7), #"{"n":1}"#), temporary(2, order(3), #"{"n":2}"#), temporary(3, "local-1", "{}"),
        ])
        #expect(answer.statuses == ["applied", "applied", "applied"])
        #expect(answer.ids.prefix(2) == ["1", "2"])
        #expect(answer.ids[2].count == 36 && answer.ids[2].dropFirst(14).first == "7")
        #expect(answer.versions == [2, 4, 6])
        // The verdicts have said it all.
        #expect(answer.changes.isEmpty)
        #expect(try await bench.pullAll().changes.map(\.id) == answer.ids)
    }

    @Test("A device that lost every answer learns its ids from a pull")
    func idmap() async throws {
        let bench = try Bench(entities: entities)
        let empty = try await bench.exchange([])
        _ = try await bench.exchange([temporary(1, order(7)), temporary(2, order(9))])
        let pulled = try await bench.pullAll(since: empty.nextSince)
        #expect(pulled.changes.map(\.type) == ["idmap", "upsert", "idmap", "upsert"])
        let map = try #require(try idmaps(pulled).first)
        #expect(map["tempId"] as? String == order(7))
        #expect(map["id"] as? String == "1")
        #expect(map["entity"] as? String == "order")
        #expect(map["clientId"] as? String == "device-aaaa")
        #expect(map["version"] as? Int64 == 1)
        // An empty device has no use for them.
        #expect(try await bench.pullAll().changes.map(\.type) == ["upsert", "upsert"])
    }

    @Test("Two devices that both used one temporary id never mix, and neither do two users")
    func owners() async throws {
        let bench = try Bench(entities: entities)
        let mine = try await bench.exchange([temporary(1, "local-1", #"{"n":1}"#)])
        let theirs = try await bench.exchange([temporary(1, "local-1", #"{"n":2}"#)], client: "device-bbbb")
        let anothers = try await bench.exchange(
            [temporary(1, "local-1", #"{"n":3}"#)], access: .readWrite(as: "bob"))
        #expect(Set(mine.ids + theirs.ids + anothers.ids).count == 3)
        let line = upsert(
            2, "l1", #"{"order":"local-1"}"#, entity: "line", extra: #","refs":[{"field":"order","entity":"order"}]"#)
        _ = try await bench.exchange([line], client: "device-bbbb")
        let stored = try await bench.pullAll().changes.first { $0.entity == "line" }
        #expect(stored?.data == ["order": theirs.ids[0]])
    }

    @Test("A replay answers the id again, also where the verdict is forgotten; the same insert again is no second one")
    func replays() async throws {
        let bench = try Bench(entities: entities)
        let insert = temporary(1, order(7), #"{"n":1}"#)
        let first = try await bench.exchange([insert])
        let again = try await bench.exchange([insert])
        #expect(again.ids == first.ids)
        #expect(again.head == first.head)
        _ = try await bench.exchange(acked: #"{"lane-aaaa":1}"#)
        let settled = try await bench.exchange([insert])
        #expect(settled.statuses == ["settled"])
        #expect(settled.ids == first.ids)
        // A copy restored from a backup seals its insert anew.
        let copy = try await bench.exchange([temporary(1, order(7), #"{"n":1}"#, lane: "lane-copy")])
        #expect(copy.ids == first.ids)
        #expect(copy.head == first.head)
        #expect(try await bench.pullAll().changes.count == 1)
    }

    @Test("An insert made again by a restored copy does not bring a deleted record back (I6)")
    func resurrection() async throws {
        let bench = try Bench(entities: entities)
        _ = try await bench.exchange([temporary(1, order(7), #"{"n":1}"#)])
        try await bench.server.commit(to: "s") { $0.delete("order", id: "1") }
        let copy = try await bench.exchange([temporary(1, order(7), #"{"n":1}"#, lane: "lane-copy")])
        #expect(copy.statuses == ["rejected"])
        #expect(copy.errorCode(0) == "record_deleted")
        #expect(copy.ids == ["1"])
    }

    @Test("Edits and deletes that name their record by its temporary id find it")
    func later() async throws {
        let bench = try Bench(entities: entities)
        let answer = try await bench.exchange([
            temporary(1, order(7), #"{"n":1,"m":1}"#),
            temporary(2, order(7), #"{"n":2}"#, extra: #","baseVersion":0,"baseNumber":1"#),
        ])
        #expect(answer.statuses == ["applied", "applied"])
        #expect(answer.ids == ["1", "1"])
        #expect(try await bench.pullAll().changes.map(\.data) == [["n": 2, "m": 1]])
        let deleted = try await bench.exchange([
            temporary(3, order(7), type: "delete", extra: #","baseVersion":0,"baseNumber":2"#)
        ])
        #expect(deleted.statuses == ["applied"])
        #expect(try await bench.pullAll().changes.isEmpty)
        let unknown = try await bench.exchange([
            temporary(4, order(8), type: "delete", extra: #","baseVersion":0"#),
            temporary(5, order(8), #"{"n":2}"#, extra: #","baseVersion":0"#),
        ])
        #expect(unknown.statuses == ["applied", "deferred"])
        #expect(unknown.head == deleted.head)
    }

    @Test("References are resolved before anything is stored: fields, parts of keys, JSON paths, events")
    func references() async throws {
        let bench = try Bench(entities: entities)
        let refs = """
            ,"refs":[{"field":"order","entity":"order"},{"key":0,"entity":"order"},\
            {"field":"doc","path":"$.items[*].id","entity":"order"},{"field":"other","entity":"task"}]
            """
        let doc = #"{\"items\":[{\"id\":\#(order(7))},{\"id\":\"\#(order(7))\"},{\"id\":5}],\"keep\": 1.50}"#
        let key = #"[\#(order(7)),2]"#
        let answer = try await bench.exchange([
            temporary(1, order(7)),
            upsert(
                2, "[{\\\"$int\\\":\\\"\(order(7))\\\"},1]",
                #"{"order":{"$int":"\#(order(7))"},"other":"t1","doc":"\#(doc)"}"#, entity: "line", extra: refs),
            #"""
            {"lane":"lane-aaaa","number":3,"type":"event","entity":"audit","id":"e1",\#
            "data":{"of":"\#(order(7))"},"refs":[{"field":"of","entity":"order"}]}
            """#,
            upsert(4, key, "{}", entity: "line", extra: #","refs":[{"key":0,"entity":"order"}]"#),
            upsert(5, order(7), "{}", entity: "task", extra: #","refs":[{"key":0,"entity":"order"}]"#),
        ])
        #expect(answer.statuses == ["applied", "applied", "applied", "applied", "applied"])
        #expect(answer.ids == ["1", "[1,1]", "-", "[1,2]", "1"])
        let stored = try await bench.pullAll().changes
        let line = try #require(stored.first { $0.entity == "line" })
        #expect(line.id == "[1,1]")
        #expect(
            line.data == [
                "order": 1, "other": "t1", "doc": #"{"items":[{"id":1},{"id":"1"},{"id":5}],"keep": 1.50}"#,
            ])
        #expect(stored.first { $0.entity == "audit" }?.data == ["of": "1"])
        #expect(!String(decoding: try await bench.pullAll().bytes, as: UTF8.self).contains(order(7)))
    }

    @Test("What names a record that is not here waits for it, and a temporary id never reaches another device")
    func arrival() async throws {
        let bench = try Bench(entities: entities, limits: small)
        let refs = #","refs":[{"field":"order","entity":"order"}]"#
        let early = try await bench.exchange([
            upsert(1, "l1", #"{"order":"local-1"}"#, entity: "line", extra: refs)
        ])
        #expect(early.statuses == ["deferred"])
        #expect(early.head == 0)
        // The parent is refused: what needs it is put off, and names it.
        let refused = try await bench.exchange([
            temporary(2, "local-1", #"{"n":"\#(String(repeating: "x", count: 300))"}"#),
            upsert(3, "l1", #"{"order":"local-1"}"#, entity: "line", extra: refs + #","needs":[2]"#),
            upsert(4, "l2", #"{"order":null}"#, entity: "line"),
        ])
        #expect(refused.statuses == ["rejected", "deferred", "applied"])
        #expect(refused.results[1]["after"] as? Int64 == 2)
        #expect(refused.ids[0] == "-")
        // Nothing is left of the attempt: no idmap, no number used up.
        #expect(refused.head == 1)
        let mended = try await bench.exchange([
            temporary(5, "local-1", "{}"), upsert(6, "l1", #"{"order":"local-1"}"#, entity: "line", extra: refs),
        ])
        #expect(mended.statuses == ["applied", "applied"])
        #expect(!String(decoding: try await bench.pullAll().bytes, as: UTF8.self).contains("local-1"))
    }

    private var small: Limits {
        var limits = Limits()
        limits.recordBytes = 200
        return limits
    }

    @Test("Ids of other shapes, of other entities, and of a device's own making are refused")
    func refusals() async throws {
        let bench = try Bench(entities: entities)
        let answer = try await bench.exchange([
            temporary(1, "t1"), temporary(2, "-5"), temporary(3, "local-1", entity: "task"),
            upsert(4, "12", "{}", entity: "order"),
        ])
        #expect(answer.statuses == ["rejected", "rejected", "rejected", "rejected"])
        #expect((0..<3).allSatisfy { answer.errorCode($0) == "temporary_id_refused" })
        #expect(answer.errorCode(3) == "id_not_assigned")
        // The operator's own programs may, and numbers that are taken are passed over.
        try await bench.server.commit(to: "s") { $0.upsert("order", id: "1", ["n": 1]) }
        let service = try await bench.exchange(
            [upsert(1, "2", "{}", entity: "order")], access: Access(.readWrite, principal: "job", isService: true))
        #expect(service.statuses == ["applied"])
        #expect(try await bench.exchange([temporary(5, order(7))]).ids == ["3"])
        // A record that was deleted may be inserted again by its own id.
        try await bench.server.commit(to: "s") { $0.delete("order", id: "3") }
        #expect(try await bench.exchange([upsert(6, "3", "{}", entity: "order")]).statuses == ["applied"])
    }

    @Test("What temporary ids stand for is forgotten with a device's last lane, not before")
    func ages() async throws {
        let bench = try Bench(entities: entities)
        let first = try await bench.exchange([temporary(1, order(7))])
        let day: Int64 = 86_400_000
        bench.clock += 300 * day
        try await bench.server.compact(trustingClock: true)
        try await bench.server.compact(trustingClock: true)
        #expect(try await bench.exchange([temporary(1, order(7), lane: "lane-copy")]).ids == first.ids)
        bench.clock += 500 * day
        for _ in 0..<3 { try await bench.server.compact(trustingClock: true) }
        #expect(try await bench.exchange([temporary(1, order(7), lane: "lane-late")]).ids == ["2"])
    }

    @Test("Numbers are one row over all scopes, so that a row can move; a lost history's ids may be claimed again")
    func scopesAndClaims() async throws {
        let bench = try Bench(entities: entities)
        #expect(try await bench.exchange([temporary(1, order(1))], scope: "a").ids == ["1"])
        #expect(try await bench.exchange([temporary(1, order(2))], scope: "b").ids == ["2"])
        // The alias holds in every scope.
        let line = upsert(
            2, "l1", #"{"order":{"$int":"\#(order(1))"}}"#, entity: "line",
            extra: #","refs":[{"field":"order","entity":"order"}]"#)
        #expect(try await bench.exchange([line], scope: "b").statuses == ["applied"])
        let claims = try await bench.exchange(
            [
                temporary(2, order(3), extra: #","id":"9""# + lost),
                temporary(3, order(4), extra: #","id":"1""# + lost),
                temporary(4, order(5), extra: #","id":"9007199254740990""# + lost), temporary(5, order(6)),
            ], scope: "a")
        #expect(claims.ids == ["9", "10", "11", "12"])
        try bench.reopen()
        #expect(try await bench.exchange([temporary(6, order(7))], scope: "a").ids == ["13"])
    }

    @Test("Only what was lost claims an id, and no temporary one is ever anybody's own (W58)")
    func claims() async throws {
        let bench = try Bench(entities: entities)
        let uuid = "01981e3c-0000-7000-8000-000000000001"
        let answer = try await bench.exchange([
            temporary(1, "local-1", extra: #","id":"local-1""# + lost),
            temporary(2, "local-2", extra: #","id":"chosen""#),
            temporary(3, "local-3", extra: #","id":"\#(order(9))""# + lost),
            temporary(4, order(4), extra: #","id":"40""#),
            temporary(5, order(5), extra: #","id":"\#(order(5))""# + lost),
            temporary(6, "local-6", extra: #","id":"\#(uuid)""# + lost),
        ])
        #expect(answer.statuses == Array(repeating: "applied", count: 6))
        #expect((0..<3).allSatisfy { answer.ids[$0].count == 36 })
        #expect(answer.ids.suffix(3) == ["1", "2", uuid])
    }

    @Test("An id that was given in one scope, or written there by a program, is given in no other")
    func oneForAllScopes() async throws {
        let bench = try Bench(entities: entities)
        #expect(try await bench.exchange([temporary(1, order(1))], scope: "b").ids == ["1"])
        let claim = try await bench.exchange([temporary(1, order(2), extra: #","id":"1""# + lost)], scope: "a")
        #expect(claim.ids == ["2"])
        try await bench.server.commit(to: "b") { changes in
            changes.upsert("order", id: "3", ["n": 1])
            changes.upsert("order", id: "9007199254740990", ["n": 1])
        }
        #expect(try await bench.exchange([temporary(2, order(3))], scope: "a").ids == ["4"])
        let service = Access(.readWrite, principal: "job", isService: true)
        _ = try await bench.exchange([upsert(1, "5", "{}", entity: "order")], scope: "c", access: service)
        #expect(try await bench.exchange([temporary(3, order(4))], scope: "a").ids == ["6"])
    }

    @Test("A lost insert gets its id again although another device's edit of the record came back before it (W94)")
    func begun() async throws {
        let bench = try Bench(entities: entities)
        let edit = upsert(
            1, "77", #"{"m":2}"#, base: 5, entity: "order", extra: #","original":{"epoch":"lost","version":6}"#)
        #expect(try await bench.exchange([edit], client: "device-bbbb").statuses == ["applied"])
        let insert = temporary(
            1, order(1), #"{"n":1,"m":1}"#, extra: #","id":"77","original":{"epoch":"lost","version":4}"#)
        #expect(try await bench.exchange([insert]).ids == ["77"])
        #expect(try await bench.contents() == ["77": ["n": 1, "m": 2]])
        // Nobody else gets it, and a new record none of the past.
        #expect(try await bench.exchange([temporary(2, order(2), extra: #","id":"77""# + lost)]).ids == ["78"])
    }

    @Test("Who has another user's file names its records as that one did, once they are known not to be lost (W58)")
    func inherited() async throws {
        let bench = try Bench(entities: entities)
        let insert = try await bench.exchange([temporary(1, order(1), #"{"n":1}"#)])
        #expect(insert.ids == ["1"])
        let object = try #require(try JSONSerialization.jsonObject(with: Data(insert.bytes)) as? [String: Any])
        let epoch = try #require(object["epoch"] as? String)
        let original = #","original":{"epoch":"\#(epoch)","version":2}"#
        func line(_ number: Int, _ id: String) -> String {
            upsert(
                number, id, #"{"order":{"$int":"\#(order(1))"}}"#, entity: "line",
                extra: #","refs":[{"field":"order","entity":"order"}]"#)
        }
        let bea = Access.readWrite(as: "bea")
        #expect(try await bench.exchange([line(1, "l1")], access: bea).statuses == ["deferred"])
        let again = try await bench.exchange(
            [
                temporary(2, order(1), #"{"n":1}"#, extra: #","id":"1""# + original),
                temporary(3, order(2), #"{"n":1}"#, extra: #","id":"2""# + original), line(4, "l1"),
            ], access: bea)
        #expect(again.statuses == ["settled", "settled", "applied"])
        // An id that nobody was given is nobody's.
        #expect(again.ids.prefix(2) == ["1", "-"])
        #expect(try await bench.contents()["l1"] == ["order": 1])
    }

    @Test("A restored copy does not bring back a record whose tombstone is gone, and a record still moves (I6)")
    func longGone() async throws {
        let bench = try Bench(entities: entities)
        _ = try await bench.exchange([temporary(1, order(7), #"{"n":1}"#)])
        // It moves: its id was given in another scope.
        let moved = [upsert(1, "1", #"{"n":1}"#, entity: "order")]
        #expect(try await bench.exchange(moved, scope: "a").statuses == ["applied"])
        #expect(try await bench.exchange([temporary(1, order(7), #"{"n":1}"#)], scope: "b").ids == ["1"])
        try await bench.server.commit(to: "s") { $0.delete("order", id: "1") }
        bench.clock += 200 * 86_400_000
        var configuration = SyncServer.Configuration()
        configuration.retention = .seconds(86_400)
        configuration.uptime = { .zero }
        configuration.now = { bench.clock }
        let server = SyncServer(store: bench.store, entities: entities, configuration: configuration)
        #expect(try await server.compact(trustingClock: true).expired > 0)
        let copy = try await bench.exchange([
            temporary(1, order(7), #"{"n":1}"#, lane: "lane-copy"),
            upsert(2, "1", #"{"n":1}"#, entity: "order", lane: "lane-copy"),
        ])
        #expect(copy.statuses == ["rejected", "rejected"])
        #expect(copy.errorCode(0) == "record_deleted" && copy.errorCode(1) == "id_not_assigned")
        #expect(copy.ids == ["1", "-"])
        #expect(try await bench.contents().isEmpty)
    }
}
