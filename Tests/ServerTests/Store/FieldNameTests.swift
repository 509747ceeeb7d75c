import Foundation
import Testing

@testable import TidemarkCore
@testable import TidemarkServer
@testable import TidemarkWire

/// Fields are named as columns are: names that differ only in the case of ASCII letters are one, on every store (W75).
@Suite("Names of fields on every store")
struct FieldNameTests {
    @Test("A record keeps the spelling that came first, whatever edits are sent in", arguments: StoreKind.allCases)
    func oneField(kind: StoreKind) async throws {
        let bench = try EngineBench(kind)
        _ = try await bench.push(upsert(1, "a", #"{"Title":"x","n":1,"É":1}"#))
        let edit = try await bench.push(upsert(1, "a", #"{"title":"y","é":2}"#, base: 1), client: "device-bbbb")
        let late = try await bench.push(
            upsert(1, "a", #"{"TITLE":"z"}"#, base: 2, extra: #","bases":{"TITLE":1}"#), client: "device-cccc")
        #expect(edit.statuses + late.statuses == ["applied", "merged"])
        let overwrote = try #require(late.results[0]["overwrote"] as? [[String: Any]])
        #expect(overwrote.map { $0["field"] as? String } == ["Title"])
        let scan = try await bench.pullAll()
        #expect(scan.changes.first?.data == ["Title": "z", "n": 1, "É": 1, "é": 2])
        var query = SnapshotQuery(of: "s")
        (query.entity, query.fields) = ("task", "TITLE")
        let page = try Answer(try await bench.server.snapshot(query, access: .read(as: "ada")).body)
        #expect(page.changes.first?.data == ["Title": "z"])
    }

    @Test("The digest of each side is the same in any case of a name", arguments: StoreKind.allCases)
    func digests(kind: StoreKind) async throws {
        var sums: Set<String> = []
        for name in ["Title", "title", "TITLE"] {
            let bench = try EngineBench(kind)
            _ = try await bench.push(upsert(1, "a", "{\"\(name)\":\"x\"}"), upsert(2, "b", "{}"))
            for asked in ["Title", "title"] {
                let parts = try #require(
                    try await bench.digest { ($0.entity, $0.fields) = ("task", [asked]) }["parts"] as? [[String: Any]])
                sums.insert(try #require(parts.first?["sum"] as? String))
                #expect(Array((parts.first?["having"] as? [String: Any] ?? [:]).keys) == [asked])
            }
        }
        #expect(sums.count == 1 && sums != ["0000000000000000"])
    }

    @Test("A field's declaration holds for its name in any case", arguments: StoreKind.allCases)
    func declared(kind: StoreKind) async throws {
        let bench = try EngineBench(
            kind,
            entities: [.state("task", serverFields: ["Owner"], defaults: ["State": .text("new")], patch: ["Body"])])
        let text = String(repeating: "All is well. ", count: 400)
        let first = try await bench.push(
            upsert(1, "a", #"{"OWNER":"me","state":"old","BODY":"\#(text)"}"#), upsert(2, "b", #"{"x":1}"#))
        #expect(first.statuses == ["merged", "applied"])
        var scan = try await bench.pullAll()
        #expect(scan.changes.map(\.data) == [["State": "old", "Body": text], ["x": 1, "State": "new"]])
        let patch = try #require(
            TextPatch.make(field: "body", from: Array(text.utf8), to: Array((text + "!").utf8)))
        var writer = JSONWriter()
        writer.patches([patch])
        let edit = try await bench.push(
            #"{"lane":"lane-bbbb","number":1,"type":"patch","entity":"task","id":"a","baseVersion":1,"#
                + #""fields":{},"patch":"# + String(decoding: writer.bytes, as: UTF8.self) + "}", client: "device-bbbb")
        #expect(edit.statuses == ["applied"])
        scan = try await bench.pullAll()
        #expect(scan.changes.last?.data == ["State": "old", "Body": text + "!"])
    }

    @Test("One operation names a field once, in whichever case")
    func once() async throws {
        let bench = try EngineBench(.memory)
        let refusal = await problem { _ = try await bench.push(upsert(1, "a", #"{"x":1,"X":2}"#)) }
        #expect(refusal?.code == .malformedRequest)
        let record = try DataObject(stored: Array(#"{"Ab":1,"c":2}"#.utf8))
        var operation = Operation(.upsert, entity: "task", id: "a")
        operation.fields = DataObject(["aB": .integer(3), "C": .integer(4), "d": .integer(5), "E": .integer(6)])
        operation.fieldBases = ["aB".utf8.map { $0 }[...]: 7, "c".utf8.map { $0 }[...]: 8]
        let spelled = operation.spelled(as: record, or: ["e", "f"])
        #expect(String(decoding: spelled.fields.bytes, as: UTF8.self) == #"{"Ab":3,"c":4,"d":5,"e":6}"#)
        #expect(spelled.base(ofField: Array("Ab".utf8)[...]) == 7)
        #expect(operation.spelled(as: nil, or: []) == operation)
    }

    @Test("A rule of the operator's sees a field in whichever case it comes, and sets the one that is there")
    func rules() async throws {
        let rule = EntityRule("task") { edit in
            edit.proposed["title"] == "" ? .reject(code: "title_missing", detail: "It needs one.") : .set(["hours": 1])
        }
        let bench = try Bench(rules: [rule])
        let answer = try await bench.exchange([
            upsert(1, "a", #"{"TITLE":""}"#), upsert(2, "b", #"{"TITLE":"x","Hours":5}"#),
            upsert(3, "b", #"{"title":""}"#, base: 0, extra: #","baseNumber":2"#),
        ])
        #expect(answer.statuses == ["rejected", "merged", "rejected"])
        #expect(try await bench.contents() == ["b": ["TITLE": "x", "Hours": 1]])
    }

    @Test("Bases and patches are of fields in whichever case")
    func bases() async throws {
        let bench = try EngineBench(.memory, entities: [.state("task", conflict: .manual)])
        _ = try await bench.push(upsert(1, "a", #"{"title":"x","n":1}"#), upsert(2, "a", #"{"title":"y"}"#, base: 1))
        let edit = try await bench.push(
            upsert(1, "a", #"{"title":"z"}"#, base: 2, extra: #","bases":{"Title":1}"#), client: "device-bbbb")
        #expect(edit.statuses == ["conflict"])
        for twice in [
            #""bases":{"a":1,"A":2},"fields":{"a":1}"#,
            #""fields":{"a":"x"},"patch":[{"field":"A","splices":[],"hash":""}]"#,
        ] {
            let refusal = await problem {
                _ = try await bench.push(
                    #"{"lane":"lane-cccc","number":1,"type":"patch","entity":"task","id":"a","baseVersion":2,"# + twice
                        + "}")
            }
            #expect(refusal?.code == .malformedRequest)
        }
    }
}
