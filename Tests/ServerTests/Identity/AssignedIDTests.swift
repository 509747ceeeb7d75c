import Foundation
import Testing

@testable import TidemarkCore
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

/// The id that a temporary one stands for, of the user and the device that the tests' requests are from.
private func assigned(
    _ temporary: String, by principal: String = "ada", on client: String = "device-aaaa", attempt: Int = 0
) throws -> String {
    let id = AssignedID.make(
        for: try #require(RecordID(temporary)), of: [principal, client, "order"], attempt: attempt)
    return try #require(id).text
}

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

    @Test("Numbers have sixteen digits, texts are UUIDs; the idmap comes before its row")
    func given() async throws {
        let bench = try Bench(entities: entities)
        let answer = try await bench.exchange([
            temporary(1, order(7), #"{"n":1}"#), temporary(2, order(3), #"{"n":2}"#), temporary(3, "local-1", "{}"),
        ])
        #expect(answer.statuses == ["applied", "applied", "applied"])
        #expect(try answer.ids == [assigned(order(7)), assigned(order(3)), assigned("local-1")])
        #expect(answer.ids.prefix(2).allSatisfy { $0.count == 16 && Int64($0).map { $0 < 1 << 53 } ?? false })
        #expect(answer.ids[2].count == 36 && answer.ids[2].dropFirst(14).first == "8")
        #expect(answer.versions == [2, 4, 6])
        // The verdicts have said it all.
        #expect(answer.changes.isEmpty)
        #expect(try await Set(bench.pullAll().changes.map(\.id)) == Set(answer.ids))
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
        #expect(try map["id"] as? String == assigned(order(7)))
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
        let forgotten = try await bench.exchange([insert])
        #expect(forgotten.statuses == ["settled"])
        #expect(forgotten.ids == first.ids)
        // A copy restored from a backup seals its insert anew.
        let copy = try await bench.exchange([temporary(1, order(7), #"{"n":1}"#, lane: "lane-copy")])
        #expect(copy.ids == first.ids)
        #expect(copy.head == first.head)
        #expect(try await bench.pullAll().changes.count == 1)
    }

    @Test("An insert made again by a restored copy does not revive a deleted record (I6)")
    func resurrection() async throws {
        let bench = try Bench(entities: entities)
        let id = try #require(try await bench.exchange([temporary(1, order(7), #"{"n":1}"#)]).ids.first)
        try await bench.server.commit(to: "s") { $0.delete("order", id: RecordID(stringLiteral: id)) }
        let copy = try await bench.exchange([temporary(1, order(7), #"{"n":1}"#, lane: "lane-copy")])
        #expect(copy.statuses == ["rejected"])
        #expect(copy.errorCode(0) == "record_deleted")
        #expect(copy.ids == [id])
    }

    @Test("Edits and deletes that name their record by its temporary id find it")
    func later() async throws {
        let bench = try Bench(entities: entities)
        let answer = try await bench.exchange([
            temporary(1, order(7), #"{"n":1,"m":1}"#),
            temporary(2, order(7), #"{"n":2}"#, extra: #","baseVersion":0,"baseNumber":1"#),
        ])
        #expect(answer.statuses == ["applied", "applied"])
        #expect(try answer.ids == [assigned(order(7)), assigned(order(7))])
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
        let id = try assigned(order(7))
        #expect(answer.ids == [id, "[\(id),1]", "-", "[\(id),2]", id])
        let stored = try await bench.pullAll().changes
        let line = try #require(stored.first { $0.entity == "line" })
        #expect(line.id == "[\(id),1]")
        #expect(
            line.data == [
                "order": try #require(Int64(id)), "other": "t1",
                "doc": #"{"items":[{"id":\#(id)},{"id":"\#(id)"},{"id":5}],"keep": 1.50}"#,
            ])
        #expect(stored.first { $0.entity == "audit" }?.data == ["of": id])
        #expect(!String(decoding: try await bench.pullAll().bytes, as: UTF8.self).contains(order(7)))
    }

    @Test("A row that names a missing record waits for it, and a temporary id never reaches another device")
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
        // Nothing is left of the attempt: no idmap, no name.
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
        // The operator's own programs may.
        try await bench.server.commit(to: "s") { $0.upsert("order", id: "1", ["n": 1]) }
        let service = try await bench.exchange(
            [upsert(1, "2", "{}", entity: "order")], access: Access(.readWrite, principal: "job", isService: true))
        #expect(service.statuses == ["applied"])
        // A record that was deleted may be inserted again by its own id.
        try await bench.server.commit(to: "s") { $0.delete("order", id: "2") }
        #expect(try await bench.exchange([upsert(5, "2", "{}", entity: "order")]).statuses == ["applied"])
    }

    @Test("The answer to an insert under a given id tells nothing of other scopes (W58)")
    func noOracle() async throws {
        let bench = try Bench(entities: entities)
        let theirs = try await bench.exchange([temporary(1, order(7))], scope: "theirs")
        let (known, unknown) = (try #require(theirs.ids.first), try assigned(order(8)))
        func answer(_ id: String, _ number: Int) async throws -> [String] {
            let answer = try await bench.exchange([upsert(number, id, #"{"n":1}"#, entity: "order")], scope: "mine")
            return answer.statuses + answer.ids
        }
        let (first, second) = (try await answer(known, 1), try await answer(unknown, 2))
        #expect(first == ["applied", "-"] && second == first)
        #expect(try await bench.exchange([temporary(2, order(7))], scope: "theirs").ids == [known])
        #expect(try await bench.pullAll(scope: "theirs").changes.map(\.data) == [[:]])
    }

    @Test("The ids behind temporary ids are forgotten with a device's last lane, not before")
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
        // It is the same record's name still.
        let late = try await bench.exchange([temporary(1, order(7), lane: "lane-late")])
        #expect(late.ids == first.ids && late.statuses == ["applied"])
    }

    @Test("A temporary id stands for one record in every scope, and after the store was put back (W54)")
    func restored() async throws {
        let bench = try Bench(entities: entities)
        let ids = try [assigned(order(1)), assigned(order(2))]
        #expect(try await bench.exchange([temporary(1, order(1))], scope: "a").ids == [ids[0]])
        #expect(try await bench.exchange([temporary(1, order(2))], scope: "b").ids == [ids[1]])
        let line = upsert(
            2, "l1", #"{"order":{"$int":"\#(order(1))"}}"#, entity: "line",
            extra: #","refs":[{"field":"order","entity":"order"}]"#)
        #expect(try await bench.exchange([line], scope: "b").statuses == ["applied"])
        // A store that knows nothing of it any more; others push first, whatever they like.
        let other = try Bench(entities: entities)
        _ = try await other.exchange((1...20).map { temporary($0, order(Int64($0) + 100)) }, client: "device-bbbb")
        #expect(try await other.exchange([temporary(1, order(2))], scope: "b").ids == [ids[1]])
        #expect(try await other.exchange([temporary(1, order(1))], scope: "a").ids == [ids[0]])
    }

    @Test("An id that another record was given is given to no second one, in whatever scope")
    func taken() async throws {
        let bench = try Bench(entities: entities)
        let (first, second) = try (assigned(order(1)), assigned(order(1), attempt: 1))
        // Two names of one id, as somebody might look for.
        let thief = TemporaryName(principal: "eve", client: "device-eeee", entity: "order", id: "-1")
        try await bench.store.write("b") { try $0.store(RecordID(stringLiteral: first), for: thief, at: 1) }
        #expect(try await bench.exchange([temporary(1, order(1))], scope: "a").ids == [second])
        #expect(try await bench.exchange([temporary(1, order(1))], scope: "a").ids == [second])
    }

    @Test("A record that is replayed keeps its id, whoever was here before it (W58)")
    func replayed() async throws {
        let bench = try Bench(entities: entities)
        let id = try assigned(order(1))
        let edit = upsert(
            1, id, #"{"m":2}"#, base: 5, entity: "order", extra: #","original":{"epoch":"lost","version":6}"#)
        #expect(try await bench.exchange([edit], client: "device-bbbb").statuses == ["applied"])
        let insert = upsert(
            1, id, #"{"n":1,"m":1}"#, entity: "order", extra: #","original":{"epoch":"lost","version":4}"#)
        #expect(try await bench.exchange([insert], access: .readWrite(as: "bea")).statuses == ["merged"])
        #expect(try await bench.contents() == [id: ["n": 1, "m": 2]])
        // Its own device, whose answer was lost, means the same record.
        let again = try await bench.exchange([temporary(1, order(1), #"{"n":3}"#, extra: lost)])
        #expect(again.ids == [id])
        #expect(try await bench.contents().count == 1)
    }

    @Test("A record that came back under its id and was deleted is not made anew by a copy's insert (I6)")
    func deletedAfterReturn() async throws {
        let bench = try Bench(entities: entities)
        let id = try assigned(order(1))
        let returned = upsert(
            1, id, #"{"n":1}"#, entity: "order", extra: #","original":{"epoch":"lost","version":4}"#)
        #expect(try await bench.exchange([returned]).statuses == ["applied"])
        try await bench.server.commit(to: "s") { $0.delete("order", id: RecordID(stringLiteral: id)) }
        let copy = try await bench.exchange([temporary(1, order(1), #"{"n":1}"#, lane: "lane-copy")])
        #expect(copy.statuses == ["rejected"] && copy.errorCode(0) == "record_deleted")
        #expect(try await bench.contents().isEmpty)
    }

    @Test("A restored copy does not revive a record whose tombstone is gone, and a record still moves (I6)")
    func longGone() async throws {
        let bench = try Bench(entities: entities)
        let id = try #require(try await bench.exchange([temporary(1, order(7), #"{"n":1}"#)]).ids.first)
        // It moves: its id was given in another scope.
        let moved = [upsert(1, id, #"{"n":1}"#, entity: "order")]
        #expect(try await bench.exchange(moved, scope: "a").statuses == ["applied"])
        #expect(try await bench.exchange([temporary(1, order(7), #"{"n":1}"#)], scope: "b").ids == [id])
        try await bench.server.commit(to: "s") { $0.delete("order", id: RecordID(stringLiteral: id)) }
        bench.clock += 200 * 86_400_000
        var configuration = SyncServer.Configuration.still
        configuration.retention = .seconds(86_400)
        configuration.uptime = { .zero }
        configuration.now = { Date(milliseconds: bench.clock) }
        let server = SyncServer(store: bench.store, entities: entities, configuration: configuration)
        #expect(try await server.compact(trustingClock: true).expired > 0)
        let copy = try await bench.exchange([temporary(1, order(7), #"{"n":1}"#, lane: "lane-copy")])
        #expect(copy.statuses == ["rejected"])
        #expect(copy.errorCode(0) == "record_deleted")
        #expect(copy.ids == [id])
        #expect(try await bench.contents().isEmpty)
    }
}
