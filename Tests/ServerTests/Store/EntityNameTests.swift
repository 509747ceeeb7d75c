import Foundation
import Testing

@testable import TidemarkCore
@testable import TidemarkServer
@testable import TidemarkWire

/// Entities are named as tables are, and names in other cases are one entity, on every store (W4, W73).
@Suite("Names of entities on every store")
struct EntityNameTests {
    private static let name = #"Order "Details" é\"#
    /// As it stands in JSON.
    private static let json = #"Order \"Details\" é\\"#

    @Test("A name with blanks, quotes, a backslash and no ASCII travels everywhere", arguments: StoreKind.allCases)
    func anyName(kind: StoreKind) async throws {
        let bench = try EngineBench(kind, entities: [.state(Self.name, patch: [#"a "b"\"#])])
        #expect(String(decoding: bench.server.declarations.body(), as: UTF8.self).contains("\"\(Self.json)\":{"))
        let first = try await bench.push(
            upsert(1, "r1", #"{"a \"b\"\\":"x","of":"r2"}"#, entity: Self.json),
            upsert(2, "r2", #"{"n":1}"#, entity: Self.json), upsert(3, "r3", #"{"n":1}"#, entity: Self.json))
        #expect(first.statuses == ["applied", "applied", "applied"])
        let scan = try await bench.pullAll(limit: 2)
        #expect(scan.changes.map(\.entity) == [Self.name, Self.name, Self.name])
        #expect(scan.changes.first?.data == [#"a "b"\"#: "x", "of": "r2"])
        _ = try await bench.push(
            #"{"lane":"lane-aaaa","number":4,"type":"delete","entity":"\#(Self.json)","id":"r3","baseVersion":3}"#)
        let delta = try await bench.changes(since: scan.nextSince)
        #expect(delta.changes.map { "\($0.type) \($0.entity)" } == ["delete \(Self.name)"])

        var query = SnapshotQuery(of: "s")
        (query.limit, query.entity, query.fields) = (1, Self.name, #"a "b"\,n"#)
        let page = try Answer(try await bench.server.snapshot(query, access: .read(as: "ada")).body)
        #expect(page.changes.map(\.id) == ["r1"])
        (query.token, query.cursor) = (
            page.members["snapshotToken"] as? String, page.members["pageCursor"] as? String
        )
        let last = try Answer(try await bench.server.snapshot(query, access: .read(as: "ada")).body)
        #expect(last.changes.map { "\($0.entity) \($0.id)" } == ["\(Self.name) r2"])

        var named = NamedRecords(of: Self.name, in: "s", ids: ["r1", "none"])
        named.follow = [#"of:Order "Details" é\\"#]
        let records = try Answer(try await bench.server.records(named, access: .read(as: "ada")))
        #expect(records.changes.map(\.id) == ["r1", "none", "r2"])
        #expect(Set(records.changes.map(\.entity)) == [Self.name])

        let digest = try await bench.digest()
        let sums = try #require(digest["entities"] as? [String: Any])
        #expect(Array(sums.keys) == [Self.name])
        let parts = try await bench.digest { $0.entity = Self.name }
        #expect(parts["entity"] as? String == Self.name)
    }

    @Test("A name that is none is refused wherever it comes in", arguments: ["", " a", "a ", #"a\u0001"#, #"\u007f"#])
    func refused(json: String) async throws {
        let bench = try EngineBench(.memory)
        let refusal = await problem { _ = try await bench.push(upsert(1, "r1", "{}", entity: json)) }
        #expect(refusal?.code == .invalidIdentifier || json.isEmpty && refusal?.code == .malformedRequest)
    }

    @Test("Names that differ in case are one entity, spelled as the first one", arguments: StoreKind.allCases)
    func oneEntity(kind: StoreKind) async throws {
        let bench = try EngineBench(kind)
        let first = try await bench.push(upsert(1, "a", #"{"x":1}"#, entity: "MiXed"))
        let second = try await bench.push(
            upsert(1, "a", #"{"y":2}"#, base: 1, entity: "mixed"), upsert(2, "b", #"{"y":1}"#, entity: "MIXED"),
            client: "device-bbbb")
        #expect(first.statuses + second.statuses == ["applied", "applied", "applied"])
        let scan = try await bench.pullAll()
        #expect(scan.changes.map { "\($0.entity) \($0.id)" } == ["MiXed a", "MiXed b"])
        #expect(scan.changes.first?.data == ["x": 1, "y": 2])
        // The same bytes again are the same operation, however the log spells it.
        let again = try await bench.push(
            upsert(1, "a", #"{"y":2}"#, base: 1, entity: "mixed"), client: "device-bbbb")
        #expect(again.results.first?["replayed"] as? Bool == true)
        #expect(again.statuses == ["applied"])
        for name in ["MiXed", "mixed", "MIXED"] {
            var query = SnapshotQuery(of: "s")
            query.entity = name
            let page = try Answer(try await bench.server.snapshot(query, access: .read(as: "ada")).body)
            #expect(page.changes.map { "\($0.entity) \($0.id)" } == ["MiXed a", "MiXed b"])
            let named = NamedRecords(of: name, in: "s", ids: ["b"])
            let records = try Answer(try await bench.server.records(named, access: .read(as: "ada")))
            #expect(records.changes.map { "\($0.type) \($0.entity)" } == ["upsert MiXed"])
            #expect(try await bench.digest { $0.entity = name }["entity"] as? String == "MiXed")
        }
        try await bench.server.commit(to: "s") { $0.delete("mIXed", id: "b") }
        let delta = try await bench.changes(since: scan.nextSince)
        #expect(delta.changes.map { "\($0.type) \($0.entity) \($0.id)" } == ["delete MiXed b"])
    }

    @Test("The hash of a digest is over the name in lower case, so that both sides know it")
    func digests() async throws {
        var records: [String?] = []
        for name in ["MiXed É", "mixed É", "MIXED É"] {
            for kind in StoreKind.allCases {
                let bench = try EngineBench(kind)
                _ = try await bench.push(upsert(1, "a", #"{"x":1}"#, entity: name))
                let entities = try #require(try await bench.digest()["entities"] as? [String: [String: Any]])
                records.append(entities[name]?["records"] as? String)
            }
        }
        let number = Array("a".utf8).withUnsafeBytes { CellHash.record(entity: "mIxEd É", id: $0) }
        #expect(
            Set(records) == [
                String(repeating: "0", count: 16 - String(number, radix: 16).count) + String(number, radix: 16)
            ])
    }

    @Test("A declared name is the spelling of all that comes later", arguments: StoreKind.allCases)
    func declared(kind: StoreKind) async throws {
        let bench = try EngineBench(kind, entities: [.state("MiXed", conflict: .manual), .events("Log")])
        _ = try await bench.push(upsert(1, "a", #"{"x":1}"#, entity: "mixed"))
        let edits = try await bench.push(
            upsert(1, "a", #"{"x":2}"#, base: 0, entity: "MIXED"), upsert(2, "e", "{}", entity: "LOG"),
            client: "device-bbbb")
        // Under whichever name: the policy that was declared holds.
        #expect(edits.statuses == ["conflict", "applied"])
        let scan = try await bench.pullAll()
        #expect(scan.changes.map { "\($0.type) \($0.entity)" } == ["upsert MiXed", "event Log"])
        let digest = try await bench.digest()
        #expect((digest["leftOut"] as? [String: String]) == ["Log": "events"])
    }

    @Test(
        "Nodes on one store agree, whoever was first and whatever each of them was told", arguments: StoreKind.allCases)
    func nodes(kind: StoreKind) async throws {
        let bench = try EngineBench(kind)
        let other = bench.node(entities: [.state("MIXED")])
        _ = try await bench.push(upsert(1, "a", #"{"x":1}"#, entity: "mixed"))
        let second = try await bench.push(
            upsert(1, "a", #"{"y":1}"#, base: 1, entity: "MIXED"), client: "device-bbbb", on: other)
        #expect(second.statuses == ["applied"])
        #expect(try await bench.pullAll().changes.map { "\($0.entity) \($0.version)" } == ["mixed 2"])
    }

    @Test("Ids are counted and temporary ones are known under any spelling", arguments: StoreKind.allCases)
    func ids(kind: StoreKind) async throws {
        let bench = try EngineBench(kind, entities: [.state("Order", ids: .server)])
        func insert(_ number: Int, _ temporary: Int64, _ entity: String) -> String {
            #"{"lane":"lane-aaaa","number":\#(number),"type":"upsert","entity":"\#(entity)","#
                + #""tempId":"\#(temporary)","fields":{}}"#
        }
        let base: Int64 = -(1 << 61) - 5
        let answer = try await bench.push(
            insert(1, base, "order"), insert(2, base - 1, "ORDER"),
            #"{"lane":"lane-aaaa","number":3,"type":"upsert","entity":"line","id":"l","#
                + #""fields":{"of":{"$int":"\#(base)"}},"refs":[{"field":"of","entity":"oRDER"}]}"#)
        let ids = answer.results.compactMap { $0["id"] as? String }
        #expect(ids.count == 2 && Set(ids).count == 2 && ids.allSatisfy(AssignedID.matches))
        #expect(answer.statuses == ["applied", "applied", "applied"] || answer.statuses[2] == "merged")
        let line = try await bench.pullAll().changes.first { $0.entity == "line" }
        #expect(line?.data?["of"] as? Int64 == ids.first.flatMap { Int64($0) })
    }

    @Test("Rules and directions hold for every spelling")
    func rules() async throws {
        let bench = try Bench(
            entities: [.state("Hidden", direction: .push), .state("Told", direction: .pull)],
            rules: [EntityRule("Task") { _ in .reject(code: "no", detail: "No.") }])
        let answer = try await bench.exchange([
            upsert(1, "a", "{}", entity: "tASK"), upsert(2, "a", "{}", entity: "hIDDEN"),
            upsert(3, "a", "{}", entity: "tOLD"),
        ])
        #expect(answer.errorCode(0) == "no")
        #expect(answer.statuses[1] == "applied")
        #expect(answer.errorCode(2) == "direction_forbidden")
        #expect(answer.changes.isEmpty)
    }

    @Test("A scope takes records of so many entities that nobody declared", arguments: StoreKind.allCases)
    func bound(kind: StoreKind) async throws {
        var limits = Limits()
        limits.entities = 2
        let bench = try StoreBench(kind)
        let server = SyncServer(store: bench.store, entities: [.state("told")], limits: limits, configuration: .still)
        try await server.commit(to: "s") { changes in
            for name in ["a", "b"] { changes.upsert(name, id: "1", [:]) }
        }
        let body =
            #"{"scope":"s","clientId":"device-aaaa","operations":["#
            + [
                upsert(1, "1", "{}", entity: "c"), upsert(2, "2", "{}", entity: "A"),
                upsert(3, "1", "{}", entity: "Told"),
            ]
            .joined(separator: ",") + "]}"
        let answer = try Answer(
            try await server.exchange(Array(body.utf8), mode: .pushOnly) { _ in .readWrite(as: "ada") })
        #expect(answer.statuses == ["rejected", "applied", "applied"])
        #expect(answer.errorCode(0) == "entity_unknown")
    }
}
